/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_FDSET_H
#define KVREG_FDSET_H
/*
 * Owned file descriptors received with one record. Whatever is not taken out by the time the set
 * ends is closed, so a handler that refuses a message cannot leak what came with it.
 */
#include <stddef.h>

#include "limits.h"

struct fdset {
	size_t count;
	int fds[FDS_PER_RECORD]; /* -1 once taken */
};

#define FDSET_INIT                                                                                 \
	(struct fdset)                                                                             \
	{                                                                                          \
		.count = 0, .fds = { -1, -1 }                                                      \
	}

/** fdset_take() - hands fd number @i to the caller, who then owns it; -1 if it is not there. */
int fdset_take(struct fdset *set, size_t i);

/** fdset_fini() - closes what was not taken. Keeps errno. */
void fdset_fini(struct fdset *set);

/** fd_close() - closes *@fd unless it is -1 and sets it to -1. Keeps errno. */
void fd_close(int *fd);

#define _cleanup_fdset_ __attribute__((cleanup(fdset_fini)))
#define _cleanup_fd_    __attribute__((cleanup(fd_close)))

#endif
