/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One registration and its end, on the mock device.
 *
 * The bare alternative is two SEQPACKET round trips with records as long: what any broker pays. A
 * second one does the kernel's part of the mock device in the answering process, between receive
 * and send: the least that any broker of this kind can take. What is above that is ours.
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
	bare_open(&w->bare, w->client.memory, w->client.address, size);
}

static void world_close(struct world *w)
{
	bare_close(&w->bare);
	client_close(&w->client);
}

void case_ping_pong(struct daemon_under_test *daemon)
{
	struct world w;
	const struct way ways[] = {
		{ .name = "bare round trip of a Register", .run = bare_register, .arg = &w.bare },
		{ .name = "brokered register",
		  .run = client_register,
		  .undo = client_deregister,
		  .arg = &w.client },
		{ .name = "bare round trip of a Deregister",
		  .run = bare_deregister,
		  .arg = &w.bare,
		  .against = 2 },
		{ .name = "brokered deregister",
		  .prepare = client_register,
		  .run = client_deregister,
		  .arg = &w.client,
		  .against = 2 },
	};
	const struct contest contest = {
		.name = "each half of a 4 KiB registration, mock device",
		.ways = ways,
		.n_ways = COUNT(ways),
		.rounds = 15,
		.times = 2000,
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

static void register_of(uint64_t size, const char *name, size_t times, double goal)
{
	struct world w;
	const struct way ways[] = {
		{ .name = "bare: two round trips", .run = bare_both, .arg = &w.bare },
		{ .name = "bare: the kernel's part alone, in one process",
		  .run = bare_work,
		  .arg = &w.bare,
		  .against = 1 },
		{ .name = "bare: two round trips with the kernel's part",
		  .run = bare_both_and_work,
		  .arg = &w.bare,
		  .against = 2 },
		{ .name = "brokered, against two round trips",
		  .run = client_both,
		  .arg = &w.client,
		  .against = 0,
		  .goal = goal },
		{ .name = "brokered, against round trips with the kernel's part",
		  .run = client_both,
		  .arg = &w.client,
		  .against = 2 },
	};
	const struct contest contest = {
		.name = name,
		.ways = ways,
		.n_ways = COUNT(ways),
		.rounds = 15,
		.times = times,
	};

	world_open(&w, size);
	report_contest(&contest);
	world_close(&w);
}

void case_register(struct daemon_under_test *daemon)
{
	(void)daemon;
	register_of(4 * KIB, "register and deregister 4 KiB, mock device", 2000, 2.0);
	register_of(1 * MIB, "register and deregister 1 MiB, mock device", 300, 0);
	register_of(4 * MIB, "register and deregister 4 MiB, mock device", 100, 0);
	report_note("4 MiB is the largest: the mock device locks memory, and a development machine "
		    "lets 8 MiB be locked");
}
