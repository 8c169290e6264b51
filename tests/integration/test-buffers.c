/* SPDX-License-Identifier: Apache-2.0 */
/* Which fds a session takes for memory, and what it says of the others. */
#include "test.h"

#include <fcntl.h>
#include <kvreg-client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "daemon.h"
#include "device.h"
#include "raw.h"

#define SIZE 8192u

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

struct world {
	struct daemon_under_test daemon;
	struct raw *raw;
};

static int set_up(void **state)
{
	static struct world w;

	daemon_start(&w.daemon, NULL);
	w.raw = raw_greet(w.daemon.socket);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	raw_close(w->raw);
	daemon_end(&w->daemon);
	return 0;
}

/* Imports and closes @fd. Return: whether it was refused with @code and nothing is kept. */
static bool refused(struct world *w, int fd, uint64_t length, uint64_t address,
		    enum kvreg_code code)
{
	bool as_wanted;

	require(fd >= 0);
	as_wanted = raw_refused(raw_import(w->raw, fd, length, address), code);
	close(fd);
	return as_wanted && raw_who_am_i(w->raw)->who_am_i->buffers == 0;
}

static void a_sealed_memfd_is_taken(void **state)
{
	struct world *w = *state;
	int fd = memory_fd(SIZE, F_SEAL_SHRINK | F_SEAL_GROW);

	assert_non_null(raw_import(w->raw, fd, SIZE, 0)->import_buffer);
	assert_non_null(raw_import(w->raw, fd, 1, 1u << 30)->import_buffer);
	close(fd);
	assert_int_equal(raw_who_am_i(w->raw)->who_am_i->buffers, 2);
}

static void seals_decide(void **state)
{
	struct world *w = *state;

	assert_true(refused(w, memory_fd(SIZE, 0), SIZE, 0, KVREG_E_BAD_SEALS));
	assert_true(refused(w, memory_fd(SIZE, F_SEAL_GROW), SIZE, 0, KVREG_E_BAD_SEALS));
	assert_true(refused(w, memory_fd(SIZE, F_SEAL_SHRINK | F_SEAL_WRITE), SIZE, 0,
			    KVREG_E_BAD_SEALS));
	assert_true(refused(w, memory_fd(SIZE, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), SIZE, 0,
			    KVREG_E_BAD_SEALS));
	assert_true(
		refused(w, memfd_create("unsealable", MFD_CLOEXEC), SIZE, 0, KVREG_E_BAD_SEALS));
}

static void a_short_memfd_is_refused_with_its_numbers(void **state)
{
	struct world *w = *state;
	int fd = memory_fd(SIZE, F_SEAL_SHRINK);
	const Kvreg__Reply *reply = raw_import(w->raw, fd, SIZE + 1, 0);

	assert_true(raw_refused(reply, KVREG_E_SHORT_HANDLE));
	assert_int_equal(reply->error->stage, KVREG_STAGE_IMPORT);
	assert_int_equal(reply->error->snapshot->fd_size, SIZE);
	assert_int_equal(reply->error->snapshot->fd_claim, SIZE + 1);
	assert_string_equal(reply->error->label, "raw buffer");
	assert_true(reply->error->snapshot->has_session_memlock);
	assert_true(reply->error->snapshot->has_session_cap_eff);
	assert_int_equal(reply->error->snapshot->session_cap_eff, 0);
	close(fd);
	assert_true(refused(w, memory_fd(0, F_SEAL_SHRINK), 1, 0, KVREG_E_SHORT_HANDLE));
	assert_true(
		refused(w, memory_fd(SIZE, F_SEAL_SHRINK), UINT64_MAX, 0, KVREG_E_SHORT_HANDLE));
}

static int sparse_fd(void)
{
	int fd = memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	require(ftruncate(fd, SIZE) == 0);
	require(pwrite(fd, "x", 1, 0) == 1);
	return fd;
}

static void pages_must_be_there(void **state)
{
	struct world *w = *state;
	int fd = sparse_fd();

	require(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	assert_true(refused(w, fd, SIZE, 0, KVREG_E_SPARSE));
}

static void the_library_seals_and_populates(void **state)
{
	struct kvreg_buffer *buffer;
	struct kvreg *k;
	int fd = sparse_fd();

	(void)state;
	assert_int_equal(kvreg_open(NULL, &k), 0);
	assert_int_equal(kvreg_buffer_memfd(k, fd, NULL, SIZE, NULL, &buffer), 0);
	assert_true(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK);
	kvreg_close(k);
	close(fd);
}

static int reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, flags | O_CLOEXEC);
	require(fd >= 0);
	return fd;
}

static void it_must_be_open_for_both(void **state)
{
	struct world *w = *state;
	int fd = memory_fd(SIZE, F_SEAL_SHRINK);

	assert_true(refused(w, reopen(fd, O_RDONLY), SIZE, 0, KVREG_E_BAD_MEMORY_FD));
	assert_true(refused(w, reopen(fd, O_WRONLY), SIZE, 0, KVREG_E_BAD_MEMORY_FD));
	assert_true(refused(w, reopen(fd, O_PATH), SIZE, 0, KVREG_E_BAD_MEMORY_FD));
	close(fd);
}

static void other_fds_are_no_memory(void **state)
{
	struct world *w = *state;
	int ends[2], file;

	require(pipe2(ends, O_CLOEXEC) == 0);
	assert_true(refused(w, reopen(ends[0], O_RDWR), SIZE, 0, KVREG_E_BAD_MEMORY_FD));
	assert_true(refused(w, ends[0], SIZE, 0, KVREG_E_BAD_MEMORY_FD));
	assert_true(refused(w, ends[1], SIZE, 0, KVREG_E_BAD_MEMORY_FD));
	assert_true(refused(w, open("/tmp", O_RDONLY | O_CLOEXEC), SIZE, 0, KVREG_E_BAD_MEMORY_FD));
	assert_true(
		refused(w, open("/dev/null", O_RDWR | O_CLOEXEC), SIZE, 0, KVREG_E_BAD_MEMORY_FD));
	assert_true(
		refused(w, open("/dev/zero", O_RDWR | O_CLOEXEC), SIZE, 0, KVREG_E_BAD_MEMORY_FD));
	file = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	require(file >= 0 && posix_fallocate(file, 0, SIZE) == 0);
	/* A file of tmpfs is shared memory too, but cannot be sealed. */
	assert_true(
		refused(w, file, SIZE, 0,
			fcntl(file, F_GET_SEALS) < 0 ? KVREG_E_BAD_MEMORY_FD : KVREG_E_BAD_SEALS));
}

static void numbers_are_checked(void **state)
{
	struct world *w = *state;

	assert_true(refused(w, memory_fd(SIZE, F_SEAL_SHRINK), SIZE, 100, KVREG_E_INVALID_ARG));
	assert_true(refused(w, memory_fd(SIZE, F_SEAL_SHRINK), 0, 0, KVREG_E_INVALID_ARG));
	assert_true(refused(w, memory_fd(SIZE, F_SEAL_SHRINK), SIZE, UINT64_MAX - 4095,
			    KVREG_E_INVALID_ARG));
}

static void an_unknown_kind_is_unsupported(void **state)
{
	Kvreg__ImportBuffer import = KVREG__IMPORT_BUFFER__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;
	struct world *w = *state;
	int fd = memory_fd(SIZE, F_SEAL_SHRINK);

	import.length = SIZE;
	request.body_case = KVREG__REQUEST__BODY_IMPORT_BUFFER;
	request.import_buffer = &import;
	assert_true(raw_refused(raw_call(w->raw, &request, fd), KVREG_E_UNSUPPORTED));
	import.kind = (Kvreg__BufferKind)77;
	assert_true(raw_refused(raw_call(w->raw, &request, fd), KVREG_E_UNSUPPORTED));
	close(fd);
}

static void buffers_and_domains_are_bounded(void **state)
{
	struct world *w = *state;
	int fd = memory_fd(SIZE, F_SEAL_SHRINK);
	struct device device = device_open();
	uint32_t last = 0;

	for (size_t i = 0; i < BUFFERS_PER_SESSION; i++) {
		const Kvreg__Reply *reply = raw_import(w->raw, fd, SIZE, 0);

		assert_non_null(reply->import_buffer);
		last = reply->import_buffer->buffer;
	}
	assert_true(raw_refused(raw_import(w->raw, fd, SIZE, 0), KVREG_E_LIMIT_OBJECTS));
	for (size_t i = 0; i < DOMAINS_PER_SESSION; i++)
		assert_non_null(raw_attach(w->raw, device.fd, device.pd)->attach_domain);
	assert_true(raw_refused(raw_attach(w->raw, device.fd, device.pd), KVREG_E_LIMIT_OBJECTS));
	assert_non_null(raw_release(w->raw, last)->done);
	assert_non_null(raw_import(w->raw, fd, SIZE, 0)->import_buffer);
	close(fd);
	device_abandon(&device);
}

/* A session that kept the fds of what it refused would soon have no room for another. */
static void refusals_leave_no_fd_behind(void **state)
{
	struct world *w = *state;
	int unsealed = memory_fd(SIZE, 0), sealed = memory_fd(SIZE, F_SEAL_SHRINK);

	for (size_t i = 0; i < SESSION_NOFILE; i++) {
		raw_import(w->raw, unsealed, SIZE, 0);
		raw_attach(w->raw, unsealed, 1);
	}
	assert_non_null(raw_import(w->raw, sealed, SIZE, 0)->import_buffer);
	close(unsealed);
	close(sealed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sealed_memfd_is_taken),
		TEST(seals_decide),
		TEST(a_short_memfd_is_refused_with_its_numbers),
		TEST(pages_must_be_there),
		TEST(the_library_seals_and_populates),
		TEST(it_must_be_open_for_both),
		TEST(other_fds_are_no_memory),
		TEST(numbers_are_checked),
		TEST(an_unknown_kind_is_unsupported),
		TEST(buffers_and_domains_are_bounded),
		TEST(refusals_leave_no_fd_behind),
	};

	return RUN_GROUP("buffers", tests);
}
