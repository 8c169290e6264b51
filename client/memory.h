/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_MEMORY_H
#define KVREG_MEMORY_H
/*
 * Memory that a session may map: memfds, sealed and populated.
 *
 * F_SEAL_SHRINK comes before the size is looked at. From then on no page of the file can vanish, so
 * neither side's mapping can raise SIGBUS for a range that was checked once.
 *
 * Pages are populated in this process, by calls that answer with an errno: touching a page that the
 * kernel cannot provide would raise SIGBUS in the program. Whoever populates a page first has it
 * charged to its cgroup.
 *
 * No MADV_DONTFORK: it exists since a fork makes private pages copy-on-write, after which parent
 * and device look at different ones. A shared mapping is never copied.
 */
#include <stddef.h>
#include <stdint.h>

#include "proto/failure.h"

struct memory {
	int fd;        /* -1: none */
	void *address; /* a mapping of ours; NULL: none */
	size_t size;
};

#define MEMORY_INIT                                                                                \
	(struct memory)                                                                            \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/**
 * memory_make() - makes a memfd of @size bytes, rounded up to pages, that is sealed, mapped and
 * populated.
 * @flags: KVREG_ALLOC_*
 * @ret_memory: to be ended with memory_fini()
 *
 * Return: 0, INVALID_ARG, LIMIT_MEMORY, or UNKNOWN.
 */
int memory_make(size_t size, uint32_t flags, struct failure *f, struct memory *ret_memory);

/** memory_fini() - unmaps and closes what @memory has. Keeps errno. */
void memory_fini(struct memory *memory);

#define _cleanup_memory_ __attribute__((cleanup(memory_fini)))

/**
 * memory_seal() - checks that @fd, the program's own, is a memfd of at least @length bytes and adds
 * F_SEAL_SHRINK to it.
 *
 * Return: 0, BAD_MEMORY_FD, BAD_SEALS, or SHORT_HANDLE with both sizes in the snapshot.
 */
int memory_seal(int fd, uint64_t length, struct failure *f);

/**
 * memory_populate() - gives each page of the first @length bytes of a sealed memfd memory.
 * @address: where the program has it mapped; NULL: nowhere
 *
 * Return: 0, INVALID_ARG (nothing is mapped at @address), LIMIT_MEMORY, or UNKNOWN.
 */
int memory_populate(int fd, void *address, uint64_t length, struct failure *f);

#endif
