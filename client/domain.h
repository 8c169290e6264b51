/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DOMAIN_H
#define KVREG_DOMAIN_H
/*
 * A protection domain of the program, as its session knows it.
 *
 * The uverbs fd is remembered by number and not duplicated: a duplicate would keep the kernel's
 * context, with all that the program made in it, alive after ibv_close_device().
 */
#include "client/kvreg.h"

struct kvreg_domain {
	LIST_ENTRY(kvreg_domain) link; /* in k->domains */
	struct kvreg *k;
	uint32_t id; /* in the session */
	int cmd_fd;  /* borrowed from the program */
	/* Found once, at attach: should the number come to mean another device's fd, the kernel
	 * refuses calls with this driver's id. 0, which it always refuses: not found. */
	uint32_t driver_id;
	size_t n_regions;
	char device[DEVICE_NAME_MAX];
};

/** domain_free() - takes @domain out of its list and frees it; the session is not told. */
void domain_free(struct kvreg_domain *domain);

#endif
