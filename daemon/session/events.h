/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_EVENTS_H
#define KVREG_SESSION_EVENTS_H
/*
 * Everything that this process waits for: its client's socket, the supervisor's channel, and the
 * death of the connecting process (end of file alone does not mean it: a forked child may hold the
 * socket). Words from the supervisor are served wherever we wait, so that a client that reads
 * nothing cannot keep the administrator from asking or ending us.
 */
struct client;

/**
 * events_wait() - waits for something to happen, and serves the supervisor.
 * @sock_events: POLLIN or POLLOUT: what to wait for on the client's socket; 0: nothing
 *
 * Return: 1 if the socket is ready for it, 0 if something else happened, -ECONNRESET when the
 * client has gone (and from then on).
 */
int events_wait(struct client *c, short sock_events);

#endif
