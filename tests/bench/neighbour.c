/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's registrations while another's take long.
 *
 * Two neighbours are slow in two ways. One has a device whose REG_MR takes 20 s: it comes through
 * the socket of a class with a fault on purpose (delay=register:20000), and takes no time of the
 * processor while it is held. The other registers and deregisters 4 MiB without a pause, and takes
 * all that it gets; for it the bare round trip is measured beside the same neighbour: what that
 * suffers too is the machine's doing, and with two cpus for four busy processes it suffers.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bare.h"
#include "cases.h"
#include "check.h"
#include "child.h"
#include "client.h"
#include "daemon.h"
#include "report.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

/* Seen by both processes. */
struct shared {
	atomic_bool busy, end;
	atomic_uint done; /* registrations */
	uint32_t slow_session;
};

struct street {
	struct client client;
	struct bare bare;
	struct child child, slow;
	struct shared *shared;
	struct daemon_under_test *daemon;
	size_t held; /* times that the slow one was */
};

static void nap(void)
{
	const struct timespec ms = { .tv_nsec = 1000 * 1000 };

	nanosleep(&ms, NULL);
}

static int neighbour(struct child *me, void *arg)
{
	struct shared *shared = arg;
	struct client client;

	client_open_mock(&client, 4 * MIB);
	child_say(me);
	while (!atomic_load(&shared->end)) {
		if (atomic_load(&shared->busy)) {
			client_both(&client);
			atomic_fetch_add(&shared->done, 1);
		} else {
			nap();
		}
	}
	client_close(&client);
	return 0;
}

void neighbour_prepare(const struct daemon_under_test *daemon)
{
	FILE *file = fopen(daemon->config, "ae");

	require(file);
	fprintf(file,
		"[class slow]\nsocket = %s/slow/kvregd.sock\n[test slow]\ndelay = register:20000\n",
		daemon->dir);
	require(fclose(file) == 0);
}

/* It does not return from its registration. */
static int slow_neighbour(struct child *me, void *arg)
{
	struct street *street = arg;
	struct client client;
	char path[128];

	snprintf(path, sizeof(path), "%s/slow/kvregd.sock", street->daemon->dir);
	require(setenv("KVREG_SOCKET", path, 1) == 0);
	client_open_mock(&client, 4 * KIB);
	street->shared->slow_session = client.session;
	child_say(me);
	client_register(&client);
	return 1;
}

/* ---- what is around the runs of a round ---- */

static void start_work(void *arg)
{
	struct shared *shared = ((struct street *)arg)->shared;
	unsigned int done = atomic_load(&shared->done);

	atomic_store(&shared->busy, true);
	while (atomic_load(&shared->done) < done + 2)
		nap();
}

static void end_work(void *arg)
{
	struct shared *shared = ((struct street *)arg)->shared;

	atomic_store(&shared->busy, false);
	for (int i = 0; i < 50; i++)
		nap();
}

static void begin_registration(void *arg)
{
	struct street *street = arg;

	child_start(&street->slow, /* uid */ 0, slow_neighbour, street);
	require(child_hear(&street->slow));
	require(daemon_log_soon(street->daemon, "held in stage register", ++street->held));
}

/* It was in there until now: of one that has come out the status is another. */
static void break_off_registration(void *arg)
{
	struct street *street = arg;

	child_kill(&street->slow);
	require(kill((pid_t)street->shared->slow_session, SIGKILL) == 0);
}

static void brokered(void *arg)
{
	client_both(&((struct street *)arg)->client);
}

static void bare(void *arg)
{
	bare_both(&((struct street *)arg)->bare);
}

/* ---- cases ---- */

static void compare(struct street *street)
{
	const struct way ways[] = {
		{ .name = "4 KiB, the neighbour idle", .run = brokered, .arg = street },
		{ .name = "4 KiB, the neighbour inside a registration of 20 s",
		  .run = brokered,
		  .before = begin_registration,
		  .after = break_off_registration,
		  .arg = street,
		  .against = { { 0, 2.0, true } },
		  .n_against = 1 },
		{ .name = "4 KiB, the neighbour busy with 4 MiB",
		  .run = brokered,
		  .before = start_work,
		  .after = end_work,
		  .arg = street,
		  .against = { { 0, 2.0, true } },
		  .n_against = 1 },
		{ .name = "two round trips, the neighbour idle", .run = bare, .arg = street },
		{ .name = "two round trips, the neighbour busy with 4 MiB",
		  .run = bare,
		  .before = start_work,
		  .after = end_work,
		  .arg = street,
		  .against = { { 3, 0, false } },
		  .n_against = 1 },
	};
	const struct contest contest = {
		.name = "a slow neighbour",
		.ways = ways,
		.n_ways = COUNT(ways),
		.rounds = 15,
		.times = 2000,
	};

	report_contest(&contest);
}

void case_neighbour(struct daemon_under_test *daemon)
{
	struct street street = { .daemon = daemon };

	street.shared = mmap(NULL, sizeof(*street.shared), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	require(street.shared != MAP_FAILED);
	child_start(&street.child, /* uid */ 0, neighbour, street.shared);
	require(child_hear(&street.child));
	client_open_mock(&street.client, 4 * KIB);
	street.bare = (struct bare){ .device = &bare_mock };
	bare_open(&street.bare, street.client.memory, street.client.address, 4 * KIB);
	compare(&street);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 4)
		report_note("fewer than 4 cpus for 4 busy processes: see what the bare round trip "
			    "suffers too");
	atomic_store(&street.shared->end, true);
	require(child_end(&street.child) == 0);
	bare_close(&street.bare);
	client_close(&street.client);
	munmap(street.shared, sizeof(*street.shared));
	daemon_idle(daemon);
}
