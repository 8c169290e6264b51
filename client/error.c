/* SPDX-License-Identifier: Apache-2.0 */
#include "client/error.h"

#include <stdio.h>
#include <sys/resource.h>

#include "client/public.h"
#include "proto/procfs.h"

struct kvreg_error {
	struct failure failure;
};

static _Thread_local struct kvreg_error last_error;

static void add_evidence(Kvreg__Snapshot *snapshot)
{
	struct proc_status status;
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
		snapshot->has_client_memlock = 1;
		snapshot->client_memlock = limit.rlim_cur;
	}
	if (proc_status(/* pid */ 0, &status) == 0) {
		snapshot->has_client_vm_pin = 1;
		snapshot->client_vm_pin = status.vm_pin;
		snapshot->has_client_cap_eff = 1;
		snapshot->client_cap_eff = status.cap_eff;
	}
}

int error_return(int code, const struct failure *f)
{
	if (code == KVREG_E_OK)
		return 0;
	last_error.failure = *f;
	add_evidence(&last_error.failure.snapshot);
	return -failure_errno(f->code);
}

KVREG_PUBLIC const struct kvreg_error *kvreg_last_error(void)
{
	return &last_error;
}

KVREG_PUBLIC enum kvreg_code kvreg_error_code(const struct kvreg_error *e)
{
	return e->failure.code;
}

KVREG_PUBLIC enum kvreg_class kvreg_error_class(const struct kvreg_error *e)
{
	return failure_class(e->failure.code);
}

KVREG_PUBLIC enum kvreg_stage kvreg_error_stage(const struct kvreg_error *e)
{
	return e->failure.stage;
}

KVREG_PUBLIC int kvreg_error_errno(const struct kvreg_error *e)
{
	return e->failure.errnum;
}

KVREG_PUBLIC const char *kvreg_error_name(const struct kvreg_error *e)
{
	return failure_code_name(e->failure.code);
}

KVREG_PUBLIC const char *kvreg_error_detail(const struct kvreg_error *e)
{
	return e->failure.detail;
}

KVREG_PUBLIC const char *kvreg_error_hint(const struct kvreg_error *e)
{
	return e->failure.hint[0] ? e->failure.hint : failure_hint(e->failure.code);
}

KVREG_PUBLIC const char *kvreg_error_device(const struct kvreg_error *e)
{
	return e->failure.device;
}

KVREG_PUBLIC const char *kvreg_error_label(const struct kvreg_error *e)
{
	return e->failure.label;
}

KVREG_PUBLIC uint64_t kvreg_error_address(const struct kvreg_error *e)
{
	return e->failure.address;
}

KVREG_PUBLIC uint64_t kvreg_error_length(const struct kvreg_error *e)
{
	return e->failure.length;
}

KVREG_PUBLIC int kvreg_error_text(const struct kvreg_error *e, char *text, size_t size)
{
	if (e->failure.code == KVREG_E_OK)
		return snprintf(text, size, "kvreg: %s", failure_meaning(KVREG_E_OK));
	return failure_line(&e->failure, text, size);
}

KVREG_PUBLIC const char *kvreg_strerror(enum kvreg_code code)
{
	return failure_meaning(code);
}
