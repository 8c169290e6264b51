/* SPDX-License-Identifier: Apache-2.0 */
#include "client/preload/lender.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/kvreg-client.h"
#include "client/preload/settings.h"
#include "proto/limits.h"

struct link {
	struct kvreg *k;
	unsigned int users; /* guarded by the lender's lock, like all below */
	bool lost;
};

struct lender {
	pid_t owner;
	pthread_cond_t one_ended;
	unsigned int loans; /* that threads have or ask for */
	unsigned int ended; /* of them, so far; modulo */
	pthread_mutex_t lock;
	struct link *link;     /* NULL: none is open */
	_Atomic int sock;      /* of @link, for a child to close; -1 */
	atomic_uint in_flight; /* changes of the limit that are asked for and not answered */
};

static struct lender *_Atomic current;
static atomic_uint turns; /* changes that were answered */

unsigned int lender_mark(void)
{
	return atomic_load_explicit(&turns, memory_order_relaxed);
}

/* A change that ended before its request was answered shows in @turns, others in @in_flight: a
 * request counts its turn before it leaves the flight. */
bool lender_moved(unsigned int mark)
{
	struct lender *lender = atomic_load(&current);

	return (lender && atomic_load(&lender->in_flight) != 0) || atomic_load(&turns) != mark;
}

static void moving(struct lender *lender)
{
	atomic_fetch_add(&lender->in_flight, 1);
}

static void has_moved(struct lender *lender)
{
	atomic_fetch_add(&turns, 1);
	atomic_fetch_sub(&lender->in_flight, 1);
}

static struct lender *lender_new(void)
{
	struct lender *lender = calloc(1, sizeof(*lender));

	if (!lender)
		return NULL;
	lender->owner = getpid();
	lender->sock = -1;
	pthread_mutex_init(&lender->lock, /* attributes */ NULL);
	pthread_cond_init(&lender->one_ended, /* attributes */ NULL);
	return lender;
}

/* The parent's is left as it is, but for the child's copy of its socket. */
static void disown(struct lender *parents)
{
	int sock = parents ? atomic_exchange(&parents->sock, -1) : -1;

	if (sock >= 0)
		close(sock);
}

static struct lender *lender_get(void)
{
	struct lender *lender = atomic_load(&current), *fresh;

	if (lender && lender->owner == getpid())
		return lender;
	fresh = lender_new();
	if (!fresh)
		return NULL;
	if (atomic_compare_exchange_strong(&current, &lender, fresh)) {
		disown(lender);
		return fresh;
	}
	pthread_cond_destroy(&fresh->one_ended);
	pthread_mutex_destroy(&fresh->lock);
	free(fresh);
	return lender;
}

static int link_open(struct lender *lender)
{
	struct kvreg_open_options options = { .size = sizeof(options) };
	struct link *link = calloc(1, sizeof(*link));
	int r;

	if (!link)
		return -ENOMEM;
	options.socket = settings()->socket ? settings()->socket : DEFAULT_SOCKET;
	r = kvreg_open(&options, &link->k);
	if (r < 0) {
		free(link);
		return r;
	}
	lender->link = link;
	lender->sock = kvreg_fd(link->k);
	return 0;
}

static int link_take(struct lender *lender, struct link **ret_link)
{
	int r = 0;

	pthread_mutex_lock(&lender->lock);
	if (!lender->link)
		r = link_open(lender);
	if (r == 0) {
		lender->link->users++;
		*ret_link = lender->link;
	}
	pthread_mutex_unlock(&lender->lock);
	return r;
}

static void link_leave(struct lender *lender, struct link *link, bool lost)
{
	bool last;

	pthread_mutex_lock(&lender->lock);
	link->lost = link->lost || lost;
	last = --link->users == 0 && link->lost;
	if (link->lost && lender->link == link) {
		lender->link = NULL;
		lender->sock = -1;
	}
	pthread_mutex_unlock(&lender->lock);
	if (!last)
		return;
	kvreg_close(link->k);
	free(link);
}

/* A session that outlives its supervisor says SESSION_LOST too, as only that one can lease. */
static bool is_lost(void)
{
	enum kvreg_code code = kvreg_error_code(kvreg_last_error());

	return code == KVREG_E_SESSION_LOST || code == KVREG_E_PROTOCOL;
}

static int take(struct lender *lender, uint64_t bytes, struct loan *ret_loan)
{
	struct loan loan = { .lender = lender };
	int r = link_take(lender, &loan.link);

	if (r < 0)
		return r;
	moving(lender);
	r = kvreg_lease_memlock(loan.link->k, bytes, NULL, &loan.lease);
	has_moved(lender);
	if (r < 0)
		link_leave(lender, loan.link, is_lost());
	else
		*ret_loan = loan;
	return r;
}

/* Takes a place among the loans. Return: how many had ended by then. */
static unsigned int place_take(struct lender *lender)
{
	unsigned int ended;

	pthread_mutex_lock(&lender->lock);
	while (lender->loans >= LEASES_PER_SESSION)
		pthread_cond_wait(&lender->one_ended, &lender->lock);
	lender->loans++;
	ended = lender->ended;
	pthread_mutex_unlock(&lender->lock);
	return ended;
}

static void place_leave(struct lender *lender, bool had_loan)
{
	pthread_mutex_lock(&lender->lock);
	lender->loans--;
	if (had_loan)
		lender->ended++;
	pthread_cond_broadcast(&lender->one_ended);
	pthread_mutex_unlock(&lender->lock);
}

/* Return: whether a loan has ended since @ended; false: no other thread has one that could. */
static bool wait_for_others(struct lender *lender, unsigned int ended)
{
	bool one;

	pthread_mutex_lock(&lender->lock);
	while (lender->ended == ended && lender->loans > 0)
		pthread_cond_wait(&lender->one_ended, &lender->lock);
	one = lender->ended != ended;
	pthread_mutex_unlock(&lender->lock);
	return one;
}

static bool is_quota(void)
{
	return kvreg_error_code(kvreg_last_error()) == KVREG_E_LIMIT_QUOTA;
}

int lender_take(uint64_t bytes, struct loan *ret_loan)
{
	struct lender *lender = lender_get();
	unsigned int ended;
	int r;

	if (!lender)
		return -ENOMEM;
	do {
		ended = place_take(lender);
		r = take(lender, bytes, ret_loan);
		if (r < 0 && is_lost())
			r = take(lender, bytes, ret_loan);
		if (r < 0)
			place_leave(lender, /* had_loan */ false);
	} while (r < 0 && is_quota() && wait_for_others(lender, ended));
	return r;
}

void lender_give_back(struct loan *loan)
{
	int r;

	moving(loan->lender);
	r = kvreg_lease_end(loan->lease);
	has_moved(loan->lender);
	link_leave(loan->lender, loan->link, r < 0);
	place_leave(loan->lender, /* had_loan */ true);
}
