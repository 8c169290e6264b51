/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/client.h"

#include <errno.h>
#include <sys/resource.h>

#include "daemon/session/buffer.h"
#include "daemon/session/domain.h"
#include "daemon/session/faults.h"
#include "daemon/session/grant.h"
#include "daemon/session/region.h"

int client_init(struct client *c, const Kvreg__Welcome *welcome, int sock, int pidfd)
{
	c->sock = sock;
	c->pidfd = pidfd;
	c->pid = welcome->client_pid;
	c->uid = welcome->client_uid;
	c->gid = welcome->client_gid;
	text_clean(c->klass, sizeof(c->klass), welcome->class_);
	c->access_allowed = welcome->access_allowed;
	c->device = device_find(welcome->device);
	if (!c->device)
		return -ENODEV;
	if (welcome->faults)
		c->device = faults_init(welcome->faults, c->device, &c->control);
	grant_init(&c->grant, welcome->limit_is_fixed);
	if (handles_init(&c->domains, DOMAINS_PER_SESSION) < 0 ||
	    handles_init(&c->buffers, BUFFERS_PER_SESSION) < 0 ||
	    handles_init(&c->regions, REGIONS_PER_SESSION) < 0)
		return -ENOMEM;
	return 0;
}

int client_charged(const struct client *c, uint64_t *ret_bytes)
{
	struct proc_status status;
	int r = self_status(&c->self, &status);

	if (r < 0)
		return r;
	*ret_bytes = c->device->charged(&status);
	return 0;
}

bool client_fini(struct client *c)
{
	uint64_t charged;
	bool gone = true;
	struct region *region;
	struct buffer *buffer;
	struct domain *domain;

	for (size_t at = 0; (region = handles_each(&c->regions, &at));)
		if (!region_destroy(c, region)) {
			region_abandon(c, region);
			gone = false;
		}
	/* The kernel has the last word: an MR that was re-registered is not the one we made, yet
	 * may keep our pin. */
	if (client_charged(c, &charged) < 0 || charged > 0)
		gone = false;
	for (size_t at = 0; (buffer = handles_each(&c->buffers, &at));)
		buffer_release(c, buffer);
	for (size_t at = 0; (domain = handles_each(&c->domains, &at));)
		domain_detach(c, domain);
	handles_fini(&c->regions);
	handles_fini(&c->buffers);
	handles_fini(&c->domains);
	fd_close(&c->sock);
	fd_close(&c->pidfd);
	return gone;
}
