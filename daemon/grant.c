/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/grant.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/log.h"
#include "daemon/session.h"
#include "daemon/supervisor.h"
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

void grant_request(struct session *session, const Kvreg__GrantRequest *request)
{
	Kvreg__GrantReply reply = KVREG__GRANT_REPLY__INIT;
	Kvreg__Down down = KVREG__DOWN__INIT;
	uint64_t before = session->charge.bytes;
	struct quota quota;
	int r;

	r = charge_raise(&session->charge, request->bytes, grant_with_room(request->bytes), &quota);
	if (r == 0) {
		r = set_limit(session, session->charge.bytes);
		if (r < 0) {
			log_error("prlimit of session %d: %s", session->pid, strerror(-r));
			charge_lower(&session->charge, before);
		}
		leaf_memory(&session->leaf, session->charge.bytes);
	}
	if (r != 0)
		session->supervisor->grants_refused++;
	reply.seq = request->seq;
	reply.granted = session->charge.bytes;
	reply.refused = r != 0;
	reply.quota_used = quota.used;
	reply.quota_limit = quota.limit;
	reply.scope = (char *)quota.scope;
	down.body_case = KVREG__DOWN__BODY_GRANT;
	down.grant = &reply;
	session_send(session, &down);
}

/*
 * First the limit falls, then the kernel is asked what is pinned: it cannot rise any more, so what
 * stays booked covers it whatever the session said.
 */
void grant_return(struct session *session, const Kvreg__GrantReturn *back)
{
	struct proc_status status;
	uint64_t keep = back->bytes;

	if (keep >= session->charge.bytes || set_limit(session, keep) < 0)
		return;
	if (proc_status(session->pid, &status) < 0 || !status.has_mm)
		return;
	if (status.vm_pin > keep)
		keep = status.vm_pin;
	if (status.vm_lck > keep)
		keep = status.vm_lck;
	if (keep < session->charge.bytes)
		charge_lower(&session->charge, keep);
}
