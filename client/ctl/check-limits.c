/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel lets this process pin by itself (ib_umem_get): RLIMIT_MEMLOCK against all that
 * the process has pinned already (VmPin) plus what is new, unless it has CAP_IPC_LOCK in the
 * initial user namespace. Limit, capability and charge are the calling process's.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exam.h"
#include "format.h"
#include "proto/fdset.h"

static struct shown format_limit(rlim_t limit)
{
	struct shown shown = { .text = "unlimited" };

	return limit == RLIM_INFINITY ? shown : format_size(limit);
}

/* As the argument of ulimit -l, which counts in KiB. */
static struct shown format_ulimit(rlim_t limit)
{
	struct shown shown = { .text = "unlimited" };

	if (limit != RLIM_INFINITY)
		snprintf(shown.text, sizeof(shown.text), "%llu", (unsigned long long)limit / 1024);
	return shown;
}

static bool has(uint64_t set)
{
	return set & 1ull << CAP_IPC_LOCK;
}

/* Where a limit of @wanted bytes is to be had: of an ancestor that has it, or of the origin. */
static void say_where(const struct exam *exam, uint64_t wanted, char *ret_text, size_t size)
{
	const struct ancestor *a = &exam->ancestor;

	if (a->pid && a->hard >= wanted)
		snprintf(ret_text, size,
			 "keep the %.20s that pid %" PRIu32 " (%s) above it has: something between "
			 "them lowers it (ulimit -l)",
			 format_limit(a->hard).text, a->pid, a->comm);
	else
		origin_raise(&exam->origin, ret_text, size);
}

void check_memlock(struct exam *exam)
{
	const struct rlimit *limit = &exam->host->memlock;
	char raise[512];

	if (limit->rlim_cur == RLIM_INFINITY) {
		found(&exam->findings, VERDICT_PASS, "unlimited");
		return;
	}
	if (exam_may_pin(exam)) {
		found(&exam->findings, VERDICT_PASS, "%s, which CAP_IPC_LOCK sets aside",
		      format_limit(limit->rlim_cur).text);
		return;
	}
	found(&exam->findings, VERDICT_WARN,
	      "RLIMIT_MEMLOCK is %s (hard: %s), of which %s are pinned: the program itself cannot "
	      "pin more, counted once for each device%s",
	      format_limit(limit->rlim_cur).text, format_limit(limit->rlim_max).text,
	      format_size(exam->self.vm_pin).text,
	      limit->rlim_cur ? "" : ", and the kernel answers EPERM");
	say_where(exam, /* wanted */ 0, raise, sizeof(raise));
	if (limit->rlim_max != limit->rlim_cur)
		change(&exam->findings,
		       "nothing for what kvregd registers; else ulimit -l %s in the shell that "
		       "starts the program, or %s",
		       format_ulimit(limit->rlim_max).text, raise);
	else
		change(&exam->findings, "nothing for what kvregd registers; else %s", raise);
}

void check_origin(struct exam *exam)
{
	const struct origin *origin = &exam->origin;

	if (origin->kind == ORIGIN_UNKNOWN)
		found(&exam->findings, VERDICT_SKIP,
		      "no unit, login or container runtime shows in /proc/self/cgroup: limits are "
		      "as whoever started it left them");
	else
		found(&exam->findings, VERDICT_PASS,
		      "%s%s%s: what it sets holds here, unless a shell or program below it set "
		      "less",
		      origin_title(origin), origin->name[0] ? " " : "", origin->name);
}

void check_capability(struct exam *exam)
{
	const struct proc_status *self = &exam->self;
	bool matters = exam->host->memlock.rlim_cur != RLIM_INFINITY;

	if (has(self->cap_eff) && !exam->own_user_namespace) {
		found(&exam->findings, VERDICT_PASS, "CAP_IPC_LOCK is effective: no limit applies");
	} else if (!matters || !(has(self->cap_eff) || has(self->cap_prm) ||
				 (has(self->cap_bnd) && origin_is_container(&exam->origin)))) {
		found(&exam->findings, VERDICT_PASS, "no CAP_IPC_LOCK; %s needs none",
		      matters ? "a program of kvregd's" : "without a limit a program");
	} else if (exam->own_user_namespace) {
		found(&exam->findings, VERDICT_WARN,
		      "CAP_IPC_LOCK is of a user namespace other than the host's: the kernel does "
		      "not count it for pinning");
		change(&exam->findings, "nothing for what kvregd registers; else the limit, for no "
					"capability in a user namespace helps");
	} else if (has(self->cap_prm)) {
		found(&exam->findings, VERDICT_WARN,
		      "CAP_IPC_LOCK is permitted, but not effective: it does nothing");
		change(&exam->findings, "nothing for what kvregd registers; else raise it into the "
					"effective set (capset), as setpriv and file capabilities "
					"with +ep do");
	} else {
		found(&exam->findings, VERDICT_WARN,
		      "the container may have CAP_IPC_LOCK, but this process of uid %" PRIu32
		      " has not: an added capability reaches a program that is not root only as an "
		      "ambient one, which Kubernetes does not set",
		      self->euid);
		change(&exam->findings, "nothing for what kvregd registers; else the limit, or a "
					"program file with cap_ipc_lock+ep");
	}
}

/* ---------------------------------------------------------------- would this fit? */

static bool asked(struct exam *exam)
{
	if (!exam->bytes)
		found(&exam->findings, VERDICT_SKIP, "not asked for: --for BYTES, --nics N");
	return exam->bytes;
}

/* "16G", or "4 x 16G = 64G". */
static struct shown format_need(const struct exam *exam)
{
	struct shown shown = format_size(exam->bytes);

	if (exam->nics > 1)
		snprintf(shown.text, sizeof(shown.text), "%" PRIu32 " x %.40s = %.40s", exam->nics,
			 format_size(exam->bytes).text, format_size(exam_needed(exam)).text);
	return shown;
}

static void direct_too_much(struct exam *exam, uint64_t sum)
{
	const struct rlimit *limit = &exam->host->memlock;
	bool brokered = exam->daemon.state == DAEMON_ANSWERED;
	uint64_t kib = sum / 1024 + (sum % 1024 != 0);
	char raise[512];

	found(&exam->findings, brokered ? VERDICT_WARN : VERDICT_FAIL,
	      "%s, with %s pinned already, are more than RLIMIT_MEMLOCK of %s: ibv_reg_mr in the "
	      "program fails with %s",
	      format_need(exam).text, format_size(exam->self.vm_pin).text,
	      format_limit(limit->rlim_cur).text, limit->rlim_cur ? "ENOMEM" : "EPERM");
	if (limit->rlim_max == RLIM_INFINITY || sum <= limit->rlim_max) {
		change(&exam->findings,
		       "ulimit -l %" PRIu64
		       " in the shell that starts the program, which its hard limit of %s allows",
		       kib, format_limit(limit->rlim_max).text);
		return;
	}
	say_where(exam, sum, raise, sizeof(raise));
	change(&exam->findings, "%sat least %" PRIu64 " KiB: %s",
	       brokered ? "nothing for what kvregd registers; else a limit of " : "a limit of ",
	       kib, raise);
}

void check_fits_direct(struct exam *exam)
{
	const struct rlimit *limit = &exam->host->memlock;
	uint64_t sum;

	if (!asked(exam))
		return;
	if (exam_may_pin(exam)) {
		found(&exam->findings, VERDICT_PASS, "%s: no limit applies",
		      format_need(exam).text);
		return;
	}
	if (__builtin_add_overflow(exam_needed(exam), exam->self.vm_pin, &sum))
		sum = UINT64_MAX;
	if (sum > limit->rlim_cur)
		direct_too_much(exam, sum);
	else
		found(&exam->findings, VERDICT_PASS,
		      "%s, with %s pinned already, are within RLIMIT_MEMLOCK of %s",
		      format_need(exam).text, format_size(exam->self.vm_pin).text,
		      format_limit(limit->rlim_cur).text);
}

static int read_available(const struct host *host, uint64_t *ret_bytes)
{
	_cleanup_fd_ int fd = -1;
	char path[512];

	snprintf(path, sizeof(path), "%s/meminfo", host->proc);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : proc_meminfo_fd(fd, "MemAvailable", ret_bytes);
}

/* The memory is there once, however many devices it is registered with. */
void check_fits_brokered(struct exam *exam)
{
	uint64_t available = 0;

	if (!asked(exam))
		return;
	if (exam->daemon.state != DAEMON_ANSWERED) {
		found(&exam->findings, VERDICT_SKIP, "no daemon answers");
		return;
	}
	if (read_available(exam->host, &available) < 0) {
		found(&exam->findings, VERDICT_SKIP, "MemAvailable cannot be read");
		return;
	}
	if (exam->bytes > available) {
		found(&exam->findings, VERDICT_FAIL,
		      "%s are more than the %s that the host has available (MemAvailable)",
		      format_size(exam->bytes).text, format_size(available).text);
		change(&exam->findings, "a smaller buffer, or more free memory; huge pages set "
					"aside (vm.nr_hugepages) do not count as available");
		return;
	}
	found(&exam->findings, VERDICT_PASS,
	      "%s of the %s that the host has available; %s will be booked in the quota, whose "
	      "limits administrators see (kvregctl status)",
	      format_size(exam->bytes).text, format_size(available).text, format_need(exam).text);
}
