/* SPDX-License-Identifier: Apache-2.0 */
/* The uverbs calls where there is no device: each answers with the kernel's errno, and no more. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "proto/uverbs.h"

static void other_fds_have_no_driver(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int path = open("/dev/null", O_PATH | O_CLOEXEC);
	uint32_t id = 77;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(uverbs_driver(null, &id), -ENOTTY);
	assert_int_equal(uverbs_driver(ends[0], &id), -ENOTTY);
	assert_int_equal(uverbs_driver(path, &id), -EBADF);
	assert_int_equal(uverbs_driver(-1, &id), -EBADF);
	assert_int_equal(id, 77);
	close(null);
	close(path);
	close(ends[0]);
	close(ends[1]);
}

static void calls_fail_and_leave_the_answer_alone(void **state)
{
	const struct uverbs_reg reg = { .length = 4096, .driver_in = 8, .driver_out = 8 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct uverbs_mr mr = { .handle = 1, .lkey = 2, .rkey = 3 };

	(void)state;
	assert_int_equal(uverbs_reg_mr(null, &reg, &mr), -ENOTTY);
	assert_int_equal(uverbs_query_mr(null, 1, 5, &mr), -ENOTTY);
	assert_int_equal(uverbs_destroy_mr(null, 1, 5), -ENOTTY);
	/* What cannot be compared is not destroyed, and not said to be gone. */
	assert_int_equal(uverbs_destroy_same_mr(null, 1, &mr), -ENOTTY);
	assert_int_equal(mr.handle, 1);
	assert_int_equal(mr.lkey, 2);
	assert_int_equal(mr.rkey, 3);
	close(null);
}

static void the_same_region_is_the_same_in_all(void **state)
{
	const struct uverbs_mr mr = { .handle = 1, .lkey = 2, .rkey = 3, .iova = 4, .length = 5 };
	struct uverbs_mr other = mr;

	(void)state;
	assert_true(uverbs_same_mr(&mr, &other));
	other.lkey++;
	assert_false(uverbs_same_mr(&mr, &other));
	other = mr;
	other.rkey++;
	assert_false(uverbs_same_mr(&mr, &other));
	other = mr;
	other.iova++;
	assert_false(uverbs_same_mr(&mr, &other));
	other = mr;
	other.length++;
	assert_false(uverbs_same_mr(&mr, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_fds_have_no_driver),
		cmocka_unit_test(calls_fail_and_leave_the_answer_alone),
		cmocka_unit_test(the_same_region_is_the_same_in_all),
	};

	return RUN_GROUP("proto-uverbs", tests);
}
