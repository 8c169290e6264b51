/* SPDX-License-Identifier: Apache-2.0 */
#include "client/preload/decide.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define REMOTE_CHANGES (IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC)

static bool is_registration(const struct verbs_call *call)
{
	return call->kind == VERBS_REGISTER || call->kind == VERBS_FOREIGN;
}

/* EPERM where the limit is 0: can_do_mlock(). After a lease it may be 0 no longer. */
static bool may_be_memlock(int errnum, const struct evidence *e)
{
	if (e->limit == UINT64_MAX && !e->moved)
		return false;
	return errnum == ENOMEM || (errnum == EPERM && (e->limit == 0 || e->moved));
}

static bool exceeds(const struct verbs_call *call, const struct evidence *e)
{
	uint64_t sum;

	return __builtin_add_overflow(e->vm_pin, verbs_pages(call), &sum) || sum > e->limit;
}

struct decision decide(const struct verbs_call *call, int errnum, const struct evidence *e,
		       unsigned int leases)
{
	struct decision tell = { .action = ACTION_TELL };

	if (call->kind == VERBS_OTHER || call->probe)
		return (struct decision){ .action = ACTION_NONE };
	if (call->kind == VERBS_REGISTER && may_be_memlock(errnum, e) && leases < REGISTER_LEASES &&
	    verbs_pages(call) > 0 && (e->moved || exceeds(call, e)))
		return (struct decision){ ACTION_LEASE, verbs_pages(call) };
	if (call->kind == VERBS_RING && may_be_memlock(errnum, e) && leases < RING_LEASES)
		return (struct decision){ ACTION_LEASE, RING_LEASE_FIRST << (2 * leases) };
	/* Rings that were leased for deserve a word; of others we know nothing. */
	return is_registration(call) || leases ? tell : (struct decision){ .action = ACTION_NONE };
}

static bool dmabuf_size(int fd, uint64_t *ret_size)
{
	struct statfs fs;
	off_t end;

	/* Of other files the offset would be moved, which the program may use. */
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != DMA_BUF_MAGIC)
		return false;
	end = lseek(fd, 0, SEEK_END);
	*ret_size = (uint64_t)end;
	return end >= 0;
}

static bool is_short(const struct verbs_call *call, uint64_t *ret_size)
{
	uint64_t end;

	return call->kind == VERBS_FOREIGN && dmabuf_size(call->fd, ret_size) &&
	       (__builtin_add_overflow(call->start, call->length, &end) || end > *ret_size);
}

/* The checks of the core, in its order (uverbs_cmd.c, ib_check_mr_access). */
static enum kvreg_code invalid(const struct verbs_call *call)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if ((call->start ^ call->iova) & (page - 1))
		return KVREG_E_ALIGNMENT;
	if (call->access & REMOTE_CHANGES && !(call->access & IB_UVERBS_ACCESS_LOCAL_WRITE))
		return KVREG_E_BAD_ACCESS;
	return call->length == 0 ? KVREG_E_INVALID_ARG : KVREG_E_UNKNOWN;
}

static enum kvreg_code code_of(const struct verbs_call *call, int errnum, const struct evidence *e)
{
	switch (errnum) {
	case ENOMEM:
	case EPERM:
		return call->kind == VERBS_REGISTER && may_be_memlock(errnum, e) && exceeds(call, e)
			       ? KVREG_E_LIMIT_MEMLOCK
			       : KVREG_E_UNKNOWN;
	case EFAULT:
		return call->kind == VERBS_REGISTER ? KVREG_E_BAD_REGION : KVREG_E_UNKNOWN;
	case EINVAL:
		return is_registration(call) ? invalid(call) : KVREG_E_UNKNOWN;
	case ENOENT:
		return KVREG_E_BAD_PD;
	case EAGAIN:
		return KVREG_E_LIMIT_RDMA_CGROUP;
	case EBUSY:
		return KVREG_E_DEVICE_BUSY;
	case EIO:
	case ENXIO:
	case ETIMEDOUT:
	case ECANCELED:
		return KVREG_E_DEVICE_GONE;
	default:
		return KVREG_E_UNKNOWN;
	}
}

static int diagnose_foreign(const struct verbs_call *call, int errnum, struct failure *f)
{
	enum kvreg_code code = code_of(call, errnum, &(struct evidence){ .limit = UINT64_MAX });
	uint64_t size;

	if (is_short(call, &size)) {
		errno = errnum;
		return failure_set(f, KVREG_E_SHORT_HANDLE, KVREG_STAGE_REGISTER,
				   "%s: errno %d, %m; %" PRIu64 " bytes from %" PRIu64
				   ", and the dma-buf has %" PRIu64,
				   call->name, errnum, call->length, call->start, size);
	}
	errno = errnum;
	return failure_set(f, code, KVREG_STAGE_REGISTER,
			   "%s: errno %d, %m; %" PRIu64 " bytes from %" PRIu64 ", access %#x",
			   call->name, errnum, call->length, call->start, call->access);
}

/* What the numbers were: the same as the session's diagnose says for its own. */
int diagnose(const struct verbs_call *call, int errnum, const struct evidence *e, struct failure *f)
{
	enum kvreg_code code = code_of(call, errnum, e);
	char limit[32] = "infinity";

	failure_init(f);
	f->errnum = errnum;
	f->address = call->start;
	f->length = call->length;
	f->access = call->access;
	errno = errnum; /* %m */
	if (call->kind == VERBS_FOREIGN)
		return diagnose_foreign(call, errnum, f);
	if (e->limit != UINT64_MAX)
		snprintf(limit, sizeof(limit), "%" PRIu64, e->limit);
	if (call->kind == VERBS_REGISTER)
		return failure_set(f, code, KVREG_STAGE_REGISTER,
				   "%s: errno %d, %m; %" PRIu64 " bytes to pin at %#" PRIx64
				   ", iova %#" PRIx64 ", access %#x; %" PRIu64
				   " pinned, RLIMIT_MEMLOCK %s",
				   call->name, errnum, verbs_pages(call), call->start, call->iova,
				   call->access, e->vm_pin, limit);
	return failure_set(f, code, KVREG_STAGE_REGISTER,
			   "%s: errno %d, %m; %" PRIu64 " pinned, RLIMIT_MEMLOCK %s", call->name,
			   errnum, e->vm_pin, limit);
}
