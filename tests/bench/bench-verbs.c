/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-verbs [--json FILE] [DEVICE]: a brokered registration against ibv_reg_mr of the same memory
 * by the same process, which is root and may pin as much as it likes.
 *
 * Both end with the region's destruction. Between them stands the least that a broker can do: two
 * round trips, and the registration made by the process that answers. The memory is one memfd,
 * mapped and touched before. A guest's own memory is touched once as well: its first touch costs
 * the host a page.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bare.h"
#include "check.h"
#include "client.h"
#include "proto/procfs.h"
#include "proto/uverbs.h"
#include "report.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t driver_id;
	struct uverbs_mr foreign; /* the other process's */
	struct client client;
	struct bare bare;
};

static void device_open(struct world *w, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (size_t i = 0; list && list[i] && !w->context; i++)
		if (!name || strcmp(ibv_get_device_name(list[i]), name) == 0)
			w->context = ibv_open_device(list[i]);
	require(w->context);
	ibv_free_device_list(list);
	w->pd = ibv_alloc_pd(w->context);
	require(w->pd);
	require(uverbs_driver(w->context->cmd_fd, &w->driver_id) == 0);
}

static void device_close(struct world *w)
{
	require(ibv_dealloc_pd(w->pd) == 0);
	require(ibv_close_device(w->context) == 0);
}

static void direct(void *arg)
{
	const struct world *w = arg;
	struct ibv_mr *mr = ibv_reg_mr(w->pd, w->client.address, w->client.size, ACCESS);

	require(mr);
	require(ibv_dereg_mr(mr) == 0);
}

static void brokered(void *arg)
{
	client_both(&((struct world *)arg)->client);
}

/* ---- a registration by the answering process, in the client's protection domain ---- */

static void echo_register(struct bare *b, void *map)
{
	struct world *w = b->device_arg;
	const struct uverbs_reg reg = {
		.driver_id = w->driver_id,
		.pd_handle = w->pd->handle,
		.start = (uintptr_t)map,
		.length = b->length,
		.iova = (uintptr_t)b->address,
		.access = ACCESS,
	};

	require(uverbs_reg_mr(w->context->cmd_fd, &reg, &w->foreign) == 0);
}

static void echo_deregister(struct bare *b)
{
	const struct world *w = b->device_arg;

	require(uverbs_destroy_mr(w->context->cmd_fd, w->driver_id, w->foreign.handle) == 0);
}

static const struct bare_device echo_device = { echo_register, echo_deregister };

static void compare(struct world *w, uint64_t size, const char *name, size_t rounds, size_t times)
{
	enum { DIRECT, TRIPS, TRIPS_AND_WORK, BROKERED, WAYS };
	const struct way ways[WAYS] = {
		[DIRECT] = { "ibv_reg_mr and ibv_dereg_mr", .run = direct, .arg = w },
		[TRIPS] = { "two round trips", .run = bare_both, .arg = &w->bare },
		[TRIPS_AND_WORK] = { "round trips with the registration in the other process",
				     .run = bare_both_and_work, .arg = &w->bare,
				     .against = { { DIRECT, 0, false } }, .n_against = 1 },
		[BROKERED] = { "brokered", .run = brokered, .arg = w,
			       .against = { { DIRECT, 0, false }, { TRIPS_AND_WORK, 0, false } },
			       .n_against = 2 },
	};
	const struct contest contest = { name, ways, WAYS, rounds, times };

	client_open(&w->client, w->context->cmd_fd, w->pd->handle, size);
	w->bare = (struct bare){ .device = &echo_device, .device_arg = w };
	bare_open(&w->bare, w->client.memory, w->client.address, size);
	report_contest(&contest);
	bare_close(&w->bare);
	client_close(&w->client);
}

static void touch_all_memory(void)
{
	uint64_t bytes;
	void *all;

	require(proc_meminfo("MemAvailable", &bytes) == 0);
	bytes = bytes / 100 * 80;
	all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(all != MAP_FAILED);
	memset(all, 1, bytes);
	munmap(all, bytes);
}

int main(int argc, char **argv)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct world w = { 0 };
	const char *path = NULL;

	if (argc > 2 && strcmp(argv[1], "--json") == 0) {
		path = argv[2];
		argc -= 2;
		argv += 2;
	}
	require(setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0);
	device_open(&w, argc > 1 ? argv[1] : NULL);
	touch_all_memory();
	report_open("verbs", path);
	compare(&w, 4 * KIB, "register and deregister 4 KiB, real verbs", 31, 60);
	compare(&w, 1 * MIB, "register and deregister 1 MiB, real verbs", 31, 20);
	compare(&w, 64 * MIB, "register and deregister 64 MiB, real verbs", 15, 2);
	device_close(&w);
	return report_close();
}
