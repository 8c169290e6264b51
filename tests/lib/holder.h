/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_HOLDER_H
#define KVREG_TEST_HOLDER_H
/* A client without the library that has what it takes to register: a domain and a buffer. */
#include "device.h"
#include "raw.h"

struct holder {
	struct raw *raw;
	struct device device;
	int memory;
	uint32_t domain, buffer;
	uint64_t serial; /* of its registrations */
};

/** hold() - connects to @path, attaches a domain and imports a memfd of @size bytes. */
struct holder hold(const char *path, uint64_t size);

/** let_go() - ends the connection and closes its fds. */
void let_go(struct holder *h);

/**
 * try_register() - the first @length bytes of the buffer, each time at an iova of its own: the same
 * again would be the same region. Return: the reply.
 */
const Kvreg__Reply *try_register(struct holder *h, uint64_t length);

/** must_register() - the same, which must work. Return: the region. */
uint32_t must_register(struct holder *h, uint64_t length);

#endif
