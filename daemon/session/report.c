/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/report.h"

#include "daemon/session/client.h"
#include "daemon/session/domain.h"
#include "daemon/session/region.h"
#include "proto/limits.h"

static void describe(struct client *c, const struct region *region, Kvreg__RegionInfo *ret_info)
{
	kvreg__region_info__init(ret_info);
	ret_info->client_pid = c->pid;
	ret_info->client_uid = c->uid;
	ret_info->region = region->number;
	ret_info->handle = region->mr.handle;
	ret_info->device = region->domain->pd.device;
	ret_info->driver = region->domain->pd.driver;
	ret_info->kind = "memfd";
	ret_info->label = (char *)region->label;
	ret_info->address = region->address;
	ret_info->iova = region->mr.iova;
	ret_info->length = region->mr.length;
	ret_info->access = region->access;
	ret_info->uses = region->uses;
	ret_info->state = (char *)region_state_name(region->state);
}

static uint64_t registered(struct client *c)
{
	struct region *region;
	uint64_t bytes = 0;

	for (size_t at = 0; (region = handles_each(&c->regions, &at));)
		bytes += region->mr.length;
	return bytes;
}

void report_send(struct client *c, const Kvreg__Query *query)
{
	Kvreg__RegionInfo info[REGIONS_PER_REPORT], *list[REGIONS_PER_REPORT];
	Kvreg__Report report = KVREG__REPORT__INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	struct region *region = NULL;
	size_t at = 0;

	report.cookie = query->cookie;
	report.domains = (uint32_t)c->domains.count;
	report.buffers = (uint32_t)c->buffers.count;
	report.regions = (uint32_t)c->regions.count;
	report.registered = registered(c);
	report.list = list;
	up.body_case = KVREG__UP__BODY_REPORT;
	up.report = &report;
	if (query->regions)
		region = handles_each(&c->regions, &at);
	do {
		for (report.n_list = 0; region && report.n_list < REGIONS_PER_REPORT;) {
			list[report.n_list] = &info[report.n_list];
			describe(c, region, &info[report.n_list++]);
			region = handles_each(&c->regions, &at);
		}
		report.more = region != NULL;
	} while (control_send(&c->control, &up) == 0 && report.more);
}
