/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_SESSION_H
#define KVREG_DAEMON_SESSION_H
/*
 * One connection: the process that serves it, and what it is granted.
 *
 *	spawning -> serving    it has said Ready (an administrator's: at once)
 *	any      -> draining   the client is gone and the session is to end; or the session ended
 *			       without having destroyed what it made, and the client still lives
 *	draining -> gone       freed
 *
 * A session whose client has a held lease stays as long as that client, without a process.
 *
 * The grant is given back when the kernel has no region left under it: when the session is dead and
 * its leaf shows no RDMA object any more, whoever still holds the client's uverbs fd. Without
 *leaves (no cgroup v2) that cannot be seen; then it is when the session ended by itself (exit
 *status 0: it destroyed its regions), or when session and client are both gone.
 */
#include <ev.h>
#include <sys/queue.h>

#include "daemon/account.h"
#include "daemon/channel.h"
#include "daemon/lease.h"
#include "daemon/peer.h"
#include "daemon/spawn.h"

struct supervisor;
struct session;

enum session_state {
	SESSION_SPAWNING,
	SESSION_SERVING,
	SESSION_DRAINING,
	SESSION_GONE,
	SESSION_STATES /* their number: each has its place in tests/integration/test-states.c */
};

struct session {
	LIST_ENTRY(session) link; /* supervisor::sessions */
	struct supervisor *supervisor;
	enum session_state state;
	Kvreg__Role role;
	size_t klass; /* of config::classes */
	struct peer peer;
	struct charge charge; /* of a client's session: what it is granted */
	pid_t pid;            /* 0 once reaped */
	bool clean;           /* it ended by itself */
	uint32_t reported;    /* regions since the last query */
	int pidfd;
	double started; /* seconds of the loop's clock */
	char program[LABEL_MAX + 1];
	struct channel channel;
	struct ev_io ended;  /* pidfd */
	struct ev_io orphan; /* peer.pidfd */
	struct ev_timer grace;
	struct leaf leaf;
	struct ev_timer drained;         /* asks the leaf */
	struct leaseholder *leaseholder; /* a reference; NULL: its client never asked */
	struct lease_list leases;        /* momentary ones that have not ended */
	uint32_t n_leases, last_lease;
	uint32_t lease_waits; /* seq of a LeaseEnd that is to be answered after a sweep; 0: none */
};

const char *session_state_name(enum session_state state);

/** session_class() - the name of the class that its client belongs to. */
const char *session_class(const struct session *session);

/**
 * session_new() - starts the process for @peer, which is taken over, and *@sock, which is closed.
 * @charge: taken over; empty for an administrator
 *
 * Return: 0; or -errno: nothing was taken over.
 */
int session_new(struct supervisor *supervisor, Kvreg__Role role, struct peer *peer,
		struct charge *charge, int *sock, struct spare *spare);

/** session_free() - forgets the session; its process, if it lives, goes on by itself. NULL ok. */
void session_free(struct session *session);

/** session_send() - sends; a session that does not take it is ended. */
void session_send(struct session *session, const Kvreg__Down *down);

/** session_kill() - ends the process at once. What it made is left to its client's own fd. */
void session_kill(struct session *session);

#endif
