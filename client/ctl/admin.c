/* SPDX-License-Identifier: Apache-2.0 */
#include "admin.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "complain.h"
#include "proto/codec.h"
#include "proto/failure.h"
#include "proto/fdset.h"
#include "proto/limits.h"
#include "proto/wire.h"

struct admin {
	const char *path; /* borrowed */
	int sock;
	uint8_t record[RECORD_MAX];
	struct arena arena;
};

static void admin_free(struct admin **admin)
{
	if (*admin)
		fd_close(&(*admin)->sock);
	free(*admin);
	*admin = NULL;
}

static const char *socket_path(const struct options *options)
{
	const char *path = options->admin_socket;

	if (!path)
		path = secure_getenv("KVREG_ADMIN_SOCKET");
	return path && *path ? path : DEFAULT_ADMIN_SOCKET;
}

static int not_admitted(const char *path)
{
	return complain(CTL_NO_PERMISSION,
			"this user may not ask on %s: root may, and members of the group "
			"kvreg-admin",
			path);
}

static int connect_failed(const char *path, int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ECONNREFUSED:
		return complain(CTL_NO_DAEMON,
				"no daemon listens on %s: start kvregd (systemctl start kvregd), "
				"or name its socket with --admin-socket",
				path);
	case EACCES:
	case EPERM:
		return not_admitted(path);
	case EAGAIN:
		return complain(CTL_FAILED, "the daemon on %s accepts no connection within %d s",
				path, ADMIN_WAIT_MS / 1000);
	default:
		return complain(CTL_FAILED, "cannot connect to %s: %s", path, strerror(errnum));
	}
}

static int admin_connect(struct admin *admin)
{
	const struct timeval wait = { .tv_sec = ADMIN_WAIT_MS / 1000 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(admin->path) >= sizeof(address.sun_path))
		return complain(CTL_USAGE, "the socket's path is longer than %zu bytes: %s",
				sizeof(address.sun_path) - 1, admin->path);
	strcpy(address.sun_path, admin->path);
	admin->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* Bounds connect() too, which waits while the listener's backlog is full (unix(7)). */
	if (admin->sock < 0 ||
	    setsockopt(admin->sock, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)))
		return complain(CTL_FAILED, "cannot make a socket: %s", strerror(errno));
	if (connect(admin->sock, (const struct sockaddr *)&address, sizeof(address)))
		return connect_failed(admin->path, errno);
	return 0;
}

static int lost(const struct admin *admin, int errnum)
{
	return complain(CTL_FAILED,
			"the daemon on %s closed the connection before it had answered%s%s",
			admin->path, errnum ? ": " : "", errnum ? strerror(errnum) : "");
}

static int admin_send(struct admin *admin, const Kvreg__AdminRequest *request)
{
	size_t length = codec_pack(&request->base, admin->record, sizeof(admin->record));
	int rc = wire_send(admin->sock, admin->record, length, NULL, 0, 0);

	/* Whoever hangs up at once may have left an answer that says why. */
	if (!rc || rc == -EPIPE || rc == -ECONNRESET)
		return 0;
	return complain(CTL_FAILED, "cannot ask the daemon on %s: %s", admin->path, strerror(-rc));
}

static int wait_readable(const struct admin *admin)
{
	struct pollfd waited = { .fd = admin->sock, .events = POLLIN };
	int n;

	do
		n = poll(&waited, 1, ADMIN_WAIT_MS);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return 0;
	if (!n)
		return complain(CTL_FAILED,
				"the daemon on %s does not answer within %d s: it hangs or is "
				"stopped; its log may say more (journalctl -u kvregd)",
				admin->path, ADMIN_WAIT_MS / 1000);
	return complain(CTL_FAILED, "cannot wait for an answer: %s", strerror(errno));
}

static int broken(const struct admin *admin)
{
	return complain(
		CTL_FAILED,
		"what answers on %s does not speak this protocol: is it kvregd, of the release "
		"of this kvregctl (" KVREG_VERSION ")?",
		admin->path);
}

static int refused(const struct admin *admin, const Kvreg__Error *error)
{
	struct failure failure;
	char line[1024];

	failure_from_wire(&failure, error);
	if (failure.code == KVREG_E_NO_PERMISSION)
		return not_admitted(admin->path); /* the code's own hint is about clients */
	failure_line(&failure, line, sizeof(line));
	return complain_line(status_of_code(failure.code), line);
}

/* The next record; it lives in the arena. */
static int admin_receive(struct admin *admin, uint32_t seq, const Kvreg__AdminReply **ret_reply)
{
	_cleanup_fdset_ struct fdset fds = FDSET_INIT;
	const Kvreg__AdminReply *reply;
	ssize_t length;
	int status;

	status = wait_readable(admin);
	if (status)
		return status;
	length = wire_recv(admin->sock, admin->record, sizeof(admin->record), &fds, 0);
	if (length == -EPROTO)
		return broken(admin);
	if (length <= 0)
		return lost(admin, (int)-length);
	reply = (const Kvreg__AdminReply *)codec_unpack(
		&admin->arena, &kvreg__admin_reply__descriptor, admin->record, (size_t)length);
	if (!reply || fds.count || reply->seq != seq)
		return broken(admin);
	if (reply->error)
		return refused(admin, reply->error);
	*ret_reply = reply;
	return 0;
}

int admin_ask(const struct options *options, Kvreg__AdminRequest *request,
	      int (*take)(void *arg, const Kvreg__AdminReply *reply), void *arg)
{
	__attribute__((cleanup(admin_free))) struct admin *admin = malloc(sizeof(*admin));
	const Kvreg__AdminReply *reply = NULL;
	int status;

	if (!admin)
		return complain(CTL_FAILED, "out of memory");
	admin->sock = -1;
	admin->path = socket_path(options);
	request->seq = 1;
	request->major = PROTOCOL_MAJOR;
	status = admin_connect(admin);
	if (!status)
		status = admin_send(admin, request);
	while (!status && (!reply || reply->more)) {
		status = admin_receive(admin, request->seq, &reply);
		if (!status)
			status = take(arg, reply);
	}
	return status; /* NOLINT(clang-analyzer-unix.Malloc): freed by cleanup */
}

bool admin_tell_unanswered(const Kvreg__AdminReply *reply)
{
	for (size_t i = 0; i < reply->n_unanswered; i++)
		complain(CTL_FAILED,
			 "the session of client %" PRIu32
			 " did not answer in time: what it holds is "
			 "not shown",
			 reply->unanswered[i]);
	return reply->n_unanswered > 0;
}
