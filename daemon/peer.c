/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/codec.h"
#include "proto/fdset.h"
#include "proto/procfs.h"

/* Linux 6.5: the pidfd of the process that connected, without a race. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/*
 * Before 6.5 the number may have been given to another process by now: that one has another uid, or
 * it is the same user's, whose own connection then ends with the wrong one of its processes.
 */
static int open_pidfd(int sock, const struct ucred *cred)
{
	struct proc_status status;
	socklen_t length = sizeof(int);
	int pidfd, r;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT)
		return -errno;
	pidfd = (int)syscall(SYS_pidfd_open, cred->pid, 0);
	if (pidfd < 0)
		return -errno;
	r = proc_status(cred->pid, &status);
	/* The socket has the effective uid of the time of connect(2). */
	if (r == 0 && status.uid != cred->uid && status.euid != cred->uid)
		r = -ESRCH;
	if (r < 0) {
		fd_close(&pidfd);
		return r;
	}
	return pidfd;
}

int peer_init(struct peer *peer, int sock)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);
	char path[64], text[256];

	*peer = (struct peer){ .pidfd = -1 };
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &length) < 0)
		return -errno;
	peer->pid = cred.pid;
	peer->uid = cred.uid;
	peer->gid = cred.gid;
	peer->pidfd = open_pidfd(sock, &cred);
	if (peer->pidfd < 0)
		return peer->pidfd;
	snprintf(path, sizeof(path), "/proc/%d/comm", peer->pid);
	if (proc_read(path, text, sizeof(text)) == 0)
		text_clean(peer->comm, sizeof(peer->comm), text);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", peer->pid);
	/* cgroup v2 alone has the one line "0::/path"; beside v1 it is not the first, and is left
	 * out. */
	if (proc_read(path, text, sizeof(text)) == 0 && strncmp(text, "0::", 3) == 0)
		text_clean(peer->cgroup, sizeof(peer->cgroup), text + 3);
	return 0;
}

void peer_fini(struct peer *peer)
{
	fd_close(&peer->pidfd);
}
