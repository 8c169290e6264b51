/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_LEASE_H
#define KVREG_DAEMON_LEASE_H
/*
 * Memlock leases: a raised RLIMIT_MEMLOCK of a client process itself, for memory that cannot be
 * shared with a session.
 *
 * A leaseholder is a process, whichever of its connections asked. Its limit is always
 *
 *	kept + open + before		or what a held lease gives, if that is more
 *
 * with the bytes of ended leases that are pinned or locked still (never more than VmPin or VmLck, of
 * which the larger can only lower it), those of momentary leases that have not ended, and the limit that it had before. Booked is the
 * same without the last: so all that leases let processes pin is within the quota by construction, at
 * any time; what a process pins by the limit that it had anyway it could pin without us.
 *
 * RLIMIT_MEMLOCK bounds pins and mlock(2) each by itself, so a process can have up to twice what is
 * booked for it: the one it was leased for, and as much of the other. The kernel knows no better.
 *
 * A limit that is not raised is the process's own affair: it is not touched, and read anew when the
 * next lease begins.
 *
 * Whose limit is set: the process that connected, by the number that its pidfd proves before the
 * call and after it (a number is not used again while its process is there).
 *
 * Children inherit a limit. When the last momentary lease of a process ends, or a process with a
 * held lease does, its kin are looked for and lowered (sweep.h), unless nobody on the host has
 * forked meanwhile; who ends the lease is answered when that is done. What kin had pinned by then is
 * booked as long as it is pinned. As long as a process keeps something its limit is above the old one,
 * and children forked then are found within LEASE_SWEEP_S.
 */
#include <ev.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/resource.h>

#include "control.pb-c.h"
#include "daemon/account.h"
#include "daemon/sweep.h"

struct session;
struct supervisor;

/** A momentary lease of one connection. */
struct lease {
	LIST_ENTRY(lease) link; /* session::leases */
	uint32_t number;
	uint64_t bytes;
};

LIST_HEAD(lease_list, lease);

struct leaseholder {
	LIST_ENTRY(leaseholder) link; /* supervisor::leaseholders */
	struct supervisor *supervisor;
	struct charge charge;
	uint32_t sessions; /* that refer to it */
	pid_t pid;
	uid_t uid;
	char cgroup[256]; /* of cgroup v2; empty: not known */
	int pidfd;
	bool gone; /* the process */
	uint32_t mark;
	struct rlimit before;
	rlim_t given;  /* soft limit, as it was last set or read */
	uint64_t kept; /* bytes of ended leases that are pinned still, as last seen */
	uint32_t n_open;
	uint64_t open; /* bytes of momentary leases */
	uint64_t held; /* limit that a held lease gives; 0: there is none */
	uint64_t held_booked;
	uint64_t highest; /* limit since it was raised; 0: it is not */
	uint64_t since;   /* when that was */
	long last_pid;    /* that had been given out then, or at the last sweep */
	struct kin_list kin;
	int swept;        /* from the child that sweeps; -1: none does */
	double swept_at;  /* seconds of the loop's clock: when the last one began */
	bool is_last;     /* the limit was not raised any more then */
	bool sweep_again; /* more was to be looked for while it did */
	struct ev_io on_swept, on_gone;
	struct ev_timer look;
};

LIST_HEAD(leaseholder_list, leaseholder);

/** lease_request() - gives @session's client what it asks for, or refuses; answers either way. */
void lease_request(struct session *session, const Kvreg__LeaseRequest *request);

/** lease_end() - ends a momentary lease of @session's; the answer may come later. */
void lease_end(struct session *session, const Kvreg__LeaseEnd *request);

/** lease_forget() - @session's process is gone: its momentary leases end. */
void lease_forget(struct session *session);

/** lease_leave() - the same, and @session has no leaseholder any more. */
void lease_leave(struct session *session);

/** lease_is_held() - whether @session's client has a held lease and lives. */
bool lease_is_held(const struct session *session);

/** lease_booked() - bytes that are booked for all leases of @session's client. */
uint64_t lease_booked(const struct session *session);

/** leases_fini() - forgets all leaseholders. Their limits are theirs now: nobody lowers them. */
void leases_fini(struct supervisor *supervisor);

#endif
