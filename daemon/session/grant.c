/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/grant.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "daemon/session/client.h"
#include "daemon/session/events.h"
#include "proto/failure.h"

static uint64_t own_memlock(void)
{
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	return limit.rlim_cur;
}

void grant_init(struct grant *g, bool fixed)
{
	*g = (struct grant){ .fixed = fixed, .memlock = own_memlock() };
}

/* Asks for @total in all and waits for the answer, which events.c notes in the grant. */
static int ask_grant(struct client *c, const struct amounts *total)
{
	Kvreg__GrantRequest request = KVREG__GRANT_REQUEST__INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	Kvreg__Amounts need;
	int r;

	amounts_to_wire(total, &need);
	request.seq = ++c->grant.seq;
	request.need = &need;
	up.body_case = KVREG__UP__BODY_GRANT;
	up.grant = &request;
	c->grant.answered = false;
	r = control_send(&c->control, &up);
	while (r >= 0 && !c->grant.answered && !c->control.gone)
		r = events_wait(c, 0);
	c->grant.memlock = own_memlock();
	return r == -EPIPE ? 0 : r;
}

/* The first book that @total is beyond; BOOKS if there is none. */
static enum book find_short(const struct grant *g, const struct amounts *total)
{
	enum book book = BOOK_SESSIONS;

	while (book < BOOKS && total->of[book] <= g->granted.of[book])
		book++;
	return book;
}

static int refuse(struct client *c, enum book book, const struct amounts *more,
		  enum kvreg_stage stage, struct failure *f)
{
	struct grant *g = &c->grant;

	if (g->answered && g->refused)
		book = g->book;
	f->snapshot.has_need = true;
	f->snapshot.need = more->of[book];
	if (!g->answered)
		return failure_set(f, KVREG_E_LIMIT_QUOTA, stage,
				   "%s: the supervisor is gone: %" PRIu64 "%s are granted, %" PRIu64
				   " used, and %" PRIu64 " more needed",
				   book_name(book), g->granted.of[book], book_unit(book),
				   g->used.of[book], more->of[book]);
	f->snapshot.has_quota_used = f->snapshot.has_quota_limit = true;
	f->snapshot.quota_used = g->quota_used;
	f->snapshot.quota_limit = g->quota_limit;
	return failure_set(f, KVREG_E_LIMIT_QUOTA, stage,
			   "%s of the %s: %" PRIu64 " of %" PRIu64 "%s are granted, and %" PRIu64
			   " more needed%s%s",
			   book_name(book), g->scope, g->quota_used, g->quota_limit,
			   book_unit(book), more->of[book], g->holders[0] ? "; held by " : "",
			   g->holders);
}

/* What is used with @more. Return: BOOKS; or the book in which that is no number. */
static enum book add(const struct amounts *used, const struct amounts *more,
		     struct amounts *ret_total)
{
	for (size_t i = 0; i < BOOKS; i++)
		if (__builtin_add_overflow(used->of[i], more->of[i], &ret_total->of[i]))
			return (enum book)i;
	return BOOKS;
}

int grant_take(struct client *c, const struct amounts *more, enum kvreg_stage stage,
	       struct failure *f)
{
	struct grant *g = &c->grant;
	uint64_t bytes = more->of[BOOK_CHARGE], charged = g->used.of[BOOK_CHARGE];
	struct amounts total;
	enum book beyond = add(&g->used, more, &total);
	int r;

	g->answered = g->refused = false;
	if (beyond < BOOKS)
		return refuse(c, beyond, more, stage, f);
	if (find_short(g, &total) == BOOK_CHARGE && client_charged(c, &charged) == 0)
		total.of[BOOK_CHARGE] = charged + bytes;
	if (find_short(g, &total) < BOOKS) {
		r = ask_grant(c, &total);
		if (r < 0)
			return r;
		beyond = find_short(g, &total);
		if (beyond < BOOKS)
			return refuse(c, beyond, more, stage, f);
	}
	/* The kernel would answer ENOMEM, which has six causes: say it before it does. */
	if (bytes > 0 && total.of[BOOK_CHARGE] > g->memlock)
		return failure_set(f, KVREG_E_LIMIT_MEMLOCK, stage,
				   "the session's RLIMIT_MEMLOCK is %" PRIu64 " bytes, %" PRIu64
				   " are charged, and %" PRIu64 " more needed%s",
				   g->memlock, charged, bytes,
				   g->fixed ? "; the daemon cannot raise limits" : "");
	(void)add(&g->used, more, &g->used);
	return 0;
}

/* Twice the usual room is kept, so that a client that comes and goes does not ask each time. */
void grant_give(struct client *c, const struct amounts *less)
{
	struct grant *g = &c->grant;
	Kvreg__GrantReturn back = KVREG__GRANT_RETURN__INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	struct amounts keep = g->granted;
	Kvreg__Amounts wire;
	bool far = false;

	for (size_t i = 0; i < BOOKS; i++) {
		uint64_t room;

		g->used.of[i] -= less->of[i];
		room = book_room((enum book)i, g->used.of[i]);
		if (g->granted.of[i] / 2 <= room)
			continue;
		keep.of[i] = room;
		far = true;
	}
	if (!far)
		return;
	amounts_to_wire(&keep, &wire);
	back.keep = &wire;
	up.body_case = KVREG__UP__BODY_GRANT_RETURN;
	up.grant_return = &back;
	if (control_send(&c->control, &up) == 0)
		g->granted = keep;
}

void grant_evidence(struct client *c, struct failure *f)
{
	struct proc_status status;

	f->snapshot.has_session_memlock = true;
	f->snapshot.session_memlock = own_memlock();
	if (self_status(&c->self, &status) < 0)
		return;
	f->snapshot.has_session_vm_pin = f->snapshot.has_session_cap_eff = true;
	f->snapshot.session_vm_pin = status.vm_pin;
	f->snapshot.session_cap_eff = status.cap_eff;
}
