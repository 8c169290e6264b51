/* SPDX-License-Identifier: Apache-2.0 */
/* Domains, buffers and regions: what is checked here before the session is asked, what memory it
 * is given, and what becomes of regions when it is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fake-session.h"
#include "proto/failure.h"

#define PAGE 4096u
#define SIZE (16u * PAGE)

/* A connection to an obliging session, with a domain on /dev/null. */
struct fixture {
	struct fake *fake;
	struct kvreg *k;
	int cmd_fd;
	struct kvreg_domain *domain;
};

static int set_up_device(void **state, const char *device)
{
	struct fixture *x = calloc(1, sizeof(*x));

	x->fake = fake_new(device, fake_oblige);
	x->cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fake_open(x->fake, &x->k) < 0 || kvreg_attach_fd(x->k, x->cmd_fd, 1, &x->domain) < 0)
		return -1;
	*state = x;
	return 0;
}

static int set_up(void **state)
{
	return set_up_device(state, "mock");
}

static int set_up_verbs(void **state)
{
	return set_up_device(state, "verbs");
}

static int tear_down(void **state)
{
	struct fixture *x = *state;

	kvreg_close(x->k);
	fake_join(x->fake);
	fake_free(x->fake);
	fd_close(&x->cmd_fd);
	free(x);
	return 0;
}

/* Ends the session as a crash would: without a word. */
static void lose_session(struct fixture *x)
{
	shutdown(x->fake->sock, SHUT_RDWR);
	fake_join(x->fake);
}

static int make_memfd(unsigned int flags, off_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC | flags);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	return fd;
}

static struct kvreg_region *make_region(struct fixture *x)
{
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	void *address;

	assert_int_equal(kvreg_buffer_alloc(x->k, SIZE, 0, &address, &buffer), 0);
	assert_int_equal(kvreg_register(x->domain, buffer, PAGE, PAGE, 0, 1, NULL, &region), 0);
	assert_int_equal(kvreg_iova(region), (uintptr_t)address + PAGE);
	return region;
}

/* ---------------------------------------------------------------- buffers */

static void allocated_memory_is_sealed_and_populated(void **state)
{
	struct fixture *x = *state;
	struct kvreg_buffer *buffer;
	int fds = fake_count_fds();
	struct stat st;
	void *address;

	assert_int_equal(kvreg_buffer_alloc(x->k, SIZE - 1, 0, &address, &buffer), 0);
	/* One more, and that is the session's. */
	assert_int_equal(fake_count_fds(), fds + 1);
	assert_int_equal(fstat(x->fake->memory_fd, &st), 0);
	assert_int_equal(st.st_size, SIZE);
	assert_int_equal(st.st_blocks * 512, SIZE);
	assert_int_equal(fcntl(x->fake->memory_fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW),
			 F_SEAL_SHRINK | F_SEAL_GROW);
	strcpy((char *)address + SIZE - 6, "hello");
	assert_int_equal(kvreg_buffer_release(buffer), 0);
	assert_int_equal(msync(address, SIZE, MS_ASYNC), -1);
}

static void sizes_are_checked(void **state)
{
	struct fixture *x = *state;
	struct kvreg_buffer *buffer;
	void *address;

	assert_fails(kvreg_buffer_alloc(x->k, 0, 0, &address, &buffer), EINVAL, INVALID_ARG);
	assert_fails(kvreg_buffer_alloc(x->k, SIZE_MAX, 0, &address, &buffer), EINVAL, INVALID_ARG);
	assert_fails(kvreg_buffer_alloc(x->k, SIZE, 1u << 31, &address, &buffer), EINVAL,
		     INVALID_ARG);
}

static void file_size_limit_raises_no_signal(void **state)
{
	struct fixture *x = *state;
	struct rlimit old, small = { .rlim_cur = PAGE };
	struct kvreg_buffer *buffer;
	void *address;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(kvreg_buffer_alloc(x->k, SIZE, 0, &address, &buffer), -ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(last_code(), KVREG_E_LIMIT_MEMORY);
	assert_non_null(strstr(kvreg_error_hint(kvreg_last_error()), "RLIMIT_FSIZE"));
}

/* More huge pages than the host can have, or no huge pages at all. */
static void missing_huge_pages_are_named(void **state)
{
	struct fixture *x = *state;
	struct kvreg_buffer *buffer;
	void *address;
	int r = kvreg_buffer_alloc(x->k, (size_t)1 << 46, KVREG_ALLOC_HUGE_2M, &address, &buffer);

	if (r == -EINVAL)
		skip();
	assert_int_equal(r, -ENOMEM);
	assert_int_equal(last_code(), KVREG_E_LIMIT_MEMORY);
	assert_non_null(strstr(kvreg_error_hint(kvreg_last_error()), "vm.nr_hugepages"));
}

static void memfd_is_sealed_and_populated(void **state)
{
	struct kvreg_buffer_options options = { .size = sizeof(options), .label = "cache" };
	struct fixture *x = *state;
	_cleanup_fd_ int fd = make_memfd(MFD_ALLOW_SEALING, SIZE);
	void *address = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	struct stat st;

	assert_int_equal(kvreg_buffer_memfd(x->k, fd, address, SIZE, &options, &buffer), 0);
	assert_true(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_blocks * 512, SIZE);
	assert_int_equal(kvreg_register(x->domain, buffer, 0, PAGE, 0, 1, NULL, &region), 0);
	assert_int_equal(kvreg_iova(region), (uintptr_t)address);
	assert_int_equal(kvreg_deregister(region), 0);
	assert_int_equal(kvreg_buffer_release(buffer), 0);
	/* The program's own mapping stays. */
	assert_int_equal(munmap(address, SIZE), 0);
}

static void memfd_without_mapping_needs_an_iova(void **state)
{
	struct fixture *x = *state;
	_cleanup_fd_ int fd = make_memfd(MFD_ALLOW_SEALING, SIZE);
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	struct stat st;

	assert_int_equal(kvreg_buffer_memfd(x->k, fd, NULL, SIZE, NULL, &buffer), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_blocks * 512, SIZE);
	assert_fails(kvreg_register(x->domain, buffer, 0, PAGE, 0, 1, NULL, &region), EINVAL,
		     INVALID_ARG);
	assert_non_null(strstr(kvreg_error_detail(kvreg_last_error()), "iova"));
	assert_string_equal(kvreg_error_device(kvreg_last_error()), "fake0");
	assert_int_equal(kvreg_register(x->domain, buffer, 0, PAGE, PAGE, 1, NULL, &region), 0);
	assert_int_equal(kvreg_iova(region), PAGE);
	assert_int_equal(kvreg_lkey(region), 5);
	assert_int_equal(kvreg_rkey(region), 6);
	assert_int_equal(kvreg_handle(region), 4);
}

static void short_memfd_is_refused_with_its_numbers(void **state)
{
	struct fixture *x = *state;
	_cleanup_fd_ int fd = make_memfd(MFD_ALLOW_SEALING, PAGE);
	struct kvreg_buffer_options options = { .size = sizeof(options), .label = "cache" };
	/* As the accessors see it: struct kvreg_error is a struct failure and nothing else. */
	const struct failure *seen = (const struct failure *)kvreg_last_error();
	void *address = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct kvreg_buffer *buffer;

	assert_fails(kvreg_buffer_memfd(x->k, fd, address, SIZE, &options, &buffer), ERANGE,
		     SHORT_HANDLE);
	assert_int_equal(seen->snapshot.fd_size, PAGE);
	assert_int_equal(seen->snapshot.fd_claim, SIZE);
	assert_non_null(strstr(seen->detail, "4096"));
	assert_string_equal(kvreg_error_label(kvreg_last_error()), "cache");
	assert_int_equal(kvreg_error_address(kvreg_last_error()), (uintptr_t)address);
	assert_int_equal(kvreg_error_length(kvreg_last_error()), SIZE);
	munmap(address, SIZE);
}

static void unsuitable_fds_are_refused(void **state)
{
	struct fixture *x = *state;
	_cleanup_fd_ int sealed = make_memfd(0, SIZE);
	_cleanup_fd_ int whole = make_memfd(MFD_ALLOW_SEALING, SIZE);
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", whole);
	_cleanup_fd_ int readable = open(path, O_RDONLY | O_CLOEXEC);
	struct kvreg_buffer *buffer;

	assert_fails(kvreg_buffer_memfd(x->k, -1, NULL, SIZE, NULL, &buffer), EBADF, BAD_MEMORY_FD);
	assert_fails(kvreg_buffer_memfd(x->k, x->cmd_fd, NULL, SIZE, NULL, &buffer), EBADF,
		     BAD_MEMORY_FD);
	assert_fails(kvreg_buffer_memfd(x->k, readable, NULL, SIZE, NULL, &buffer), EBADF,
		     BAD_MEMORY_FD);
	assert_fails(kvreg_buffer_memfd(x->k, sealed, NULL, SIZE, NULL, &buffer), EPERM, BAD_SEALS);
}

static void buffer_arguments_are_checked(void **state)
{
	struct fixture *x = *state;
	char label[LABEL_MAX + 2] = { 0 };
	struct kvreg_buffer_options options = { .size = sizeof(options), .label = label };
	_cleanup_fd_ int fd = make_memfd(MFD_ALLOW_SEALING, SIZE);
	char *hole = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct kvreg_buffer *buffer;

	memset(label, 'l', LABEL_MAX + 1);
	assert_fails(kvreg_buffer_memfd(x->k, fd, NULL, SIZE, &options, &buffer), EINVAL,
		     INVALID_ARG);
	options.size = 1;
	assert_fails(kvreg_buffer_memfd(x->k, fd, NULL, SIZE, &options, &buffer), EINVAL,
		     INVALID_ARG);
	assert_fails(kvreg_buffer_memfd(x->k, fd, NULL, 0, NULL, &buffer), EINVAL, INVALID_ARG);
	assert_fails(kvreg_buffer_memfd(x->k, fd, hole + 1, PAGE, NULL, &buffer), EINVAL,
		     INVALID_ARG);
	munmap(hole + PAGE, PAGE);
	assert_fails(kvreg_buffer_memfd(x->k, fd, hole, SIZE, NULL, &buffer), EINVAL, INVALID_ARG);
	assert_non_null(strstr(kvreg_error_detail(kvreg_last_error()), "mapped"));
	munmap(hole, SIZE);
}

/* ---------------------------------------------------------------- domains and regions */

static void closed_uverbs_fd_is_refused(void **state)
{
	struct fixture *x = *state;
	struct kvreg_domain *domain;

	assert_string_equal(kvreg_domain_device(x->domain), "fake0");
	assert_fails(kvreg_attach_fd(x->k, -1, 1, &domain), EBADF, BAD_UVERBS);
	assert_int_equal(kvreg_attach_fd(x->k, x->cmd_fd, 1, &domain), 0);
	assert_int_equal(kvreg_detach(domain), 0);
}

static void busy_domain_stays(void **state)
{
	struct fixture *x = *state;
	struct kvreg_region *region = make_region(x);

	assert_fails(kvreg_detach(x->domain), EBUSY, BUSY);
	assert_int_equal(kvreg_deregister(region), 0);
	assert_int_equal(kvreg_detach(x->domain), 0);
}

static void domain_and_buffer_of_one_connection(void **state)
{
	struct fixture *x = *state;
	struct fake *fake = fake_new("mock", fake_oblige);
	struct kvreg *other;
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	void *address;

	assert_int_equal(fake_open(fake, &other), 0);
	assert_int_equal(kvreg_buffer_alloc(other, SIZE, 0, &address, &buffer), 0);
	assert_fails(kvreg_register(x->domain, buffer, 0, PAGE, 0, 1, NULL, &region), EINVAL,
		     INVALID_ARG);
	kvreg_close(other);
	fake_join(fake);
	fake_free(fake);
}

static void busy_region_stays(void **state)
{
	struct fixture *x = *state;
	struct kvreg_region *region = make_region(x);

	x->fake->answer = KVREG_E_DEVICE_BUSY;
	assert_fails(kvreg_deregister(region), EBUSY, DEVICE_BUSY);
	x->fake->answer = KVREG_E_MR_GONE;
	assert_fails(kvreg_deregister(region), ENOENT, MR_GONE);
	assert_int_equal(kvreg_detach(x->domain), 0);
}

/* The protection domain can be given back as soon as kvreg_close() has returned. */
static void close_ends_what_is_left(void **state)
{
	struct fixture *x = *state;

	make_region(x);
	make_region(x);
	kvreg_close(x->k);
	x->k = NULL;
	fake_join(x->fake);
	assert_int_equal(x->fake->deregistered, 2);
}

/* ---------------------------------------------------------------- without a session */

static void lost_session_leaves_the_last_error(void **state)
{
	struct fixture *x = *state;
	struct kvreg_region *region = make_region(x);
	struct kvreg_buffer *buffer;
	struct kvreg_domain *domain;
	void *address;

	assert_int_equal(kvreg_buffer_alloc(x->k, SIZE, 0, &address, &buffer), 0);
	assert_fails(kvreg_attach_fd(x->k, -1, 1, &domain), EBADF, BAD_UVERBS);
	lose_session(x);
	assert_int_equal(kvreg_deregister(region), 0);
	assert_int_equal(kvreg_buffer_release(buffer), 0);
	assert_int_equal(kvreg_detach(x->domain), 0);
	assert_int_equal(last_code(), KVREG_E_BAD_UVERBS);
	assert_fails(kvreg_buffer_alloc(x->k, SIZE, 0, &address, &buffer), ECONNRESET,
		     SESSION_LOST);
}

/* Where the device is real the library acts itself: here on an fd that is no uverbs fd. */
static void lost_session_means_the_own_fd(void **state)
{
	struct fixture *x = *state;
	struct kvreg_region *first = make_region(x), *second = make_region(x);

	make_region(x);
	lose_session(x);
	assert_fails(kvreg_deregister(first), EBADF, BAD_UVERBS);
	assert_int_equal(kvreg_error_errno(kvreg_last_error()), ENOTTY);
	assert_fails(kvreg_deregister(second), EBADF, BAD_UVERBS);
	assert_fails(kvreg_detach(x->domain), EBUSY, BUSY);
}

static void session_lost_while_asked(void **state)
{
	struct fixture *x = *state;
	struct kvreg_region *region = make_region(x);

	x->fake->dies_on_deregister = true;
	assert_int_equal(kvreg_deregister(region), 0);
	assert_int_equal(kvreg_detach(x->domain), 0);
}

static int use_in_child(struct fixture *x, struct kvreg_region *region)
{
	struct kvreg_buffer *buffer;
	void *address;

	if (kvreg_deregister(region) != -EINVAL || last_code() != KVREG_E_FORKED)
		return 1;
	if (kvreg_buffer_alloc(x->k, SIZE, 0, &address, &buffer) != -EINVAL)
		return 2;
	kvreg_close(x->k);
	return 0;
}

static void child_leaves_regions_alone(void **state)
{
	struct fixture *x = *state;
	struct kvreg_region *region = make_region(x);
	int status;

	pid_t child = fork();
	if (child == 0)
		_exit(use_in_child(x, region));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(kvreg_deregister(region), 0);
	kvreg_close(x->k);
	x->k = NULL;
	fake_join(x->fake);
	assert_int_equal(x->fake->deregistered, 1);
}

#define test(name)       cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define verbs_test(name) cmocka_unit_test_setup_teardown(name, set_up_verbs, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(allocated_memory_is_sealed_and_populated),
		test(sizes_are_checked),
		test(file_size_limit_raises_no_signal),
		test(missing_huge_pages_are_named),
		test(memfd_is_sealed_and_populated),
		test(memfd_without_mapping_needs_an_iova),
		test(short_memfd_is_refused_with_its_numbers),
		test(unsuitable_fds_are_refused),
		test(buffer_arguments_are_checked),
		test(closed_uverbs_fd_is_refused),
		test(busy_domain_stays),
		test(domain_and_buffer_of_one_connection),
		test(busy_region_stays),
		test(close_ends_what_is_left),
		test(lost_session_leaves_the_last_error),
		verbs_test(lost_session_means_the_own_fd),
		test(session_lost_while_asked),
		test(child_leaves_regions_alone),
	};
	int fds = fake_count_fds(), failed = cmocka_run_group_tests(tests, NULL, NULL);

	return failed || fake_count_fds() != fds;
}
