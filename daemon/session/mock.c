/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device without hardware, for tests and for developers without a NIC. It takes any character
 * device open for read and write as the client's fd, and hands out keys that no NIC knows.
 *
 * The kernel does the arithmetic here too: each region is a mapping of its own of the same pages,
 * locked with mlock(2), so that a limit too small gives ENOMEM, a limit of 0 EPERM and a range
 * without pages ENOMEM or EFAULT, from the kernel. The book is VmLck in place of VmPin.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/session/device.h"

#define MOCK_MRS 16384u

static struct mock_mr {
	void *locked; /* NULL: free */
	uint64_t length;
	struct uverbs_mr mr;
} mrs[MOCK_MRS];

static int mock_attach(struct device_pd *pd, struct failure *f)
{
	memcpy(pd->device, "mock0", sizeof("mock0"));
	memcpy(pd->driver, "mock", sizeof("mock"));
	/* 0xffffffff stands for a PD that does not exist: a kernel would answer ENOENT. */
	return pd->pd_handle == UINT32_MAX ? device_refuse_pd(pd, ENOENT, f) : 0;
}

static int mock_reg(const struct device_pd *pd, const struct uverbs_reg *reg,
		    struct uverbs_mr *ret_mr)
{
	uint64_t page = reg->start & ~4095ull;
	uint64_t length = ((reg->start + reg->length + 4095u) & ~4095ull) - page;
	uint32_t i = 0;
	void *locked;

	(void)pd;
	while (i < MOCK_MRS && mrs[i].locked)
		i++;
	if (i == MOCK_MRS)
		return -EINVAL; /* as rxe at max_mr */
	/* An old size of 0 makes a second mapping of the same shared pages (mremap(2)). */
	locked = mremap((void *)page, 0, length, MREMAP_MAYMOVE);
	if (locked == MAP_FAILED)
		return -errno;
	/* By its number: under a sanitizer mlock() does nothing. */
	if (syscall(SYS_mlock, locked, length) < 0) {
		int r = -errno;

		munmap(locked, length);
		return r;
	}
	mrs[i] = (struct mock_mr){
		.locked = locked,
		.length = length,
		.mr = {
			.handle = i,
			.lkey = 0x100u * (i + 1),
			.rkey = 0x100u * (i + 1),
			.iova = reg->iova,
			.length = reg->length,
		},
	};
	*ret_mr = mrs[i].mr;
	return 0;
}

static int mock_query(const struct device_pd *pd, const struct uverbs_mr *mr)
{
	(void)pd;
	return mr->handle < MOCK_MRS && mrs[mr->handle].locked &&
			       uverbs_same_mr(&mrs[mr->handle].mr, mr)
		       ? 0
		       : -ESTALE;
}

static int mock_dereg(const struct device_pd *pd, const struct uverbs_mr *mr)
{
	int r = mock_query(pd, mr);

	if (r < 0)
		return r;
	munmap(mrs[mr->handle].locked, mrs[mr->handle].length);
	mrs[mr->handle].locked = NULL;
	return 0;
}

static uint64_t mock_charged(const struct proc_status *status)
{
	return status->vm_lck;
}

const struct device_ops mock_device = {
	.name = "mock",
	.attach = mock_attach,
	.reg = mock_reg,
	.query = mock_query,
	.dereg = mock_dereg,
	.charged = mock_charged,
};
