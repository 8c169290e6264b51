/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/serve.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "daemon/session/dispatch.h"
#include "daemon/session/events.h"

static int send_answer(struct client *c, const struct answer *answer)
{
	size_t length = codec_pack(&answer->reply.base, c->answer, sizeof(c->answer));
	int r;

	if (length == 0)
		return -EMSGSIZE;
	while ((r = wire_send(c->sock, c->answer, length, NULL, 0, MSG_DONTWAIT)) == -EAGAIN) {
		r = events_wait(c, POLLOUT);
		if (r < 0)
			return r;
	}
	return r;
}

static void violation(struct client *c, const char *words)
{
	Kvreg__Violation violation = KVREG__VIOLATION__INIT;
	Kvreg__Up up = KVREG__UP__INIT;

	violation.words = (char *)words;
	up.body_case = KVREG__UP__BODY_VIOLATION;
	up.violation = &violation;
	(void)control_send(&c->control, &up);
}

/* Return: 0; -EPROTO and *@ret_words; -EAGAIN nothing there; or another -errno: it has gone. */
static int serve_record(struct client *c, struct answer *answer, const char **ret_words)
{
	_cleanup_fdset_ struct fdset fds = FDSET_INIT;
	const Kvreg__Request *request;
	ssize_t n;
	int r;

	n = wire_recv(c->sock, c->record, sizeof(c->record), &fds, MSG_DONTWAIT);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0) {
		*ret_words = "a record that is too long or carries too many fds";
		return (int)n;
	}
	request = (const Kvreg__Request *)codec_unpack(&c->arena, &kvreg__request__descriptor,
						       c->record, (size_t)n);
	if (!request) {
		*ret_words = "a record that is no message";
		return -EPROTO;
	}
	r = dispatch(c, request, &fds, answer, ret_words);
	if (r == 0)
		r = send_answer(c, answer);
	/* A peer that speaks another protocol has been told so, and has nothing more to say. */
	return r == 0 && !c->greeted ? -ECONNRESET : r;
}

void serve(struct client *c)
{
	static struct answer answer;
	const char *words = NULL;
	int r;

	do {
		r = events_wait(c, POLLIN);
		if (r == 1)
			r = serve_record(c, &answer, &words);
	} while (r >= 0 || r == -EAGAIN);
	if (r == -EPROTO)
		violation(c, words);
}
