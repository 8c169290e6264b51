/* SPDX-License-Identifier: Apache-2.0 */
/* A registration from the first call to the last, as a program makes it, and all that is refused.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <kvreg-client.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "daemon.h"
#include "device.h"
#include "raw.h"

#define MIB         (1u << 20)
#define WRITE_LOCAL IB_UVERBS_ACCESS_LOCAL_WRITE
#define OTHER_UID   64990u

struct world {
	struct daemon_under_test daemon;
	struct kvreg *k;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	void *address; /* of a buffer of 1 MiB */
	struct device device;
};

static int set_up(void **state)
{
	static struct world w;

	daemon_start(&w.daemon, NULL);
	w.device = device_open();
	require(kvreg_open(NULL, &w.k) == 0);
	require(kvreg_attach_fd(w.k, w.device.fd, w.device.pd, &w.domain) == 0);
	require(kvreg_buffer_alloc(w.k, MIB, 0, &w.address, &w.buffer) == 0);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	kvreg_close(w->k);
	device_close(&w->device);
	daemon_end(&w->daemon);
	return 0;
}

static struct kvreg_identity who_am_i(struct world *w)
{
	struct kvreg_identity who;

	require(kvreg_whoami(w->k, &who) == 0);
	return who;
}

static struct kvreg_region *must_register(struct world *w, uint64_t offset, uint64_t length)
{
	struct kvreg_region *region;

	require(kvreg_register(w->domain, w->buffer, offset, length, 0, WRITE_LOCAL, NULL,
			       &region) == 0);
	return region;
}

static void a_region_from_open_to_close(void **state)
{
	struct world *w = *state;
	struct kvreg_region *region = must_register(w, 0, MIB);
	struct kvreg_identity who = who_am_i(w);

	assert_string_equal(kvreg_device_kind(w->k), device_kind());
	assert_string_equal(kvreg_domain_device(w->domain), device_name(&w->device));
	assert_true(kvreg_lkey(region) != 0);
	assert_int_equal(kvreg_iova(region), (uintptr_t)w->address);
	assert_int_equal(who.pid, getpid());
	assert_int_equal(who.uid, getuid());
	assert_int_equal(who.gid, getgid());
	assert_string_equal(who.klass, "default");
	assert_true(who.session_pid != who.pid && who.session_pid != (uint32_t)w->daemon.pid);
	assert_int_equal(who.session_uid, geteuid() == 0 ? SESSION_UID : geteuid());
	assert_int_equal(who.charged, MIB);
	assert_true(who.granted >= MIB);
	assert_int_equal(who.domains, 1);
	assert_int_equal(who.buffers, 1);
	assert_int_equal(who.regions, 1);
	assert_int_equal(kvreg_deregister(region), 0);
	assert_int_equal(kvreg_buffer_release(w->buffer), 0);
	assert_int_equal(kvreg_detach(w->domain), 0);
	who = who_am_i(w);
	assert_int_equal(who.charged, 0);
	assert_int_equal(who.domains + who.buffers + who.regions, 0);
}

static void ranges_of_one_buffer_are_charged_by_the_page(void **state)
{
	struct world *w = *state;
	struct kvreg_region *first = must_register(w, 0, 4096);
	struct kvreg_region *second = must_register(w, 0, 4095);
	struct kvreg_region *across = must_register(w, 4096 + 100, 4096);

	assert_true(kvreg_handle(first) != kvreg_handle(second));
	assert_true(kvreg_lkey(first) != kvreg_lkey(second));
	assert_int_equal(kvreg_iova(across), (uintptr_t)w->address + 4096 + 100);
	assert_int_equal(who_am_i(w).charged, 4 * 4096);
	assert_int_equal(kvreg_deregister(second), 0);
	assert_int_equal(who_am_i(w).charged, 3 * 4096);
	/* A region outlives its buffer. */
	assert_int_equal(kvreg_buffer_release(w->buffer), 0);
	assert_int_equal(who_am_i(w).charged, 3 * 4096);
	assert_int_equal(kvreg_deregister(first), 0);
	assert_int_equal(kvreg_deregister(across), 0);
	assert_int_equal(who_am_i(w).charged, 0);
}

static void bad_ranges_and_access_are_refused(void **state)
{
	static const struct {
		uint64_t offset, length, iova;
		uint32_t access;
		enum kvreg_code code;
		int r;
	} rows[] = {
		{ 0, 0, 0, WRITE_LOCAL, KVREG_E_INVALID_ARG, -EINVAL },
		{ 5, 0, 0, WRITE_LOCAL, KVREG_E_INVALID_ARG, -EINVAL },
		{ 0, 0, 4096 + 5, WRITE_LOCAL, KVREG_E_INVALID_ARG, -EINVAL },
		{ UINT64_MAX, 4096, 0, WRITE_LOCAL, KVREG_E_SHORT_HANDLE, -ERANGE },
		{ 0, MIB + 1, 0, WRITE_LOCAL, KVREG_E_SHORT_HANDLE, -ERANGE },
		{ MIB, 1, 0, WRITE_LOCAL, KVREG_E_SHORT_HANDLE, -ERANGE },
		{ MIB + 4096, 1, 0, WRITE_LOCAL, KVREG_E_SHORT_HANDLE, -ERANGE },
		{ 4096, UINT64_MAX, 4096, WRITE_LOCAL, KVREG_E_SHORT_HANDLE, -ERANGE },
		{ 0, 4096, 1, WRITE_LOCAL, KVREG_E_ALIGNMENT, -EINVAL },
		{ 5, 4096, 4096, WRITE_LOCAL, KVREG_E_ALIGNMENT, -EINVAL },
		{ 0, 4096, 0, IB_UVERBS_ACCESS_REMOTE_WRITE, KVREG_E_BAD_ACCESS, -EINVAL },
		{ 0, 4096, 0, IB_UVERBS_ACCESS_REMOTE_ATOMIC, KVREG_E_BAD_ACCESS, -EINVAL },
		{ 0, 4096, 0, WRITE_LOCAL | IB_UVERBS_ACCESS_ON_DEMAND, KVREG_E_BAD_ACCESS,
		  -EINVAL },
		{ 0, 4096, 0, WRITE_LOCAL | IB_UVERBS_ACCESS_ZERO_BASED, KVREG_E_BAD_ACCESS,
		  -EINVAL },
		{ 0, 4096, 0, WRITE_LOCAL | IB_UVERBS_ACCESS_HUGETLB, KVREG_E_BAD_ACCESS, -EINVAL },
		{ 0, 4096, 0, 1u << 31, KVREG_E_BAD_ACCESS, -EINVAL },
	};
	struct kvreg_region *region = NULL;
	struct world *w = *state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(kvreg_register(w->domain, w->buffer, rows[i].offset,
						rows[i].length, rows[i].iova, rows[i].access, NULL,
						&region),
				 rows[i].r);
		assert_int_equal(kvreg_error_code(kvreg_last_error()), rows[i].code);
		assert_int_equal(kvreg_error_stage(kvreg_last_error()), KVREG_STAGE_REGISTER);
		assert_true(kvreg_error_hint(kvreg_last_error())[0]);
		assert_null(region);
	}
	assert_int_equal(who_am_i(w).charged, 0);
	assert_int_equal(who_am_i(w).regions, 0);
	/* Reading needs no write access of its own. */
	assert_int_equal(kvreg_register(w->domain, w->buffer, 0, 1, 0, IB_UVERBS_ACCESS_REMOTE_READ,
					NULL, &region),
			 0);
}

static void other_fds_are_no_domain(void **state)
{
	struct world *w = *state;
	struct kvreg_domain *domain;
	int ends[2], path = open("/dev/null", O_PATH | O_CLOEXEC);
	int reader = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int memory = memory_fd(4096, 0);

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	const int fds[] = { path, reader, memory, ends[0], ends[1], kvreg_fd(w->k) };
	for (size_t i = 0; i < COUNT(fds); i++) {
		assert_int_equal(kvreg_attach_fd(w->k, fds[i], w->device.pd, &domain), -EBADF);
		assert_int_equal(kvreg_error_code(kvreg_last_error()), KVREG_E_BAD_UVERBS);
		assert_int_equal(kvreg_error_stage(kvreg_last_error()), KVREG_STAGE_ATTACH);
	}
	assert_int_equal(kvreg_attach_fd(w->k, w->device.fd, UINT32_MAX, &domain), -ENOENT);
	assert_int_equal(kvreg_error_code(kvreg_last_error()), KVREG_E_BAD_PD);
	assert_int_equal(who_am_i(w).domains, 1);
	for (size_t i = 0; i < COUNT(fds) - 1; i++)
		close(fds[i]);
}

static void a_busy_domain_stays(void **state)
{
	struct world *w = *state;
	struct raw *raw = raw_greet(w->daemon.socket);
	int memory = memory_fd(4096, F_SEAL_SHRINK);
	uint32_t domain = raw_attach(raw, w->device.fd, w->device.pd)->attach_domain->domain;
	uint32_t buffer = raw_import(raw, memory, 4096, 0)->import_buffer->buffer;
	Kvreg__RegisterItem item = raw_item(domain, buffer, 4096);
	uint32_t region = raw_register(raw, &item, 1)->register_->regions[0]->region;

	assert_true(raw_refused(raw_detach(raw, domain), KVREG_E_BUSY));
	assert_non_null(raw_deregister(raw, region)->done);
	assert_non_null(raw_detach(raw, domain)->done);
	close(memory);
	raw_close(raw);
}

static void a_stale_number_is_refused(void **state)
{
	struct world *w = *state;
	struct raw *raw = raw_greet(w->daemon.socket);
	int memory = memory_fd(4096, F_SEAL_SHRINK);
	uint32_t domain = raw_attach(raw, w->device.fd, w->device.pd)->attach_domain->domain;
	uint32_t buffer = raw_import(raw, memory, 4096, 0)->import_buffer->buffer;
	Kvreg__RegisterItem item = raw_item(domain, buffer, 4096);
	uint32_t region = raw_register(raw, &item, 1)->register_->regions[0]->region;

	assert_non_null(raw_deregister(raw, region)->done);
	assert_true(raw_refused(raw_deregister(raw, region), KVREG_E_BAD_HANDLE));
	/* Its slot is used again, and the old number does not hit the new region. */
	uint32_t next = raw_register(raw, &item, 1)->register_->regions[0]->region;
	assert_true(raw_refused(raw_deregister(raw, region), KVREG_E_BAD_HANDLE));
	assert_int_equal(raw_who_am_i(raw)->who_am_i->regions, 1);
	assert_non_null(raw_release(raw, buffer)->done);
	assert_true(raw_refused(raw_release(raw, buffer), KVREG_E_BAD_HANDLE));
	assert_true(raw_refused(raw_register(raw, &item, 1), KVREG_E_BAD_HANDLE));
	assert_non_null(raw_deregister(raw, next)->done);
	assert_non_null(raw_detach(raw, domain)->done);
	assert_true(raw_refused(raw_detach(raw, domain), KVREG_E_BAD_HANDLE));
	item.buffer = raw_import(raw, memory, 4096, 0)->import_buffer->buffer;
	assert_true(raw_refused(raw_register(raw, &item, 1), KVREG_E_BAD_HANDLE));
	close(memory);
	raw_close(raw);
}

/* The numbers of a client with three regions mean nothing to one with one. */
static int try_the_others_numbers(struct child *me, void *arg)
{
	const struct world *w = arg;
	struct raw *raw = raw_greet(w->daemon.socket);
	struct device device = device_open();
	int memory = memory_fd(4096, F_SEAL_SHRINK);
	Kvreg__RegisterItem item = raw_item(0, 0, 4096);

	(void)me;
	item.domain = raw_attach(raw, device.fd, device.pd)->attach_domain->domain;
	item.buffer = raw_import(raw, memory, 4096, 0)->import_buffer->buffer;
	require(raw_register(raw, &item, 1)->register_);
	require(raw_who_am_i(raw)->who_am_i->uid == getuid());
	require(raw_refused(raw_deregister(raw, 1u << 16 | 2), KVREG_E_BAD_HANDLE));
	require(raw_refused(raw_detach(raw, 1u << 16 | 2), KVREG_E_BAD_HANDLE));
	require(raw_refused(raw_release(raw, 1u << 16 | 2), KVREG_E_BAD_HANDLE));
	item.buffer = 1u << 16 | 2;
	require(raw_refused(raw_register(raw, &item, 1), KVREG_E_BAD_HANDLE));
	/* Its own have the same numbers as the other's first, and end with it. */
	require(raw_deregister(raw, 1u << 16 | 1)->done);
	raw_close(raw);
	return 0;
}

static void clients_cannot_use_each_others_numbers(void **state)
{
	struct world *w = *state;
	struct raw *raw = raw_greet(w->daemon.socket);
	int memory = memory_fd(4096, F_SEAL_SHRINK);
	Kvreg__RegisterItem item = raw_item(0, 0, 4096);

	for (uint32_t i = 1; i <= 3; i++) {
		item.domain = raw_attach(raw, w->device.fd, device_pd(&w->device, i))
				      ->attach_domain->domain;
		item.buffer = raw_import(raw, memory, 4096, 0)->import_buffer->buffer;
		assert_int_equal(raw_register(raw, &item, 1)->register_->regions[0]->region,
				 1u << 16 | i);
	}
	assert_int_equal(run_as(geteuid() == 0 ? OTHER_UID : 0, try_the_others_numbers, w), 0);
	const Kvreg__WhoAmIReply *who = raw_who_am_i(raw)->who_am_i;
	assert_int_equal(who->domains, 3);
	assert_int_equal(who->buffers, 3);
	assert_int_equal(who->regions, 3);
	assert_int_equal(who->charged, 3 * 4096);
	close(memory);
	raw_close(raw);
}

/* With real verbs too a device's class is asked for before any ioctl. */
static void a_device_of_another_class_is_no_domain(void **state)
{
	const struct daemon_options options = { .device = "verbs" };
	int device = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct daemon_under_test daemon;
	const Kvreg__Reply *reply;
	struct raw *raw;

	(void)state;
	daemon_start(&daemon, &options);
	raw = raw_greet(daemon.socket);
	reply = raw_attach(raw, device, 1);
	assert_true(raw_refused(reply, KVREG_E_BAD_UVERBS));
	assert_non_null(strstr(reply->error->detail, "1:3 is not of class infiniband_verbs"));
	/* Who could say so is gone. */
	daemon_kill(&daemon);
	assert_true(raw_refused(raw_attach(raw, device, 1), KVREG_E_SESSION_LOST));
	raw_close(raw);
	daemon_end(&daemon);
	close(device);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_region_from_open_to_close),
		TEST(ranges_of_one_buffer_are_charged_by_the_page),
		TEST(bad_ranges_and_access_are_refused),
		TEST(other_fds_are_no_domain),
		TEST(a_busy_domain_stays),
		TEST(a_stale_number_is_refused),
		TEST(clients_cannot_use_each_others_numbers),
		cmocka_unit_test(a_device_of_another_class_is_no_domain),
	};

	return RUN_GROUP("register", tests);
}
