/* SPDX-License-Identifier: Apache-2.0 */
#include "exam.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/fdset.h"

static int open_here(const char *path, int flags)
{
	return open(path, flags);
}

void host_here(struct host *ret_host)
{
	*ret_host = (struct host){
		.root = "",
		.proc = "/proc",
		.sys = "/sys",
		.dev = "/dev",
		.container = secure_getenv("container"),
		.kubernetes = secure_getenv("KUBERNETES_SERVICE_HOST") != NULL,
		.daemon_wait_ms = DAEMON_WAIT_MS,
		.open_device = open_here,
	};
	getrlimit(RLIMIT_MEMLOCK, &ret_host->memlock);
}

static int open_proc(const struct host *host, const char *file)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", host->proc, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * The kernel asks for CAP_IPC_LOCK with capable(), which means the initial user namespace. That one
 * maps all ids to themselves; others do so only if root made them that way.
 */
static bool in_own_user_namespace(const struct host *host)
{
	uint32_t inside = 0, outside = 0, count = 0;
	char path[512], line[128];

	snprintf(path, sizeof(path), "%s/self/uid_map", host->proc);
	if (proc_read(path, line, sizeof(line)) < 0)
		return false;
	sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count);
	return inside || outside || count != UINT32_MAX;
}

void exam_read(struct exam *exam)
{
	_cleanup_fd_ int status = open_proc(exam->host, "self/status");

	if (status >= 0)
		proc_status_fd(status, &exam->self);
	exam->own_user_namespace = in_own_user_namespace(exam->host);
	origin_read(exam->host, &exam->origin);
	exam->ancestor.pid = 0;
	ancestor_find(exam->host, &exam->ancestor);
	daemon_ask(exam->host, &exam->daemon);
}

bool exam_may_pin(const struct exam *exam)
{
	return exam->host->memlock.rlim_cur == RLIM_INFINITY ||
	       (exam->self.cap_eff & 1ull << CAP_IPC_LOCK && !exam->own_user_namespace);
}

uint64_t exam_needed(const struct exam *exam)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages, needed;

	pages = exam->bytes / page + (exam->bytes % page != 0);
	if (__builtin_mul_overflow(pages, page, &needed) ||
	    __builtin_mul_overflow(needed, (uint64_t)exam->nics, &needed))
		return UINT64_MAX;
	return needed;
}
