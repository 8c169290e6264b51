/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/control.h"

#include <errno.h>
#include <unistd.h>

#include "proto/wire.h"

const Kvreg__Down *control_recv(struct control *c)
{
	_cleanup_fdset_ struct fdset fds = FDSET_INIT;
	ssize_t n;

	if (c->gone)
		return NULL;
	n = wire_recv(c->down, c->record, sizeof(c->record), &fds, 0);
	const Kvreg__Down *down =
		n > 0 ? (const Kvreg__Down *)codec_unpack(&c->arena, &kvreg__down__descriptor,
							  c->record, (size_t)n)
		      : NULL;
	if (!down)
		c->gone = true;
	return down;
}

int control_send(struct control *c, const Kvreg__Up *up)
{
	uint8_t record[UP_RECORD_MAX];
	size_t length = codec_pack(&up->base, record, sizeof(record));
	ssize_t n;

	if (c->gone)
		return -EPIPE;
	if (length == 0)
		return -EMSGSIZE;
	do {
		n = write(c->up, record, length);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		c->gone = true;
		return -errno;
	}
	return 0;
}
