/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same asked for again gives the same region, to be given back as often; unless the memory may
 * have changed since, which then gets a region of its own.
 */
#include "test.h"

#include <fcntl.h>
#include <kvreg-client.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "daemon.h"
#include "holder.h"
#include "raw.h"

#define MIB (1ull << 20)

struct world {
	struct daemon_under_test daemon;
	struct holder h;
};

/* A change in the tick in which the memory was last touched would not show: see again.h. */
static void let_it_settle(void)
{
	const struct timespec several_ticks = { .tv_nsec = 50 * 1000 * 1000 };

	nanosleep(&several_ticks, NULL);
}

static int set_up(void **state)
{
	static struct world w;

	daemon_start(&w.daemon, NULL);
	w.h = hold(w.daemon.socket, 2 * MIB);
	let_it_settle();
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	let_go(&w->h);
	daemon_end(&w->daemon);
	return 0;
}

static uint32_t regions(struct world *w)
{
	return raw_who_am_i(w->h.raw)->who_am_i->regions;
}

static uint64_t charged(struct world *w)
{
	return raw_who_am_i(w->h.raw)->who_am_i->charged;
}

/* Always at iova 0. */
static const Kvreg__Reply *register_again(struct holder *h, uint64_t length)
{
	Kvreg__RegisterItem item = raw_item(h->domain, h->buffer, length);

	return raw_register(h->raw, &item, 1);
}

static uint32_t must_register_again(struct holder *h, uint64_t length)
{
	const Kvreg__Reply *reply = register_again(h, length);

	require(reply->register_ && reply->register_->n_regions == 1);
	return reply->register_->regions[0]->region;
}

static void the_same_again_is_the_same_region(void **state)
{
	struct world *w = *state;
	const Kvreg__Reply *reply = register_again(&w->h, MIB);
	Kvreg__Region first = *reply->register_->regions[0], second;

	reply = register_again(&w->h, MIB);
	require(reply->register_ && reply->register_->n_regions == 1);
	second = *reply->register_->regions[0];
	assert_int_equal(second.region, first.region);
	assert_int_equal(second.handle, first.handle);
	assert_int_equal(second.lkey, first.lkey);
	assert_int_equal(second.rkey, first.rkey);
	assert_int_equal(first.uses, 1);
	assert_int_equal(second.uses, 2);
	assert_int_equal(regions(w), 1);
	assert_int_equal(charged(w), MIB);
	assert_non_null(raw_deregister(w->h.raw, first.region)->done);
	assert_int_equal(charged(w), MIB);
	assert_non_null(raw_deregister(w->h.raw, first.region)->done);
	assert_int_equal(charged(w), 0);
	assert_true(raw_refused(raw_deregister(w->h.raw, first.region), KVREG_E_BAD_HANDLE));
}

/* Any one thing that differs makes another region. */
static void what_differs_is_another(void **state)
{
	struct world *w = *state;
	uint32_t domain =
		raw_attach(w->h.raw, w->h.device.fd, w->h.device.pd)->attach_domain->domain;
	uint32_t buffer = raw_import(w->h.raw, w->h.memory, 2 * MIB, 0)->import_buffer->buffer;
	Kvreg__RegisterItem items[7];

	for (size_t i = 0; i < COUNT(items); i++)
		items[i] = raw_item(w->h.domain, w->h.buffer, MIB);
	items[1].domain = domain;
	items[2].buffer = buffer;
	items[3].offset = 4096;
	items[4].length = MIB - 1;
	items[5].iova = 1ull << 30;
	items[6].access = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_READ;
	for (size_t i = 0; i < COUNT(items); i++) {
		assert_int_equal(raw_register(w->h.raw, &items[i], 1)->register_->regions[0]->uses,
				 1);
		assert_int_equal(regions(w), i + 1);
	}
	for (size_t i = 0; i < COUNT(items); i++)
		assert_int_equal(raw_register(w->h.raw, &items[i], 1)->register_->regions[0]->uses,
				 2);
	assert_int_equal(regions(w), COUNT(items));
}

static void in_one_batch_too(void **state)
{
	struct world *w = *state;
	Kvreg__RegisterItem items[] = { raw_item(w->h.domain, w->h.buffer, MIB),
					raw_item(w->h.domain, w->h.buffer, MIB),
					raw_item(w->h.domain, w->h.buffer, 4096) };
	const Kvreg__Reply *reply = raw_register(w->h.raw, items, COUNT(items));
	uint32_t region = reply->register_->regions[0]->region;

	assert_int_equal(reply->register_->regions[1]->region, region);
	assert_int_equal(regions(w), 2);
	/* A batch that fails takes back what it asked for again, and nothing else. */
	items[2].length = 0;
	assert_true(raw_refused(raw_register(w->h.raw, items, COUNT(items)), KVREG_E_INVALID_ARG));
	assert_int_equal(regions(w), 2);
	assert_non_null(raw_deregister(w->h.raw, region)->done);
	assert_int_equal(regions(w), 2);
	assert_non_null(raw_deregister(w->h.raw, region)->done);
	assert_int_equal(regions(w), 1);
}

static void punch(struct world *w, uint64_t offset)
{
	require(fallocate(w->h.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			  4096) == 0);
	require(pwrite(w->h.memory, "x", 1, (off_t)offset) == 1);
}

/* The old region has the old pages: whoever asks again wants those that are there now. */
static void a_hole_punched_since_makes_another(void **state)
{
	struct world *w = *state;
	uint32_t first = must_register_again(&w->h, MIB), second;

	punch(w, 8192);
	let_it_settle();
	second = must_register_again(&w->h, MIB);
	assert_int_not_equal(second, first);
	assert_int_equal(regions(w), 2);
	/* From now on the new one is it, and the old one can still be given back. */
	assert_int_equal(must_register_again(&w->h, MIB), second);
	assert_non_null(raw_deregister(w->h.raw, first)->done);
	assert_int_equal(must_register_again(&w->h, MIB), second);
}

/* In the tick of the last change another one would not show: so the region is not given again. */
static void what_has_just_changed_is_not_trusted(void **state)
{
	struct world *w = *state;
	uint32_t first, second;
	struct timespec now;
	struct stat st;

	do {
		punch(w, 4096);
		first = must_register_again(&w->h, MIB);
		require(fstat(w->h.memory, &st) == 0);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		/* Another tick has begun meanwhile: try anew. */
	} while (now.tv_nsec != st.st_ctim.tv_nsec && raw_deregister(w->h.raw, first)->done);
	let_it_settle();
	second = must_register_again(&w->h, MIB);
	assert_int_not_equal(second, first);
	assert_int_equal(must_register_again(&w->h, MIB), second);
}

static void a_released_buffer_has_no_again(void **state)
{
	struct world *w = *state;
	uint32_t first = must_register_again(&w->h, MIB);

	assert_non_null(raw_release(w->h.raw, w->h.buffer)->done);
	w->h.buffer = raw_import(w->h.raw, w->h.memory, 2 * MIB, 0)->import_buffer->buffer;
	assert_int_not_equal(must_register_again(&w->h, MIB), first);
	assert_non_null(raw_deregister(w->h.raw, first)->done);
}

/* Whatever is shared goes with the client, however often it was asked for. */
static void all_of_it_goes_with_the_client(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 5; i++)
		must_register_again(&w->h, MIB);
	assert_int_equal(regions(w), 1);
	raw_close(w->h.raw);
	daemon_idle(&w->daemon);
	w->h.raw = raw_greet(w->daemon.socket);
}

/* ---- the library ---- */

struct engine {
	struct kvreg *k;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *regions[3];
	struct kvreg_identity who;
	struct device device;
};

static void start_engine(struct engine *e)
{
	void *address;

	*e = (struct engine){ .device = device_open() };
	require(kvreg_open(NULL, &e->k) == 0);
	require(kvreg_attach_fd(e->k, e->device.fd, e->device.pd, &e->domain) == 0);
	require(kvreg_buffer_alloc(e->k, MIB, 0, &address, &e->buffer) == 0);
	let_it_settle();
	for (size_t i = 0; i < COUNT(e->regions); i++)
		require(kvreg_register(e->domain, e->buffer, 0, MIB, 0,
				       IB_UVERBS_ACCESS_LOCAL_WRITE, NULL, &e->regions[i]) == 0);
	require(kvreg_whoami(e->k, &e->who) == 0);
}

static void the_library_counts_too(void **state)
{
	struct engine e;

	(void)state;
	start_engine(&e);
	assert_int_equal(e.who.regions, 1);
	assert_int_equal(kvreg_rkey(e.regions[1]), kvreg_rkey(e.regions[0]));
	assert_int_equal(kvreg_handle(e.regions[2]), kvreg_handle(e.regions[0]));
	for (size_t i = 0; i < COUNT(e.regions); i++) {
		assert_int_equal(kvreg_whoami(e.k, &e.who), 0);
		assert_int_equal(e.who.regions, 1);
		assert_int_equal(kvreg_deregister(e.regions[i]), 0);
	}
	assert_int_equal(kvreg_whoami(e.k, &e.who), 0);
	assert_int_equal(e.who.regions, 0);
	assert_int_equal(kvreg_detach(e.domain), 0);
	kvreg_close(e.k);
	device_close(&e.device);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_same_again_is_the_same_region),
		TEST(what_differs_is_another),
		TEST(in_one_batch_too),
		TEST(a_hole_punched_since_makes_another),
		TEST(what_has_just_changed_is_not_trusted),
		TEST(a_released_buffer_has_no_again),
		TEST(all_of_it_goes_with_the_client),
		TEST(the_library_counts_too),
	};

	return RUN_GROUP("again", tests);
}
