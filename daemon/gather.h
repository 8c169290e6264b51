/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_GATHER_H
#define KVREG_DAEMON_GATHER_H
/*
 * One question of an administrator to all sessions. Each answers when it can; who has not after
 * QUERY_WAIT_S is named as unanswered. Answers go on to the administrator's session as they come,
 * so nothing is collected here, and a session that hangs delays nobody.
 */
#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "control.pb-c.h"

struct supervisor;
struct session;

struct gather {
	LIST_ENTRY(gather) link; /* supervisor::gathers */
	struct supervisor *supervisor;
	struct session *admin;
	uint32_t seq;
	uint32_t cookie;
	bool regions;
	struct ev_timer deadline;
	size_t n_asked;
	struct session *asked[]; /* NULL once it has answered or ended */
};

/**
 * gather_start() - asks every client session (@client_pid 0) or those of one client.
 * Return: 0 or -ENOMEM.
 */
int gather_start(struct supervisor *supervisor, struct session *admin, uint32_t seq, bool regions,
		 uint32_t client_pid);

/** gather_report() - @session says what it holds. A report nobody asked for is dropped. */
void gather_report(struct supervisor *supervisor, struct session *session,
		   const Kvreg__Report *report);

/** gather_forget() - @session has ended, as one asked or as the one who asks. */
void gather_forget(struct supervisor *supervisor, struct session *session);

#endif
