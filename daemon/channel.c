/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire.h"

/* A pipe holds this many records (PIPE_DEF_BUFFERS). */
#define DRAIN_MAX 16

/* Return: whether a message was taken. */
static bool take(struct channel *channel)
{
	static struct arena arena;
	uint8_t record[UP_RECORD_MAX];
	const Kvreg__Up *up;
	ssize_t n;

	n = read(channel->up, record, sizeof(record));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		channel_deaf(channel);
		return false;
	}
	up = (const Kvreg__Up *)codec_unpack(&arena, &kvreg__up__descriptor, record, (size_t)n);
	channel->on_message(channel, up);
	return up != NULL;
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	(void)loop;
	(void)events;
	take(watcher->data);
}

static void drop_first(struct channel *channel)
{
	struct channel_record *record = STAILQ_FIRST(&channel->queue);

	STAILQ_REMOVE_HEAD(&channel->queue, link);
	channel->queued -= sizeof(*record) + record->length;
	free(record);
}

static void on_writable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct channel *channel = watcher->data;
	struct channel_record *record;
	int r = 0;

	(void)events;
	while (r == 0 && (record = STAILQ_FIRST(&channel->queue))) {
		r = wire_send(channel->down, record->bytes, record->length, NULL, 0, MSG_DONTWAIT);
		/* A session that is gone shows on its pidfd; its queue goes with it. */
		if (r != -EAGAIN)
			drop_first(channel);
	}
	if (STAILQ_EMPTY(&channel->queue))
		ev_io_stop(loop, &channel->writable);
}

void channel_deaf(struct channel *channel)
{
	ev_io_stop(channel->loop, &channel->readable);
}

void channel_init(struct channel *channel, struct ev_loop *loop, int down, int up, size_t queue_max,
		  void (*on_message)(struct channel *, const Kvreg__Up *))
{
	*channel = (struct channel){
		.loop = loop,
		.down = down,
		.up = up,
		.queue_max = queue_max,
		.on_message = on_message,
	};
	STAILQ_INIT(&channel->queue);
	ev_io_init(&channel->readable, on_readable, up, EV_READ);
	ev_io_init(&channel->writable, on_writable, down, EV_WRITE);
	channel->readable.data = channel->writable.data = channel;
	ev_io_start(loop, &channel->readable);
}

void channel_fini(struct channel *channel)
{
	if (!channel->loop)
		return;
	ev_io_stop(channel->loop, &channel->readable);
	ev_io_stop(channel->loop, &channel->writable);
	while (!STAILQ_EMPTY(&channel->queue))
		drop_first(channel);
	fd_close(&channel->down);
	fd_close(&channel->up);
	channel->loop = NULL;
}

void channel_drain(struct channel *channel)
{
	/* Bounded: a process that the session left behind may still hold its end, and write. */
	for (int i = 0; i < DRAIN_MAX && take(channel); i++)
		;
}

static int enqueue(struct channel *channel, const uint8_t *bytes, size_t length)
{
	struct channel_record *record;

	if (sizeof(*record) + length > channel->queue_max - channel->queued)
		return -ENOBUFS;
	record = malloc(sizeof(*record) + length);
	if (!record)
		return -ENOMEM;
	record->length = length;
	memcpy(record->bytes, bytes, length);
	STAILQ_INSERT_TAIL(&channel->queue, record, link);
	channel->queued += sizeof(*record) + length;
	ev_io_start(channel->loop, &channel->writable);
	return 0;
}

int channel_send(struct channel *channel, const Kvreg__Down *down)
{
	static uint8_t bytes[RECORD_MAX];
	size_t length = codec_pack(&down->base, bytes, sizeof(bytes));
	int r = -EAGAIN;

	if (length == 0)
		return -EMSGSIZE;
	if (STAILQ_EMPTY(&channel->queue))
		r = wire_send(channel->down, bytes, length, NULL, 0, MSG_DONTWAIT);
	return r == -EAGAIN ? enqueue(channel, bytes, length) : r;
}
