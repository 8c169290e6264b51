/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_SPAWN_H
#define KVREG_DAEMON_SPAWN_H
/*
 * The children of the supervisor. Each takes the accepted socket with it, and waits until the
 * supervisor has closed its own copy before it goes on: so the supervisor is never the last holder
 * of a client's socket, whose close also closes every fd that waits in it (and can hang: a FUSE
 * file, a TCP socket that lingers).
 *
 * The fds that serving one connection needs are had before the connection is accepted (struct
 * spare): whoever is accepted can be served, or told why not.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/leaf.h"
#include "daemon/privilege.h"
#include "daemon/sweep.h"

struct spawner {
	int exe; /* O_PATH fd of kvregd-session */
	const struct privilege *privilege;
	uint64_t
		fixed_limit; /* RLIMIT_MEMLOCK of sessions, bytes, when it cannot be raised later */
};

#define SPARE_SLACK 4

/** A pair of channels and a starting gate; all close-on-exec; the second ends are the child's. */
struct spare {
	int down[2]; /* SEQPACKET; ours only writes */
	int up[2];   /* packet-mode pipe; ours, [0], reads without blocking */
	int go[2];   /* the child waits until [1] is closed */
	/** Keeps room for a connection's two pidfds, its leaf, and a file of the leaf. */
	int slack[SPARE_SLACK];
};

/** spare_release() - gives the room up, for the fds that it was kept for. */
void spare_release(struct spare *spare);

/* clang-format off */
#define SPARE_INIT { .down = { -1, -1 }, .up = { -1, -1 }, .go = { -1, -1 }, .slack = { -1, -1, -1, -1 } }
/* clang-format on */

/** spawner_init() - finds kvregd-session beside this program, else where it is installed. */
int spawner_init(struct spawner *s, const struct privilege *privilege);
void spawner_fini(struct spawner *s);

/** spare_fill() - makes what is missing. Return: 0 or -errno (EMFILE, ENFILE, ENOMEM). */
int spare_fill(struct spare *spare);
void spare_fini(struct spare *spare);

/**
 * spawn_session() - starts a session for *@client, which is closed here, in @leaf.
 * Uses @spare up: its first ends of down and up are the caller's now, the rest is closed.
 * Return: the pid (the caller reaps it), or -errno: the caller still has *@client and @spare.
 */
pid_t spawn_session(const struct spawner *s, int *client, int client_pidfd, const struct leaf *leaf,
		    struct spare *spare);

/**
 * spawn_refusal() - starts a child that sends @bytes on *@client, if any, and ends; *@client is
 * closed here. Return: the pid, or -errno: the caller still has *@client and @spare.
 */
pid_t spawn_refusal(const struct spawner *s, int *client, struct spare *spare, const void *bytes,
		    size_t length);

/**
 * spawn_sink() - starts a child that closes @socks by ending; they are closed here.
 * @socks: in ascending order. Return: the pid, or -errno: the caller still has them.
 */
pid_t spawn_sink(const struct spawner *s, int *socks, size_t n);

/**
 * spawn_heir() - a child that holds all our fds until @go is closed, and ends: so that closing a
 * listening socket, with connections in its backlog and fds in those, is not ours to wait for.
 * Return: the pid, or -errno. @ret_go: to be closed after the sockets.
 */
pid_t spawn_heir(int *ret_go);

/**
 * spawn_sweep() - a child that lowers whom @sweep finds, writes each as a struct kin to *@ret_swept,
 * and ends. Return: the pid, or -errno.
 */
pid_t spawn_sweep(const struct sweep *sweep, int *ret_swept);

/** spawn_killer() - SIGKILL to the session behind @pidfd, by a child of its uid if need be.
 * Return: the pid, 0 if no child was needed, or -errno. */
pid_t spawn_killer(const struct spawner *s, int pidfd);

#endif
