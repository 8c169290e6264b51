/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/events.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "daemon/session/client.h"
#include "daemon/session/report.h"

static void take_grant(struct grant *g, const Kvreg__GrantReply *reply)
{
	if (reply->seq != g->seq)
		return;
	g->answered = true;
	g->granted = amounts_from_wire(reply->granted);
	g->refused = reply->refused;
	g->book = reply->book < BOOKS ? (enum book)reply->book : BOOK_CHARGE;
	text_clean(g->holders, sizeof(g->holders), reply->holders);
	text_clean(g->scope, sizeof(g->scope), reply->scope);
	g->quota_used = reply->quota_used;
	g->quota_limit = reply->quota_limit;
}

static void take_device(struct device_answer *answer, const Kvreg__DeviceReply *reply)
{
	if (reply->seq != answer->seq)
		return;
	answer->answered = true;
	answer->is_uverbs = reply->is_uverbs;
	text_clean(answer->name, sizeof(answer->name), reply->name);
}

/* An event is advice: a client that does not read misses it, and we do not wait for it. */
static void tell_draining(struct client *c)
{
	Kvreg__Draining draining = KVREG__DRAINING__INIT;
	Kvreg__Reply event = KVREG__REPLY__INIT;
	uint8_t record[64];
	size_t length;

	event.body_case = KVREG__REPLY__BODY_DRAINING;
	event.draining = &draining;
	length = codec_pack(&event.base, record, sizeof(record));
	if (c->greeted)
		(void)wire_send(c->sock, record, length, NULL, 0, MSG_DONTWAIT);
}

static void serve_supervisor(struct client *c)
{
	const Kvreg__Down *down = control_recv(&c->control);

	if (!down)
		return;
	if (down->body_case == KVREG__DOWN__BODY_GRANT)
		take_grant(&c->grant, down->grant);
	else if (down->body_case == KVREG__DOWN__BODY_DEVICE)
		take_device(&c->device_answer, down->device);
	else if (down->body_case == KVREG__DOWN__BODY_LEASE)
		lease_take(&c->lease_answer, down->lease);
	else if (down->body_case == KVREG__DOWN__BODY_QUERY)
		report_send(c, down->query);
	else if (down->body_case == KVREG__DOWN__BODY_CLIENT_GONE)
		c->ended = true;
	else if (down->body_case == KVREG__DOWN__BODY_DRAINING)
		tell_draining(c);
}

int events_wait(struct client *c, short sock_events)
{
	struct pollfd fds[] = {
		{ .fd = c->sock, .events = sock_events },
		{ .fd = c->control.gone ? -1 : c->control.down, .events = POLLIN },
		{ .fd = c->pidfd, .events = POLLIN },
	};

	if (c->ended)
		return -ECONNRESET;
	if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[1].revents)
		serve_supervisor(c);
	/* Hangup: both directions are closed, so nothing that is still queued can be answered. */
	if (fds[2].revents || (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
		c->ended = true;
	if (c->ended)
		return -ECONNRESET;
	return fds[0].revents & sock_events ? 1 : 0;
}
