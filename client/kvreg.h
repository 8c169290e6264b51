/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_KVREG_H
#define KVREG_KVREG_H
/*
 * The object behind a public connection: it owns every domain, buffer and region made through it,
 * and frees those left over when it ends. The lists are guarded by the connection's lock.
 */
#include <sys/queue.h>

#include "client/connection.h"

LIST_HEAD(domain_list, kvreg_domain);
LIST_HEAD(buffer_list, kvreg_buffer);
LIST_HEAD(region_list, kvreg_region);
LIST_HEAD(lease_list, kvreg_lease);

struct kvreg {
	struct connection connection;
	char device_kind[DEVICE_NAME_MAX];
	struct domain_list domains;
	struct buffer_list buffers;
	struct region_list regions;
	struct lease_list leases;
};

/** kvreg_is_mock() - whether the session's device is the mock: its regions are no kernel MRs. */
bool kvreg_is_mock(const struct kvreg *k);

#endif
