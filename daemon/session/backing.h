/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_BACKING_H
#define KVREG_SESSION_BACKING_H
/*
 * What lies behind buffers: one inode, however many fds of it the client sends and however often it
 * imports them. Buffers and regions refer to it; a region may outlive its buffer. Its coverage says
 * how many bytes of it are under regions: what the book of memory counts.
 *
 * The same memory in two sessions counts in both: neither can know of the other.
 */
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/session/coverage.h"

struct backing {
	LIST_ENTRY(backing) link; /* client::backings */
	dev_t dev;
	ino_t ino;
	uint32_t refs;
	struct coverage coverage;
};

LIST_HEAD(backing_list, backing);

/** backing_get() - the backing of an inode, made if it is new, with a reference. NULL: no memory. */
struct backing *backing_get(struct backing_list *list, dev_t dev, ino_t ino);

/** backing_ref() - one reference more. Return: @backing. */
struct backing *backing_ref(struct backing *backing);

/** backing_unref() - one less; the last one frees it. NULL is allowed. */
void backing_unref(struct backing *backing);

#endif
