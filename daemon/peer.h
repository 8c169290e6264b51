/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_PEER_H
#define KVREG_DAEMON_PEER_H
/*
 * Who connected, from the kernel, once, at accept. The pid is of the process that called
 * connect(2), in our pid namespace; the pidfd tells when it is gone. A number may be used again
 * by then: it is shown to people and never used to reach a process.
 */
#include <sys/types.h>

struct peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	int pidfd;
	char comm[32];
	char cgroup[256];
};

/**
 * peer_init() - asks the kernel about the other end of @sock, which is neither read nor written.
 * Return: 0; -ESRCH the process has gone already: whoever holds the socket now did not connect, and
 * could not be watched; or another -errno.
 */
int peer_init(struct peer *peer, int sock);

void peer_fini(struct peer *peer);

#endif
