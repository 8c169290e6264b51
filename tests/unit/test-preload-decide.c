/* SPDX-License-Identifier: Apache-2.0 */
/* From errno and evidence to lease, line or silence: when a failed verbs call is worth a lease. */
#include "test.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/preload/decide.h"

#define MIB (1ull << 20)

static struct verbs_call registration(uint64_t start, uint64_t length)
{
	return (struct verbs_call){
		.kind = VERBS_REGISTER,
		.name = "REG_MR",
		.start = start,
		.length = length,
		.iova = start,
		.access = IB_UVERBS_ACCESS_LOCAL_WRITE,
		.fd = -1,
	};
}

static const struct verbs_call ring = { .kind = VERBS_RING, .name = "CREATE_CQ", .fd = -1 };
static const struct evidence small_limit = { .limit = 65536 };
static const struct evidence no_limit = { .limit = UINT64_MAX };

static void what_exceeds_the_limit_is_leased(void **state)
{
	struct verbs_call call = registration(4096 + 1, MIB);
	struct evidence e = { .limit = 2 * MIB, .vm_pin = MIB };
	struct decision d = decide(&call, ENOMEM, &e, 0);

	(void)state;
	assert_int_equal(d.action, ACTION_LEASE);
	assert_int_equal(d.bytes, MIB + 4096);
	e.vm_pin -= 4096; /* to the byte */
	assert_int_equal(decide(&call, ENOMEM, &e, 0).action, ACTION_TELL);
	e.vm_pin = UINT64_MAX;
	assert_int_equal(decide(&call, ENOMEM, &e, 0).action, ACTION_LEASE);
}

static void a_limit_of_zero_is_eperm(void **state)
{
	struct verbs_call call = registration(4096, 4096);
	struct evidence zero = { .limit = 0 };

	(void)state;
	assert_int_equal(decide(&call, EPERM, &zero, 0).action, ACTION_LEASE);
	assert_int_equal(decide(&ring, EPERM, &zero, 0).action, ACTION_LEASE);
	assert_int_equal(decide(&call, EPERM, &(struct evidence){ .limit = 1 }, 0).action,
			 ACTION_TELL);
	assert_int_equal(decide(&ring, EPERM, &small_limit, 0).action, ACTION_NONE);
}

static void other_causes_are_not_leased(void **state)
{
	static const int errnos[] = { EFAULT, EINVAL, EAGAIN, EIO, EOPNOTSUPP, ENOENT, EBUSY };
	struct verbs_call call = registration(4096, MIB), nothing = registration(4096, 0);

	(void)state;
	for (size_t i = 0; i < COUNT(errnos); i++) {
		assert_int_equal(decide(&call, errnos[i], &small_limit, 0).action, ACTION_TELL);
		assert_int_equal(decide(&ring, errnos[i], &small_limit, 0).action, ACTION_NONE);
	}
	assert_int_equal(decide(&call, ENOMEM, &no_limit, 0).action, ACTION_TELL);
	assert_int_equal(decide(&ring, ENOMEM, &no_limit, 0).action, ACTION_NONE);
	assert_int_equal(decide(&nothing, ENOMEM, &small_limit, 0).action, ACTION_TELL);
}

/* Another thread's lease may have come or gone between the call and the look at the limit. */
static void numbers_that_moved_rule_nothing_out(void **state)
{
	struct verbs_call call = registration(4096, 4096);
	struct evidence e = { .limit = 64 * MIB, .moved = true };

	(void)state;
	assert_int_equal(decide(&call, ENOMEM, &e, 0).action, ACTION_LEASE);
	assert_int_equal(decide(&call, EPERM, &e, 0).action, ACTION_LEASE);
	assert_int_equal(decide(&call, EFAULT, &e, 0).action, ACTION_TELL);
	e.moved = false;
	assert_int_equal(decide(&call, ENOMEM, &e, 0).action, ACTION_TELL);
}

static void leases_are_bounded(void **state)
{
	struct verbs_call call = registration(4096, MIB);
	uint64_t bytes = 0;

	(void)state;
	for (unsigned int i = 0; i < REGISTER_LEASES; i++)
		assert_int_equal(decide(&call, ENOMEM, &small_limit, i).action, ACTION_LEASE);
	assert_int_equal(decide(&call, ENOMEM, &small_limit, REGISTER_LEASES).action, ACTION_TELL);
	for (unsigned int i = 0; i < RING_LEASES; i++) {
		struct decision d = decide(&ring, ENOMEM, &small_limit, i);

		assert_int_equal(d.action, ACTION_LEASE);
		assert_true(d.bytes == (bytes ? 4 * bytes : RING_LEASE_FIRST));
		bytes = d.bytes;
	}
	/* The largest ring of mlx5: 2^22 completions of 128 bytes. */
	assert_true(bytes >= 128ull << 22);
	assert_int_equal(decide(&ring, ENOMEM, &small_limit, RING_LEASES).action, ACTION_TELL);
}

static void other_calls_and_probes_are_none_of_ours(void **state)
{
	struct verbs_call other = { .kind = VERBS_OTHER, .fd = -1 };
	struct verbs_call probe = { .kind = VERBS_FOREIGN, .fd = -1, .probe = true };
	struct verbs_call dmabuf = { .kind = VERBS_FOREIGN, .name = "REG_DMABUF_MR", .fd = 3 };

	(void)state;
	assert_int_equal(decide(&other, ENOMEM, &small_limit, 0).action, ACTION_NONE);
	assert_int_equal(decide(&probe, EBADF, &small_limit, 0).action, ACTION_NONE);
	assert_int_equal(decide(&dmabuf, EOPNOTSUPP, &small_limit, 0).action, ACTION_TELL);
	/* It pins nothing of ours: no lease would help. */
	assert_int_equal(decide(&dmabuf, ENOMEM, &small_limit, 0).action, ACTION_TELL);
}

static void assert_diagnosis(const struct verbs_call *call, int errnum, const struct evidence *e,
			     enum kvreg_code code)
{
	struct failure f;

	assert_int_equal(diagnose(call, errnum, e, &f), code);
	assert_int_equal(f.code, code);
	assert_int_equal(f.errnum, errnum);
	assert_int_equal(f.stage, KVREG_STAGE_REGISTER);
	assert_non_null(strstr(f.detail, call->name));
	assert_non_null(strstr(f.detail, strerror(errnum)));
}

static void causes_get_their_code(void **state)
{
	struct verbs_call call = registration(4096, MIB);

	(void)state;
	assert_diagnosis(&call, ENOMEM, &small_limit, KVREG_E_LIMIT_MEMLOCK);
	assert_diagnosis(&call, ENOMEM, &no_limit, KVREG_E_UNKNOWN);
	assert_diagnosis(&call, EPERM, &small_limit, KVREG_E_UNKNOWN);
	assert_diagnosis(&call, EFAULT, &small_limit, KVREG_E_BAD_REGION);
	assert_diagnosis(&call, ENOENT, &small_limit, KVREG_E_BAD_PD);
	assert_diagnosis(&call, EAGAIN, &small_limit, KVREG_E_LIMIT_RDMA_CGROUP);
	assert_diagnosis(&call, EIO, &small_limit, KVREG_E_DEVICE_GONE);
	assert_diagnosis(&call, EINVAL, &small_limit, KVREG_E_UNKNOWN);
	call.access = IB_UVERBS_ACCESS_REMOTE_WRITE;
	assert_diagnosis(&call, EINVAL, &small_limit, KVREG_E_BAD_ACCESS);
	call.iova++;
	assert_diagnosis(&call, EINVAL, &small_limit, KVREG_E_ALIGNMENT);
	call = registration(4096, 0);
	assert_diagnosis(&call, EINVAL, &small_limit, KVREG_E_INVALID_ARG);
	assert_diagnosis(&ring, ENOMEM, &small_limit, KVREG_E_UNKNOWN);
}

/* Only a dma-buf is asked for its size: looking at another file would move its offset. */
static void other_files_are_left_alone(void **state)
{
	struct verbs_call call = { .kind = VERBS_FOREIGN, .name = "REG_DMABUF_MR", .length = MIB };
	char path[] = "/tmp/test-preload-XXXXXX";

	(void)state;
	call.fd = mkstemp(path);
	assert_true(call.fd >= 0);
	unlink(path);
	assert_int_equal(write(call.fd, "12345", 5), 5);
	assert_int_equal(lseek(call.fd, 2, SEEK_SET), 2);
	assert_diagnosis(&call, EINVAL, &small_limit, KVREG_E_UNKNOWN);
	assert_int_equal(lseek(call.fd, 0, SEEK_CUR), 2);
	close(call.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_exceeds_the_limit_is_leased),
		cmocka_unit_test(a_limit_of_zero_is_eperm),
		cmocka_unit_test(other_causes_are_not_leased),
		cmocka_unit_test(numbers_that_moved_rule_nothing_out),
		cmocka_unit_test(leases_are_bounded),
		cmocka_unit_test(other_calls_and_probes_are_none_of_ours),
		cmocka_unit_test(causes_get_their_code),
		cmocka_unit_test(other_files_are_left_alone),
	};

	return RUN_GROUP("preload-decide", tests);
}
