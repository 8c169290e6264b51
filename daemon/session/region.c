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
	if (!region)
		return;
	set_state(region, REGION_DEAD);
	handles_remove(&c->regions, region->number);
	region->domain->regions--;
	free(region);
}

/* The kernel counts pages of the base size, also of huge pages (ib_umem_num_pages). */
static uint64_t charge_of(const struct region_request *request)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = request->offset + request->length;

	return ((end + page - 1) / page - request->offset / page) * page;
}

static struct region *region_new(struct client *c, const struct region_request *request)
{
	struct region *region = calloc(1, sizeof(*region));
	const struct buffer *buffer = request->buffer;

	if (!region)
		return NULL;
	region->number = handles_add(&c->regions, region);
	if (region->number == 0) {
		free(region);
		return NULL;
	}
	region->state = REGION_REGISTERING;
	region->domain = request->domain;
	region->domain->regions++;
	region->access = request->access;
	region->address = buffer->address ? buffer->address + request->offset : 0;
	memcpy(region->label, buffer->label, sizeof(region->label));
	region->mr.length = request->length;
	region->mr.iova = request->iova;
	region->charge = charge_of(request);
	return region;
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

	r = buffer_map(request->buffer, request->offset, request->length, request->several,
		       &reg.start, f);
	if (r == 0)
		r = check_address(region, reg.start, f);
	if (r != 0)
		return r;
	r = c->device->reg(pd, &reg, &region->mr);
	if (r < 0)
		return diagnose_register(c, pd, -r, region->charge, f);
	return 0;
}

int region_register(struct client *c, const struct region_request *request,
		    struct region **ret_region, struct failure *f)
{
	struct region *region = region_new(c, request);
	int r;

	if (!region)
		return failure_set(f, KVREG_E_LIMIT_OBJECTS, KVREG_STAGE_REGISTER,
				   "%zu regions are live", c->regions.count);
	r = grant_take(c, region->charge, f);
	if (r == 0) {
		r = pin(c, region, request, f);
		if (r != 0)
			grant_give(c, region->charge);
	}
	if (r != 0) {
		region_free(c, region);
		return r;
	}
	set_state(region, REGION_LIVE);
	*ret_region = region;
	return 0;
}

int region_deregister(struct client *c, struct region *region, struct failure *f)
{
	const struct device_pd *pd = &region->domain->pd;
	int r;

	set_state(region, REGION_RELEASING);
	r = c->device->dereg(pd, &region->mr);
	if (r < 0 && r != -ESTALE) {
		set_state(region, REGION_LIVE);
		return diagnose_deregister(pd, -r, f);
	}
	grant_give(c, region->charge);
	region_free(c, region);
	if (r == -ESTALE)
		return failure_set(f, KVREG_E_MR_GONE, KVREG_STAGE_DEREGISTER,
				   "the handle is gone or names another region");
	return 0;
}

bool region_discard(struct client *c, struct region *region)
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
	grant_give(c, region->charge);
	region_free(c, region);
	return true;
}

void region_abandon(struct client *c, struct region *region)
{
	set_state(region, REGION_RELEASING);
	region_free(c, region);
}
