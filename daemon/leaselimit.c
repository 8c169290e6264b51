/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leaselimit.h"

#include <errno.h>
#include <poll.h>

#include "daemon/supervisor.h"
#include "daemon/sysfs.h"
#include "proto/procfs.h"

#define MARKS (1u << MARK_BITS)

bool leaselimit_is_alive(const struct leaseholder *holder)
{
	struct pollfd fd = { .fd = holder->pidfd, .events = POLLIN };

	return !holder->gone && poll(&fd, 1, 0) == 0;
}

/* ---- what is booked, and what the limit is ---- */

/* What leases take of the quota, with @open bytes open and @held booked for a held one. What is kept
 * is within the held one as far as that goes. */
uint64_t leaselimit_booking(const struct leaseholder *holder, uint64_t open, uint64_t held)
{
	uint64_t bytes = holder->kept > held ? holder->kept : held;

	if (__builtin_add_overflow(bytes, open, &bytes) ||
	    __builtin_add_overflow(bytes, kin_pinned(&holder->kin), &bytes))
		return UINT64_MAX;
	return bytes;
}

/* A process may pin the same memory once for each device, and nobody sees that it is the same. */
static struct amounts amounts_of(const struct leaseholder *holder, uint64_t bytes)
{
	unsigned int devices = holder->charge.books->devices;
	struct amounts amounts = { { 0 } };

	amounts.of[BOOK_CHARGE] = bytes;
	amounts.of[BOOK_MEMORY] = bytes / devices + (bytes % devices != 0);
	return amounts;
}

/* Return: 0 or KVREG_E_LIMIT_QUOTA: then what was booked stays. */
int leaselimit_book(struct leaseholder *holder, uint64_t bytes, struct quota *ret_quota)
{
	struct amounts amounts;

	holder->charge.books->devices = sysfs_devices();
	amounts = amounts_of(holder, bytes);
	charge_lower(&holder->charge, &amounts);
	return charge_raise(&holder->charge, &amounts, &amounts, ret_quota);
}

uint64_t leaselimit_now(const struct leaseholder *holder)
{
	uint64_t bytes = holder->before.rlim_cur;

	if (bytes == RLIM_INFINITY || __builtin_add_overflow(bytes, holder->kept, &bytes) ||
	    __builtin_add_overflow(bytes, holder->open, &bytes) || bytes > RLIM_INFINITY - MARKS)
		return RLIM_INFINITY;
	if (bytes < holder->held)
		bytes = holder->held;
	return bytes > holder->before.rlim_cur ? (bytes + MARKS - 1) / MARKS * MARKS + holder->mark
					       : bytes;
}

struct sweep leaselimit_sweep(const struct leaseholder *holder)
{
	return (struct sweep){
		.pid = holder->pid,
		.uid = holder->uid,
		.cgroup = holder->cgroup,
		.mark = holder->mark,
		.before = holder->before,
		.highest = holder->highest,
		.since = holder->since,
	};
}

/*
 * A child that was forked while its parent's limit was raised begins with what the parent had: or it
 * could make the raised limit its own by asking for a lease. Not if that is a held lease, which it
 * has a part of.
 */
static void undo_parents(struct leaseholder *holder)
{
	const struct leaseholder *parent;

	LIST_FOREACH(parent, &holder->supervisor->leaseholders, link) {
		/* cppcheck-suppress uninitvar */
		if (parent == holder || parent->highest == 0 || (parent->held && !parent->gone))
			continue;
		struct sweep sweep = leaselimit_sweep(parent);
		if (!sweep_is_kin(&sweep, holder->pid, &holder->before))
			continue;
		holder->before = parent->before;
		return;
	}
}

bool leaselimit_is_raised(const struct leaseholder *holder)
{
	return holder->given > holder->before.rlim_cur;
}

/* The process may have lowered it, or somebody else have set it, while it was not raised by us. */
int leaselimit_read(struct leaseholder *holder)
{
	struct rlimit limit;

	if (!leaselimit_is_alive(holder) ||
	    prlimit(holder->pid, RLIMIT_MEMLOCK, NULL, &limit) < 0 || !leaselimit_is_alive(holder))
		return -ESRCH;
	holder->before = limit;
	holder->given = limit.rlim_cur;
	undo_parents(holder);
	return 0;
}

/* Proved to be that process before, and after: the number was not another's in between. */
int leaselimit_set(struct leaseholder *holder)
{
	struct rlimit limit = { .rlim_cur = leaselimit_now(holder) };

	if (limit.rlim_cur == holder->given)
		return 0;
	limit.rlim_max =
		limit.rlim_cur > holder->before.rlim_max ? limit.rlim_cur : holder->before.rlim_max;
	if (!leaselimit_is_alive(holder))
		return -ESRCH;
	if (prlimit(holder->pid, RLIMIT_MEMLOCK, &limit, NULL) < 0)
		return -errno;
	holder->given = limit.rlim_cur;
	if (leaselimit_is_raised(holder) && limit.rlim_cur > holder->highest)
		holder->highest = limit.rlim_cur;
	return leaselimit_is_alive(holder) ? 0 : -ESRCH;
}

/* Of the leases that have ended as much as is pinned stays. It never grows but here, or
 * a process would get its old limit on top of it again and again. */
void leaselimit_look(struct leaseholder *holder, uint64_t ended)
{
	struct proc_status status;
	uint64_t pinned;

	if (__builtin_add_overflow(holder->kept, ended, &holder->kept))
		holder->kept = UINT64_MAX;
	if (proc_status(holder->pid, &status) == 0 && leaselimit_is_alive(holder) &&
	    status.has_mm) {
		pinned = status.vm_pin > status.vm_lck ? status.vm_pin : status.vm_lck;
		if (pinned < holder->kept)
			holder->kept = pinned;
	}
	if (holder->gone)
		holder->kept = 0;
	kin_look(&holder->kin);
}

/* What was unpinned goes back. Kin can make the booking grow, and then as far as there is room. */
void leaselimit_settle(struct leaseholder *holder, uint64_t ended)
{
	struct quota quota;

	leaselimit_look(holder, ended);
	(void)leaselimit_book(holder, leaselimit_booking(holder, holder->open, holder->held_booked),
			      &quota);
	if (!holder->gone)
		(void)leaselimit_set(holder);
}
