/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connection.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/fdset.h"
#include "proto/wire.h"

void connection_init(struct connection *c)
{
	c->sock = -1;
	c->owner = getpid();
	pthread_mutex_init(&c->lock, /* attributes */ NULL);
}

static int connect_failed(struct failure *f, const char *path)
{
	enum kvreg_code code = KVREG_E_UNKNOWN;

	if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
		code = KVREG_E_NO_DAEMON;
	if (errno == EACCES || errno == EPERM)
		code = KVREG_E_NO_PERMISSION;
	f->errnum = errno;
	return failure_set(f, code, KVREG_STAGE_CONNECT, "%s: %m", path);
}

int connection_open(struct connection *c, const char *path, struct failure *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_fd_ int sock = -1;
	int r;

	if (!path[0] || strlen(path) >= sizeof(address.sun_path))
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_CONNECT,
				   "the socket path has %zu bytes, 1 to %zu are possible",
				   strlen(path), sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, /* protocol */ 0);
	if (sock < 0) {
		f->errnum = errno;
		return failure_set(f, KVREG_E_UNKNOWN, KVREG_STAGE_CONNECT, "socket: %m");
	}
	/* Interrupted while the daemon's queue is full: nothing has happened yet (unix(7)). */
	do {
		r = connect(sock, (struct sockaddr *)&address, sizeof(address));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return connect_failed(f, path);
	c->sock = sock;
	sock = -1;
	return KVREG_E_OK;
}

void connection_fini(struct connection *c)
{
	fd_close(&c->sock);
	if (!connection_forked(c))
		pthread_mutex_destroy(&c->lock);
}

bool connection_forked(const struct connection *c)
{
	return c->owner != getpid();
}

static int forked(const struct connection *c, enum kvreg_stage stage, struct failure *f)
{
	return failure_set(f, KVREG_E_FORKED, stage, "opened by pid %d, used by pid %d",
			   (int)c->owner, (int)getpid());
}

int connection_enter(struct connection *c, enum kvreg_stage stage, struct failure *f,
		     struct connection **ret_entered)
{
	if (connection_forked(c))
		return forked(c, stage, f);
	pthread_mutex_lock(&c->lock);
	*ret_entered = c;
	return KVREG_E_OK;
}

void connection_leave(struct connection **entered)
{
	if (*entered)
		pthread_mutex_unlock(&(*entered)->lock);
}

static void report(struct connection *c, enum kvreg_event event)
{
	if (c->on_event)
		c->on_event(c->arg, event);
}

static int lose(struct connection *c, struct failure *f, enum kvreg_code code,
		enum kvreg_stage stage, const char *words)
{
	c->lost = true;
	report(c, KVREG_EVENT_SESSION_LOST);
	return failure_set(f, code, stage, "%s", words);
}

/* The peer of a socket that it closed with our bytes unread: the kernel reports ECONNRESET once,
 * ahead of what the peer had sent before (sock_error() in unix_dgram_recvmsg). */
static ssize_t receive_record(struct connection *c, int flags)
{
	_cleanup_fdset_ struct fdset unwanted = FDSET_INIT;
	ssize_t n = wire_recv(c->sock, c->record, sizeof(c->record), &unwanted, flags);

	if (n == -ECONNRESET)
		n = wire_recv(c->sock, c->record, sizeof(c->record), &unwanted, flags);
	return n;
}

/* Takes one record. Return: 0; -EAGAIN with MSG_DONTWAIT; a code, and the connection is lost. */
static int receive(struct connection *c, enum kvreg_stage stage, int flags, struct failure *f,
		   Kvreg__Reply **ret_reply)
{
	ssize_t n = receive_record(c, flags);
	ProtobufCMessage *message;

	if (n == -EAGAIN)
		return -EAGAIN;
	if (n == 0)
		return lose(c, f, KVREG_E_SESSION_LOST, stage, "the session closed the connection");
	if (n == -EPROTO)
		return lose(c, f, KVREG_E_PROTOCOL, stage, "a reply is longer than a record");
	if (n < 0) {
		f->errnum = (int)-n;
		return lose(c, f, KVREG_E_SESSION_LOST, stage, "receiving a reply failed");
	}
	message = codec_unpack(&c->arena, &kvreg__reply__descriptor, c->record, (size_t)n);
	if (!message)
		return lose(c, f, KVREG_E_PROTOCOL, stage, "a reply does not unpack");
	*ret_reply = (Kvreg__Reply *)message;
	return KVREG_E_OK;
}

static bool is_event(const Kvreg__Reply *reply)
{
	return reply->seq == 0;
}

/* Events of a newer session that this build does not know are passed over. */
static void take_event(struct connection *c, const Kvreg__Reply *event)
{
	if (event->body_case == KVREG__REPLY__BODY_DRAINING)
		report(c, KVREG_EVENT_DRAINING);
}

static int send_request(struct connection *c, struct call *call, struct failure *f)
{
	size_t length;
	int r;

	if (++c->seq == 0)
		c->seq = 1;
	call->request.seq = c->seq;
	length = codec_pack(&call->request.base, c->record, sizeof(c->record));
	if (length == 0)
		return failure_set(f, KVREG_E_INTERNAL, call->stage,
				   "the request is longer than a record");
	r = wire_send(c->sock, c->record, length, &call->fd, call->fd >= 0 ? 1 : 0, /* flags */ 0);
	/* A peer that is gone may have told why before it went: receiving shows it. */
	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		return KVREG_E_OK;
	f->errnum = -r;
	errno = -r;
	return failure_set(f, KVREG_E_UNKNOWN, call->stage, "sending the request: %m");
}

static int check_reply(struct connection *c, const struct call *call, const Kvreg__Reply *reply,
		       struct failure *f)
{
	if (reply->seq != c->seq)
		return lose(c, f, KVREG_E_PROTOCOL, call->stage, "a reply to no request of ours");
	if (reply->error && reply->error->code == KVREG_E_OK)
		return lose(c, f, KVREG_E_PROTOCOL, call->stage, "a refusal without a code");
	if (reply->error) {
		failure_from_wire(f, reply->error);
		return (int)f->code;
	}
	if (reply->body_case != call->wants)
		return lose(c, f, KVREG_E_PROTOCOL, call->stage, "a reply of another kind");
	return KVREG_E_OK;
}

int connection_call(struct connection *c, struct call *call, struct failure *f,
		    Kvreg__Reply **ret_reply)
{
	Kvreg__Reply *reply = NULL;
	int code;

	if (c->lost)
		return failure_set(f, KVREG_E_SESSION_LOST, call->stage, "it ended earlier");
	code = send_request(c, call, f);
	if (code != KVREG_E_OK)
		return code;
	for (;;) {
		code = receive(c, call->stage, /* flags */ 0, f, &reply);
		if (code != KVREG_E_OK)
			return code;
		assert(reply);
		if (!is_event(reply))
			break;
		take_event(c, reply);
	}
	code = check_reply(c, call, reply, f);
	if (code == KVREG_E_OK)
		*ret_reply = reply;
	return code;
}

static int dispatch(struct connection *c, struct failure *f)
{
	Kvreg__Reply *reply = NULL;
	int code;

	if (c->lost)
		return failure_set(f, KVREG_E_SESSION_LOST, KVREG_STAGE_CONNECT,
				   "it ended earlier");
	for (;;) {
		code = receive(c, KVREG_STAGE_CONNECT, MSG_DONTWAIT, f, &reply);
		if (code == -EAGAIN)
			return KVREG_E_OK;
		if (code != KVREG_E_OK)
			return code;
		assert(reply);
		if (!is_event(reply))
			return lose(c, f, KVREG_E_PROTOCOL, KVREG_STAGE_CONNECT,
				    "a reply to no request of ours");
		take_event(c, reply);
	}
}

int connection_dispatch(struct connection *c, struct failure *f)
{
	_cleanup_leave_ struct connection *entered = NULL;

	if (connection_forked(c))
		return forked(c, KVREG_STAGE_CONNECT, f);
	if (pthread_mutex_trylock(&c->lock) != 0)
		return KVREG_E_OK;
	entered = c;
	return dispatch(c, f);
}
