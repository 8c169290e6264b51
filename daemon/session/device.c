/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/device.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>
#include <sys/stat.h>

/*
 * From the drivers' reg_user_mr of Linux 6.1 and 6.12. irdma and siw refuse a REG_MR without their
 * 8 bytes of input, and all zero is right for both (irdma: reg_type MEM; siw: stag key 0); siw also
 * wants room for its answer. Newer kernels refuse input to drivers that take none, so nothing else
 * gets any. Drivers marked here register at start, or look up keys by start, whatever hca_va says.
 */
static const struct driver drivers[] = {
	[RDMA_DRIVER_UNKNOWN] = { "unknown", 0, 0, true },
	[RDMA_DRIVER_MLX5] = { "mlx5", 0, 0, false },
	[RDMA_DRIVER_MLX4] = { "mlx4", 0, 0, true },
	[RDMA_DRIVER_CXGB4] = { "cxgb4", 0, 0, false },
	[RDMA_DRIVER_MTHCA] = { "mthca", 0, 0, false },
	[RDMA_DRIVER_BNXT_RE] = { "bnxt_re", 0, 0, false },
	[RDMA_DRIVER_OCRDMA] = { "ocrdma", 0, 0, false },
	[RDMA_DRIVER_IRDMA] = { "irdma", 8, 0, false },
	[RDMA_DRIVER_VMW_PVRDMA] = { "vmw_pvrdma", 0, 0, true },
	[RDMA_DRIVER_QEDR] = { "qedr", 0, 0, false },
	[RDMA_DRIVER_HNS] = { "hns", 0, 0, false },
	[RDMA_DRIVER_USNIC] = { "usnic", 0, 0, true },
	[RDMA_DRIVER_RXE] = { "rxe", 0, 0, false },
	[RDMA_DRIVER_HFI1] = { "hfi1", 0, 0, true },
	[RDMA_DRIVER_QIB] = { "qib", 0, 0, true },
	[RDMA_DRIVER_EFA] = { "efa", 0, 0, false },
	[RDMA_DRIVER_SIW] = { "siw", 8, 8, true },
	[RDMA_DRIVER_ERDMA] = { "erdma", 0, 0, false },
	/* Newer than the headers of Debian 12. */
	[20] = { "mana", 0, 0, false },
	[21] = { "ionic", 0, 0, false },
};

const struct driver *driver_find(uint32_t driver_id)
{
	if (driver_id < sizeof(drivers) / sizeof(drivers[0]) && drivers[driver_id].name)
		return &drivers[driver_id];
	return &drivers[RDMA_DRIVER_UNKNOWN];
}

const struct device_ops *device_find(const char *name)
{
	static const struct device_ops *const devices[] = { &verbs_device, &mock_device };

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (strcmp(devices[i]->name, name) == 0)
			return devices[i];
	return NULL;
}

int device_refuse_pd(const struct device_pd *pd, int errnum, struct failure *f)
{
	f->errnum = errnum;
	return failure_set(f, errnum == EIO ? KVREG_E_DEVICE_GONE : KVREG_E_BAD_PD,
			   KVREG_STAGE_ATTACH, "PD handle %u", pd->pd_handle);
}

int device_check_fd(int fd, unsigned int *ret_major, unsigned int *ret_minor, struct failure *f)
{
	struct statx st;
	int flags = fcntl(fd, F_GETFL);

	/* statx of an O_PATH fd shows the device, but ioctl on it gives EBADF. */
	if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) != O_RDWR)
		return failure_set(f, KVREG_E_BAD_UVERBS, KVREG_STAGE_ATTACH,
				   "the fd is not open for read and write");
	/* With DONT_SYNC a FUSE file answers from the kernel's cache; fstat would ask its server.
	 */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0) {
		f->errnum = errno;
		return failure_set(f, KVREG_E_BAD_UVERBS, KVREG_STAGE_ATTACH, "statx failed");
	}
	if (!S_ISCHR(st.stx_mode))
		return failure_set(f, KVREG_E_BAD_UVERBS, KVREG_STAGE_ATTACH,
				   "the fd is not a character device");
	*ret_major = st.stx_rdev_major;
	*ret_minor = st.stx_rdev_minor;
	return 0;
}
