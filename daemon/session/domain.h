/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_DOMAIN_H
#define KVREG_SESSION_DOMAIN_H
/*
 * A protection domain of the client: its uverbs fd and PD handle. We hold a duplicate of the fd
 * only as long as the domain is attached, since a device cannot be removed while anybody does.
 */
#include "daemon/session/device.h"

struct client;

struct domain {
	uint32_t number;
	uint32_t regions; /* that refer to it */
	struct device_pd pd;
};

/**
 * domain_attach() - checks and keeps the client's @fd, which is taken over in any case.
 * Return: 0; the code set in @f; or -errno: the client has gone.
 */
int domain_attach(struct client *c, int fd, uint32_t pd_handle, struct domain **ret_domain,
		  struct failure *f);

/** domain_detach() - closes the fd and frees @domain, which has no region. */
void domain_detach(struct client *c, struct domain *domain);

#endif
