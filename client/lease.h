/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_LEASE_H
#define KVREG_LEASE_H
/*
 * A raised RLIMIT_MEMLOCK of this process. The daemon raises and lowers it; here is only the name
 * that the session gave it. Closing the connection ends all that are not held.
 */
#include "client/kvreg.h"

struct kvreg_lease {
	LIST_ENTRY(kvreg_lease) link; /* in k->leases */
	struct kvreg *k;
	uint32_t id; /* in the session; 0: there is nothing to end */
	uint64_t limit, bytes;
};

/** lease_free() - forgets @lease; the session is not asked. */
void lease_free(struct kvreg_lease *lease);

#endif
