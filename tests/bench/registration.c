/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One registration and its end, on the mock device.
 *
 * The bare alternative is two SEQPACKET round trips with records as long: what any broker pays. A
 * second one does the kernel's part of the mock device in the answering process, between receive
 * and send: the least that any broker of this kind can take. What is above that is ours; the last
 * line of the case says it as a ratio to the round trips, the kernel's part taken out on both
 * sides.
 *
 * Why the kernel's part is measured in the other process: where the hypervisor shadows page tables
 * (pvm), a change of them costs most at the next switch to another process, and not in the call.
 */
#include <stdio.h>

#include "bare.h"
#include "cases.h"
#include "check.h"
#include "client.h"
#include "report.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

struct world {
	struct client client;
	struct bare bare;
};

static void world_open(struct world *w, uint64_t size)
{
	client_open_mock(&w->client, size);
	w->bare = (struct bare){ .device = &bare_mock };
	bare_open(&w->bare, w->client.memory, w->client.address, size);
}

static void world_close(struct world *w)
{
	bare_close(&w->bare);
	client_close(&w->client);
}

void case_halves(struct daemon_under_test *daemon)
{
	struct world w;
	const struct way ways[] = {
		{ .name = "round trip of a Register", .run = bare_register, .arg = &w.bare },
		{ .name = "brokered register",
		  .run = client_register,
		  .undo = client_deregister,
		  .arg = &w.client,
		  .against = { { 0, 0, false } },
		  .n_against = 1 },
		{ .name = "round trip of a Deregister", .run = bare_deregister, .arg = &w.bare },
		{ .name = "brokered deregister",
		  .prepare = client_register,
		  .run = client_deregister,
		  .arg = &w.client,
		  .against = { { 2, 0, false } },
		  .n_against = 1 },
	};
	const struct contest contest = {
		.name = "each half of a 4 KiB registration, mock device",
		.ways = ways,
		.n_ways = COUNT(ways),
		.rounds = 41,
		.times = 400,
	};
	char words[128];

	(void)daemon;
	world_open(&w, 4 * KIB);
	report_contest(&contest);
	snprintf(words, sizeof(words), "records: %zu and %zu bytes, %zu and %zu bytes",
		 w.bare.sizes.register_request, w.bare.sizes.register_reply,
		 w.bare.sizes.deregister_request, w.bare.sizes.deregister_reply);
	report_note(words);
	world_close(&w);
}

/* In each round: what the broker took beyond the kernel's part, as a multiple of the round trips.
 */
static void report_own(const char *name, const struct figures *trips, const struct figures *work,
		       const struct figures *brokered, size_t n)
{
	double ratios[ROUNDS_MAX];

	for (size_t i = 0; i < n; i++)
		ratios[i] = (brokered->median[i] - work->median[i] + trips->median[i]) /
			    trips->median[i];
	report_value(name, "brokered without the kernel's part, against two round trips", "x",
		     spread_of(ratios, n), 0);
}

static void register_of(uint64_t size, const char *name, size_t times, double goal)
{
	enum { TRIPS, WORK, TRIPS_AND_WORK, BROKERED, WAYS };
	const struct figures *f;
	struct world w;
	const struct way ways[WAYS] = {
		[TRIPS] = { "two round trips", .run = bare_both, .arg = &w.bare },
		[WORK] = { "the kernel's part in one process", .run = bare_work, .arg = &w.bare },
		[TRIPS_AND_WORK] = { "round trips with the kernel's part",
				     .run = bare_both_and_work, .arg = &w.bare,
				     .against = { { TRIPS, 0, false } }, .n_against = 1 },
		[BROKERED] = { "brokered", .run = client_both, .arg = &w.client,
			       .against = { { TRIPS, goal, false }, { TRIPS_AND_WORK, 0, false } },
			       .n_against = 2 },
	};
	const struct contest contest = { name, ways, WAYS, .rounds = 41, .times = times };

	world_open(&w, size);
	f = report_contest(&contest);
	/* Of larger regions it would be a small difference of large numbers. */
	if (size == 4 * KIB)
		report_own(name, &f[TRIPS], &f[TRIPS_AND_WORK], &f[BROKERED], contest.rounds);
	world_close(&w);
}

void case_register(struct daemon_under_test *daemon)
{
	(void)daemon;
	register_of(4 * KIB, "register and deregister 4 KiB, mock device", 400, 2.0);
}

void case_large(struct daemon_under_test *daemon)
{
	(void)daemon;
	register_of(1 * MIB, "register and deregister 1 MiB, mock device", 100, 0);
	register_of(4 * MIB, "register and deregister 4 MiB, mock device", 30, 0);
	report_note("4 MiB is the largest: the mock device locks memory, and a development machine "
		    "lets 8 MiB be locked");
}
