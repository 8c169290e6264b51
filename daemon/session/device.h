/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_DEVICE_H
#define KVREG_SESSION_DEVICE_H
/*
 * What registers memory: the kernel's verbs (verbs.c) or a stand-in with the kernel's arithmetic
 * (mock.c). Both work on the client's own fd and charge the pins to this process.
 */
#include <stdbool.h>
#include <stdint.h>

#include "proto/failure.h"
#include "proto/procfs.h"
#include "proto/uverbs.h"

/* A client's protection domain, as the device needs to know it. */
struct device_pd {
	int fd; /* the client's uverbs fd, owned by the domain */
	uint32_t pd_handle;
	uint32_t driver_id;
	uint8_t driver_in; /* see struct uverbs_reg */
	uint8_t driver_out;
	bool needs_same_address; /* the driver ignores hca_va */
	char device[DEVICE_NAME_MAX];
	char driver[DEVICE_NAME_MAX];
};

struct device_ops {
	const char *name;

	bool needs_name; /* the supervisor is asked which device a number is, before attach() */

	/**
	 * attach() - checks the driver behind pd->fd, a character device known by its number, then
	 * the PD, and fills in the rest of @pd. pd->device is set if needs_name.
	 * Return: 0, or the code set in @f.
	 */
	int (*attach)(struct device_pd *pd, struct failure *f);

	/** reg() - registers mapped memory at reg->start. Return: 0 or the kernel's -errno. */
	int (*reg)(const struct device_pd *pd, const struct uverbs_reg *reg,
		   struct uverbs_mr *ret_mr);

	/** query() - Return: 0 the MR is what it was; -ESTALE it is not there any more; or -errno. */
	int (*query)(const struct device_pd *pd, const struct uverbs_mr *mr);

	/** dereg() - Return: 0; -ESTALE it is not there any more; or the kernel's -errno. */
	int (*dereg)(const struct device_pd *pd, const struct uverbs_mr *mr);

	/** charged() - which of the kernel's counts is the one of registered bytes. */
	uint64_t (*charged)(const struct proc_status *status);
};

/* What REG_MR needs from a driver beyond the core's ABI, and how it takes hca_va. */
struct driver {
	const char *name;
	uint8_t driver_in;
	uint8_t driver_out;
	bool needs_same_address;
};

/** driver_find() - the facts of a driver id; of an unknown one, the strictest. Never NULL. */
const struct driver *driver_find(uint32_t driver_id);

/**
 * device_refuse_pd() - @errnum came of looking up the PD, or anything else that attach() asks of it.
 * Return: the code set in @f.
 */
int device_refuse_pd(const struct device_pd *pd, int errnum, struct failure *f);

/** device_find() - the device of that name ("verbs", "mock"), or NULL. */
const struct device_ops *device_find(const char *name);

extern const struct device_ops verbs_device;
extern const struct device_ops mock_device;

/**
 * device_check_fd() - whether @fd is a character device open for read and write, found out
 * without anything that could wait for a FUSE server or reach a driver: F_GETFL, then statx
 * without sync. Return: 0 and its device number, or the code set in @f.
 */
int device_check_fd(int fd, unsigned int *ret_major, unsigned int *ret_minor, struct failure *f);

#endif
