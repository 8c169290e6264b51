/* SPDX-License-Identifier: Apache-2.0 */
#include "client/preload/lender.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
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
	sem_t room; /* leases that a connection may have yet */
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
	sem_init(&lender->room, /* shared */ 0, LEASES_PER_SESSION);
	pthread_mutex_init(&lender->lock, /* attributes */ NULL);
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
	pthread_mutex_destroy(&fresh->lock);
	sem_destroy(&fresh->room);
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

int lender_take(uint64_t bytes, struct loan *ret_loan)
{
	struct lender *lender = lender_get();
	int r;

	if (!lender)
		return -ENOMEM;
	while (sem_wait(&lender->room) < 0)
		;
	r = take(lender, bytes, ret_loan);
	if (r < 0 && is_lost())
		r = take(lender, bytes, ret_loan);
	if (r < 0)
		sem_post(&lender->room);
	return r;
}

void lender_give_back(struct loan *loan)
{
	int r;

	moving(loan->lender);
	r = kvreg_lease_end(loan->lease);
	has_moved(loan->lender);
	link_leave(loan->lender, loan->link, r < 0);
	sem_post(&loan->lender->room);
}
