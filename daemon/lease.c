/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/holders.h"
#include "daemon/leaseholder.h"
#include "daemon/leaselimit.h"
#include "daemon/log.h"
#include "daemon/session.h"
#include "daemon/supervisor.h"
#include "daemon/sysfs.h"
#include "kvreg-errors.h"
#include "proto/fdset.h"

/* ---- answers ---- */

struct answer {
	Kvreg__LeaseReply reply;
	Kvreg__LeaseMemlockReply lease;
	char holders[HOLDERS_TEXT];
};

static void answer_init(struct answer *a, uint32_t seq)
{
	a->reply = (Kvreg__LeaseReply)KVREG__LEASE_REPLY__INIT;
	a->lease = (Kvreg__LeaseMemlockReply)KVREG__LEASE_MEMLOCK_REPLY__INIT;
	a->reply.seq = seq;
	a->reply.lease = &a->lease;
}

static void answer_send(struct session *session, struct answer *a)
{
	Kvreg__Down down = KVREG__DOWN__INIT;

	down.body_case = KVREG__DOWN__BODY_LEASE;
	down.lease = &a->reply;
	session_send(session, &down);
}

static void answer_quota(struct session *session, struct answer *a, const struct quota *quota,
			 uint64_t need)
{
	holders_text(session->supervisor, session->klass, session->peer.uid, session->peer.gid,
		     quota, a->holders, sizeof(a->holders));
	a->reply.code = KVREG_E_LIMIT_QUOTA;
	a->reply.book = quota->book;
	a->reply.quota_used = quota->used;
	a->reply.quota_limit = quota->limit;
	a->reply.scope = (char *)scope_name(quota->scope);
	a->reply.holders = a->holders;
	a->reply.need = need;
	session->supervisor->grants_refused++;
}

/* ---- what is asked for ---- */

/* Of the limits that the kernel knows. */
#define PAGE 4096ull

/* In whole pages. Return: whether it is a number. */
static bool round_up(uint64_t bytes, uint64_t *ret_bytes)
{
	return !__builtin_add_overflow(bytes, PAGE - 1, ret_bytes) &&
	       (*ret_bytes = *ret_bytes / PAGE * PAGE, true);
}

static int refuse(struct session *session, const Kvreg__LeaseMemlock *wish, struct answer *a)
{
	const struct class_rule *rule = &session->supervisor->config.classes[session->klass];

	if (rule->leases == LEASES_NONE || (wish->held && rule->leases != LEASES_ALL)) {
		a->reply.scope = (char *)rule->name;
		return KVREG_E_LEASE_FORBIDDEN;
	}
	if (!session->supervisor->privilege.raise_limit)
		return KVREG_E_LIMIT_MEMLOCK;
	if (!wish->held && session->n_leases >= LEASES_PER_SESSION)
		return KVREG_E_LIMIT_OBJECTS;
	return 0;
}

static struct leaseholder *holder_of(struct session *session)
{
	if (!session->leaseholder)
		session->leaseholder = leaseholder_get(session);
	return session->leaseholder;
}

/* Return: 0, the code for the client, or -errno. */
static int hold(struct session *session, const Kvreg__LeaseMemlock *wish, struct answer *a)
{
	struct leaseholder *holder = session->leaseholder;
	uint64_t processes = wish->processes ? wish->processes : 1, bytes, total;
	struct quota quota;
	int r;

	if (wish->bytes == 0)
		bytes = leaseholder_most(holder) / processes / PAGE * PAGE;
	else if (!round_up(wish->bytes, &bytes))
		bytes = UINT64_MAX;
	/* Nothing is left: one page is refused, with the numbers. */
	if (bytes == 0)
		bytes = PAGE;
	if (__builtin_mul_overflow(bytes, processes, &total))
		total = UINT64_MAX;
	r = leaseholder_hold(holder, bytes, total, &quota);
	if (r > 0)
		answer_quota(session, a, &quota, total);
	a->lease.bytes = bytes;
	return r;
}

static int open_lease(struct session *session, const Kvreg__LeaseMemlock *wish, struct answer *a)
{
	struct leaseholder *holder = session->leaseholder;
	struct lease *lease = calloc(1, sizeof(*lease));
	struct quota quota;
	int r;

	if (!lease)
		return -ENOMEM;
	if (!round_up(wish->bytes, &lease->bytes))
		lease->bytes = UINT64_MAX;
	r = leaseholder_open(holder, lease->bytes, &quota);
	if (r != 0) {
		if (r > 0)
			answer_quota(session, a, &quota, lease->bytes);
		free(lease);
		return r;
	}
	lease->number = ++session->last_lease;
	LIST_INSERT_HEAD(&session->leases, lease, link);
	session->n_leases++;
	a->lease.lease = lease->number;
	a->lease.bytes = lease->bytes;
	return 0;
}

void lease_request(struct session *session, const Kvreg__LeaseRequest *request)
{
	const Kvreg__LeaseMemlock *wish = request->lease;
	struct answer a;
	int r;

	answer_init(&a, request->seq);
	r = wish ? refuse(session, wish, &a) : -EINVAL;
	if (r == 0 && !holder_of(session))
		r = -ESRCH;
	if (r == 0)
		r = wish->held ? hold(session, wish, &a) : open_lease(session, wish, &a);
	if (r == 0) {
		a.lease.limit = leaselimit_now(session->leaseholder);
		a.lease.booked = lease_booked(session);
	}
	a.reply.code = r < 0 ? KVREG_E_INTERNAL : (uint32_t)r;
	a.reply.errnum = r < 0 ? -r : 0;
	answer_send(session, &a);
}

/* ---- ends ---- */

static void forget(struct session *session, struct lease *lease)
{
	LIST_REMOVE(lease, link);
	session->n_leases--;
	free(lease);
}

static struct lease *find(const struct session *session, uint32_t number)
{
	struct lease *lease;

	LIST_FOREACH(lease, &session->leases, link)
		if (lease->number == number)
			return lease;
	return NULL;
}

void lease_end(struct session *session, const Kvreg__LeaseEnd *request)
{
	struct lease *lease = find(session, request->lease);
	struct answer a;

	answer_init(&a, request->seq);
	if (!lease) {
		a.reply.code = KVREG_E_BAD_HANDLE;
		answer_send(session, &a);
		return;
	}
	leaseholder_close(session->leaseholder, lease->bytes);
	forget(session, lease);
	if (leaseholder_is_swept(session->leaseholder))
		answer_send(session, &a);
	else
		session->lease_waits = request->seq;
}

void lease_swept(struct leaseholder *holder)
{
	struct session *session;
	struct answer a;

	LIST_FOREACH(session, &holder->supervisor->sessions, link) {
		/* cppcheck-suppress uninitvar */
		if (session->leaseholder != holder || session->lease_waits == 0)
			continue;
		answer_init(&a, session->lease_waits);
		session->lease_waits = 0;
		answer_send(session, &a);
	}
}

void lease_forget(struct session *session)
{
	struct lease *lease, *next;

	for (lease = LIST_FIRST(&session->leases); lease; lease = next) {
		next = LIST_NEXT(lease, link);
		leaseholder_close(session->leaseholder, lease->bytes);
		forget(session, lease);
	}
	session->lease_waits = 0;
}

void lease_leave(struct session *session)
{
	struct leaseholder *holder = session->leaseholder;

	lease_forget(session);
	session->leaseholder = NULL;
	if (holder)
		leaseholder_put(holder);
}

bool lease_is_held(const struct session *session)
{
	return session->leaseholder && session->leaseholder->held && !session->leaseholder->gone;
}

uint64_t lease_booked(const struct session *session)
{
	return session->leaseholder ? session->leaseholder->charge.held.of[BOOK_CHARGE] : 0;
}
