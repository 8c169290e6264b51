/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leaseholder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/session.h"
#include "daemon/supervisor.h"
#include "daemon/sysfs.h"
#include "kvreg-errors.h"
#include "proto/fdset.h"
#include "proto/procfs.h"

#define MARKS (1u << MARK_BITS)

static bool is_alive(const struct leaseholder *holder)
{
	struct pollfd fd = { .fd = holder->pidfd, .events = POLLIN };

	return !holder->gone && poll(&fd, 1, 0) == 0;
}

/* ---- what is booked, and what the limit is ---- */

static uint64_t kin_pinned(const struct leaseholder *holder)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < holder->n_kin; i++)
		bytes += holder->kin[i].pinned;
	return bytes;
}

/* What leases take of the quota, with @open bytes open and @held booked for a held one. Pins of the
 * process itself are within the held one as far as it goes. */
static uint64_t booking(const struct leaseholder *holder, uint64_t open, uint64_t held)
{
	uint64_t bytes = holder->pinned > held ? holder->pinned : held;

	if (__builtin_add_overflow(bytes, open, &bytes) ||
	    __builtin_add_overflow(bytes, kin_pinned(holder), &bytes))
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
static int book(struct leaseholder *holder, uint64_t bytes, struct quota *ret_quota)
{
	struct amounts amounts;

	holder->charge.books->devices = sysfs_devices();
	amounts = amounts_of(holder, bytes);
	charge_lower(&holder->charge, &amounts);
	return charge_raise(&holder->charge, &amounts, &amounts, ret_quota);
}

uint64_t leaseholder_limit(const struct leaseholder *holder)
{
	uint64_t bytes = holder->before.rlim_cur;

	if (bytes == RLIM_INFINITY || __builtin_add_overflow(bytes, holder->pinned, &bytes) ||
	    __builtin_add_overflow(bytes, holder->open, &bytes) || bytes > RLIM_INFINITY - MARKS)
		return RLIM_INFINITY;
	if (bytes < holder->held)
		bytes = holder->held;
	return bytes > holder->before.rlim_cur ? (bytes + MARKS - 1) / MARKS * MARKS + holder->mark
					       : bytes;
}

/* Proved to be that process before, and after: the number was not another's in between. */
static int set_limit(struct leaseholder *holder)
{
	struct rlimit limit = { .rlim_cur = leaseholder_limit(holder) };
	bool raised = limit.rlim_cur > holder->before.rlim_cur;

	limit.rlim_max =
		limit.rlim_cur > holder->before.rlim_max ? limit.rlim_cur : holder->before.rlim_max;
	if (!is_alive(holder))
		return -ESRCH;
	if (prlimit(holder->pid, RLIMIT_MEMLOCK, &limit, NULL) < 0)
		return -errno;
	if (raised && limit.rlim_cur > holder->highest)
		holder->highest = limit.rlim_cur;
	return is_alive(holder) ? 0 : -ESRCH;
}

static void look_at(struct leaseholder *holder)
{
	struct proc_status status;
	size_t n = 0;

	if (proc_status(holder->pid, &status) == 0 && is_alive(holder) && status.has_mm)
		holder->pinned = status.vm_pin;
	for (size_t i = 0; i < holder->n_kin; i++) {
		holder->kin[i].pinned = sweep_pinned(&holder->kin[i]);
		if (holder->kin[i].pinned > 0)
			holder->kin[n++] = holder->kin[i];
	}
	holder->n_kin = n;
}

/* What was unpinned goes back. What was pinned by the old limit alone is booked as far as there is
 * room: it could have been pinned without us. */
static void settle(struct leaseholder *holder)
{
	struct quota quota;

	look_at(holder);
	(void)book(holder, booking(holder, holder->open, holder->held_booked), &quota);
	if (!holder->gone)
		(void)set_limit(holder);
}

/* ---- kin ---- */

static void start_window(struct leaseholder *holder)
{
	if (holder->highest)
		return;
	holder->since = sweep_now();
	holder->last_pid = sweep_last_pid();
}

static size_t find_spared(const struct leaseholder *holder, pid_t *pids, size_t max)
{
	const struct leaseholder *other;
	size_t n = 0;

	LIST_FOREACH(other, &holder->supervisor->leaseholders, link)
		if (other != holder && !other->gone && n < max)
			pids[n++] = other->pid;
	return n;
}

static void start_sweep(struct leaseholder *holder)
{
	static pid_t spared[1024];
	struct sweep sweep = {
		.pid = holder->pid,
		.uid = holder->uid,
		.mark = holder->mark,
		.before = holder->before,
		.highest = holder->highest,
		.since = holder->since,
		.spared = spared,
	};
	pid_t pid;

	sweep.n_spared = find_spared(holder, spared, sizeof(spared) / sizeof(spared[0]));
	pid = spawn_sweep(&sweep, &holder->swept);
	if (pid < 0) {
		log_error("children of client %d keep their limits: %s", holder->pid,
			  strerror(-(int)pid));
		return;
	}
	supervisor_adopt(holder->supervisor, pid, /* refuses */ false);
	/* It is the last that was forked; whoever comes after it is for the next one. */
	holder->last_pid = pid;
	ev_io_set(&holder->on_swept, holder->swept, EV_READ);
	ev_io_start(holder->supervisor->loop, &holder->on_swept);
}

/* With nothing open any more whoever was forked meanwhile is to be found. The limit is raised also
 * as long as something is pinned by it: then it is looked from time to time. */
static void find_kin(struct leaseholder *holder)
{
	if (holder->highest == 0 || holder->n_open > 0 || (holder->held && !holder->gone))
		return;
	if (holder->swept >= 0) {
		holder->sweep_again = true;
		return;
	}
	if (holder->last_pid < 0 || holder->last_pid != sweep_last_pid())
		start_sweep(holder);
	if (holder->swept < 0 && (holder->gone || holder->pinned == 0))
		holder->highest = 0;
}

bool leaseholder_is_swept(const struct leaseholder *holder)
{
	return holder->swept < 0;
}

/* ---- begin and end ---- */

static bool is_idle(const struct leaseholder *holder)
{
	return holder->sessions == 0 && holder->n_open == 0 && holder->swept < 0 &&
	       holder->n_kin == 0 && (holder->gone || (!holder->held && holder->pinned == 0));
}

static void holder_free(struct leaseholder *holder)
{
	struct ev_loop *loop = holder->supervisor->loop;

	ev_io_stop(loop, &holder->on_swept);
	ev_io_stop(loop, &holder->on_gone);
	ev_timer_stop(loop, &holder->look);
	LIST_REMOVE(holder, link);
	charge_fini(&holder->charge);
	fd_close(&holder->pidfd);
	fd_close(&holder->swept);
	free(holder);
}

static void on_swept(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct leaseholder *holder = watcher->data;
	ssize_t n = read(holder->swept, &holder->kin[holder->n_kin],
			 (KIN_MAX - holder->n_kin) * sizeof(holder->kin[0]));

	(void)events;
	if (n > 0) {
		holder->n_kin += (size_t)n / sizeof(holder->kin[0]);
		if (holder->n_kin < KIN_MAX)
			return;
	}
	ev_io_stop(loop, watcher);
	fd_close(&holder->swept);
	settle(holder);
	if (holder->gone || holder->pinned == 0)
		holder->highest = 0;
	if (holder->sweep_again)
		find_kin(holder);
	holder->sweep_again = false;
	if (leaseholder_is_swept(holder))
		lease_swept(holder);
	if (is_idle(holder))
		holder_free(holder);
}

static void on_gone(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct leaseholder *holder = watcher->data;

	(void)events;
	ev_io_stop(loop, watcher);
	holder->gone = true;
	holder->pinned = holder->held = holder->held_booked = 0;
	settle(holder);
	find_kin(holder);
	if (is_idle(holder))
		holder_free(holder);
}

static void on_look(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct leaseholder *holder = timer->data;

	(void)loop;
	(void)events;
	settle(holder);
	find_kin(holder);
	if (is_idle(holder))
		holder_free(holder);
}

static uint32_t free_mark(const struct supervisor *supervisor)
{
	static uint32_t last;
	const struct leaseholder *other;
	uint32_t tries = 0;

	do {
		last = last % (MARKS - 1) + 1;
		LIST_FOREACH(other, &supervisor->leaseholders, link)
			if (other->mark == last)
				break;
	} while (other && ++tries < MARKS);
	return last;
}

/* A child that was forked while its parent's limit was raised begins with what the parent had. */
static void undo_parents(struct leaseholder *holder)
{
	const struct leaseholder *parent;

	LIST_FOREACH(parent, &holder->supervisor->leaseholders, link) {
		if (holder->before.rlim_max == RLIM_INFINITY ||
		    holder->before.rlim_max % MARKS != parent->mark ||
		    holder->before.rlim_max <= parent->before.rlim_max)
			continue;
		holder->before = parent->before;
		return;
	}
}

static struct leaseholder *find(const struct session *session)
{
	struct leaseholder *holder;

	LIST_FOREACH(holder, &session->supervisor->leaseholders, link)
		if (holder->pid == session->peer.pid && is_alive(holder))
			return holder;
	return NULL;
}

static struct leaseholder *holder_new(struct session *session)
{
	struct supervisor *supervisor = session->supervisor;
	struct leaseholder *holder = calloc(1, sizeof(*holder));

	if (!holder)
		return NULL;
	holder->supervisor = supervisor;
	holder->pid = session->peer.pid;
	holder->uid = session->peer.uid;
	holder->swept = -1;
	holder->pidfd = fcntl(session->peer.pidfd, F_DUPFD_CLOEXEC, 0);
	if (holder->pidfd < 0 || !is_alive(holder) ||
	    prlimit(holder->pid, RLIMIT_MEMLOCK, NULL, &holder->before) < 0 || !is_alive(holder) ||
	    charge_open(&holder->charge, &supervisor->books, session->klass, session->peer.uid,
			session->peer.gid) < 0) {
		fd_close(&holder->pidfd);
		free(holder);
		return NULL;
	}
	undo_parents(holder);
	holder->mark = free_mark(supervisor);
	ev_io_init(&holder->on_gone, on_gone, holder->pidfd, EV_READ);
	ev_io_init(&holder->on_swept, on_swept, -1, EV_READ);
	ev_timer_init(&holder->look, on_look, LEASE_LOOK_S, LEASE_LOOK_S);
	holder->on_gone.data = holder->on_swept.data = holder->look.data = holder;
	ev_io_start(supervisor->loop, &holder->on_gone);
	ev_timer_start(supervisor->loop, &holder->look);
	LIST_INSERT_HEAD(&supervisor->leaseholders, holder, link);
	return holder;
}

struct leaseholder *leaseholder_get(struct session *session)
{
	struct leaseholder *holder = find(session);

	if (!holder)
		holder = holder_new(session);
	if (holder)
		holder->sessions++;
	return holder;
}

void leaseholder_put(struct leaseholder *holder)
{
	holder->sessions--;
	settle(holder);
	if (is_idle(holder))
		holder_free(holder);
}

void leases_fini(struct supervisor *supervisor)
{
	while (!LIST_EMPTY(&supervisor->leaseholders))
		holder_free(LIST_FIRST(&supervisor->leaseholders));
}

/* ---- leases ---- */

/* What others have unpinned since they were last looked at is looked at before anybody is refused. */
static int book_or_look(struct leaseholder *holder, uint64_t bytes, struct quota *ret_quota)
{
	struct leaseholder *other;
	int r = book(holder, bytes, ret_quota);

	if (r == 0)
		return 0;
	LIST_FOREACH(other, &holder->supervisor->leaseholders, link)
		if (other != holder)
			settle(other);
	return book(holder, bytes, ret_quota);
}

int leaseholder_open(struct leaseholder *holder, uint64_t bytes, struct quota *ret_quota)
{
	uint64_t open;
	int r;

	look_at(holder);
	if (__builtin_add_overflow(holder->open, bytes, &open))
		open = UINT64_MAX;
	r = book_or_look(holder, booking(holder, open, holder->held_booked), ret_quota);
	if (r != 0) {
		settle(holder);
		return r;
	}
	start_window(holder);
	holder->open = open;
	holder->n_open++;
	r = set_limit(holder);
	if (r < 0)
		leaseholder_close(holder, bytes);
	return r;
}

void leaseholder_close(struct leaseholder *holder, uint64_t bytes)
{
	holder->open -= bytes;
	holder->n_open--;
	settle(holder);
	find_kin(holder);
}

int leaseholder_hold(struct leaseholder *holder, uint64_t limit, uint64_t total,
		     struct quota *ret_quota)
{
	int r;

	look_at(holder);
	r = book_or_look(holder, booking(holder, holder->open, total), ret_quota);
	if (r != 0) {
		settle(holder);
		return r;
	}
	start_window(holder);
	holder->held = limit;
	holder->held_booked = total;
	return set_limit(holder);
}

uint64_t leaseholder_most(struct leaseholder *holder)
{
	struct amounts need = { { 0 } }, want = { { 0 } };
	uint64_t had = holder->charge.held.of[BOOK_CHARGE], most, by_memory;
	struct quota quota;

	holder->charge.books->devices = sysfs_devices();
	need = holder->charge.held;
	want.of[BOOK_CHARGE] = want.of[BOOK_MEMORY] = UINT64_MAX;
	(void)charge_raise(&holder->charge, &need, &want, &quota);
	most = holder->charge.held.of[BOOK_CHARGE];
	if (__builtin_mul_overflow(holder->charge.held.of[BOOK_MEMORY],
				   holder->charge.books->devices, &by_memory))
		by_memory = UINT64_MAX;
	charge_lower(&holder->charge, &need);
	if (by_memory < most)
		most = by_memory;
	had = booking(holder, holder->open, 0) > had ? had : booking(holder, holder->open, 0);
	return most > had ? most - had : 0;
}
