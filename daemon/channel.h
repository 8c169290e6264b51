/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_CHANNEL_H
#define KVREG_DAEMON_CHANNEL_H
/*
 * The supervisor's end of a session's control channel. What comes up is hostile input: a record
 * that is no message, or that the session may not send, ends the session.
 *
 * Sending never blocks: what the session does not take at once is queued, up to the limit given at
 * the start; a session that lets that fill up is ended too.
 */
#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "control.pb-c.h"
#include "proto/codec.h"

struct channel_record {
	STAILQ_ENTRY(channel_record) link; /* channel::queue */
	size_t length;
	uint8_t bytes[];
};

struct channel {
	struct ev_loop *loop;
	int down;
	int up;
	struct ev_io readable;
	struct ev_io writable;
	size_t queued; /* bytes, with what a record takes beside its own */
	size_t queue_max;
	STAILQ_HEAD(channel_queue, channel_record) queue;
	/** A message came up; NULL: a record that is no message. It lives until the callback
	 *  returns. The end of the pipe is not told: the process's pidfd tells of its end. */
	void (*on_message)(struct channel *channel, const Kvreg__Up *up);
};

/** channel_init() - takes @down and @up over, and watches up. @queue_max: bytes. */
void channel_init(struct channel *channel, struct ev_loop *loop, int down, int up, size_t queue_max,
		  void (*on_message)(struct channel *, const Kvreg__Up *));

/** channel_deaf() - takes nothing more from the other end: it is being ended. */
void channel_deaf(struct channel *channel);

/** channel_fini() - closes both; what was queued is dropped. */
void channel_fini(struct channel *channel);

/** channel_drain() - takes what has come up already, once the other end writes no more. */
void channel_drain(struct channel *channel);

/** channel_send() - Return: 0 sent or queued; -ENOBUFS the queue is full; or -errno. */
int channel_send(struct channel *channel, const Kvreg__Down *down);

#endif
