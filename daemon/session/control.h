/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_CONTROL_H
#define KVREG_SESSION_CONTROL_H
/*
 * The session's end of its two channels with the supervisor. What comes down is trusted. When the
 * supervisor is gone both ends fail for good (gone is set): the session then serves what it holds
 * and is granted nothing more.
 */
#include <stdbool.h>

#include "control.pb-c.h"
#include "proto/codec.h"

struct control {
	int down; /* SEQPACKET socket, read only */
	int up;   /* packet-mode pipe */
	bool gone;
	struct arena arena;
	uint8_t record[RECORD_MAX];
};

/**
 * control_recv() - takes one record that is waiting, or waits for it.
 *
 * Return: the message, valid until the next call; NULL when the supervisor is gone.
 */
const Kvreg__Down *control_recv(struct control *c);

/** control_send() - writes one record up. Return: 0; -EPIPE the supervisor is gone; or -errno. */
int control_send(struct control *c, const Kvreg__Up *up);

#endif
