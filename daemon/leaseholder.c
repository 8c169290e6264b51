/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leaseholder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/leaselimit.h"
#include "daemon/log.h"
#include "daemon/session.h"
#include "daemon/supervisor.h"
#include "daemon/sysfs.h"
#include "proto/fdset.h"

/* ---- kin ---- */

/* A lease begins. Return: 0 or -errno: the process is gone. */
static int start_window(struct leaseholder *holder)
{
	ev_timer_again(holder->supervisor->loop, &holder->look);
	if (holder->highest)
		return 0;
	holder->since = sweep_now();
	holder->last_pid = sweep_last_pid();
	return leaselimit_read(holder);
}

/* Who has leases of his own is looked after by them. Return: what to free; NULL: no memory. */
static pid_t *find_spared(const struct leaseholder *holder, size_t *ret_n)
{
	const struct leaseholder *one;
	size_t n = 1;
	pid_t *pids;

	LIST_FOREACH(one, &holder->supervisor->leaseholders, link)
		n++;
	pids = calloc(n, sizeof(*pids));
	n = 0;
	LIST_FOREACH(one, &holder->supervisor->leaseholders, link)
		if (pids && one != holder && !one->gone)
			pids[n++] = one->pid;
	*ret_n = n;
	return pids;
}

/* What could not be done is tried again at the next look. */
static void start_sweep(struct leaseholder *holder)
{
	struct sweep sweep = leaselimit_sweep(holder);
	pid_t *spared = find_spared(holder, &sweep.n_spared), pid;

	sweep.spared = spared;
	pid = spared ? spawn_sweep(&sweep, &holder->swept) : -ENOMEM;
	free(spared);
	holder->is_last = holder->gone || !leaselimit_is_raised(holder);
	holder->swept_at = ev_now(holder->supervisor->loop);
	if (pid < 0) {
		log_error("children of client %d keep their limits for now: %s", holder->pid,
			  strerror(-(int)pid));
		return;
	}
	supervisor_adopt(holder->supervisor, pid, /* refuses */ false);
	/* It is the last that was forked; whoever comes after it is for the next one. */
	holder->last_pid = pid;
	ev_io_set(&holder->on_swept, holder->swept, EV_READ);
	ev_io_start(holder->supervisor->loop, &holder->on_swept);
}

static bool has_forked(const struct leaseholder *holder)
{
	return holder->last_pid < 0 || holder->last_pid != sweep_last_pid();
}

/* With nothing open any more whoever was forked meanwhile is to be found. The limit is raised also
 * as long as something is kept: then it is looked from time to time. */
static void find_kin(struct leaseholder *holder)
{
	if (holder->highest == 0 || holder->n_open > 0 || (holder->held && !holder->gone))
		return;
	if (holder->swept >= 0)
		holder->sweep_again = true;
	else if (has_forked(holder))
		start_sweep(holder);
	else if (holder->gone || !leaselimit_is_raised(holder))
		holder->highest = 0;
}

bool leaseholder_is_swept(const struct leaseholder *holder)
{
	return holder->swept < 0;
}

/* ---- begin and end ---- */

static bool is_idle(const struct leaseholder *holder)
{
	return holder->n_open == 0 && holder->swept < 0 && holder->kin.count == 0 &&
	       holder->highest == 0 && holder->kept == 0 && !holder->held;
}

static void holder_free(struct leaseholder *holder)
{
	struct ev_loop *loop = holder->supervisor->loop;

	ev_io_stop(loop, &holder->on_swept);
	ev_io_stop(loop, &holder->on_gone);
	ev_timer_stop(loop, &holder->look);
	LIST_REMOVE(holder, link);
	charge_fini(&holder->charge);
	kin_fini(&holder->kin);
	fd_close(&holder->pidfd);
	fd_close(&holder->swept);
	free(holder);
}

/* Nobody looks at it as long as nothing is leased; it goes with its last session. */
static void rest(struct leaseholder *holder)
{
	if (!is_idle(holder))
		return;
	ev_timer_stop(holder->supervisor->loop, &holder->look);
	if (holder->sessions == 0)
		holder_free(holder);
}

/* On a busy host somebody always forks: while something is kept that is no reason to sweep each
 * time. */
static void look_again(struct leaseholder *holder)
{
	double since = ev_now(holder->supervisor->loop) - holder->swept_at;

	leaselimit_settle(holder, 0);
	if (holder->gone || !leaselimit_is_raised(holder) || since >= LEASE_SWEEP_S)
		find_kin(holder);
	rest(holder);
}

static void on_swept(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct leaseholder *holder = watcher->data;
	int r = kin_read(&holder->kin, holder->swept);

	(void)events;
	if (r > 0)
		return;
	if (r < 0)
		log_error("what children of client %d have pinned is not known: %s", holder->pid,
			  strerror(-r));
	ev_io_stop(loop, watcher);
	fd_close(&holder->swept);
	leaselimit_settle(holder, 0);
	if (holder->sweep_again)
		find_kin(holder);
	else if (holder->is_last)
		holder->highest = 0;
	holder->sweep_again = false;
	if (leaseholder_is_swept(holder))
		lease_swept(holder);
	rest(holder);
}

static void on_gone(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct leaseholder *holder = watcher->data;

	(void)events;
	ev_io_stop(loop, watcher);
	holder->gone = true;
	holder->held = holder->held_booked = 0;
	look_again(holder);
}

static void on_look(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	look_again(timer->data);
}

#define MARKS (1u << MARK_BITS)

static uint32_t free_mark(const struct supervisor *supervisor)
{
	static uint32_t last;
	const struct leaseholder *other;
	uint32_t tries = 0;

	do {
		/* Whole kilobytes are what people set. */
		do
			last = last % (MARKS - 1) + 1;
		while (last % 1024 == 0);
		LIST_FOREACH(other, &supervisor->leaseholders, link)
			if (other->mark == last)
				break;
	} while (other && ++tries < MARKS);
	return last;
}

static struct leaseholder *find(const struct session *session)
{
	struct leaseholder *holder;

	LIST_FOREACH(holder, &session->supervisor->leaseholders, link)
		if (holder->pid == session->peer.pid && leaselimit_is_alive(holder))
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
	memcpy(holder->cgroup, session->peer.cgroup, sizeof(holder->cgroup));
	holder->swept = -1;
	holder->pidfd = fcntl(session->peer.pidfd, F_DUPFD_CLOEXEC, 0);
	if (holder->pidfd < 0 || leaselimit_read(holder) < 0 ||
	    charge_open(&holder->charge, &supervisor->books, session->klass, session->peer.uid,
			session->peer.gid) < 0) {
		fd_close(&holder->pidfd);
		free(holder);
		return NULL;
	}
	holder->mark = free_mark(supervisor);
	ev_io_init(&holder->on_gone, on_gone, holder->pidfd, EV_READ);
	ev_io_init(&holder->on_swept, on_swept, -1, EV_READ);
	ev_timer_init(&holder->look, on_look, LEASE_LOOK_S, LEASE_LOOK_S);
	holder->on_gone.data = holder->on_swept.data = holder->look.data = holder;
	ev_io_start(supervisor->loop, &holder->on_gone);
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
	look_again(holder);
}

void leases_fini(struct supervisor *supervisor)
{
	struct leaseholder *holder, *next;

	for (holder = LIST_FIRST(&supervisor->leaseholders); holder; holder = next) {
		next = LIST_NEXT(holder, link);
		holder_free(holder);
	}
}

/* ---- leases ---- */

/* What others have unpinned meanwhile is looked at before anybody is refused. */
static int book_or_look(struct leaseholder *holder, uint64_t bytes, struct quota *ret_quota)
{
	struct leaseholder *other;
	int r = leaselimit_book(holder, bytes, ret_quota);

	if (r == 0)
		return 0;
	LIST_FOREACH(other, &holder->supervisor->leaseholders, link)
		if (other != holder)
			leaselimit_settle(other, 0);
	return leaselimit_book(holder, bytes, ret_quota);
}

int leaseholder_open(struct leaseholder *holder, uint64_t bytes, struct quota *ret_quota)
{
	uint64_t open;
	int r;

	leaselimit_look(holder, 0);
	if (__builtin_add_overflow(holder->open, bytes, &open))
		open = UINT64_MAX;
	r = book_or_look(holder, leaselimit_booking(holder, open, holder->held_booked), ret_quota);
	if (r == 0)
		r = start_window(holder);
	if (r != 0) {
		look_again(holder);
		return r;
	}
	holder->open = open;
	holder->n_open++;
	r = leaselimit_set(holder);
	if (r < 0)
		leaseholder_close(holder, bytes);
	return r;
}

void leaseholder_close(struct leaseholder *holder, uint64_t bytes)
{
	holder->open -= bytes;
	holder->n_open--;
	leaselimit_settle(holder, bytes);
	find_kin(holder);
}

int leaseholder_hold(struct leaseholder *holder, uint64_t limit, uint64_t total,
		     struct quota *ret_quota)
{
	uint64_t held = holder->held, booked = holder->held_booked;
	int r;

	leaselimit_look(holder, 0);
	r = book_or_look(holder, leaselimit_booking(holder, holder->open, total), ret_quota);
	if (r == 0)
		r = start_window(holder);
	if (r == 0) {
		holder->held = limit;
		holder->held_booked = total;
		r = leaselimit_set(holder);
	}
	if (r != 0) {
		holder->held = held;
		holder->held_booked = booked;
		look_again(holder);
	}
	return r;
}

uint64_t leaseholder_most(struct leaseholder *holder)
{
	struct amounts need, want = { { 0 } };
	uint64_t had = leaselimit_booking(holder, holder->open, 0), most, by_memory;
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
	return most > had ? most - had : 0;
}
