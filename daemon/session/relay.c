/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/relay.h"

#include <errno.h>
#include <poll.h>

#include "proto/wire.h"

static struct arena arena;
static uint8_t record[RECORD_MAX];

/* The next word of the supervisor; NULL: it is gone, or says that the administrator is. */
static const Kvreg__Down *next_word(struct control *control)
{
	const Kvreg__Down *down = control_recv(control);

	return down && down->body_case == KVREG__DOWN__BODY_CLIENT_GONE ? NULL : down;
}

/* Return: 0 all of the answer has gone out; < 0: one side is gone. */
static int carry_answer(struct control *control, int sock, uint32_t seq)
{
	for (;;) {
		const Kvreg__Down *down = next_word(control);

		if (!down)
			return -EPIPE;
		if (down->body_case != KVREG__DOWN__BODY_ADMIN || down->admin->seq != seq)
			continue;
		size_t length = codec_pack(&down->admin->base, record, sizeof(record));
		int r = wire_send(sock, record, length, NULL, 0, 0);
		if (r < 0 || !down->admin->more)
			return r;
	}
}

static int carry_request(struct control *control, int sock)
{
	_cleanup_fdset_ struct fdset fds = FDSET_INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	ssize_t n = wire_recv(sock, record, sizeof(record), &fds, 0);
	int r;

	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	up.body_case = KVREG__UP__BODY_ADMIN;
	up.admin = (Kvreg__AdminRequest *)codec_unpack(&arena, &kvreg__admin_request__descriptor,
						       record, (size_t)n);
	if (!up.admin)
		return -EPROTO;
	uint32_t seq = up.admin->seq;
	r = control_send(control, &up);
	return r < 0 ? r : carry_answer(control, sock, seq);
}

void relay(struct control *control, int sock)
{
	int r = 0;

	while (r >= 0) {
		struct pollfd fds[] = {
			{ .fd = sock, .events = POLLIN },
			{ .fd = control->down, .events = POLLIN },
		};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents && !next_word(control))
			return;
		if (fds[0].revents)
			r = carry_request(control, sock);
	}
}
