/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/domain.h"

#include <assert.h>
#include <stdlib.h>

#include "daemon/session/client.h"

int domain_attach(struct client *c, int fd, uint32_t pd_handle, struct domain **ret_domain,
		  struct failure *f)
{
	struct domain *domain = calloc(1, sizeof(*domain));
	int r;

	if (!domain) {
		fd_close(&fd);
		return failure_set(f, KVREG_E_LIMIT_MEMORY, KVREG_STAGE_ATTACH, "out of memory");
	}
	domain->pd = (struct device_pd){ .fd = fd, .pd_handle = pd_handle };
	r = c->device->attach(&domain->pd, f);
	if (r == 0) {
		domain->number = handles_add(&c->domains, domain);
		if (domain->number == 0)
			r = failure_set(f, KVREG_E_LIMIT_OBJECTS, KVREG_STAGE_ATTACH,
					"%u domains are attached", DOMAINS_PER_SESSION);
	}
	if (r != 0) {
		fd_close(&domain->pd.fd);
		free(domain);
		return r;
	}
	*ret_domain = domain;
	return 0;
}

void domain_detach(struct client *c, struct domain *domain)
{
	assert(domain->regions == 0);
	handles_remove(&c->domains, domain->number);
	fd_close(&domain->pd.fd);
	free(domain);
}
