/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "raw.h"

#define ACCESS                                                                                     \
	(IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |                            \
	 IB_UVERBS_ACCESS_REMOTE_READ)

void client_open(struct client *c, int cmd_fd, uint32_t pd_handle, uint64_t size)
{
	struct kvreg_identity who;

	*c = (struct client){ .size = size, .memory = memory_fd(size, F_SEAL_SHRINK) };
	c->address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, c->memory, 0);
	require(c->address != MAP_FAILED);
	memset(c->address, 1, size);
	require(kvreg_open(NULL, &c->k) == 0);
	require(kvreg_attach_fd(c->k, cmd_fd, pd_handle, &c->domain) == 0);
	require(kvreg_buffer_memfd(c->k, c->memory, c->address, size, NULL, &c->buffer) == 0);
	require(kvreg_whoami(c->k, &who) == 0);
	c->session = who.session_pid;
}

void client_open_mock(struct client *c, uint64_t size)
{
	/* What the mock device takes for a uverbs fd; the session gets a duplicate. */
	int device = open("/dev/null", O_RDWR | O_CLOEXEC);

	require(device >= 0);
	client_open(c, device, /* pd_handle */ 1, size);
	close(device);
}

void client_close(struct client *c)
{
	kvreg_close(c->k);
	munmap(c->address, c->size);
	close(c->memory);
}

void client_register(void *arg)
{
	struct client *c = arg;

	require(kvreg_register(c->domain, c->buffer, 0, c->size, 0, ACCESS, NULL, &c->region) == 0);
}

void client_deregister(void *arg)
{
	struct client *c = arg;

	require(kvreg_deregister(c->region) == 0);
}

void client_both(void *arg)
{
	client_register(arg);
	client_deregister(arg);
}
