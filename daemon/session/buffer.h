/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_BUFFER_H
#define KVREG_SESSION_BUFFER_H
/*
 * Memory of the client that this process can map: a memfd.
 *
 * Nothing is asked of the fd before F_GET_SEALS has shown it to be shmem or hugetlbfs, which never
 * wait for another process. F_SEAL_SHRINK keeps it from being cut under us; F_SEAL_WRITE and
 * F_SEAL_FUTURE_WRITE would keep us from mapping it for writing, which the pin needs.
 *
 * A buffer is mapped only around a registration (mapped pages count in our RSS), preferably at the
 * client's own address: a driver that ignores hca_va is then right too. We never read or write the
 * mapping, so a page that is not there cannot signal us.
 */
#include <stdbool.h>
#include <stdint.h>

#include "proto/failure.h"

struct client;

struct buffer {
	uint32_t number;
	int fd;
	uint64_t length;  /* bytes from byte 0 that the client shares */
	uint64_t address; /* where the client has byte 0; 0: nowhere */
	uint64_t page;    /* unit of a mapping: the page size, or the huge page size */
	bool is_hugetlb;
	struct backing *backing; /* a reference */
	char label[LABEL_MAX + 1];
	void *map; /* NULL: not mapped */
	uint64_t map_offset;
	uint64_t map_length;
};

/**
 * buffer_import() - checks and keeps @fd, which is taken over in any case.
 * Return: 0; the code set in @f; or -errno: the client has gone.
 */
int buffer_import(struct client *c, int fd, const Kvreg__ImportBuffer *request,
		  struct buffer **ret_buffer, struct failure *f);

/**
 * buffer_map() - maps @length bytes at @offset, unless they are mapped already, and faults them in.
 * @whole: map all of the buffer, since more of it will follow
 * Return: 0 and where byte @offset lies in this process; or the code set in @f.
 */
int buffer_map(struct buffer *buffer, uint64_t offset, uint64_t length, bool whole,
	       uint64_t *ret_start, struct failure *f);

/** buffer_unmap() - ends the mapping, if there is one. Registered pages stay pinned. */
void buffer_unmap(struct buffer *buffer);

/** buffer_release() - frees @buffer; its regions stay. */
void buffer_release(struct client *c, struct buffer *buffer);

#endif
