/* SPDX-License-Identifier: Apache-2.0 */
/* What a session costs: to start, to have, and to have a thousand of. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "admin.h"
#include "bare.h"
#include "cases.h"
#include "check.h"
#include "client.h"
#include "daemon.h"
#include "proto/procfs.h"
#include "report.h"

#define KIB ((uint64_t)1 << 10)

/* ---- start ---- */

static void open_close(void *arg)
{
	struct kvreg *k;

	(void)arg;
	require(kvreg_open(NULL, &k) == 0);
	kvreg_close(k);
}

static void open_close_gone(void *arg)
{
	struct kvreg_identity who;
	struct kvreg *k;
	int pidfd;

	(void)arg;
	require(kvreg_open(NULL, &k) == 0);
	require(kvreg_whoami(k, &who) == 0);
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)who.session_pid, 0);
	require(pidfd >= 0);
	kvreg_close(k);
	require(wait_readable(pidfd));
	close(pidfd);
}

void case_start(struct daemon_under_test *daemon)
{
	static const struct way ways[] = {
		{ .name = "fork and exec of /bin/true, and its end", .run = bare_exec },
		{ .name = "kvreg_open and kvreg_close",
		  .run = open_close,
		  .against = { { 0, 0, false } },
		  .n_against = 1 },
		{ .name = "kvreg_open and kvreg_close, and the session's end",
		  .run = open_close_gone,
		  .against = { { 0, 0, false } },
		  .n_against = 1 },
	};
	static const struct contest contest = {
		.name = "start of a session",
		.ways = ways,
		.n_ways = COUNT(ways),
		.rounds = 9,
		.times = 40,
	};

	report_contest(&contest);
	daemon_idle(daemon);
}

/* ---- memory ---- */

/* KiB, from /proc/PID/smaps_rollup and PID/status. */
struct memory {
	double clean, dirty, pss, tables;
};

static bool read_key(const char *line, const char *key, double *ret_kib)
{
	size_t n = strlen(key);

	if (strncmp(line, key, n) != 0)
		return false;
	*ret_kib = strtod(line + n, NULL);
	return true;
}

static int read_memory(uint32_t pid, struct memory *ret_memory)
{
	struct memory m = { 0 };
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/smaps_rollup", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file))
		(void)(read_key(line, "Private_Clean:", &m.clean) ||
		       read_key(line, "Private_Dirty:", &m.dirty) ||
		       read_key(line, "Pss:", &m.pss));
	fclose(file);
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		(void)read_key(line, "VmPTE:", &m.tables);
	if (file)
		fclose(file);
	*ret_memory = m;
	return 0;
}

#define MEASURED 32u

static int report_sessions(const char *name, const uint32_t *sessions, double goal)
{
	double clean[MEASURED], dirty[MEASURED], private[MEASURED], tables[MEASURED];
	struct memory m = { 0 };
	int r;

	for (size_t i = 0; i < MEASURED; i++) {
		r = read_memory(sessions[i], &m);
		if (r < 0)
			return r;
		clean[i] = m.clean;
		dirty[i] = m.dirty;
		private[i] = m.clean + m.dirty;
		tables[i] = m.tables;
	}
	report_value(name, "private", "KiB", spread_of(private, MEASURED), goal);
	report_value(name, "of it dirty", "KiB", spread_of(dirty, MEASURED), 0);
	report_value(name, "of it clean", "KiB", spread_of(clean, MEASURED), 0);
	report_value(name, "page tables, beside it", "KiB", spread_of(tables, MEASURED), 0);
	return 0;
}

void case_memory(struct daemon_under_test *daemon)
{
	static const char *const names[] = { "memory of an idle session, nothing done yet",
					     "memory of an idle session, after 100 registrations" };
	static struct client clients[MEASURED];
	uint32_t sessions[MEASURED];
	int r;

	for (size_t i = 0; i < MEASURED; i++) {
		client_open_mock(&clients[i], 4 * KIB);
		sessions[i] = clients[i].session;
	}
	r = report_sessions(names[0], sessions, 1024);
	for (size_t i = 0; r == 0 && i < MEASURED; i++)
		for (size_t n = 0; n < 100; n++)
			client_both(&clients[i]);
	if (r == 0)
		r = report_sessions(names[1], sessions, 1024);
	if (r < 0)
		report_skip(names[0], "the smaps_rollup of another user's process cannot be read");
	for (size_t i = 0; i < MEASURED; i++)
		client_close(&clients[i]);
	daemon_idle(daemon);
}

/* ---- a thousand ---- */

#define CROWD 1000u
/* fds of a session in the daemon, and a few for everything else. */
#define CROWD_FILES (8u * CROWD + 100u)

/* One client, and the sessions around it. */
struct crowd {
	struct client client;
	struct kvreg *idle[CROWD];
	struct daemon_under_test *daemon;
	double private_mib, available_mib, open_ms; /* of the first time */
};

static double available(void)
{
	uint64_t bytes;

	require(proc_meminfo("MemAvailable", &bytes) == 0);
	return (double)bytes / (1 << 20);
}

static double private_of(const struct crowd *crowd)
{
	double kib = 0;

	for (size_t i = 0; i < CROWD; i++) {
		struct kvreg_identity who;
		struct memory m = { 0 };

		require(kvreg_whoami(crowd->idle[i], &who) == 0);
		if (read_memory(who.session_pid, &m) == 0)
			kib += m.clean + m.dirty;
	}
	return kib / 1024;
}

static void crowd_come(void *arg)
{
	struct crowd *crowd = arg;
	double before = available();
	uint64_t start = now_ns();

	for (size_t i = 0; i < CROWD; i++)
		require(kvreg_open(NULL, &crowd->idle[i]) == 0);
	if (crowd->open_ms > 0)
		return;
	crowd->open_ms = (double)(now_ns() - start) / 1e6;
	crowd->available_mib = before - available();
	crowd->private_mib = private_of(crowd);
}

static bool alone(void *arg)
{
	const struct crowd *crowd = arg;
	struct admin_status status;

	return admin_status(crowd->daemon->admin_socket, &status) && status.sessions == 1;
}

static void crowd_go(void *arg)
{
	struct crowd *crowd = arg;

	for (size_t i = 0; i < CROWD; i++)
		kvreg_close(crowd->idle[i]);
	require(wait_until(alone, crowd));
}

static void report_crowd(const struct crowd *crowd, const char *name)
{
	const double values[] = { crowd->private_mib, crowd->available_mib, crowd->open_ms };
	static const char *const what[] = {
		"private memory of the 1000 sessions",
		"MemAvailable gone: sessions, daemon, clients, kernel",
		"time until all 1000 were open",
	};

	for (size_t i = 0; i < COUNT(values); i++)
		report_value(name, what[i], i < 2 ? "MiB" : "ms", spread_of(&values[i], 1), 0);
}

static void register_in_crowd(void *arg)
{
	client_both(&((struct crowd *)arg)->client);
}

void case_idle(struct daemon_under_test *daemon)
{
	static struct crowd crowd;
	static const struct way ways[] = {
		{ .name = "register and deregister 4 KiB, no other session",
		  .run = register_in_crowd,
		  .arg = &crowd },
		{ .name = "the same beside 1000 idle sessions",
		  .run = register_in_crowd,
		  .before = crowd_come,
		  .after = crowd_go,
		  .arg = &crowd,
		  .against = { { 0, 0, false } },
		  .n_against = 1 },
	};
	static const struct contest contest = {
		.name = "1000 idle sessions",
		.ways = ways,
		.n_ways = COUNT(ways),
		.rounds = 5,
		.times = 5000,
	};
	struct rlimit files;

	require(getrlimit(RLIMIT_NOFILE, &files) == 0);
	if (files.rlim_cur < CROWD_FILES) {
		report_skip(contest.name, "RLIMIT_NOFILE is below 8100 (ulimit -n)");
		return;
	}
	crowd.daemon = daemon;
	client_open_mock(&crowd.client, 4 * KIB);
	report_contest(&contest);
	report_crowd(&crowd, contest.name);
	client_close(&crowd.client);
	daemon_idle(daemon);
}
