/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * FDS_PER_RECORD)];
};

int wire_send(int sock, const void *bytes, size_t length, const int *fds, size_t n_fds, int flags)
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds > FDS_PER_RECORD)
		return -EINVAL;
	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	for (;;) {
		if (sendmsg(sock, &msg, flags | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

static void take_fds(struct msghdr *msg, struct fdset *set)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n && set->count < FDS_PER_RECORD; i++)
			memcpy(&set->fds[set->count++], CMSG_DATA(c) + i * sizeof(int),
			       sizeof(int));
	}
}

ssize_t wire_recv(int sock, void *bytes, size_t size, struct fdset *set, int flags)
{
	union control control;
	struct iovec iov = { .iov_base = bytes, .iov_len = size };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	do {
		n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	take_fds(&msg, set);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		fdset_fini(set);
		return -EPROTO;
	}
	return n;
}
