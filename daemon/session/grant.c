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

/* Asks for @total bytes in all and waits for the answer, which events.c notes in the grant. */
static int ask_grant(struct client *c, uint64_t total)
{
	Kvreg__GrantRequest request = KVREG__GRANT_REQUEST__INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	int r;

	request.seq = ++c->grant.seq;
	request.bytes = total;
	up.body_case = KVREG__UP__BODY_GRANT;
	up.grant = &request;
	c->grant.answered = false;
	r = control_send(&c->control, &up);
	while (r >= 0 && !c->grant.answered && !c->control.gone)
		r = events_wait(c, 0);
	c->grant.memlock = own_memlock();
	return r == -EPIPE ? 0 : r;
}

static int refuse(struct client *c, uint64_t bytes, struct failure *f)
{
	struct grant *g = &c->grant;

	f->snapshot.has_need = true;
	f->snapshot.need = bytes;
	if (!g->answered)
		return failure_set(f, KVREG_E_LIMIT_QUOTA, KVREG_STAGE_PIN,
				   "the supervisor is gone: %" PRIu64 " bytes are granted, %" PRIu64
				   " charged, and %" PRIu64 " more needed",
				   g->granted, g->charged, bytes);
	f->snapshot.has_quota_used = f->snapshot.has_quota_limit = true;
	f->snapshot.quota_used = g->quota_used;
	f->snapshot.quota_limit = g->quota_limit;
	return failure_set(f, KVREG_E_LIMIT_QUOTA, KVREG_STAGE_PIN,
			   "%s: %" PRIu64 " of %" PRIu64 " bytes are granted, and %" PRIu64
			   " more needed",
			   g->scope, g->quota_used, g->quota_limit, bytes);
}

int grant_take(struct client *c, uint64_t bytes, struct failure *f)
{
	struct grant *g = &c->grant;
	uint64_t charged = g->charged;
	int r;

	if (bytes > UINT64_MAX - charged)
		return refuse(c, bytes, f);
	if (charged + bytes > g->granted && client_charged(c, &charged) < 0)
		charged = g->charged;
	if (charged + bytes > g->granted) {
		r = ask_grant(c, charged + bytes);
		if (r < 0)
			return r;
		if (charged + bytes > g->granted)
			return refuse(c, bytes, f);
	}
	/* The kernel would answer ENOMEM, which has six causes: say it before it does. */
	if (charged + bytes > g->memlock)
		return failure_set(f, KVREG_E_LIMIT_MEMLOCK, KVREG_STAGE_PIN,
				   "the session's RLIMIT_MEMLOCK is %" PRIu64 " bytes, %" PRIu64
				   " are charged, and %" PRIu64 " more needed%s",
				   g->memlock, charged, bytes,
				   g->fixed ? "; the daemon cannot raise limits" : "");
	g->charged += bytes;
	return 0;
}

void grant_give(struct client *c, uint64_t bytes)
{
	struct grant *g = &c->grant;
	Kvreg__GrantReturn back = KVREG__GRANT_RETURN__INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	uint64_t keep;

	g->charged -= bytes;
	/* Twice the usual room is kept, so that a client that comes and goes does not ask each
	 * time. */
	keep = grant_with_room(g->charged);
	if (g->granted / 2 <= keep)
		return;
	back.bytes = keep;
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
