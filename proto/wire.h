/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_WIRE_H
#define KVREG_WIRE_H
/*
 * One SEQPACKET record: bytes and at most FDS_PER_RECORD fds. Nothing here knows messages.
 *
 * A record that was cut short (MSG_TRUNC) or whose fds did not fit (MSG_CTRUNC) is never looked
 * at: the kernel has already dropped part of it. Received fds are close-on-exec from the start.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fdset.h"

/**
 * wire_send() - sends one record.
 * @fds: borrowed; the receiver gets its own
 * @flags: MSG_DONTWAIT or 0; MSG_NOSIGNAL is always set
 *
 * Return: 0, or -errno (-EAGAIN: the peer does not read; -EPIPE, -ECONNRESET: it is gone).
 */
int wire_send(int sock, const void *bytes, size_t length, const int *fds, size_t n_fds, int flags);

/**
 * wire_recv() - receives one record.
 * @set: empty; the fds of the record go there
 * @flags: MSG_DONTWAIT or 0
 *
 * Return: the length (> 0), 0 at the end of the connection, -EPROTO for a record that is too long
 * or carries too many fds (those that arrived are closed), or -errno.
 */
ssize_t wire_recv(int sock, void *bytes, size_t size, struct fdset *set, int flags);

#endif
