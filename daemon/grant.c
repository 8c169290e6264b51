/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/grant.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/holders.h"
#include "daemon/log.h"
#include "daemon/session.h"
#include "daemon/supervisor.h"
#include "daemon/sysfs.h"
#include "kvreg-errors.h"
#include "proto/procfs.h"

/* The session is our child and not reaped, so its number names it and nobody else. */
static int set_limit(struct session *session, uint64_t bytes)
{
	const struct rlimit limit = { bytes, bytes };

	if (!session->supervisor->privilege.raise_limit)
		return 0;
	return prlimit(session->pid, RLIMIT_MEMLOCK, &limit, NULL) < 0 ? -errno : 0;
}

/* Room beyond what is needed, in the books that are asked for more. */
static struct amounts want(const struct charge *charge, const struct amounts *need)
{
	struct amounts most = *need;

	for (size_t i = 0; i < BOOKS; i++)
		if (need->of[i] > charge->held.of[i])
			most.of[i] = book_room((enum book)i, need->of[i]);
	return most;
}

static int raise_grant(struct session *session, const struct amounts *need, struct quota *ret_quota)
{
	struct charge *charge = &session->charge;
	struct amounts before = charge->held, more = want(charge, need);
	int r;

	charge->books->devices = sysfs_devices();
	r = charge_raise(charge, need, &more, ret_quota);
	if (r != 0 || charge->held.of[BOOK_CHARGE] == before.of[BOOK_CHARGE])
		return r;
	r = set_limit(session, charge->held.of[BOOK_CHARGE]);
	if (r < 0) {
		log_error("prlimit of session %d: %s", session->pid, strerror(-r));
		charge_lower(charge, &before);
	}
	leaf_memory(&session->leaf, charge->held.of[BOOK_CHARGE]);
	return r;
}

void grant_request(struct session *session, const Kvreg__GrantRequest *request)
{
	Kvreg__GrantReply reply = KVREG__GRANT_REPLY__INIT;
	struct amounts need = amounts_from_wire(request->need);
	Kvreg__Down down = KVREG__DOWN__INIT;
	char holders[HOLDERS_TEXT] = "";
	Kvreg__Amounts granted;
	struct quota quota;
	int r = raise_grant(session, &need, &quota);

	if (r != 0)
		session->supervisor->grants_refused++;
	if (r > 0)
		holders_text(session->supervisor, session->klass, session->peer.uid,
			     session->peer.gid, &quota, holders, sizeof(holders));
	amounts_to_wire(&session->charge.held, &granted);
	reply.seq = request->seq;
	reply.granted = &granted;
	reply.refused = r != 0;
	reply.book = quota.book;
	reply.quota_used = quota.used;
	reply.quota_limit = quota.limit;
	reply.scope = (char *)scope_name(quota.scope);
	reply.holders = holders;
	down.body_case = KVREG__DOWN__BODY_GRANT;
	down.grant = &reply;
	session_send(session, &down);
}

/*
 * First the limit falls, then the kernel is asked what is pinned: it cannot rise any more, so what
 * stays booked covers it whatever the session said. Of the other books there is only its word.
 */
void grant_return(struct session *session, const Kvreg__GrantReturn *back)
{
	struct amounts keep = amounts_from_wire(back->keep);
	struct proc_status status;
	uint64_t pinned, *bytes = &keep.of[BOOK_CHARGE],
			 held = session->charge.held.of[BOOK_CHARGE];

	if (*bytes < held) {
		if (set_limit(session, *bytes) < 0 || proc_status(session->pid, &status) < 0 ||
		    !status.has_mm)
			return;
		pinned = status.vm_pin > status.vm_lck ? status.vm_pin : status.vm_lck;
		if (*bytes < pinned)
			*bytes = pinned;
	}
	charge_lower(&session->charge, &keep);
}
