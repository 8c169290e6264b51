/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/holders.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/session.h"
#include "daemon/supervisor.h"

/* With what the leases of its process take, which all connections of that process show. */
static uint64_t holds(const struct session *session, enum book book)
{
	uint64_t amount = session->charge.held.of[book];

	return session->leaseholder ? amount + session->leaseholder->charge.held.of[book] : amount;
}

static bool counts(const struct session *session, size_t klass, uint32_t uid, uint32_t gid,
		   const struct quota *quota)
{
	if (session->role != KVREG__ROLE__ROLE_CLIENT || session->klass != klass ||
	    holds(session, quota->book) == 0)
		return false;
	if (quota->scope == SCOPE_UID)
		return session->peer.uid == uid;
	return quota->scope != SCOPE_GID || session->peer.gid == gid;
}

/* Keeps @top sorted, the largest first. */
static void insert(const struct session *top[HOLDERS_SHOWN], const struct session *session,
		   enum book book)
{
	for (size_t i = 0; i < HOLDERS_SHOWN; i++) {
		const struct session *other = top[i];

		if (other && holds(other, book) >= holds(session, book))
			continue;
		top[i] = session;
		session = other;
		if (!session)
			return;
	}
}

void holders_text(const struct supervisor *supervisor, size_t klass, uint32_t uid, uint32_t gid,
		  const struct quota *quota, char *ret_text, size_t size)
{
	const struct session *top[HOLDERS_SHOWN] = { NULL }, *session;
	size_t n = 0, used = 0;

	LIST_FOREACH(session, &supervisor->sessions, link) {
		/* cppcheck-suppress uninitvar */
		if (!counts(session, klass, uid, gid, quota))
			continue;
		insert(top, session, quota->book);
		n++;
	}
	ret_text[0] = '\0';
	for (size_t i = 0; i < HOLDERS_SHOWN && top[i] && used < size; i++)
		used += (size_t)snprintf(ret_text + used, size - used, "%s%d (%s) %" PRIu64,
					 i ? ", " : "", top[i]->peer.pid, top[i]->peer.comm,
					 holds(top[i], quota->book));
	if (n > HOLDERS_SHOWN && used < size)
		snprintf(ret_text + used, size - used, " and %zu more", n - HOLDERS_SHOWN);
}
