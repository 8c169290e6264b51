/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/coverage.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for every border that this many regions can have: a removal then needs no memory, though it
 * splits ranges that had been joined. */
static int reserve(struct coverage *c, size_t regions)
{
	size_t capacity = c->capacity ? c->capacity : 8;
	struct covered *ranges;

	if (2 * regions <= c->capacity)
		return 0;
	while (capacity < 2 * regions)
		capacity *= 2;
	ranges = reallocarray(c->ranges, capacity, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	c->ranges = ranges;
	c->capacity = capacity;
	return 0;
}

/* The first range that ends behind @at. */
static size_t find(const struct coverage *c, uint64_t at)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->ranges[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void insert(struct coverage *c, size_t i, struct covered range)
{
	assert(c->count < c->capacity);
	memmove(&c->ranges[i + 1], &c->ranges[i], (c->count - i) * sizeof(range));
	c->ranges[i] = range;
	c->count++;
}

static void drop(struct coverage *c, size_t i)
{
	memmove(&c->ranges[i], &c->ranges[i + 1], (c->count - i - 1) * sizeof(c->ranges[0]));
	c->count--;
}

/* Makes @at a border, if it lies within a range. */
static void split(struct coverage *c, uint64_t at)
{
	size_t i = find(c, at);

	if (i == c->count || c->ranges[i].first >= at)
		return;
	insert(c, i, c->ranges[i]);
	c->ranges[i].end = at;
	c->ranges[i + 1].first = at;
}

/* One range where two of the same number meet at @i. */
static void join(struct coverage *c, size_t i)
{
	if (i == 0 || i >= c->count || c->ranges[i - 1].end != c->ranges[i].first ||
	    c->ranges[i - 1].regions != c->ranges[i].regions)
		return;
	c->ranges[i - 1].end = c->ranges[i].end;
	drop(c, i);
}

/* Joins what can be from the range at @first up to that before @i, and both with their neighbours:
 * backwards, so that a join does not move what is still to be looked at. */
static void join_all(struct coverage *c, uint64_t first, size_t i)
{
	size_t low = find(c, first);

	for (size_t j = i + 1; j-- > low;)
		join(c, j);
}

int coverage_add(struct coverage *c, uint64_t first, uint64_t size, uint64_t *ret_bytes)
{
	uint64_t end = first + size, at = first, bytes = 0;
	size_t i;

	if (reserve(c, c->regions + 1) < 0)
		return -ENOMEM;
	c->regions++;
	split(c, first);
	split(c, end);
	for (i = find(c, first); at < end; i++) {
		uint64_t next = i < c->count && c->ranges[i].first < end ? c->ranges[i].first : end;

		if (at < next) {
			insert(c, i, (struct covered){ at, next, 1 });
			bytes += next - at;
		} else {
			c->ranges[i].regions++;
		}
		at = c->ranges[i].end;
	}
	join_all(c, first, i);
	*ret_bytes = bytes;
	return 0;
}

uint64_t coverage_remove(struct coverage *c, uint64_t first, uint64_t size)
{
	uint64_t end = first + size, bytes = 0;
	size_t i;

	split(c, first);
	split(c, end);
	for (i = find(c, first); i < c->count && c->ranges[i].first < end;) {
		if (--c->ranges[i].regions > 0) {
			i++;
			continue;
		}
		bytes += c->ranges[i].end - c->ranges[i].first;
		drop(c, i);
	}
	c->regions--;
	join_all(c, first, i);
	return bytes;
}

void coverage_fini(struct coverage *c)
{
	free(c->ranges);
	*c = (struct coverage){ 0 };
}
