/* SPDX-License-Identifier: Apache-2.0 */
#include "client/domain.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h> /* struct members only: the library does not link libibverbs */
#include <stdlib.h>

#include "client/public.h"
#include "proto/uverbs.h"

static int call_attach(struct connection *c, int cmd_fd, uint32_t pd_handle, struct failure *f,
		       struct kvreg_domain *ret_domain)
{
	Kvreg__AttachDomain attach = KVREG__ATTACH_DOMAIN__INIT;
	struct call call = CALL(ATTACH, ATTACH_DOMAIN);
	Kvreg__Reply *reply;
	int code;

	attach.pd_handle = pd_handle;
	call.request.body_case = KVREG__REQUEST__BODY_ATTACH_DOMAIN;
	call.request.attach_domain = &attach;
	call.fd = cmd_fd;
	code = connection_call(c, &call, f, &reply);
	if (code != KVREG_E_OK)
		return code;
	ret_domain->id = reply->attach_domain->domain;
	text_clean(ret_domain->device, sizeof(ret_domain->device), reply->attach_domain->device);
	return KVREG_E_OK;
}

static int attach_domain(struct kvreg *k, int cmd_fd, uint32_t pd_handle, struct failure *f,
			 struct kvreg_domain **ret_domain)
{
	_cleanup_leave_ struct connection *c = NULL;
	struct kvreg_domain *domain;
	int code;

	code = connection_enter(&k->connection, KVREG_STAGE_ATTACH, f, &c);
	if (code != KVREG_E_OK)
		return code;
	if (fcntl(cmd_fd, F_GETFD) < 0) {
		f->errnum = errno;
		return failure_set(f, KVREG_E_BAD_UVERBS, KVREG_STAGE_ATTACH, "fd %d: %m", cmd_fd);
	}
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return failure_set(f, KVREG_E_LIMIT_MEMORY, KVREG_STAGE_ATTACH,
				   "%zu bytes in this process", sizeof(*domain));
	domain->k = k;
	domain->cmd_fd = cmd_fd;
	code = call_attach(c, cmd_fd, pd_handle, f, domain);
	if (code != KVREG_E_OK) {
		free(domain);
		return code;
	}
	if (!kvreg_is_mock(k))
		(void)uverbs_driver(cmd_fd, &domain->driver_id);
	LIST_INSERT_HEAD(&k->domains, domain, link);
	*ret_domain = domain;
	return KVREG_E_OK;
}

KVREG_PUBLIC int kvreg_attach_fd(struct kvreg *k, int cmd_fd, uint32_t pd_handle,
				 struct kvreg_domain **ret_domain)
{
	struct failure f;

	failure_init(&f);
	return error_return(attach_domain(k, cmd_fd, pd_handle, &f, ret_domain), &f);
}

KVREG_PUBLIC int kvreg_attach_pd(struct kvreg *k, struct ibv_pd *pd,
				 struct kvreg_domain **ret_domain)
{
	return kvreg_attach_fd(k, pd->context->cmd_fd, pd->handle, ret_domain);
}

KVREG_PUBLIC const char *kvreg_domain_device(const struct kvreg_domain *domain)
{
	return domain->device;
}

void domain_free(struct kvreg_domain *domain)
{
	LIST_REMOVE(domain, link);
	free(domain);
}

static int detach_domain(struct kvreg_domain *domain, struct failure *f)
{
	_cleanup_leave_ struct connection *c = NULL;
	Kvreg__DetachDomain detach = KVREG__DETACH_DOMAIN__INIT;
	struct call call = CALL(ATTACH, DONE);
	Kvreg__Reply *reply;
	int code;

	code = connection_enter(&domain->k->connection, KVREG_STAGE_ATTACH, f, &c);
	if (code != KVREG_E_OK)
		return code;
	if (domain->n_regions > 0)
		return failure_set(f, KVREG_E_BUSY, KVREG_STAGE_ATTACH,
				   "%zu regions live in this domain of %s", domain->n_regions,
				   domain->device);
	detach.domain = domain->id;
	call.request.body_case = KVREG__REQUEST__BODY_DETACH_DOMAIN;
	call.request.detach_domain = &detach;
	code = connection_call(c, &call, f, &reply);
	/* The errno alone must say whether it is freed, whatever code a session answers with. */
	if (failure_errno(code) == EBUSY || failure_errno(code) == EINVAL)
		return code;
	domain_free(domain);
	return c->lost ? KVREG_E_OK : code;
}

KVREG_PUBLIC int kvreg_detach(struct kvreg_domain *domain)
{
	struct failure f;

	failure_init(&f);
	return error_return(detach_domain(domain, &f), &f);
}
