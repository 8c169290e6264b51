/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sweep.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/procfs.h"

/* Kin that fork faster than we look are left to the next sweep. */
#define PASSES 64
/* Parents of parents: deeper than any tree of processes that is not made for this. */
#define DEPTH 64

uint64_t sweep_now(void)
{
	struct timespec t;
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec * hz / 1000000000u;
}

long sweep_last_pid(void)
{
	char text[128];
	const char *last;

	if (proc_read("/proc/loadavg", text, sizeof(text)) < 0)
		return -1;
	last = strrchr(text, ' ');
	return last ? strtol(last + 1, NULL, 10) : -1;
}

static bool is_descendant(const struct sweep *sweep, pid_t pid)
{
	for (int depth = 0; depth < DEPTH && pid > 1; depth++) {
		if (pid == sweep->pid)
			return true;
		if (proc_parent(pid, &pid) < 0)
			return false;
	}
	return false;
}

static bool has_mark(const struct sweep *sweep, rlim_t limit)
{
	return limit != RLIM_INFINITY && (limit & ((1u << MARK_BITS) - 1)) == sweep->mark;
}

static bool is_raised(const struct sweep *sweep, const struct rlimit *limit)
{
	return limit->rlim_cur > sweep->before.rlim_cur || limit->rlim_max > sweep->before.rlim_max;
}

/* In the cgroup, or in one below it: a container may make some of its own. */
static bool is_in_cgroup(const struct sweep *sweep, pid_t pid)
{
	size_t n = strlen(sweep->cgroup);
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (n == 0 || proc_read(path, text, sizeof(text)) < 0 || strncmp(text, "0::", 3) != 0 ||
	    strncmp(text + 3, sweep->cgroup, n) != 0)
		return false;
	return text[3 + n] == '\0' || text[3 + n] == '/' || sweep->cgroup[n - 1] == '/';
}

bool sweep_is_kin(const struct sweep *sweep, pid_t pid, const struct rlimit *limit)
{
	struct proc_status status;
	uint64_t started;

	if (!is_raised(sweep, limit) || limit->rlim_cur > sweep->highest)
		return false;
	if (has_mark(sweep, limit->rlim_max) || has_mark(sweep, limit->rlim_cur) ||
	    is_descendant(sweep, pid))
		return true;
	return proc_start_time(pid, &started) == 0 && started >= sweep->since &&
	       is_in_cgroup(sweep, pid) && proc_status(pid, &status) == 0 &&
	       status.uid == sweep->uid;
}

static bool is_spared(const struct sweep *sweep, pid_t pid)
{
	for (size_t i = 0; i < sweep->n_spared; i++)
		if (sweep->spared[i] == pid)
			return true;
	return pid == sweep->pid;
}

/* Return: whether it had to be lowered. */
static bool lower(const struct sweep *sweep, pid_t pid, int out)
{
	struct kin kin = { .pid = pid };
	struct rlimit limit;

	if (is_spared(sweep, pid) || prlimit(pid, RLIMIT_MEMLOCK, NULL, &limit) < 0 ||
	    !sweep_is_kin(sweep, pid, &limit) || proc_start_time(pid, &kin.started) < 0)
		return false;
	if (limit.rlim_cur > sweep->before.rlim_cur)
		limit.rlim_cur = sweep->before.rlim_cur;
	if (limit.rlim_max > sweep->before.rlim_max)
		limit.rlim_max = sweep->before.rlim_max;
	if (prlimit(pid, RLIMIT_MEMLOCK, &limit, NULL) < 0)
		return false;
	return write(out, &kin, sizeof(kin)) == sizeof(kin);
}

static bool pass(const struct sweep *sweep, int out)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			found |= lower(sweep, (pid_t)strtol(entry->d_name, NULL, 10), out);
	if (proc)
		closedir(proc);
	return found;
}

void sweep_run(const struct sweep *sweep, int out)
{
	for (int i = 0; i < PASSES && pass(sweep, out); i++)
		;
}
