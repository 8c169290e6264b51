/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_UVERBS_H
#define KVREG_UVERBS_H
/*
 * The only file of the project that speaks to a uverbs fd (RDMA_VERBS_IOCTL). The session uses it
 * to register in the client's protection domain; the library, to destroy its own regions through
 * its own fd when its session is gone. It therefore lives with what both link, and not in the
 * session.
 *
 * All calls are the kernel's: object and method numbers from <rdma/ib_user_ioctl_cmds.h>, commands
 * from <rdma/ib_user_verbs.h>, which are stable user ABI. REG_MR exists only as a write command and
 * goes through UVERBS_METHOD_INVOKE_WRITE (Linux 4.20): write(2) on an fd that another process
 * opened is refused by the kernel (ib_safe_file_access), this ioctl is not.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A memory region as the kernel knows it on one uverbs fd. */
struct uverbs_mr {
	uint32_t handle; /* reused by the kernel as soon as the MR is gone */
	uint32_t lkey;
	uint32_t rkey;
	uint64_t iova;
	uint64_t length;
};

struct uverbs_reg {
	uint32_t driver_id; /* enum rdma_driver_id */
	uint32_t pd_handle;
	uint64_t start; /* address in the calling process */
	uint64_t length;
	uint64_t iova;
	uint32_t access;    /* IBV_ACCESS_* */
	uint8_t driver_in;  /* bytes of zeroed driver input that REG_MR must carry: 0 or 8 */
	uint8_t driver_out; /* bytes of driver output that it must have room for: 0 or 8 */
};

/**
 * uverbs_driver() - finds the driver id behind @fd without side effect.
 *
 * A header with a wrong driver id gives EINVAL, with the right one and an unknown object
 * EPROTONOSUPPORT (uverbs_ioctl.c, ib_uverbs_cmd_verbs); works before any context exists.
 *
 * Return: 0; -ENOTTY not a uverbs fd; -EBADF O_PATH; -ENODEV no id below 64 matches; or -errno.
 */
int uverbs_driver(int fd, uint32_t *ret_driver_id);

/** uverbs_reg_mr() - REG_MR. The pin is charged to the caller. Return: 0 or -errno (K 8). */
int uverbs_reg_mr(int fd, const struct uverbs_reg *reg, struct uverbs_mr *ret_mr);

/**
 * uverbs_check_pd() - whether @pd_handle names a protection domain on @fd, without side effect.
 *
 * A REG_DMABUF_MR whose offset and iova disagree within the page: the kernel looks the PD up while
 * it reads the attributes (ENOENT, or EBUSY while it is being destroyed), and refuses the call
 * before the driver is asked (EINVAL, or EOPNOTSUPP where the driver has no dma-buf); Linux 5.12.
 *
 * Return: 0 it does, or this kernel cannot tell; -ENOENT; -EBUSY; or -EIO the device is gone.
 */
int uverbs_check_pd(int fd, uint32_t driver_id, uint32_t pd_handle);

/** uverbs_query_mr() - QUERY_MR of @handle (Linux 5.4). Return: 0, -ENOENT, or -errno. */
int uverbs_query_mr(int fd, uint32_t driver_id, uint32_t handle, struct uverbs_mr *ret_mr);

/** uverbs_destroy_mr() - MR_DESTROY of @handle, whoever made it. Return: 0 or -errno. */
int uverbs_destroy_mr(int fd, uint32_t driver_id, uint32_t handle);

/** uverbs_same_mr() - whether both describe the same region (lkey, rkey, iova and length). */
bool uverbs_same_mr(const struct uverbs_mr *a, const struct uverbs_mr *b);

/** uverbs_check_mr() - Return: 0 the kernel knows @mr as it is; -ESTALE it does not; or -errno. */
int uverbs_check_mr(int fd, uint32_t driver_id, const struct uverbs_mr *mr);

/**
 * uverbs_destroy_same_mr() - destroys @mr if the kernel still knows it under its handle.
 *
 * Handles are reused at once: destroying by number alone could hit a region that the client made
 * since.
 *
 * Return: 0; -ESTALE it is gone or another one has its handle; or -errno.
 */
int uverbs_destroy_same_mr(int fd, uint32_t driver_id, const struct uverbs_mr *mr);

#endif
