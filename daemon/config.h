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
 *	per_gid = 100%			the same of one primary gid
 *	sessions = 1024
 *	sessions_per_uid = 64		as for sessions, also for charge, gpu, domains, buffers and
 *	sessions_per_gid = 1024		regions (proto/books.h), of all, of a uid, of a gid
 *	access = local_write,...	access flags that clients may ask for
 *	[uid 1000]
 *	bytes = 64G
 *	sessions = 200			also charge, gpu, domains, buffers, regions
 *	[gid 100]
 *	bytes = 64G
 *	[class team-a]			clients that come through a socket of their own
 *	socket = /run/kvregd/team-a/kvregd.sock
 *	mode = 0660
 *	bytes = 40%
 *	sessions = 100
 *	leases = all			or momentary, or none: raised RLIMIT_MEMLOCK of its processes;
 *					of the default class in [quota]
 *	[test team-a]			faults on purpose: daemon/faults.h
 *
 * CUDA is off unless it is asked for: libcuda.so.1 is closed code that a client's handles go into,
 * its sessions are confined less (daemon/session/confine.h), and who owns one can open all GPUs of
 * the node as the session user, also those that its container does not show.
 *
 * A uid is not a tenant: pods share them. A class is: the directory of its socket is what its pods
 * mount. Quota is by class, and within it by uid and primary gid.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/faults.h"
#include "daemon/quota.h"
#include "proto/limits.h"

/* Which memlock leases clients of a class may have. */
enum lease_policy { LEASES_ALL, LEASES_MOMENTARY, LEASES_NONE };

struct class_rule {
	char name[CLASS_NAME_MAX + 1];
	char socket[108]; /* as sun_path */
	mode_t mode;
	enum lease_policy leases;
	struct limits limits;
};

struct config {
	char path[256]; /* of the file in force; empty: defaults only */
	char session_user[64];
	char cgroup[256]; /* empty: the default place */
	bool cuda_sessions;
	struct quotas quotas;
	uint32_t access;  /* IB_UVERBS_ACCESS_* */
	size_t n_classes; /* the first is "default", whose socket is a command line option */
	struct class_rule classes[1 + CLASSES_MAX];
	struct faults faults; /* none but in tests */
};

/**
 * config_load() - reads @path, or only sets the defaults if it is NULL.
 * @allow_faults: without it a [test ...] section is an error
 * @ret_words: on failure one line for people, naming file, line and reason
 *
 * Return: 0; -ENOENT no such file; -EINVAL; or another -errno. @ret_config is set only on success.
 */
int config_load(const char *path, bool allow_faults, struct config *ret_config, char *ret_words,
		size_t size);

void config_fini(struct config *config);

#endif
