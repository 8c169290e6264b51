/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_BENCH_BARE_H
#define KVREG_BENCH_BARE_H
/*
 * What a registration is compared with: the least that two processes need to ask and to answer, and
 * the least that the kernel does for it.
 *
 * The echo is a forked process at the other end of a SEQPACKET pair. It reads one record, does what
 * the record says, and sends a record as long as it says: one receive and one send on either side.
 * The lengths are those of the real messages.
 *
 * The kernel's part is what a session asks of the kernel for a device, and nothing else: the memfd
 * mapped, the device's registration, the memfd unmapped; at the end, its destruction.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of the records of one registration and its end. */
struct record_sizes {
	size_t register_request, register_reply, deregister_request, deregister_reply;
};

/** record_sizes() - of a region of @length bytes at @address. */
struct record_sizes record_sizes(const void *address, uint64_t length);

struct bare;

/* The device's share of the kernel's part. */
struct bare_device {
	/* @map: the memfd's bytes, mapped here; they may be unmapped before deregister(). */
	void (*reg)(struct bare *b, void *map);
	void (*dereg)(struct bare *b);
};

/* What the mock device does: a second mapping that is locked (daemon/session/mock.c). */
extern const struct bare_device bare_mock;

struct bare {
	int sock;
	pid_t pid;
	const struct bare_device *device;
	void *device_arg; /* for @device's functions */
	int memory;       /* memfd; borrowed */
	void *address;
	size_t length;
	void *locked; /* bare_mock's */
	struct record_sizes sizes;
};

/**
 * bare_open() - starts an echo, with the device set before.
 * @memory: a memfd, borrowed as long as the echo lives
 * @address: where the caller has @memory mapped
 */
void bare_open(struct bare *b, int memory, void *address, size_t length);
void bare_close(struct bare *b);

/* Ways (measure.h); the argument is a struct bare. */

/** bare_register() - the round trip of a Register, and nothing else. */
void bare_register(void *arg);
/** bare_deregister() - that of a Deregister. */
void bare_deregister(void *arg);
/** bare_both() - one after the other. */
void bare_both(void *arg);
/** bare_both_and_work() - the same; the echo also does the kernel's part. */
void bare_both_and_work(void *arg);
/** bare_work() - that part alone, in this process: no round trip. */
void bare_work(void *arg);
/** bare_exec() - fork and exec of /bin/true, and the wait for its end. The argument is ignored. */
void bare_exec(void *arg);

#endif
