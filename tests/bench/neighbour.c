/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's registrations while another's take long.
 *
 * Until a fault can be injected into a device, two neighbours stand in for a slow one: a session
 * that is stopped (SIGSTOP) in the middle of its registrations, which takes no time of the
 * processor, as a device that is waited for; and one that registers and deregisters 4 MiB without
 * a pause, which takes all that it gets. For the second the bare round trip is measured beside the
 * same neighbour: what it suffers too is the machine's doing, and with two cpus for four busy
 * processes it suffers.
 */
#include <signal.h>
#include <stdatomic.h>
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
	uint32_t session;
};

struct street {
	struct client client;
	struct bare bare;
	struct child child;
	struct shared *shared;
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
	shared->session = client.session;
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

static void stop_session(void *arg)
{
	start_work(arg);
	require(kill((pid_t)((struct street *)arg)->shared->session, SIGSTOP) == 0);
}

static void resume_session(void *arg)
{
	require(kill((pid_t)((struct street *)arg)->shared->session, SIGCONT) == 0);
	end_work(arg);
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
		{ .name = "4 KiB, the neighbour's session stopped in a registration",
		  .run = brokered,
		  .before = stop_session,
		  .after = resume_session,
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
	struct street street;

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
