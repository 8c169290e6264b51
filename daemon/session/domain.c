/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/domain.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/session/client.h"
#include "daemon/session/events.h"
#include "daemon/session/grant.h"

static const struct amounts one_domain = { .of[BOOK_DOMAINS] = 1 };

/*
 * Which device the number is, the supervisor reads in sysfs for us: no other driver may ever see
 * our ioctl, and this process can open no file.
 */
static int find_name(struct client *c, struct device_pd *pd, unsigned int major, unsigned int minor,
		     struct failure *f)
{
	struct device_answer *answer = &c->device_answer;
	Kvreg__DeviceQuery query = KVREG__DEVICE_QUERY__INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	int r;

	query.seq = ++answer->seq;
	query.major = major;
	query.minor = minor;
	up.body_case = KVREG__UP__BODY_DEVICE;
	up.device = &query;
	answer->answered = false;
	r = control_send(&c->control, &up);
	while (r >= 0 && !answer->answered && !c->control.gone)
		r = events_wait(c, 0);
	if (r < 0 && r != -EPIPE)
		return r;
	if (!answer->answered)
		return failure_set(f, KVREG_E_SESSION_LOST, KVREG_STAGE_ATTACH,
				   "the supervisor is gone, and only it can name the device");
	if (!answer->is_uverbs)
		return failure_set(f, KVREG_E_BAD_UVERBS, KVREG_STAGE_ATTACH,
				   "character device %u:%u is not of class infiniband_verbs", major,
				   minor);
	memcpy(pd->device, answer->name, sizeof(pd->device));
	return 0;
}

static int check(struct client *c, struct device_pd *pd, struct failure *f)
{
	unsigned int major, minor;
	int r = device_check_fd(pd->fd, &major, &minor, f);

	if (r == 0 && c->device->needs_name)
		r = find_name(c, pd, major, minor, f);
	if (r == 0)
		r = c->device->attach(pd, f);
	memcpy(f->device, pd->device, sizeof(f->device));
	memcpy(f->driver, pd->driver, sizeof(f->driver));
	return r;
}

static int enter(struct client *c, struct domain *domain, struct failure *f)
{
	int r = grant_take(c, &one_domain, KVREG_STAGE_ATTACH, f);

	if (r != 0)
		return r;
	domain->number = handles_add(&c->domains, domain);
	if (domain->number)
		return 0;
	grant_give(c, &one_domain);
	return failure_set(f, KVREG_E_LIMIT_OBJECTS, KVREG_STAGE_ATTACH, "%u domains are attached",
			   DOMAINS_PER_SESSION);
}

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
	r = check(c, &domain->pd, f);
	if (r == 0)
		r = enter(c, domain, f);
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
	grant_give(c, &one_domain);
	fd_close(&domain->pd.fd);
	free(domain);
}
