/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/again.h"

#include <stdint.h>
#include <sys/stat.h>

#include "daemon/session/buffer.h"
#include "daemon/session/client.h"
#include "daemon/session/domain.h"
#include "daemon/session/region.h"

static struct again_list *bucket(struct client *c, const struct region_origin *origin)
{
	uint64_t hash = origin->buffer;

	/* Blocks of one buffer differ in their offset alone. */
	hash = hash * 0x9e3779b97f4a7c15ull + origin->offset;
	hash = hash * 0x9e3779b97f4a7c15ull + origin->length;
	hash = hash * 0x9e3779b97f4a7c15ull + origin->domain;
	hash ^= hash >> 32;
	hash *= 0x9e3779b97f4a7c15ull;
	return &c->again.buckets[hash >> 54];
}

_Static_assert(AGAIN_BUCKETS == 1u << (64 - 54), "the hash gives a bucket's number");

static bool is_same(const struct region_origin *a, const struct region_origin *b)
{
	return a->domain == b->domain && a->buffer == b->buffer && a->offset == b->offset &&
	       a->length == b->length && a->iova == b->iova && a->access == b->access;
}

static bool is_older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Inodes are stamped by the coarse clock: a change in the tick of the last stamp shows no other. */
struct again_stamp again_stamp(int fd, bool is_hugetlb)
{
	struct timespec now;
	struct stat st;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (is_hugetlb || fstat(fd, &st) < 0)
		return (struct again_stamp){ .settled = false };
	return (struct again_stamp){ st.st_ctim, is_older(&st.st_ctim, &now) };
}

static bool memory_is_same(const struct region *region, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ctim.tv_sec == region->stamp.changed.tv_sec &&
	       st.st_ctim.tv_nsec == region->stamp.changed.tv_nsec;
}

struct region *again_find(struct client *c, const struct region_request *request)
{
	struct region_origin origin = region_origin(request);
	struct region *region;

	LIST_FOREACH(region, bucket(c, &origin), again)
		if (is_same(&region->origin, &origin))
			break;
	if (!region || region->uses == UINT32_MAX)
		return NULL;
	if (memory_is_same(region, request->buffer->fd) &&
	    c->device->query(&region->domain->pd, &region->mr) == 0)
		return region;
	again_remove(region);
	return NULL;
}

void again_add(struct client *c, struct region *region)
{
	if (!region->stamp.settled)
		return;
	LIST_INSERT_HEAD(bucket(c, &region->origin), region, again);
	region->is_offered = true;
}

void again_remove(struct region *region)
{
	if (region->is_offered)
		LIST_REMOVE(region, again);
	region->is_offered = false;
}
