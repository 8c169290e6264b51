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
 *  - its user, if it was started after the limit was raised, and has no higher one than that: it may
 *    have lost its parents and taken the mark off, by lowering its limit a little.
 *
 * Run in a child of the supervisor, since /proc of a large host takes longer than its loop may.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define MARK_BITS 12u
#define KIN_MAX   256u

/** A process that had the limit, with what it has pinned and locked: that stays. */
struct kin {
	pid_t pid;
	uint64_t started; /* clock ticks since boot, with its pid its name */
	uint64_t pinned;  /* bytes */
};

struct sweep {
	pid_t pid; /* whose kin; it is left alone */
	uid_t uid;
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

/** sweep_pinned() - what @kin has pinned and locked now; 0: it is gone. */
uint64_t sweep_pinned(const struct kin *kin);

/** sweep_run() - lowers. Return: how many of @ret_kin have something pinned. */
size_t sweep_run(const struct sweep *sweep, struct kin ret_kin[KIN_MAX]);

#endif
