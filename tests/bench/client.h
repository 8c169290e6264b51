/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_BENCH_CLIENT_H
#define KVREG_BENCH_CLIENT_H
/*
 * A client with one buffer, of a memfd of its own whose pages are all there, that it has mapped and
 * touched. It uses the library as any program does.
 */
#include <kvreg-client.h>
#include <stdint.h>

struct client {
	struct kvreg *k;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *region; /* of client_register() */
	void *address;
	uint64_t size;
	int memory;       /* memfd */
	uint32_t session; /* pid */
};

/** client_open() - @cmd_fd, @pd_handle: the domain's; borrowed. @size: of the buffer. */
void client_open(struct client *c, int cmd_fd, uint32_t pd_handle, uint64_t size);

/** client_open_mock() - the same on the mock device. */
void client_open_mock(struct client *c, uint64_t size);
void client_close(struct client *c);

/* Ways (measure.h); the argument is a struct client. */

/** client_register() - all of the buffer. */
void client_register(void *arg);
void client_deregister(void *arg);
/** client_both() - one after the other. */
void client_both(void *arg);

#endif
