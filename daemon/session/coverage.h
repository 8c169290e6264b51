/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_COVERAGE_H
#define KVREG_SESSION_COVERAGE_H
/*
 * How much of a piece of memory is under at least one region: ranges come and go and may overlap,
 * and a byte counts once.
 *
 * A sorted array of ranges that do not overlap, each with the number of regions over it. Adding or
 * removing one touches the neighbours that it meets and moves the rest of the array up: with the
 * most regions that a session can have, tens of microseconds at worst, and nothing when ranges come
 * in order.
 */
#include <stddef.h>
#include <stdint.h>

struct covered {
	uint64_t first, end; /* bytes */
	uint32_t regions;    /* not 0 */
};

struct coverage {
	struct covered *ranges; /* sorted; NULL: none was ever added */
	size_t count, capacity;
	size_t regions; /* that were added: they have at most twice as many borders */
};

/**
 * coverage_add() - one more region over @size bytes at @first.
 * Return: 0 and how many of them no region had covered; or -ENOMEM, and nothing is changed.
 */
int coverage_add(struct coverage *c, uint64_t first, uint64_t size, uint64_t *ret_bytes);

/**
 * coverage_remove() - one region less over a range that was added as it is.
 * Needs no memory. Return: how many bytes no region covers any more.
 */
uint64_t coverage_remove(struct coverage *c, uint64_t first, uint64_t size);

void coverage_fini(struct coverage *c);

#endif
