/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_LEAF_H
#define KVREG_DAEMON_LEAF_H
/*
 * A cgroup leaf for each session: what it may use, the truth about its MRs, and the way to end it.
 *
 * An MR is charged to the cgroup of the process that made it and stays charged until it is
 * destroyed, whoever holds its uverbs fd and whether that process still lives. So a dead session's
 * grant is free again when its leaf's rdma.current shows no object, and not before: a client that
 * forks a holder of the fd, kills its session and exits keeps its charge.
 *
 * cgroup.kill ends a session of another uid without CAP_KILL, also a stopped one. Where there is
 * no cgroup v2, or no place in it for us, there are no leaves: fds are -1 and every call says so
 * with -ENOSYS; the books then fall back to the client's lifetime.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** The cgroup that holds all leaves. */
struct leaves {
	int dir;                 /* -1: there are none */
	bool rdma, memory, pids; /* controllers that could be enabled */
	char path[256];
};

struct leaf {
	const struct leaves *leaves;
	int dir; /* -1: none */
	char name[64];
};

#define LEAF_INIT                                                                                  \
	(struct leaf)                                                                              \
	{                                                                                          \
		.dir = -1                                                                          \
	}

/**
 * leaves_init() - opens or makes @path below the cgroup2 mount and enables what controllers it can.
 * @path: "/kvregd-sessions", or NULL for the default place
 * Leaves that an earlier supervisor left empty are removed.
 * Return: 0; or -errno and @ret_words says for people what is missing.
 */
int leaves_init(struct leaves *leaves, const char *path, char *ret_words, size_t size);
void leaves_fini(struct leaves *leaves);

/** leaf_new() - makes a leaf for a client. Return: 0 or -errno; without leaves 0 and dir -1. */
int leaf_new(struct leaf *leaf, const struct leaves *leaves, uid_t uid, pid_t pid, uint64_t number);

/** leaf_memory() - lets it use what a session needs that may pin @granted bytes. */
void leaf_memory(const struct leaf *leaf, uint64_t granted);

/** leaf_enter() - moves the calling process in; for the child before it drops root. 0 or -errno. */
int leaf_enter(const struct leaf *leaf);

/** leaf_kill() - SIGKILL to all processes in it. Return: 0; -ENOSYS no leaf; or -errno. */
int leaf_kill(const struct leaf *leaf);

/** leaf_objects() - RDMA objects charged to it. Return: 0; -ENOSYS nobody counts; or -errno. */
int leaf_objects(const struct leaf *leaf, uint64_t *ret_objects);

/** leaf_remove() - removes the directory. Return: 0; -EBUSY a process is in it; or -errno. */
int leaf_remove(struct leaf *leaf);

#endif
