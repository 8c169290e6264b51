/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lease.h"

#include <stdlib.h>

#include "client/options.h"
#include "client/public.h"

static int call_lease(struct connection *c, Kvreg__LeaseMemlock *lease, struct failure *f,
		      struct kvreg_lease *ret_lease)
{
	struct call call = CALL(LEASE, LEASE_MEMLOCK);
	Kvreg__Reply *reply;
	int code;

	call.request.body_case = KVREG__REQUEST__BODY_LEASE_MEMLOCK;
	call.request.lease_memlock = lease;
	code = connection_call(c, &call, f, &reply);
	if (code != KVREG_E_OK)
		return code;
	ret_lease->id = reply->lease_memlock->lease;
	ret_lease->limit = reply->lease_memlock->limit;
	ret_lease->bytes = reply->lease_memlock->bytes;
	return KVREG_E_OK;
}

static int lease_memlock(struct kvreg *k, uint64_t bytes, const struct kvreg_lease_options *given,
			 struct failure *f, struct kvreg_lease **ret_lease)
{
	_cleanup_leave_ struct connection *c = NULL;
	struct kvreg_lease_options options = { 0 };
	Kvreg__LeaseMemlock request = KVREG__LEASE_MEMLOCK__INIT;
	struct kvreg_lease *lease;
	int code;

	f->length = bytes;
	if (!options_copy(&options, sizeof(options), given))
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_LEASE,
				   "options: a size or an option that this library does not know");
	if (!ret_lease && !options.held)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_LEASE,
				   "a lease that is not held, and nowhere to return it to");
	code = connection_enter(&k->connection, KVREG_STAGE_LEASE, f, &c);
	if (code != KVREG_E_OK)
		return code;
	lease = calloc(1, sizeof(*lease));
	if (!lease)
		return failure_set(f, KVREG_E_LIMIT_MEMORY, KVREG_STAGE_LEASE,
				   "%zu bytes in this process", sizeof(*lease));
	request.bytes = bytes;
	request.held = options.held != 0;
	request.processes = options.processes;
	code = call_lease(c, &request, f, lease);
	if (code != KVREG_E_OK || !ret_lease) {
		free(lease);
		return code;
	}
	lease->k = k;
	LIST_INSERT_HEAD(&k->leases, lease, link);
	*ret_lease = lease;
	return KVREG_E_OK;
}

KVREG_PUBLIC int kvreg_lease_memlock(struct kvreg *k, uint64_t bytes,
				     const struct kvreg_lease_options *options,
				     struct kvreg_lease **ret_lease)
{
	struct failure f;

	failure_init(&f);
	return error_return(lease_memlock(k, bytes, options, &f, ret_lease), &f);
}

KVREG_PUBLIC uint64_t kvreg_lease_limit(const struct kvreg_lease *lease)
{
	return lease->limit;
}

KVREG_PUBLIC uint64_t kvreg_lease_bytes(const struct kvreg_lease *lease)
{
	return lease->bytes;
}

void lease_free(struct kvreg_lease *lease)
{
	LIST_REMOVE(lease, link);
	free(lease);
}

static int end_lease(struct kvreg_lease *lease, struct failure *f)
{
	_cleanup_leave_ struct connection *c = NULL;
	Kvreg__EndLease end = KVREG__END_LEASE__INIT;
	struct call call = CALL(LEASE, DONE);
	Kvreg__Reply *reply;
	int code;

	code = connection_enter(&lease->k->connection, KVREG_STAGE_LEASE, f, &c);
	if (code != KVREG_E_OK)
		return code;
	end.lease = lease->id;
	call.request.body_case = KVREG__REQUEST__BODY_END_LEASE;
	call.request.end_lease = &end;
	if (lease->id != 0 && !c->lost)
		code = connection_call(c, &call, f, &reply);
	lease_free(lease);
	return c->lost ? KVREG_E_OK : code;
}

KVREG_PUBLIC int kvreg_lease_end(struct kvreg_lease *lease)
{
	struct failure f;

	failure_init(&f);
	return error_return(end_lease(lease, &f), &f);
}
