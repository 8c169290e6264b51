/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_SERVE_H
#define KVREG_SESSION_SERVE_H
/*
 * The client's socket: one record in, one answer out, until the client is gone, breaks the
 * protocol, or the supervisor says so. A new record is read only when the last one is answered, so
 * a client that reads nothing is served nothing more, and nothing is queued for it.
 */
struct client;

/** serve() - serves @c until it ends. What it holds is destroyed by client_fini(). */
void serve(struct client *c);

#endif
