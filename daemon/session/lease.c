/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/lease.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/session/client.h"
#include "daemon/session/events.h"

void lease_take(struct lease_answer *answer, const Kvreg__LeaseReply *reply)
{
	if (reply->seq != answer->seq)
		return;
	answer->answered = true;
	answer->code = reply->code;
	answer->errnum = reply->errnum;
	if (reply->lease) {
		answer->lease = reply->lease->lease;
		answer->limit = reply->lease->limit;
		answer->bytes = reply->lease->bytes;
		answer->booked = reply->lease->booked;
	}
	answer->book = reply->book < BOOKS ? reply->book : BOOK_CHARGE;
	answer->quota_used = reply->quota_used;
	answer->quota_limit = reply->quota_limit;
	answer->need = reply->need;
	text_clean(answer->scope, sizeof(answer->scope), reply->scope);
	text_clean(answer->holders, sizeof(answer->holders), reply->holders);
}

static int refuse(const struct lease_answer *answer, struct failure *f)
{
	const char *unit = book_unit((enum book)answer->book);

	f->errnum = answer->errnum;
	switch (answer->code) {
	case KVREG_E_LIMIT_QUOTA:
		f->snapshot.has_need = f->snapshot.has_quota_used = true;
		f->snapshot.has_quota_limit = true;
		f->snapshot.need = answer->need;
		f->snapshot.quota_used = answer->quota_used;
		f->snapshot.quota_limit = answer->quota_limit;
		return failure_set(f, KVREG_E_LIMIT_QUOTA, KVREG_STAGE_LEASE,
				   "%s of the %s: %" PRIu64 " of %" PRIu64
				   "%s are granted, and %" PRIu64 " more needed%s%s",
				   book_name((enum book)answer->book), answer->scope,
				   answer->quota_used, answer->quota_limit, unit, answer->need,
				   answer->holders[0] ? "; held by " : "", answer->holders);
	case KVREG_E_LEASE_FORBIDDEN:
		return failure_set(f, KVREG_E_LEASE_FORBIDDEN, KVREG_STAGE_LEASE, "class %s",
				   answer->scope);
	case KVREG_E_LIMIT_MEMLOCK:
		return failure_set(f, KVREG_E_LIMIT_MEMLOCK, KVREG_STAGE_LEASE,
				   "the daemon cannot raise the limit of this process");
	case KVREG_E_LIMIT_OBJECTS:
		return failure_set(f, KVREG_E_LIMIT_OBJECTS, KVREG_STAGE_LEASE,
				   "%u leases of this connection have not ended",
				   LEASES_PER_SESSION);
	case KVREG_E_BAD_HANDLE:
		return failure_set(f, KVREG_E_BAD_HANDLE, KVREG_STAGE_LEASE, "no such lease");
	default:
		return failure_set(f, KVREG_E_INTERNAL, KVREG_STAGE_LEASE, "errno %d",
				   answer->errnum);
	}
}

static int ask(struct client *c, const Kvreg__Up *up, struct failure *f)
{
	struct lease_answer *answer = &c->lease_answer;
	int r;

	answer->answered = false;
	r = control_send(&c->control, up);
	while (r >= 0 && !answer->answered && !c->control.gone)
		r = events_wait(c, 0);
	if (r < 0 && r != -EPIPE)
		return r;
	if (!answer->answered)
		return failure_set(f, KVREG_E_SESSION_LOST, KVREG_STAGE_LEASE,
				   "the supervisor is gone, and only it can raise a limit");
	return answer->code == KVREG_E_OK ? 0 : refuse(answer, f);
}

int lease_begin(struct client *c, const Kvreg__LeaseMemlock *request, struct failure *f)
{
	Kvreg__LeaseRequest words = KVREG__LEASE_REQUEST__INIT;
	Kvreg__LeaseMemlock lease = *request;
	Kvreg__Up up = KVREG__UP__INIT;

	/* What a newer client says beside it is not ours to pass on. */
	lease.base.n_unknown_fields = 0;
	words.seq = ++c->lease_answer.seq;
	words.lease = &lease;
	up.body_case = KVREG__UP__BODY_LEASE;
	up.lease = &words;
	return ask(c, &up, f);
}

int lease_end(struct client *c, uint32_t number, struct failure *f)
{
	Kvreg__LeaseEnd words = KVREG__LEASE_END__INIT;
	Kvreg__Up up = KVREG__UP__INIT;

	words.seq = ++c->lease_answer.seq;
	words.lease = number;
	up.body_case = KVREG__UP__BODY_LEASE_END;
	up.lease_end = &words;
	return ask(c, &up, f);
}
