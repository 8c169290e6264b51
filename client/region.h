/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_REGION_H
#define KVREG_REGION_H
/*
 * A registered range. Made by the session, it lives on the program's own uverbs fd: when the
 * session is gone the library destroys it there, and only if the kernel still shows the same
 * region under its handle.
 *
 * Registering the same again can give the same MR: the two share it, and the last one that goes
 * destroys it.
 */
#include "client/domain.h"
#include "client/kvreg.h"
#include "proto/uverbs.h"

/* An MR, as long as a region refers to it. */
struct made {
	uint32_t id;   /* in the session */
	uint32_t uses; /* regions that refer to it */
	struct uverbs_mr mr;
};

struct kvreg_region {
	LIST_ENTRY(kvreg_region) link; /* in domain->k->regions */
	struct kvreg_domain *domain;   /* counts it in n_regions */
	struct made *made;
};

/** region_close() - destroys @region if it can, and frees it in any case. */
void region_close(struct kvreg_region *region);

/** region_free_copy() - frees a forked child's copy of @region, taking it out of no list. */
void region_free_copy(struct kvreg_region *region);

#endif
