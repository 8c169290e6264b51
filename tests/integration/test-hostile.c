/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client may send in place of memory and of a device, beyond what the tests of buffers and
 * domains have: each is refused with a reason, nothing of it is kept, and a bystander's region
 * lives on. Some of it is there only on real verbs, or in a prepared guest (tests/vm/hostile.sh).
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <kvreg-client.h>
#include <linux/magic.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "daemon.h"
#include "device.h"
#include "proto/books.h"
#include "raw.h"

#define PAGE 4096u
#define SIZE 8192u
#define HUGE (2u << 20)

struct world {
	struct daemon_under_test daemon;
	struct device device;
	int memory;
	struct raw *other; /* a client with a region, that does nothing wrong */
	struct raw *raw;
	uint32_t domain; /* of raw */
};

static int set_up(void **state)
{
	static struct world w;
	Kvreg__RegisterItem item;

	daemon_start(&w.daemon, NULL);
	w.device = device_open();
	w.memory = memory_fd(SIZE, F_SEAL_SHRINK);
	w.other = raw_greet(w.daemon.socket);
	item = raw_item(raw_attach(w.other, w.device.fd, w.device.pd)->attach_domain->domain,
			raw_import(w.other, w.memory, SIZE, 0)->import_buffer->buffer, SIZE);
	require(raw_register(w.other, &item, 1)->register_);
	w.raw = raw_greet(w.daemon.socket);
	w.domain = raw_attach(w.raw, w.device.fd, w.device.pd)->attach_domain->domain;
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	const Kvreg__WhoAmIReply *who = raw_who_am_i(w->other)->who_am_i;

	assert_int_equal(who->regions, 1);
	assert_int_equal(who->charged, SIZE);
	raw_close(w->other);
	raw_close(w->raw);
	device_close(&w->device);
	close(w->memory);
	daemon_end(&w->daemon);
	return 0;
}

static void assert_nothing_is_kept(struct world *w)
{
	const Kvreg__WhoAmIReply *who = raw_who_am_i(w->raw)->who_am_i;

	assert_int_equal(who->domains, 1);
	assert_int_equal(who->buffers, 0);
	assert_int_equal(who->regions, 0);
	assert_int_equal(who->charged, 0);
}

/* As memory; @fd is closed. */
static void assert_no_memory(struct world *w, int fd, enum kvreg_code code)
{
	require(fd >= 0);
	assert_true(raw_refused(raw_import(w->raw, fd, SIZE, 0), code));
	close(fd);
	assert_nothing_is_kept(w);
}

static void assert_no_device(struct world *w, int fd)
{
	require(fd >= 0);
	assert_true(raw_refused(raw_attach(w->raw, fd, w->device.pd), KVREG_E_BAD_UVERBS));
	close(fd);
	assert_nothing_is_kept(w);
}

/* ---- as memory ---- */

static void sockets_are_no_memory_and_no_device(void **state)
{
	static const struct {
		int family, type;
	} rows[] = { { AF_UNIX, SOCK_STREAM }, { AF_INET, SOCK_STREAM }, { AF_INET, SOCK_DGRAM } };
	struct world *w = *state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		int fd = socket(rows[i].family, rows[i].type | SOCK_CLOEXEC, 0);

		assert_no_memory(w, dup(fd), KVREG_E_BAD_MEMORY_FD);
		assert_no_device(w, fd);
	}
	/* Its own connection. */
	assert_no_memory(w, dup(w->raw->sock), KVREG_E_BAD_MEMORY_FD);
}

static void a_directory_is_no_memory_and_no_device(void **state)
{
	struct world *w = *state;

	assert_no_memory(w, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), KVREG_E_BAD_MEMORY_FD);
	assert_no_device(w, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* A file of @size in a directory of that file system, or -1. */
static int file_in(const char *dir, long magic)
{
	struct statfs fs;
	int fd;

	if (!dir || statfs(dir, &fs) < 0 || fs.f_type != magic)
		return -1;
	fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	require(fd >= 0 && posix_fallocate(fd, 0, SIZE) == 0);
	return fd;
}

static void a_file_of_ext4_is_no_memory(void **state)
{
	int fd = file_in(getenv("KVREG_TEST_EXT4"), EXT4_SUPER_MAGIC);

	if (fd < 0)
		fd = file_in("/tmp", EXT4_SUPER_MAGIC);
	if (fd < 0)
		skip_test("neither $KVREG_TEST_EXT4 nor /tmp is ext4");
	assert_no_memory(*state, fd, KVREG_E_BAD_MEMORY_FD);
}

/* It is shared memory, but cannot be sealed. */
static void a_file_of_tmpfs_is_no_memory(void **state)
{
	int fd = file_in("/dev/shm", TMPFS_MAGIC);

	if (fd < 0)
		skip_test("/dev/shm is no tmpfs");
	assert_no_memory(*state, fd, KVREG_E_BAD_SEALS);
}

static void secret_memory_is_no_memory(void **state)
{
	int fd = (int)syscall(SYS_memfd_secret, O_CLOEXEC);

	if (fd < 0 && errno == ENOSYS)
		skip_test("this kernel has no memfd_secret (secretmem.enable=1)");
	require(fd >= 0 && ftruncate(fd, SIZE) == 0);
	assert_no_memory(*state, fd, KVREG_E_BAD_MEMORY_FD);
}

/* ---- huge pages ---- */

static int huge_fd(uint64_t size, uint64_t touched)
{
	uint8_t *p;
	int fd;

	if (device_is_mock())
		skip_test("the mock device maps in pages of 4 KiB");
	fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	require(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	require(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		close(fd);
		skip_test("no huge pages are free (vm.nr_hugepages)");
	}
	for (uint64_t at = 0; at < touched; at += HUGE)
		p[at] = 1;
	munmap(p, size);
	return fd;
}

/* The kernel counts pages of the base size: the book must say the same. */
static void huge_pages_may_be_shared_to_an_odd_length(void **state)
{
	const uint64_t odd = HUGE + 3 * PAGE + 100;
	struct world *w = *state;
	Kvreg__RegisterItem item;
	int fd = huge_fd(2 * HUGE, 2 * HUGE);
	uint32_t region;

	item = raw_item(w->domain, raw_import(w->raw, fd, odd, 0)->import_buffer->buffer, odd);
	const Kvreg__Reply *reply = raw_register(w->raw, &item, 1);
	assert_non_null(reply->register_);
	region = reply->register_->regions[0]->region;
	assert_int_equal(raw_who_am_i(w->raw)->who_am_i->charged, HUGE + 4 * PAGE);
	assert_true(raw_who_am_i(w->raw)->who_am_i->granted <= book_room(BOOK_CHARGE, HUGE + 4 * PAGE));
	assert_non_null(raw_deregister(w->raw, region)->done);
	item.length++;
	assert_true(raw_refused(raw_register(w->raw, &item, 1), KVREG_E_SHORT_HANDLE));
	/* Its last page alone, from the middle of a huge page. */
	item.offset = item.iova = HUGE + 3 * PAGE;
	item.length = 100;
	reply = raw_register(w->raw, &item, 1);
	assert_non_null(reply->register_);
	region = reply->register_->regions[0]->region;
	assert_int_equal(raw_who_am_i(w->raw)->who_am_i->charged, PAGE);
	assert_non_null(raw_deregister(w->raw, region)->done);
	assert_non_null(raw_release(w->raw, item.buffer)->done);
	close(fd);
	assert_nothing_is_kept(w);
}

static void huge_pages_must_be_there_and_aligned(void **state)
{
	struct world *w = *state;
	int fd = huge_fd(2 * HUGE, HUGE);

	assert_true(raw_refused(raw_import(w->raw, fd, HUGE + 1, 0), KVREG_E_SPARSE));
	assert_true(raw_refused(raw_import(w->raw, fd, HUGE, PAGE), KVREG_E_INVALID_ARG));
	assert_true(raw_refused(raw_import(w->raw, fd, 2 * HUGE + 1, 0), KVREG_E_SHORT_HANDLE));
	close(fd);
	assert_nothing_is_kept(w);
}

/* ---- as a device ---- */

/* None of their drivers may ever see our ioctl. */
static void other_character_devices_are_no_device(void **state)
{
	static const char *const paths[] = { "/dev/null",    "/dev/zero",
					     "/dev/full",    "/dev/ptmx",
					     "/dev/urandom", "/dev/fuse",
					     "/dev/kmsg",    "/dev/infiniband/rdma_cm" };
	struct world *w = *state;
	size_t tried = 0;

	if (device_is_mock())
		skip_test("the mock device takes any character device");
	for (size_t i = 0; i < COUNT(paths); i++) {
		int fd = open(paths[i], O_RDWR | O_CLOEXEC | O_NOCTTY);

		if (fd < 0)
			continue;
		const Kvreg__Reply *reply = raw_attach(w->raw, fd, w->device.pd);
		assert_true(raw_refused(reply, KVREG_E_BAD_UVERBS));
		assert_non_null(strstr(reply->error->detail, "is not of class infiniband_verbs"));
		close(fd);
		tried++;
	}
	assert_true(tried >= 4);
	assert_nothing_is_kept(w);
}

static void a_device_without_a_context_is_no_domain(void **state)
{
	struct world *w = *state;
	char path[64];
	int fd;

	if (device_is_mock())
		skip_test("the mock device has no contexts");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->device.fd);
	/* The node anew: a file of its own, on which nothing was opened. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	require(fd >= 0);
	for (uint32_t pd = 0; pd < 3; pd++)
		assert_true(raw_refused(raw_attach(w->raw, fd, pd), KVREG_E_BAD_PD));
	close(fd);
	assert_nothing_is_kept(w);
}

/* ---- records ---- */

/* A registration cut off at each of its bytes: closed, or told what is wrong with what is left. */
static void a_record_cut_short_does_nothing(void **state)
{
	Kvreg__RegisterItem item = raw_item(1u << 16 | 1, 1u << 16 | 1, SIZE), *list = &item;
	Kvreg__Register batch = KVREG__REGISTER__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;
	struct world *w = *state;
	uint8_t record[256];
	size_t length;

	batch.items = &list;
	batch.n_items = 1;
	request.seq = 7;
	request.body_case = KVREG__REQUEST__BODY_REGISTER;
	request.register_ = &batch;
	length = codec_pack(&request.base, record, sizeof(record));
	require(length > 10);
	for (size_t n = 1; n < length; n++) {
		struct raw *raw = raw_greet(w->daemon.socket);

		raw_send(raw, record, n, NULL, 0);
		const Kvreg__Reply *reply = raw_reply(raw);
		assert_true(!reply || (reply->error && reply->seq == 7));
		raw_close(raw);
	}
	assert_nothing_is_kept(w);
}

/* A Hello one byte a record: the first of them is no message. */
static void a_byte_a_record_ends_the_connection(void **state)
{
	struct world *w = *state;
	struct raw *raw = raw_open(w->daemon.socket);
	Kvreg__Hello hello = KVREG__HELLO__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;
	uint8_t record[64];
	size_t length;

	hello.major = PROTOCOL_MAJOR;
	request.seq = 1;
	request.body_case = KVREG__REQUEST__BODY_HELLO;
	request.hello = &hello;
	length = codec_pack(&request.base, record, sizeof(record));
	for (size_t i = 0; i < length; i++)
		raw_send(raw, &record[i], 1, NULL, 0);
	assert_true(raw_closed(raw));
	raw_close(raw);
}

#define SILENT 8u

static bool all_have_a_session(void *arg)
{
	struct admin_status status;

	return admin_status(arg, &status) && status.sessions == 2 + SILENT;
}

/* It is one of its user's connections, and no more than that. */
static void who_never_says_hello_delays_nobody(void **state)
{
	struct world *w = *state;
	struct raw *silent[SILENT];

	for (size_t i = 0; i < COUNT(silent); i++) {
		silent[i] = raw_open(w->daemon.socket);
		require(silent[i]);
	}
	assert_true(wait_until(all_have_a_session, w->daemon.admin_socket));
	assert_nothing_is_kept(w);
	for (size_t i = 0; i < COUNT(silent); i++)
		raw_close(silent[i]);
}

static void a_path_too_long_is_said(void **state)
{
	char path[200];
	struct kvreg_open_options options = { .size = sizeof(options), .socket = path };
	struct kvreg *k;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/%0150d", 0);
	assert_int_equal(kvreg_open(&options, &k), -EINVAL);
	assert_int_equal(kvreg_error_code(kvreg_last_error()), KVREG_E_INVALID_ARG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sockets_are_no_memory_and_no_device),
		TEST(a_directory_is_no_memory_and_no_device),
		TEST(a_file_of_ext4_is_no_memory),
		TEST(a_file_of_tmpfs_is_no_memory),
		TEST(secret_memory_is_no_memory),
		TEST(huge_pages_may_be_shared_to_an_odd_length),
		TEST(huge_pages_must_be_there_and_aligned),
		TEST(other_character_devices_are_no_device),
		TEST(a_device_without_a_context_is_no_domain),
		TEST(a_record_cut_short_does_nothing),
		TEST(a_byte_a_record_ends_the_connection),
		TEST(who_never_says_hello_delays_nobody),
		TEST(a_path_too_long_is_said),
	};

	return RUN_GROUP("hostile", tests);
}
