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

uint64_t sweep_pinned(const struct kin *kin)
{
	struct proc_status status;
	uint64_t started;

	if (proc_status(kin->pid, &status) < 0 || proc_start_time(kin->pid, &started) < 0 ||
	    started != kin->started)
		return 0;
	return status.vm_pin + status.vm_lck;
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

static bool is_kin(const struct sweep *sweep, pid_t pid, const struct rlimit *limit,
		   uint64_t started)
{
	struct proc_status status;

	if (has_mark(sweep, limit->rlim_max) || has_mark(sweep, limit->rlim_cur) ||
	    is_descendant(sweep, pid))
		return true;
	return started >= sweep->since && limit->rlim_cur <= sweep->highest &&
	       proc_status(pid, &status) == 0 && status.uid == sweep->uid;
}

static bool is_spared(const struct sweep *sweep, pid_t pid)
{
	for (size_t i = 0; i < sweep->n_spared; i++)
		if (sweep->spared[i] == pid)
			return true;
	return pid == sweep->pid;
}

/* Return: whether it had to be lowered. */
static bool lower(const struct sweep *sweep, pid_t pid, struct kin *kin, size_t *n_kin)
{
	struct rlimit limit;
	uint64_t started;

	if (is_spared(sweep, pid) || prlimit(pid, RLIMIT_MEMLOCK, NULL, &limit) < 0 ||
	    !is_raised(sweep, &limit) || proc_start_time(pid, &started) < 0 ||
	    !is_kin(sweep, pid, &limit, started))
		return false;
	if (limit.rlim_cur > sweep->before.rlim_cur)
		limit.rlim_cur = sweep->before.rlim_cur;
	if (limit.rlim_max > sweep->before.rlim_max)
		limit.rlim_max = sweep->before.rlim_max;
	if (prlimit(pid, RLIMIT_MEMLOCK, &limit, NULL) < 0)
		return false;
	if (*n_kin < KIN_MAX)
		kin[(*n_kin)++] = (struct kin){ .pid = pid, .started = started };
	return true;
}

static bool pass(const struct sweep *sweep, struct kin *kin, size_t *n_kin)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			found |= lower(sweep, (pid_t)strtol(entry->d_name, NULL, 10), kin, n_kin);
	if (proc)
		closedir(proc);
	return found;
}

size_t sweep_run(const struct sweep *sweep, struct kin ret_kin[KIN_MAX])
{
	size_t n = 0, kept = 0;

	for (int i = 0; i < PASSES && pass(sweep, ret_kin, &n); i++)
		;
	for (size_t i = 0; i < n; i++) {
		ret_kin[i].pinned = sweep_pinned(&ret_kin[i]);
		if (ret_kin[i].pinned > 0)
			ret_kin[kept++] = ret_kin[i];
	}
	return kept;
}
