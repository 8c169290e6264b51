/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_CONFIG_H
#define KVREG_DAEMON_CONFIG_H
/*
 * /etc/kvregd.conf: an INI file. Every key has a default that is safe on a host that many share;
 * an unknown section or key is an error that names its line, so that a slip of the pen in a quota
 * does not pass for "no quota".
 *
 *	[daemon]
 *	session_user = kvreg-session	who sessions run as
 *	cgroup = /path			where their leaves are made, below the cgroup2 mount; or none
 *	cuda_sessions = off		whether a client may have a session that runs CUDA; or on
 *	[quota]
 *	total = 50%			bytes all sessions may pin: a size, or a share of MemTotal
 *	per_uid = 25%			bytes the sessions of one uid may pin
 *	sessions = 1024
 *	sessions_per_uid = 64
 *	access = local_write,...	access flags that clients may ask for
 *	[uid 1000]
 *	bytes = 64G
 *	sessions = 200
 *	[class team-a]			clients that come through a socket of their own
 *	socket = /run/kvregd/team-a/kvregd.sock
 *	mode = 0660
 *	bytes = 40%
 *	sessions = 100
 *
 * CUDA is off unless it is asked for: libcuda.so.1 is closed code that a client's handles go into,
 * its sessions are confined less (daemon/session/confine.h), and who owns one can open all GPUs of
 * the node as the session user, also those that its container does not show.
 *
 * A uid is not a tenant: pods share them. A class is: the directory of its socket is what its pods
 * mount. Quota is by class, and within it by uid.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/limits.h"

struct uid_rule {
	uid_t uid;
	uint64_t bytes;
	uint32_t sessions;
};

struct class_rule {
	char name[CLASS_NAME_MAX + 1];
	char socket[108]; /* as sun_path */
	mode_t mode;
	uint64_t bytes;
	uint32_t sessions;
};

struct config {
	char path[256]; /* of the file in force; empty: defaults only */
	char session_user[64];
	char cgroup[256]; /* empty: the default place */
	bool cuda_sessions;
	uint64_t total_bytes;
	uint64_t uid_bytes;
	uint32_t sessions;
	uint32_t uid_sessions;
	uint32_t access;  /* IB_UVERBS_ACCESS_* */
	size_t n_classes; /* the first is "default", whose socket is a command line option */
	struct class_rule classes[1 + CLASSES_MAX];
	size_t n_rules;
	struct uid_rule *rules;
};

/**
 * config_load() - reads @path, or only sets the defaults if it is NULL.
 * @ret_words: on failure one line for people, naming file, line and reason
 *
 * Return: 0; -ENOENT no such file; -EINVAL; or another -errno. @ret_config is set only on success.
 */
int config_load(const char *path, struct config *ret_config, char *ret_words, size_t size);

void config_fini(struct config *config);

/** config_uid() - what holds for @uid: its own section, else the defaults. */
struct uid_rule config_uid(const struct config *config, uid_t uid);

/**
 * config_size() - "4096", "512K", "16G", "1.5T" (powers of 1024) or "25%" of @whole.
 * Return: 0, -EINVAL or -ERANGE.
 */
int config_size(const char *text, uint64_t whole, uint64_t *ret_bytes);

#endif
