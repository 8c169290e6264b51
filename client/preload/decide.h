/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_PRELOAD_DECIDE_H
#define KVREG_PRELOAD_DECIDE_H
/*
 * From a call that failed, its errno and the evidence of that moment to what is done about it. Pure
 * functions, but for a look at the size of a dma-buf.
 *
 * The kernel refuses with ENOMEM where VmPin and the call's pages exceed RLIMIT_MEMLOCK, and with
 * EPERM where that limit is 0 (ib_umem_get). Both have other causes too: a lease is asked for only
 * where the numbers allow this one. The pages of a registration are known, and one lease of as much
 * does it. What a driver pins for a ring is not: leases of growing size are tried.
 */
#include <stdbool.h>
#include <stdint.h>

#include "client/preload/verbs.h"
#include "proto/failure.h"

/*
 * Rings: the first lease is what usual ones need (4096 completions of 64 bytes, a queue pair of a
 * few thousand work requests), each next one is four times as large, the last is beyond the largest
 * that a driver makes (mlx5: 2^22 completions of 128 bytes). A lease takes its bytes from the quota
 * while it lasts, so the large ones are not asked for first.
 */
#define RING_LEASE_FIRST (4ull << 20)
#define RING_LEASES      5u
/* Registrations: other threads may pin within the room of a lease, and so use it up. */
#define REGISTER_LEASES 8u

/* This process, when the call had failed. */
struct evidence {
	uint64_t limit;  /* RLIMIT_MEMLOCK, soft; UINT64_MAX: none */
	uint64_t vm_pin; /* bytes */
	bool moved;      /* the limit may have been another one when the call was made */
};

enum action {
	ACTION_NONE,  /* nothing that we know better than the program */
	ACTION_LEASE, /* lease .bytes and make the call again */
	ACTION_TELL,  /* say why it failed */
};

struct decision {
	enum action action;
	uint64_t bytes;
};

/** decide() - what to do when @call failed with @errnum after @leases leases for it. */
struct decision decide(const struct verbs_call *call, int errnum, const struct evidence *e,
		       unsigned int leases);

/** diagnose() - why @call failed for good. Sets all of @f; errno is not kept. Return: its code. */
int diagnose(const struct verbs_call *call, int errnum, const struct evidence *e,
	     struct failure *f);

#endif
