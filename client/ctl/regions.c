/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvregctl regions: every memory region that the daemon's sessions registered. Keys are not shown:
 * who knows an rkey can reach the memory.
 *
 * A session that does not answer in time leaves a gap that the listing cannot show, so the exit
 * status says that it is not whole.
 */
#include <inttypes.h>
#include <stdio.h>

#include "admin.h"
#include "command.h"
#include "complain.h"
#include "table.h"

#define REGION(member) FIELD(Kvreg__RegionInfo, member), 0

static const struct column columns[] = {
	{ "client_pid", "CLIENT", COLUMN_NUMBER, REGION(client_pid) },
	{ "client_uid", "UID", COLUMN_NUMBER, REGION(client_uid) },
	{ "region", "REGION", COLUMN_NUMBER, REGION(region) },
	{ "handle", "HANDLE", COLUMN_NUMBER, REGION(handle) },
	{ "device", "DEVICE", COLUMN_NAME, REGION(device) },
	{ "driver", NULL, COLUMN_NAME, REGION(driver) },
	{ "kind", "KIND", COLUMN_NAME, REGION(kind) },
	{ "address", "ADDRESS", COLUMN_ADDRESS, REGION(address) },
	{ "iova", "IOVA", COLUMN_ADDRESS, REGION(iova) },
	{ "length", "LENGTH", COLUMN_SIZE, REGION(length) },
	{ "access", "ACCESS", COLUMN_ACCESS, REGION(access) },
	{ "uses", "USES", COLUMN_NUMBER, REGION(uses) },
	{ "label", "LABEL", COLUMN_TEXT, REGION(label) },
	{ "state", "STATE", COLUMN_STATE, REGION(state) },
};

struct listing {
	struct table *table;
	bool gaps;
};

static int take(void *arg, const Kvreg__AdminReply *reply)
{
	struct listing *listing = arg;

	for (size_t i = 0; i < reply->n_regions; i++)
		table_add(listing->table, reply->regions[i]);
	listing->gaps |= admin_tell_unanswered(reply);
	return 0;
}

static int print(struct table *table, const struct options *options)
{
	struct json json = { .out = stdout };

	table_sort(table);
	if (options->json)
		return table_json(table, &json, NULL);
	if (table_rows(table))
		return table_print(table, options);
	if (options->client)
		printf("no regions of client %" PRIu32 "\n", options->client);
	else
		puts("no regions");
	return 0;
}

int regions_run(const struct options *options)
{
	__attribute__((cleanup(table_freep))) struct table *table =
		table_new(columns, sizeof(columns) / sizeof(columns[0]));
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__RegionsRequest body = KVREG__REGIONS_REQUEST__INIT;
	struct listing listing = { .table = table };
	int status;

	if (!table)
		return complain(CTL_FAILED, "out of memory");
	body.client_pid = options->client;
	request.body_case = KVREG__ADMIN_REQUEST__BODY_REGIONS;
	request.regions = &body;
	status = admin_ask(options, &request, take, &listing);
	if (!status)
		status = print(table, options);
	return status ? status : listing.gaps ? CTL_FAILED : CTL_OK;
}
