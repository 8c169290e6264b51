/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_REFUSE_H
#define KVREG_DAEMON_REFUSE_H
/*
 * Connections that are not served. A child inherits the socket, says why, and ends; so what its
 * client has queued in it is closed in that child and not in the supervisor.
 *
 * That close can hang, and no signal ends it: most files on their way in a message do not wait when
 * they are dropped (a FUSE file's FLUSH is for descriptors, a TCP socket does not linger for a
 * process that ends), but a file of a network file system or of fuseblk waits for its server. So
 * the children are bounded. Beyond half of the bound a refused connection is only shut down, which
 * its client sees at once, and waits; when a child has ended, or when no more can wait, one child
 * takes along all that wait. With all children hanging and no room to wait the listener pauses:
 * better than a process for each connection that anybody makes.
 */
#include <stddef.h>

#include "kvreg-errors.h"
#include "proto/limits.h"

struct supervisor;
struct spare;

struct refusals {
	size_t n_children; /* that are at it */
	size_t n_waiting;
	int waiting[REFUSED_WAITING_MAX]; /* sockets, in the order of their numbers */
};

/**
 * refuse_connection() - gets rid of *@sock, and says @code with @words there if it can.
 * @words: NULL: nothing is said. *@sock is left when it has to wait: the listener offers it again.
 */
void refuse_connection(struct supervisor *supervisor, int *sock, struct spare *spare,
		       enum kvreg_code code, const char *words);

/** refuse_ended() - a child of refuse_connection() has ended. */
void refuse_ended(struct supervisor *supervisor);

/** refusals_fini() - closes what waits: only while somebody else holds it too. */
void refusals_fini(struct refusals *refusals);

#endif
