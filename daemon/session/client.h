/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_CLIENT_H
#define KVREG_SESSION_CLIENT_H
/*
 * The one client that this process serves, and everything that is held for it.
 *
 * The client owns domains, buffers and regions; a region refers to its domain. All is destroyed by
 * client_fini() in that order reversed, so that nothing of ours stays pinned in the kernel once
 * the process ends by itself.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/again.h"
#include "daemon/session/backing.h"
#include "daemon/session/confine.h"
#include "daemon/session/control.h"
#include "daemon/session/device.h"
#include "daemon/session/handles.h"
#include "daemon/session/lease.h"
#include "daemon/session/self.h"
#include "proto/books.h"
#include "proto/wire.h"

struct grant {
	struct amounts granted; /* what the supervisor lets this process have */
	struct amounts used; /* what our objects take; of charge, the kernel's count may be lower */
	uint64_t memlock;    /* RLIMIT_MEMLOCK as last read, bytes */
	bool fixed;          /* the supervisor cannot raise that limit */
	uint32_t seq;        /* of the request under way */
	bool answered;
	bool refused;
	enum book book; /* that refused */
	char scope[16]; /* whose limit refused */
	uint64_t quota_used;
	uint64_t quota_limit;
	char holders[HOLDERS_TEXT];
};

/* The supervisor's answer to which device a number is. */
struct device_answer {
	uint32_t seq;
	bool answered;
	bool is_uverbs;
	char name[DEVICE_NAME_MAX];
};

struct client {
	int sock;
	int pidfd;  /* of the connecting process; -1 if the kernel gave none */
	bool ended; /* the client is gone or broke the protocol: stop at the next chance */
	bool greeted;
	uint32_t pid, uid, gid; /* as the kernel said at accept */
	char klass[LABEL_MAX + 1];
	char program[LABEL_MAX + 1];
	uint32_t access_allowed;
	const struct device_ops *device;
	struct confinement confinement; /* may narrow at Hello */
	struct control control;
	struct grant grant;
	struct device_answer device_answer;
	struct lease_answer lease_answer;
	struct self self;
	struct handles domains, buffers, regions;
	struct again again;
	struct backing_list backings;
	struct arena arena; /* of the request being served */
	uint8_t record[RECORD_MAX];
	uint8_t answer[RECORD_MAX];
};

/**
 * client_init() - an empty client from the supervisor's Welcome; takes @sock and @pidfd over.
 * @c: zeroed, with its confinement, control channel and self set. Return: 0 or -errno.
 */
int client_init(struct client *c, const Kvreg__Welcome *welcome, int sock, int pidfd);

/** client_charged() - bytes that the kernel charges to this process now. Return: 0 or -errno. */
int client_charged(const struct client *c, uint64_t *ret_bytes);

/**
 * client_fini() - destroys every region through its domain's fd, then the rest.
 * Return: whether all regions are gone and the kernel charges this process nothing any more.
 */
bool client_fini(struct client *c);

#endif
