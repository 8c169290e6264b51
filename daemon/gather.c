/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gather.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/admin.h"
#include "daemon/session.h"
#include "daemon/supervisor.h"

static void gather_free(struct gather *gather)
{
	ev_timer_stop(gather->supervisor->loop, &gather->deadline);
	LIST_REMOVE(gather, link);
	free(gather);
}

/* The last record of the answer; sessions that still owe theirs are named, and shown as such. */
static void finish(struct gather *gather)
{
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;
	uint32_t pids[UNANSWERED_PER_RECORD];
	struct session *admin = gather->admin;

	reply.seq = gather->seq;
	reply.unanswered = pids;

	for (size_t i = 0; i < gather->n_asked; i++) {
		struct session *session = gather->asked[i];

		if (!session)
			continue;
		if (!gather->regions)
			admin_tell_client(admin, gather->seq, session, NULL);
		pids[reply.n_unanswered++] = (uint32_t)session->peer.pid;
		if (reply.n_unanswered < UNANSWERED_PER_RECORD)
			continue;
		reply.more = true;
		admin_reply(admin, &reply);
		reply.n_unanswered = 0;
	}
	reply.more = false;
	gather_free(gather);
	admin_reply(admin, &reply);
}

static void on_deadline(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	finish(timer->data);
}

static void finish_if_done(struct gather *gather)
{
	for (size_t i = 0; i < gather->n_asked; i++)
		if (gather->asked[i])
			return;
	finish(gather);
}

static void ask(struct gather *gather)
{
	Kvreg__Query query = KVREG__QUERY__INIT;
	Kvreg__Down down = KVREG__DOWN__INIT;

	query.cookie = gather->cookie;
	query.regions = gather->regions;
	down.body_case = KVREG__DOWN__BODY_QUERY;
	down.query = &query;
	for (size_t i = 0; i < gather->n_asked; i++)
		session_send(gather->asked[i], &down);
}

int gather_start(struct supervisor *supervisor, struct session *admin, uint32_t seq, bool regions,
		 uint32_t client_pid)
{
	struct gather *gather;
	struct session *session;
	size_t n = 0;

	LIST_FOREACH(session, &supervisor->sessions, link)
		n++;
	gather = calloc(1, sizeof(*gather) + n * sizeof(gather->asked[0]));
	if (!gather)
		return -ENOMEM;
	gather->supervisor = supervisor;
	gather->admin = admin;
	gather->seq = seq;
	gather->regions = regions;
	gather->cookie = ++supervisor->cookie;
	LIST_FOREACH(session, &supervisor->sessions, link) {
		if (session->role != KVREG__ROLE__ROLE_CLIENT ||
		    (client_pid && (uint32_t)session->peer.pid != client_pid))
			continue;
		/* A dead session is shown from the books and cannot be asked. */
		if (session->pid == 0) {
			if (!regions)
				admin_tell_client(admin, seq, session, NULL);
			continue;
		}
		gather->asked[gather->n_asked++] = session;
	}
	ev_timer_init(&gather->deadline, on_deadline, QUERY_WAIT_S, 0.);
	gather->deadline.data = gather;
	LIST_INSERT_HEAD(&supervisor->gathers, gather, link);
	ev_timer_start(supervisor->loop, &gather->deadline);
	ask(gather);
	finish_if_done(gather);
	return 0;
}

static struct gather *find(struct supervisor *supervisor, uint32_t cookie)
{
	struct gather *gather;

	LIST_FOREACH(gather, &supervisor->gathers, link)
		if (gather->cookie == cookie)
			return gather;
	return NULL;
}

void gather_report(struct supervisor *supervisor, struct session *session,
		   const Kvreg__Report *report)
{
	struct gather *gather = find(supervisor, report->cookie);
	size_t i;

	if (!gather)
		return;
	for (i = 0; i < gather->n_asked && gather->asked[i] != session; i++)
		;
	if (i == gather->n_asked)
		return;
	if (gather->regions)
		admin_tell_regions(gather->admin, gather->seq, session, report);
	else
		admin_tell_client(gather->admin, gather->seq, session, report);
	/* Counts come in one record: what a session adds to them is for nobody. */
	if (report->more && gather->regions)
		return;
	gather->asked[i] = NULL;
	finish_if_done(gather);
}

void gather_forget(struct supervisor *supervisor, struct session *session)
{
	struct gather *gather, *next;

	for (gather = LIST_FIRST(&supervisor->gathers); gather; gather = next) {
		next = LIST_NEXT(gather, link);
		if (gather->admin == session) {
			gather_free(gather);
			continue;
		}
		bool asked = false;
		for (size_t i = 0; i < gather->n_asked; i++) {
			asked |= gather->asked[i] == session;
			if (gather->asked[i] == session)
				gather->asked[i] = NULL;
		}
		if (asked)
			finish_if_done(gather);
	}
}
