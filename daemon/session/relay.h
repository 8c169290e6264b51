/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_RELAY_H
#define KVREG_SESSION_RELAY_H
/*
 * An administrator's connection is served by a process too, which carries records between the
 * socket and the supervisor. So the supervisor never reads a socket that it accepted, nor closes
 * fds that came in through one (the close of a FUSE file can hang), whoever connected.
 */
#include "daemon/session/control.h"

/** relay() - carries requests up and their answers down until either side is gone. */
void relay(struct control *control, int sock);

#endif
