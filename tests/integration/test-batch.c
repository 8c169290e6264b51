/* SPDX-License-Identifier: Apache-2.0 */
/* Several items in one request: all of them or none. */
#include "test.h"

#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "daemon.h"
#include "device.h"
#include "raw.h"

#define PAGE 4096u

struct world {
	struct daemon_under_test daemon;
	struct raw *raw;
	uint32_t domain, buffer; /* of 2 MiB */
	struct device device;
	int memory;
};

static int set_up(void **state)
{
	static struct world w;

	daemon_start(&w.daemon, NULL);
	w.raw = raw_greet(w.daemon.socket);
	w.device = device_open();
	w.memory = memory_fd(2u << 20, F_SEAL_SHRINK);
	w.domain = raw_attach(w.raw, w.device.fd, w.device.pd)->attach_domain->domain;
	w.buffer = raw_import(w.raw, w.memory, 2u << 20, 0)->import_buffer->buffer;
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	raw_close(w->raw);
	device_close(&w->device);
	close(w->memory);
	daemon_end(&w->daemon);
	return 0;
}

static Kvreg__RegisterItem page(const struct world *w, uint32_t i)
{
	Kvreg__RegisterItem item = raw_item(w->domain, w->buffer, PAGE);

	item.offset = item.iova = (uint64_t)i * PAGE;
	return item;
}

static void assert_nothing_is_left(struct world *w)
{
	const Kvreg__WhoAmIReply *who = raw_who_am_i(w->raw)->who_am_i;

	assert_int_equal(who->charged, 0);
	assert_int_equal(who->regions, 0);
}

static void a_full_batch_is_registered_in_order(void **state)
{
	Kvreg__RegisterItem items[ITEMS_PER_REGISTER];
	uint32_t numbers[ITEMS_PER_REGISTER];
	struct world *w = *state;

	for (uint32_t i = 0; i < COUNT(items); i++)
		items[i] = page(w, i);
	const Kvreg__RegisterReply *reply = raw_register(w->raw, items, COUNT(items))->register_;
	assert_non_null(reply);
	assert_int_equal(reply->n_regions, COUNT(items));
	for (uint32_t i = 0; i < COUNT(items); i++) {
		numbers[i] = reply->regions[i]->region;
		for (uint32_t j = 0; j < i; j++)
			assert_true(numbers[i] != numbers[j]);
	}
	assert_int_equal(raw_who_am_i(w->raw)->who_am_i->charged, ITEMS_PER_REGISTER * PAGE);
	for (uint32_t i = 0; i < COUNT(items); i++)
		assert_non_null(raw_deregister(w->raw, numbers[i])->done);
	assert_nothing_is_left(w);
}

static void a_bad_item_undoes_those_before_it(void **state)
{
	struct world *w = *state;

	for (uint32_t bad = 0; bad < 3; bad++) {
		Kvreg__RegisterItem items[] = { page(w, 0), page(w, 1), page(w, 2) };

		items[bad].length = 0;
		const Kvreg__Reply *reply = raw_register(w->raw, items, COUNT(items));
		assert_true(raw_refused(reply, KVREG_E_INVALID_ARG));
		assert_int_equal(reply->error->index, bad);
		assert_nothing_is_left(w);
	}
}

static void each_kind_of_bad_item_is_undone(void **state)
{
	struct world *w = *state;
	Kvreg__RegisterItem items[] = { page(w, 0), page(w, 1) };

	items[1].access = IB_UVERBS_ACCESS_REMOTE_WRITE;
	assert_true(raw_refused(raw_register(w->raw, items, 2), KVREG_E_BAD_ACCESS));
	items[1] = page(w, 1);
	items[1].iova++;
	assert_true(raw_refused(raw_register(w->raw, items, 2), KVREG_E_ALIGNMENT));
	items[1] = page(w, 1);
	items[1].iova = UINT64_MAX - PAGE + 1;
	items[1].length = 2 * PAGE;
	assert_true(raw_refused(raw_register(w->raw, items, 2), KVREG_E_INVALID_ARG));
	items[1] = page(w, 512);
	assert_true(raw_refused(raw_register(w->raw, items, 2), KVREG_E_SHORT_HANDLE));
	items[1] = page(w, 1);
	items[1].domain++;
	assert_true(raw_refused(raw_register(w->raw, items, 2), KVREG_E_BAD_HANDLE));
	items[1] = page(w, 1);
	items[1].buffer++;
	assert_true(raw_refused(raw_register(w->raw, items, 2), KVREG_E_BAD_HANDLE));
	assert_nothing_is_left(w);
}

static void the_number_of_items_is_bounded(void **state)
{
	static Kvreg__RegisterItem items[ITEMS_PER_REGISTER + 1];
	struct world *w = *state;

	for (uint32_t i = 0; i < COUNT(items); i++)
		items[i] = page(w, i);
	assert_true(raw_refused(raw_register(w->raw, items, COUNT(items)), KVREG_E_INVALID_ARG));
	assert_true(raw_refused(raw_register(w->raw, items, 0), KVREG_E_INVALID_ARG));
	assert_nothing_is_left(w);
}

static void items_may_name_several_buffers_and_domains(void **state)
{
	struct world *w = *state;
	Kvreg__RegisterItem items[] = { page(w, 3), page(w, 0), page(w, 5) };

	items[1].buffer = raw_import(w->raw, w->memory, PAGE, 0)->import_buffer->buffer;
	items[1].domain =
		raw_attach(w->raw, w->device.fd, device_pd(&w->device, 1))->attach_domain->domain;
	assert_int_equal(raw_register(w->raw, items, COUNT(items))->register_->n_regions, 3);
	assert_int_equal(raw_who_am_i(w->raw)->who_am_i->charged, 3 * PAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_full_batch_is_registered_in_order),
		TEST(a_bad_item_undoes_those_before_it),
		TEST(each_kind_of_bad_item_is_undone),
		TEST(the_number_of_items_is_bounded),
		TEST(items_may_name_several_buffers_and_domains),
	};

	return RUN_GROUP("batch", tests);
}
