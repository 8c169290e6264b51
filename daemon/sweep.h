/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_SWEEP_H
#define KVREG_DAEMON_SWEEP_H
/*
 * Kin: processes that were forked while their parent's RLIMIT_MEMLOCK was raised, and inherited it.
 * They are looked for in /proc and lowered to the limit that the parent had before, pass by pass
 * until one finds none: what forks meanwhile passes on what it has, so it is found in the next.
 *
 * Whose kin a process is can be told by any of
 *  - its limit: a raised one carries a mark in its last 12 bits, which are below a page and mean
 *    nothing to the kernel;
 *  - its parents;
 *  - its user and cgroup, if it was started after the limit was raised: it may have lost its parents
 *    and taken the mark off, by lowering its limit a little. The user alone would not do, for
 *    containers share them; nor can a process without privilege leave its cgroup upwards.
 * and in any case it has no higher limit than was given.
 *
 * Run in a child of the supervisor, since /proc of a large host takes longer than its loop may.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "daemon/kin.h"

#define MARK_BITS 12u
struct sweep {
	pid_t pid; /* whose kin; it is left alone */
	uid_t uid;
	const char *cgroup; /* of cgroup v2; empty: not known */
	uint32_t mark;
	struct rlimit before;
	uint64_t highest;    /* limit that was given */
	uint64_t since;      /* when, clock ticks since boot */
	const pid_t *spared; /* who have leases of their own */
	size_t n_spared;
};

/** sweep_now() - clock ticks since boot. */
uint64_t sweep_now(void);

/** sweep_last_pid() - the last process number that was given out, in our pid namespace; -1: unknown.
 *  As long as it stays, nobody has forked. */
long sweep_last_pid(void);

/** sweep_is_kin() - whether @pid, which has @limit, is one that would be lowered. */
bool sweep_is_kin(const struct sweep *sweep, pid_t pid, const struct rlimit *limit);

/** sweep_run() - lowers, and writes each that was lowered to @out as a struct kin. */
void sweep_run(const struct sweep *sweep, int out);

#endif
