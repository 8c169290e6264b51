/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "proto/uverbs.h"

const char *device_kind(void)
{
	const char *kind = getenv("KVREG_TEST_DEVICE");

	return kind && *kind ? kind : "mock";
}

bool device_is_mock(void)
{
	return strcmp(device_kind(), "mock") == 0;
}

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	require(list && list[0]);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	require(context);
	return context;
}

struct device device_open(void)
{
	struct device d = { .fd = -1 };

	if (device_is_mock()) {
		d.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} else {
		d.context = open_first();
		d.fd = d.context->cmd_fd;
	}
	require(d.fd >= 0);
	d.pd = device_pd(&d, 0);
	return d;
}

void device_abandon(struct device *d)
{
	if (d->context)
		require(ibv_close_device(d->context) == 0);
	else
		close(d->fd);
	*d = (struct device){ .fd = -1 };
}

static bool all_pds_are_free(void *arg)
{
	struct device *d = arg;

	for (size_t i = 0; i < DEVICE_PDS; i++)
		if (d->pds[i] && !device_free_pd(d, i))
			return false;
	return true;
}

void device_close(struct device *d)
{
	/* Whose client hung up destroys its regions a moment later. */
	require(wait_until(all_pds_are_free, d));
	device_abandon(d);
}

uint32_t device_pd(struct device *d, size_t i)
{
	require(i < DEVICE_PDS);
	if (!d->context)
		return (uint32_t)i + 1;
	if (!d->pds[i])
		d->pds[i] = ibv_alloc_pd(d->context);
	require(d->pds[i]);
	return d->pds[i]->handle;
}

bool device_free_pd(struct device *d, size_t i)
{
	if (ibv_dealloc_pd(d->pds[i]) != 0)
		return false;
	d->pds[i] = NULL;
	return true;
}

const char *device_name(const struct device *d)
{
	return d->context ? ibv_get_device_name(d->context->device) : "mock0";
}

struct ibv_mr *device_register(struct device *d, void *address, size_t length)
{
	return ibv_reg_mr(d->pds[0], address, length, IBV_ACCESS_LOCAL_WRITE);
}

static uint32_t driver_of(const struct device *d)
{
	uint32_t driver;

	require(uverbs_driver(d->fd, &driver) == 0);
	return driver;
}

bool device_knows(const struct device *d, uint32_t handle, uint32_t lkey)
{
	struct uverbs_mr mr;

	return uverbs_query_mr(d->fd, driver_of(d), handle, &mr) == 0 && mr.lkey == lkey;
}

bool device_destroy(const struct device *d, uint32_t handle)
{
	return uverbs_destroy_mr(d->fd, driver_of(d), handle) == 0;
}
