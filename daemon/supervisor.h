/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_SUPERVISOR_H
#define KVREG_DAEMON_SUPERVISOR_H
/*
 * The supervisor: one loop that accepts, identifies, spawns, grants and counts.
 *
 * It reads no byte and takes no fd from whoever connects, and never is the last holder of such a
 * socket; what sessions tell it is hostile input. It does nothing that can block: no lookup of
 * names, no write that waits, no lock.
 *
 * Stopping ends no session: each serves what it holds until its client ends, and is told that
 * nothing more will be granted.
 */
#include <ev.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "daemon/account.h"
#include "daemon/config.h"
#include "daemon/lease.h"
#include "daemon/listener.h"
#include "daemon/privilege.h"
#include "daemon/refuse.h"
#include "daemon/spawn.h"

struct session;
struct gather;
struct options;

/* A child that is no session: it delivers a refusal, or kills. */
struct child {
	LIST_ENTRY(child) link; /* supervisor::children */
	pid_t pid;
	bool refuses;
};

struct supervisor {
	struct ev_loop *loop;
	struct config config;
	const char *device; /* "verbs" or "mock" */
	struct privilege privilege;
	struct spawner spawner;
	struct leaves leaves;
	uint64_t next_leaf; /* number in a leaf's name: never one that an earlier supervisor used */
	struct books books;
	struct listener clients[1 + CLASSES_MAX]; /* one a class */
	struct listener admins;
	LIST_HEAD(session_list, session) sessions;
	struct leaseholder_list leaseholders;
	LIST_HEAD(gather_list, gather) gathers;
	LIST_HEAD(child_list, child) children;
	struct refusals refusals;
	uint32_t cookie; /* of the last query */
	double started;
	uint64_t accepted, refused, grants_refused;
	struct ev_signal stop[2];
	struct ev_signal child;
	struct ev_signal hangup;
};

/**
 * supervisor_init() - loads, finds out, binds; what it needs privilege for is done after this.
 * @ret_words: on failure one line for people. Return: 0 or -errno.
 */
int supervisor_init(struct supervisor *supervisor, const struct options *options, char *ret_words,
		    size_t size);

/** supervisor_run() - serves until it is told to stop. */
int supervisor_run(struct supervisor *supervisor);

void supervisor_fini(struct supervisor *supervisor);

/** supervisor_adopt() - takes a child that is no session, to reap it. @refuses: of refuse_connection() */
void supervisor_adopt(struct supervisor *supervisor, pid_t pid, bool refuses);

/** supervisor_paused() - whether a listener waits for fds or memory. */
bool supervisor_paused(const struct supervisor *supervisor);

#endif
