/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_DEVICE_H
#define KVREG_TEST_DEVICE_H
/*
 * The device that a test's clients register on: the mock one, which takes /dev/null for a uverbs
 * fd; or with KVREG_TEST_DEVICE=verbs the first RDMA device of the machine, opened by libibverbs.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_PDS 4

struct ibv_context;
struct ibv_pd;
struct ibv_mr;

struct device {
	int fd;      /* for kvregd: borrowed by whom it is given to */
	uint32_t pd; /* handle of the first protection domain */
	struct ibv_context *context;
	struct ibv_pd *pds[DEVICE_PDS];
};

/** device_kind() - "mock" or "verbs", as kvregd's --device wants it. */
const char *device_kind(void);

bool device_is_mock(void);

/** device_open() - a context of its own with a PD. Closed by device_close(). */
struct device device_open(void);

/** device_close() - waits until its PDs are empty, which the kernel proves by freeing them. */
void device_close(struct device *d);

/** device_abandon() - closes the fd: what is left on it goes with it. */
void device_abandon(struct device *d);

/** device_pd() - handle of the PD numbered @i below DEVICE_PDS, allocated at its first use. */
uint32_t device_pd(struct device *d, size_t i);

/** device_free_pd() - Return: whether the kernel freed PD @i: it does not while an MR is in it. */
bool device_free_pd(struct device *d, size_t i);

/** device_name() - as a domain on it is called: "mock0", "rxe0" ... */
const char *device_name(const struct device *d);

/* ---- on verbs only ---- */

/** device_register() - the client's own MR in its first PD, without us. NULL: errno. */
struct ibv_mr *device_register(struct device *d, void *address, size_t length);

/** device_knows() - whether the kernel still has an MR of handle @mr on the fd, with its lkey. */
bool device_knows(const struct device *d, uint32_t handle, uint32_t lkey);

/** device_destroy() - destroys MR @handle behind everybody's back. Return: whether it was there. */
bool device_destroy(const struct device *d, uint32_t handle);

#endif
