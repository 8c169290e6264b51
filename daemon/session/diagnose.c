/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/diagnose.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>

#include "daemon/session/client.h"

/* Same errno for a missing limit, missing memory and a full device: only the first two show. */
static enum kvreg_code no_memory(struct client *c, uint64_t need, struct failure *f)
{
	uint64_t available, charged;

	if (client_charged(c, &charged) == 0 && charged + need > c->grant.memlock)
		return KVREG_E_LIMIT_MEMLOCK;
	if (self_available(&c->self, &available) < 0)
		return KVREG_E_UNKNOWN;
	f->snapshot.has_mem_available = true;
	f->snapshot.mem_available = available;
	return available < need ? KVREG_E_LIMIT_MEMORY : KVREG_E_UNKNOWN;
}

static enum kvreg_code register_code(struct client *c, int errnum, uint64_t need, struct failure *f)
{
	switch (errnum) {
	case ENOMEM:
		return no_memory(c, need, f);
	case EPERM: /* can_do_mlock: the limit is 0 */
		return c->grant.memlock == 0 ? KVREG_E_LIMIT_MEMLOCK : KVREG_E_UNKNOWN;
	case EFAULT:
		return KVREG_E_BAD_REGION;
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

int diagnose_register(struct client *c, const struct device_pd *pd, int errnum, uint64_t need,
		      struct failure *f)
{
	enum kvreg_code code = register_code(c, errnum, need, f);

	f->errnum = errnum;
	return failure_set(f, code, code == KVREG_E_BAD_PD ? KVREG_STAGE_REGISTER : KVREG_STAGE_PIN,
			   "REG_MR on %s (%s): errno %d, %s; %" PRIu64 " bytes to pin, %" PRIu64
			   " charged, RLIMIT_MEMLOCK %" PRIu64,
			   pd->device, pd->driver, errnum, strerrordesc_np(errnum), need,
			   c->grant.used.of[BOOK_CHARGE] - need, c->grant.memlock);
}

int diagnose_deregister(const struct device_pd *pd, int errnum, struct failure *f)
{
	enum kvreg_code code = KVREG_E_UNKNOWN;

	/* The handle was just seen to be ours: of EINVAL only rxe's for bound windows is left
	 * (rxe_dereg_mr); others say EBUSY, as the core does while a thread uses the handle. */
	if (errnum == EBUSY || (errnum == EINVAL && pd->driver_id == RDMA_DRIVER_RXE))
		code = KVREG_E_DEVICE_BUSY;
	else if (errnum == EIO)
		code = KVREG_E_DEVICE_GONE;
	f->errnum = errnum;
	return failure_set(f, code, KVREG_STAGE_DEREGISTER, "MR_DESTROY on %s (%s): errno %d, %s",
			   pd->device, pd->driver, errnum, strerrordesc_np(errnum));
}
