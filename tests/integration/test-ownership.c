/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a domain and a region are: devices that several hold, domains that go away, and regions
 * that a client destroys behind our back. Nothing is destroyed but what we made.
 */
#include "test.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "daemon.h"
#include "device.h"
#include "proto/wire.h"
#include "raw.h"

#define SIZE 8192u

struct world {
	struct daemon_under_test daemon;
	struct device device;
	int memory;
};

static struct world w;

static int set_up(void **state)
{
	(void)state;
	daemon_start(&w.daemon, NULL);
	w.device = device_open();
	w.memory = memory_fd(SIZE, F_SEAL_SHRINK);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	device_close(&w.device);
	close(w.memory);
	daemon_end(&w.daemon);
	return 0;
}

/* A client with all of the memory registered in PD @pd of @fd. */
struct owner {
	struct raw *raw;
	Kvreg__RegisterItem item;
	uint32_t region, handle, lkey;
};

static void register_again(struct owner *o)
{
	const Kvreg__Reply *reply = raw_register(o->raw, &o->item, 1);

	require(reply->register_);
	o->region = reply->register_->regions[0]->region;
	o->handle = reply->register_->regions[0]->handle;
	o->lkey = reply->register_->regions[0]->lkey;
}

static struct owner own(int fd, uint32_t pd)
{
	struct owner o = { .raw = raw_greet(w.daemon.socket) };

	o.item = raw_item(raw_attach(o.raw, fd, pd)->attach_domain->domain,
			  raw_import(o.raw, w.memory, SIZE, 0)->import_buffer->buffer, SIZE);
	register_again(&o);
	return o;
}

static bool lives(const struct owner *o)
{
	if (device_is_mock())
		return raw_who_am_i(o->raw)->who_am_i->charged == SIZE;
	return device_knows(&w.device, o->handle, o->lkey);
}

static void one_domain_may_have_two_connections(void **state)
{
	struct owner a = own(w.device.fd, w.device.pd), b = own(w.device.fd, w.device.pd);

	(void)state;
	raw_close(a.raw);
	assert_true(lives(&b));
	assert_non_null(raw_who_am_i(b.raw)->who_am_i);
	if (!device_is_mock())
		assert_false(device_free_pd(&w.device, 0));
	assert_non_null(raw_deregister(b.raw, b.region)->done);
	assert_int_equal(raw_who_am_i(b.raw)->who_am_i->charged, 0);
	raw_close(b.raw);
}

/* ---- another process's ---- */

/* Hands its device over. Then: the other's region is in its PD; then it is not. */
static int lend_a_device(struct child *me, void *arg)
{
	struct device device = device_open();

	(void)arg;
	require(wire_send(me->sock, &device.pd, sizeof(device.pd), &device.fd, 1, 0) == 0);
	require(child_hear(me));
	if (!device_is_mock())
		require(!device_free_pd(&device, 0));
	child_say(me);
	require(child_hear(me));
	device_close(&device);
	return 0;
}

static int borrow_a_device(struct child *lender, uint32_t *ret_pd)
{
	_cleanup_fdset_ struct fdset fds = FDSET_INIT;

	child_start(lender, 0, lend_a_device, NULL);
	require(wire_recv(lender->sock, ret_pd, sizeof(*ret_pd), &fds, 0) == sizeof(*ret_pd));
	require(fds.count == 1);
	return fdset_take(&fds, 0);
}

/* Who has its fd may use it as its owner does; what is made for him goes with him. */
static void a_borrowed_device_is_cleaned_up_after_the_borrower(void **state)
{
	struct child lender;
	struct owner o;
	uint32_t pd;
	int fd = borrow_a_device(&lender, &pd);

	(void)state;
	o = own(fd, pd);
	close(fd);
	assert_int_equal(raw_who_am_i(o.raw)->who_am_i->charged, SIZE);
	child_say(&lender);
	require(child_hear(&lender));
	raw_close(o.raw);
	daemon_idle(&w.daemon);
	child_say(&lender);
	assert_int_equal(child_end(&lender), 0);
}

/* The lender dies first: the region stays until its borrower gives it back. */
static void a_borrowed_device_outlives_its_lender(void **state)
{
	struct child lender;
	struct owner o;
	uint32_t pd;
	int fd = borrow_a_device(&lender, &pd);

	(void)state;
	o = own(fd, pd);
	child_kill(&lender);
	assert_non_null(raw_deregister(o.raw, o.region)->done);
	register_again(&o);
	close(fd);
	raw_close(o.raw);
}

/* ---- domains that are gone ---- */

static void a_domain_destroyed_meanwhile_is_named(void **state)
{
	struct raw *raw = raw_greet(w.daemon.socket);
	Kvreg__RegisterItem item;

	(void)state;
	if (device_is_mock()) {
		raw_close(raw);
		skip_test("the mock device has no domains that could go");
	}
	item = raw_item(
		raw_attach(raw, w.device.fd, device_pd(&w.device, 1))->attach_domain->domain,
		raw_import(raw, w.memory, SIZE, 0)->import_buffer->buffer, SIZE);
	require(device_free_pd(&w.device, 1));
	assert_true(raw_refused(raw_register(raw, &item, 1), KVREG_E_BAD_PD));
	assert_int_equal(raw_who_am_i(raw)->who_am_i->charged, 0);
	raw_close(raw);
}

/* ---- regions destroyed behind our back ---- */

/* The client's own MR under the handle that was the brokered one's. */
static struct ibv_mr *replace(const struct owner *o, void *page)
{
	struct ibv_mr *mr;

	require(device_destroy(&w.device, o->handle));
	mr = device_register(&w.device, page, 4096);
	require(mr);
	assert_int_equal(mr->handle, o->handle);
	return mr;
}

static void *own_page(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(page != MAP_FAILED);
	return page;
}

static void a_handle_used_again_is_not_ours_to_destroy(void **state)
{
	struct ibv_mr *mr;
	struct owner o;
	void *page;

	(void)state;
	if (device_is_mock())
		skip_test("the mock device's regions cannot be destroyed by the client");
	o = own(w.device.fd, w.device.pd);
	page = own_page();
	mr = replace(&o, page);
	assert_true(raw_refused(raw_deregister(o.raw, o.region), KVREG_E_MR_GONE));
	assert_true(device_knows(&w.device, mr->handle, mr->lkey));
	assert_int_equal(raw_who_am_i(o.raw)->who_am_i->charged, 0);
	assert_true(raw_refused(raw_deregister(o.raw, o.region), KVREG_E_BAD_HANDLE));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* And at the end of the connection. */
	register_again(&o);
	mr = replace(&o, page);
	raw_close(o.raw);
	daemon_idle(&w.daemon);
	assert_true(device_knows(&w.device, mr->handle, mr->lkey));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(page, 4096);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_domain_may_have_two_connections),
		TEST(a_borrowed_device_is_cleaned_up_after_the_borrower),
		TEST(a_borrowed_device_outlives_its_lender),
		TEST(a_domain_destroyed_meanwhile_is_named),
		TEST(a_handle_used_again_is_not_ours_to_destroy),
	};

	return RUN_GROUP("ownership", tests);
}
