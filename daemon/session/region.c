/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/region.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/session/buffer.h"
#include "daemon/session/client.h"
#include "daemon/session/diagnose.h"
#include "daemon/session/domain.h"
#include "daemon/session/grant.h"

/* More than a client's threads can make fail by chance. */
#define DISCARD_TRIES 16

static const char *const state_names[] = {
	[REGION_REGISTERING] = "registering",
	[REGION_LIVE] = "live",
	[REGION_RELEASING] = "releasing",
	[REGION_DEAD] = "dead",
};

const char *region_state_name(enum region_state state)
{
	return state_names[state];
}

static void set_state(struct region *region, enum region_state state)
{
	static const uint8_t legal[] = {
		[REGION_REGISTERING] = 1 << REGION_LIVE | 1 << REGION_DEAD,
		[REGION_LIVE] = 1 << REGION_RELEASING,
		[REGION_RELEASING] = 1 << REGION_LIVE | 1 << REGION_DEAD,
		[REGION_DEAD] = 0,
	};

	assert(legal[region->state] & (1 << state));
	region->state = state;
}

static void region_free(struct client *c, struct region *region)
{
	set_state(region, REGION_DEAD);
	again_remove(region);
	handles_remove(&c->regions, region->number);
	region->domain->regions--;
	backing_unref(region->backing);
	free(region);
}

/* What it took of the grant goes back, and it is freed. */
static void region_release(struct client *c, struct region *region)
{
	struct amounts back = region->taken;

	/* Not what it brought when it came: others may lie over the same memory since. */
	back.of[BOOK_MEMORY] =
		coverage_remove(&region->backing->coverage, region->first, region->size);
	grant_give(c, &back);
	region_free(c, region);
}

/* @length bytes at @offset in whole pages of @page bytes. */
static void find_pages(const struct region_request *request, uint64_t page, uint64_t *ret_first,
		       uint64_t *ret_size)
{
	uint64_t first = request->offset / page * page;

	*ret_first = first;
	*ret_size = (request->offset + request->length + page - 1) / page * page - first;
}

struct region_origin region_origin(const struct region_request *request)
{
	return (struct region_origin){
		.domain = request->domain->number,
		.buffer = request->buffer->number,
		.offset = request->offset,
		.length = request->length,
		.iova = request->iova,
		.access = request->access,
	};
}

static struct region *region_new(struct client *c, const struct region_request *request)
{
	struct region *region = calloc(1, sizeof(*region));
	const struct buffer *buffer = request->buffer;
	uint64_t first;

	if (!region)
		return NULL;
	region->number = handles_add(&c->regions, region);
	if (region->number == 0) {
		free(region);
		return NULL;
	}
	region->state = REGION_REGISTERING;
	region->uses = 1;
	region->domain = request->domain;
	region->domain->regions++;
	region->backing = backing_ref(buffer->backing);
	region->origin = region_origin(request);
	region->access = request->access;
	region->address = buffer->address ? buffer->address + request->offset : 0;
	memcpy(region->label, buffer->label, sizeof(region->label));
	region->mr.length = request->length;
	region->mr.iova = request->iova;
	region->taken.of[BOOK_REGIONS] = 1;
	/* The kernel charges pages of the base size, also for huge ones (ib_umem_num_pages). */
	find_pages(request, (uint64_t)sysconf(_SC_PAGESIZE), &first,
		   &region->taken.of[BOOK_CHARGE]);
	find_pages(request, buffer->page, &region->first, &region->size);
	return region;
}

/* Return: 0 and the grant has it; the code set in @f; or -errno: the client has gone. */
static int take(struct client *c, struct region *region, struct failure *f)
{
	struct coverage *coverage = &region->backing->coverage;
	struct amounts more = region->taken;
	int r;

	r = coverage_add(coverage, region->first, region->size, &more.of[BOOK_MEMORY]);
	if (r < 0)
		return failure_set(f, KVREG_E_LIMIT_MEMORY, KVREG_STAGE_REGISTER, "out of memory");
	r = grant_take(c, &more, KVREG_STAGE_PIN, f);
	if (r != 0)
		coverage_remove(coverage, region->first, region->size);
	return r;
}

/* A driver that ignores hca_va is right only when all three addresses are one. */
static int check_address(const struct region *region, uint64_t start, struct failure *f)
{
	if (!region->domain->pd.needs_same_address)
		return 0;
	if (region->mr.iova != region->address)
		return failure_set(f, KVREG_E_ALIGNMENT, KVREG_STAGE_MAP,
				   "driver %s needs iova 0x%" PRIx64
				   " to be the client's address 0x%" PRIx64,
				   region->domain->pd.driver, region->mr.iova, region->address);
	if (start != region->address)
		return failure_set(f, KVREG_E_ADDRESS_TAKEN, KVREG_STAGE_MAP,
				   "driver %s, address 0x%" PRIx64, region->domain->pd.driver,
				   region->address);
	return 0;
}

static int pin(struct client *c, struct region *region, const struct region_request *request,
	       struct failure *f)
{
	const struct device_pd *pd = &region->domain->pd;
	struct uverbs_reg reg = {
		.driver_id = pd->driver_id,
		.pd_handle = pd->pd_handle,
		.length = request->length,
		.iova = request->iova,
		.access = request->access,
		.driver_in = pd->driver_in,
		.driver_out = pd->driver_out,
	};
	int r;

	region->stamp = again_stamp(request->buffer->fd, request->buffer->is_hugetlb);
	r = buffer_map(request->buffer, request->offset, request->length, request->several,
		       &reg.start, f);
	if (r == 0)
		r = check_address(region, reg.start, f);
	if (r != 0)
		return r;
	r = c->device->reg(pd, &reg, &region->mr);
	if (r < 0)
		return diagnose_register(c, pd, -r, region->taken.of[BOOK_CHARGE], f);
	return 0;
}

static int make(struct client *c, const struct region_request *request, struct region **ret_region,
		struct failure *f)
{
	struct region *region = region_new(c, request);
	int r;

	if (!region)
		return failure_set(f, KVREG_E_LIMIT_OBJECTS, KVREG_STAGE_REGISTER,
				   "%zu regions are live", c->regions.count);
	r = take(c, region, f);
	if (r != 0) {
		region_free(c, region);
		return r;
	}
	r = pin(c, region, request, f);
	if (r != 0) {
		region_release(c, region);
		return r;
	}
	set_state(region, REGION_LIVE);
	again_add(c, region);
	*ret_region = region;
	return 0;
}

int region_register(struct client *c, const struct region_request *request,
		    struct region **ret_region, struct failure *f)
{
	struct region *region = again_find(c, request);

	if (!region)
		return make(c, request, ret_region, f);
	region->uses++;
	*ret_region = region;
	return 0;
}

int region_deregister(struct client *c, struct region *region, struct failure *f)
{
	const struct device_pd *pd = &region->domain->pd;
	int r;

	if (region->uses > 1) {
		region->uses--;
		return 0;
	}
	set_state(region, REGION_RELEASING);
	r = c->device->dereg(pd, &region->mr);
	if (r < 0 && r != -ESTALE) {
		set_state(region, REGION_LIVE);
		return diagnose_deregister(pd, -r, f);
	}
	region_release(c, region);
	if (r == -ESTALE)
		return failure_set(f, KVREG_E_MR_GONE, KVREG_STAGE_DEREGISTER,
				   "the handle is gone or names another region");
	return 0;
}

bool region_destroy(struct client *c, struct region *region)
{
	int r = -EBUSY;

	set_state(region, REGION_RELEASING);
	/* EBUSY also while QUERY_MR of another thread holds the handle: that passes. */
	for (int tries = 0; r == -EBUSY && tries < DISCARD_TRIES; tries++)
		r = c->device->dereg(&region->domain->pd, &region->mr);
	if (r < 0 && r != -ESTALE) {
		set_state(region, REGION_LIVE);
		return false;
	}
	region_release(c, region);
	return true;
}

bool region_discard(struct client *c, struct region *region)
{
	if (region->uses == 1)
		return region_destroy(c, region);
	region->uses--;
	return true;
}

/* Its pins are left: the grant keeps what it took. */
void region_abandon(struct client *c, struct region *region)
{
	coverage_remove(&region->backing->coverage, region->first, region->size);
	set_state(region, REGION_RELEASING);
	region_free(c, region);
}
