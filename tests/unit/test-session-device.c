/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of drivers, and which fd may be taken for a device's. */
#include "test.h"

#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/session/device.h"

static void only_irdma_and_siw_get_data(void **state)
{
	(void)state;
	for (uint32_t id = 0; id < 64; id++) {
		const struct driver *driver = driver_find(id);
		bool irdma = id == RDMA_DRIVER_IRDMA, siw = id == RDMA_DRIVER_SIW;

		assert_non_null(driver);
		assert_int_equal(driver->driver_in, irdma || siw ? 8 : 0);
		assert_int_equal(driver->driver_out, siw ? 8 : 0);
	}
}

static void drivers_that_ignore_hca_va_are_known(void **state)
{
	static const uint32_t strict[] = { RDMA_DRIVER_MLX4,  RDMA_DRIVER_VMW_PVRDMA,
					   RDMA_DRIVER_USNIC, RDMA_DRIVER_HFI1,
					   RDMA_DRIVER_QIB,   RDMA_DRIVER_SIW };
	static const uint32_t right[] = { RDMA_DRIVER_MLX5, RDMA_DRIVER_BNXT_RE, RDMA_DRIVER_IRDMA,
					  RDMA_DRIVER_EFA,  RDMA_DRIVER_RXE,     RDMA_DRIVER_HNS };

	(void)state;
	for (size_t i = 0; i < COUNT(strict); i++)
		assert_true(driver_find(strict[i])->needs_same_address);
	for (size_t i = 0; i < COUNT(right); i++)
		assert_false(driver_find(right[i])->needs_same_address);
	assert_string_equal(driver_find(RDMA_DRIVER_MLX5)->name, "mlx5");
	assert_string_equal(driver_find(RDMA_DRIVER_RXE)->name, "rxe");
}

static void an_unknown_driver_is_taken_strictly(void **state)
{
	static const uint32_t ids[] = { RDMA_DRIVER_UNKNOWN, 63, 1000, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < COUNT(ids); i++) {
		assert_string_equal(driver_find(ids[i])->name, "unknown");
		assert_true(driver_find(ids[i])->needs_same_address);
	}
}

static void devices_are_found_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(device_find("verbs"), &verbs_device);
	assert_ptr_equal(device_find("mock"), &mock_device);
	assert_null(device_find("mlx5_0"));
	assert_null(device_find(""));
}

/* Return: the code, and @fd is closed. */
static int check(int fd, struct failure *f)
{
	unsigned int major = 0, minor = 0;
	int r;

	assert_true(fd >= 0);
	failure_init(f);
	r = device_check_fd(fd, &major, &minor, f);
	close(fd);
	assert_int_equal(r, f->code);
	if (r == 0)
		assert_int_equal(makedev(major, minor), makedev(1, 3)); /* of /dev/null */
	return r;
}

static void a_character_device_is_taken(void **state)
{
	struct failure f;

	(void)state;
	assert_int_equal(check(open("/dev/null", O_RDWR | O_CLOEXEC), &f), 0);
}

static void other_fds_are_refused(void **state)
{
	struct failure f;
	int ends[2], socks[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), 0);
	const int fds[] = {
		open("/dev/null", O_PATH | O_CLOEXEC),
		open("/dev/null", O_RDONLY | O_CLOEXEC),
		open("/dev/null", O_WRONLY | O_CLOEXEC),
		open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600),
		open("/proc/self/fd/0", O_PATH | O_CLOEXEC),
		ends[0],
		ends[1],
		socks[0],
		socks[1],
	};
	for (size_t i = 0; i < COUNT(fds); i++) {
		assert_int_equal(check(fds[i], &f), KVREG_E_BAD_UVERBS);
		assert_int_equal(f.stage, KVREG_STAGE_ATTACH);
	}
	failure_init(&f);
	unsigned int number = 77;
	assert_int_equal(device_check_fd(-1, &number, &number, &f), KVREG_E_BAD_UVERBS);
	assert_int_equal(number, 77);
}

/* A pipe that is open for both gets past the mode, and is no device. */
static void a_pipe_open_for_both_is_refused(void **state)
{
	struct failure f;
	char path[32];
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	assert_int_equal(check(open(path, O_RDWR | O_CLOEXEC), &f), KVREG_E_BAD_UVERBS);
	assert_string_equal(f.detail, "the fd is not a character device");
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_irdma_and_siw_get_data),
		cmocka_unit_test(drivers_that_ignore_hca_va_are_known),
		cmocka_unit_test(an_unknown_driver_is_taken_strictly),
		cmocka_unit_test(devices_are_found_by_name),
		cmocka_unit_test(a_character_device_is_taken),
		cmocka_unit_test(other_fds_are_refused),
		cmocka_unit_test(a_pipe_open_for_both_is_refused),
	};

	return RUN_GROUP("session-device", tests);
}
