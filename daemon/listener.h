/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_LISTENER_H
#define KVREG_DAEMON_LISTENER_H
/*
 * A listening socket. What arrives is accepted only when the fds that serving it takes are at hand
 * (struct spare); when they cannot be had, accept(2) fails for want of something, or no process can
 * be started, the listener pauses and tries again, and its clients wait in the backlog.
 */
#include <ev.h>
#include <stdbool.h>
#include <sys/types.h>

#include "daemon/spawn.h"

struct listener {
	struct ev_loop *loop; /* NULL: not started */
	int fd;
	char path[108]; /* as sun_path; empty: nothing to unlink */
	struct spare spare;
	struct ev_io readable;
	struct ev_timer pause;
	int parked; /* accepted, and to be handed on after the pause; -1: none */
	/** A connection was accepted: hand *@sock on with what is in @spare, and set it to -1. If
	 *  it is left, the listener pauses and offers it again: closing it here could hang. */
	void (*on_connection)(struct listener *listener, int *sock, struct spare *spare);
	void *owner;
};

/** listener_init() - an empty one, that listener_fini() may have. */
void listener_init(struct listener *listener);

/**
 * listener_bind() - binds @path, making its directory (0755, or @dir_mode) if it is not there.
 * A socket that nobody listens on any more is replaced.
 *
 * Return: 0; -EADDRINUSE somebody listens there; -ENAMETOOLONG; or -errno.
 */
int listener_bind(struct listener *listener, const char *path, mode_t dir_mode, mode_t mode);

/** listener_start() - begins to accept. */
void listener_start(struct listener *listener, struct ev_loop *loop,
		    void (*on_connection)(struct listener *, int *, struct spare *), void *owner);

/** listener_fini() - stops accepting, closes and unlinks. */
void listener_fini(struct listener *listener);

/** listener_paused() - whether it waits for fds or memory. */
bool listener_paused(const struct listener *listener);

#endif
