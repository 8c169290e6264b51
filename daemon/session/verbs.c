/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device of real verbs. The fd is the client's; REG_MR is issued by this process, so that the
 * kernel charges the pin to our RLIMIT_MEMLOCK and our VmPin, and the MR lands in the client's PD.
 */
#include <errno.h>
#include <stdio.h>

#include "daemon/session/device.h"

static int check_pd(const struct device_pd *pd, struct failure *f)
{
	int r = uverbs_check_pd(pd->fd, pd->driver_id, pd->pd_handle);

	return r == 0 ? 0 : device_refuse_pd(pd, -r, f);
}

static int verbs_attach(struct device_pd *pd, struct failure *f)
{
	int r = uverbs_driver(pd->fd, &pd->driver_id);

	if (r < 0) {
		f->errnum = -r;
		return failure_set(f, r == -EIO ? KVREG_E_DEVICE_GONE : KVREG_E_BAD_UVERBS,
				   KVREG_STAGE_ATTACH, "the driver's id was not found");
	}
	const struct driver *driver = driver_find(pd->driver_id);
	pd->driver_in = driver->driver_in;
	pd->driver_out = driver->driver_out;
	pd->needs_same_address = driver->needs_same_address;
	snprintf(pd->driver, sizeof(pd->driver), "%s", driver->name);
	return check_pd(pd, f);
}

static int verbs_reg(const struct device_pd *pd, const struct uverbs_reg *reg,
		     struct uverbs_mr *ret_mr)
{
	return uverbs_reg_mr(pd->fd, reg, ret_mr);
}

static int verbs_query(const struct device_pd *pd, const struct uverbs_mr *mr)
{
	return uverbs_check_mr(pd->fd, pd->driver_id, mr);
}

static int verbs_dereg(const struct device_pd *pd, const struct uverbs_mr *mr)
{
	return uverbs_destroy_same_mr(pd->fd, pd->driver_id, mr);
}

static uint64_t verbs_charged(const struct proc_status *status)
{
	return status->vm_pin;
}

const struct device_ops verbs_device = {
	.name = "verbs",
	.needs_name = true,
	.attach = verbs_attach,
	.reg = verbs_reg,
	.query = verbs_query,
	.dereg = verbs_dereg,
	.charged = verbs_charged,
};
