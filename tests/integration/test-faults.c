/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on purpose: each call of the kernel that one can be put into fails once, the client gets
 * the code that this errno has there, nothing is left of it, and the same request then works.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "child.h"
#include "daemon.h"
#include "device.h"
#include "proto/faults.h"
#include "raw.h"

/* Large enough to be populated. */
#define SIZE (2u << 20)

static struct daemon_under_test daemon_;

/* @text: of [test default]. */
static void start(const char *text)
{
	static char config[512];
	/* Without leaves: what a leaf knows of MRs, the mock device has none of. */
	const struct daemon_options options = { .config = config, .allow_faults = true };

	snprintf(config, sizeof(config), "cgroup = none\n[test default]\n%s\n", text);
	daemon_start(&daemon_, &options);
}

static int tear_down(void **state)
{
	(void)state;
	daemon_end(&daemon_);
	return 0;
}

/* ---- a client ---- */

struct holder {
	struct raw *raw;
	struct device device;
	int memory;
	uint32_t domain, buffer;
};

static struct holder connect_only(void)
{
	struct holder h = { .raw = raw_greet(daemon_.socket) };

	h.device = device_open();
	h.memory = memory_fd(SIZE, F_SEAL_SHRINK);
	return h;
}

static struct holder hold(void)
{
	struct holder h = connect_only();

	h.domain = raw_attach(h.raw, h.device.fd, h.device.pd)->attach_domain->domain;
	h.buffer = raw_import(h.raw, h.memory, SIZE, 0)->import_buffer->buffer;
	return h;
}

static void let_go(struct holder *h)
{
	raw_close(h->raw);
	device_close(&h->device);
	close(h->memory);
}

/* @n regions at once, each of the whole buffer, each at an iova of its own: the same again would be the same region. */
static const Kvreg__Reply *try_register(struct holder *h, size_t n)
{
	static uint64_t serial;
	Kvreg__RegisterItem items[3];

	require(n <= COUNT(items));
	for (size_t i = 0; i < n; i++) {
		items[i] = raw_item(h->domain, h->buffer, SIZE);
		items[i].iova = ++serial << 30;
	}
	return raw_register(h->raw, items, n);
}

static uint32_t must_register(struct holder *h)
{
	const Kvreg__Reply *reply = try_register(h, 1);

	require(reply->register_ && reply->register_->n_regions == 1);
	return reply->register_->regions[0]->region;
}

static bool holds(struct holder *h, uint32_t domains, uint32_t buffers, uint32_t regions)
{
	const Kvreg__WhoAmIReply *who = raw_who_am_i(h->raw)->who_am_i;

	return who->domains == domains && who->buffers == buffers && who->regions == regions &&
	       who->charged == regions * SIZE;
}

static bool refused(const Kvreg__Reply *reply, enum kvreg_code code, enum kvreg_stage stage,
		    int errnum)
{
	return raw_refused(reply, code) && reply->error->stage == (uint32_t)stage &&
	       reply->error->errnum == errnum;
}

/* ---- each stage ---- */

static void a_session_that_cannot_be_started_is_refused(void **state)
{
	struct holder h;
	struct raw *raw;

	(void)state;
	start("fail = connect:EAGAIN:2");
	for (int i = 0; i < 2; i++) {
		raw = raw_open(daemon_.socket);
		const Kvreg__Reply *reply = raw_reply(raw);
		assert_true(refused(reply, KVREG_E_SPAWN, KVREG_STAGE_CONNECT, 0));
		assert_string_equal(reply->error->detail, strerror(EAGAIN));
		raw_close(raw);
	}
	daemon_idle(&daemon_);
	h = hold();
	must_register(&h);
	let_go(&h);
}

static void a_failing_look_up_of_the_pd_attaches_nothing(void **state)
{
	static const struct {
		const char *text;
		int errnum;
		enum kvreg_code code;
	} ways[] = {
		{ "fail = attach:EIO:1", EIO, KVREG_E_DEVICE_GONE },
		{ "fail = attach:ENOENT:1", ENOENT, KVREG_E_BAD_PD },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(ways); i++) {
		start(ways[i].text);
		struct holder h = connect_only();
		assert_true(refused(raw_attach(h.raw, h.device.fd, h.device.pd), ways[i].code,
				    KVREG_STAGE_ATTACH, ways[i].errnum));
		assert_true(holds(&h, 0, 0, 0));
		assert_non_null(raw_attach(h.raw, h.device.fd, h.device.pd)->attach_domain);
		let_go(&h);
		daemon_end(&daemon_);
	}
}

static void a_memory_fd_without_seals_is_not_imported(void **state)
{
	struct holder h;

	(void)state;
	start("fail = import:EBADF:1");
	h = connect_only();
	assert_true(refused(raw_import(h.raw, h.memory, SIZE, 0), KVREG_E_BAD_MEMORY_FD,
			    KVREG_STAGE_IMPORT, EBADF));
	assert_true(holds(&h, 0, 0, 0));
	assert_non_null(raw_import(h.raw, h.memory, SIZE, 0)->import_buffer);
	let_go(&h);
}

/* Each errno of a registration's calls, and the code that it means there. */
static void a_failing_registration_leaves_nothing(void **state)
{
	static const struct {
		const char *stage_name, *errno_name;
		int errnum;
		enum kvreg_stage stage;
		enum kvreg_code code;
	} ways[] = {
		{ "map", "ENOMEM", ENOMEM, KVREG_STAGE_MAP, KVREG_E_LIMIT_MEMORY },
		{ "map", "EPERM", EPERM, KVREG_STAGE_MAP, KVREG_E_BAD_REGION },
		{ "populate", "ENOMEM", ENOMEM, KVREG_STAGE_POPULATE, KVREG_E_LIMIT_MEMORY },
		{ "populate", "EFAULT", EFAULT, KVREG_STAGE_POPULATE, KVREG_E_BAD_REGION },
		/* Neither the limit nor memory is short: no cause is made up. */
		{ "register", "ENOMEM", ENOMEM, KVREG_STAGE_PIN, KVREG_E_UNKNOWN },
		{ "register", "EINVAL", EINVAL, KVREG_STAGE_PIN, KVREG_E_UNKNOWN },
		{ "register", "EAGAIN", EAGAIN, KVREG_STAGE_PIN, KVREG_E_LIMIT_RDMA_CGROUP },
		{ "register", "EFAULT", EFAULT, KVREG_STAGE_PIN, KVREG_E_BAD_REGION },
		{ "register", "ENOENT", ENOENT, KVREG_STAGE_REGISTER, KVREG_E_BAD_PD },
		{ "register", "EBUSY", EBUSY, KVREG_STAGE_PIN, KVREG_E_DEVICE_BUSY },
		{ "register", "EIO", EIO, KVREG_STAGE_PIN, KVREG_E_DEVICE_GONE },
		{ "register", "ETIMEDOUT", ETIMEDOUT, KVREG_STAGE_PIN, KVREG_E_DEVICE_GONE },
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < COUNT(ways); i++) {
		snprintf(text, sizeof(text), "fail = %s:%s:2", ways[i].stage_name,
			 ways[i].errno_name);
		start(text);
		struct holder h = hold();
		for (int times = 0; times < 2; times++) {
			assert_true(refused(try_register(&h, 1), ways[i].code, ways[i].stage,
					    ways[i].errnum));
			assert_true(holds(&h, 1, 1, 0));
		}
		must_register(&h);
		assert_true(holds(&h, 1, 1, 1));
		let_go(&h);
		daemon_end(&daemon_);
	}
}

/* MADV_POPULATE_WRITE is younger than other kernels that are served. */
static void a_kernel_without_populate_does_without(void **state)
{
	struct holder h;

	(void)state;
	start("fail = populate:EINVAL:1");
	h = hold();
	must_register(&h);
	let_go(&h);
}

static void a_region_that_cannot_be_destroyed_stays(void **state)
{
	static const struct {
		const char *text;
		int errnum;
		enum kvreg_code code;
	} ways[] = {
		{ "fail = deregister:EBUSY:2", EBUSY, KVREG_E_DEVICE_BUSY },
		{ "fail = deregister:EIO:2", EIO, KVREG_E_DEVICE_GONE },
		{ "fail = deregister:EPERM:2", EPERM, KVREG_E_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(ways); i++) {
		start(ways[i].text);
		struct holder h = hold();
		uint32_t region = must_register(&h);
		for (int times = 0; times < 2; times++) {
			assert_true(refused(raw_deregister(h.raw, region), ways[i].code,
					    KVREG_STAGE_DEREGISTER, ways[i].errnum));
			assert_true(holds(&h, 1, 1, 1));
		}
		assert_non_null(raw_deregister(h.raw, region)->done);
		assert_true(holds(&h, 1, 1, 0));
		let_go(&h);
		daemon_end(&daemon_);
	}
}

static int hang_up_with_a_region(struct child *me, void *arg)
{
	struct holder h = hold();

	(void)arg;
	must_register(&h);
	raw_close(h.raw);
	child_say(me);
	child_hear(me);
	return 0;
}

static bool is_draining(void *arg)
{
	const struct child *client = arg;
	struct admin_client line;

	return admin_client(daemon_.admin_socket, (uint32_t)client->pid, &line) &&
	       strcmp(line.state, "draining") == 0 && line.granted >= SIZE;
}

/* More often than the end of a session tries: what it pins stays booked, as long as it can be. */
static void a_session_that_cannot_destroy_stays_booked(void **state)
{
	struct child client;

	(void)state;
	start("fail = deregister:EBUSY:1000");
	child_start(&client, 0, hang_up_with_a_region, NULL);
	require(child_hear(&client));
	assert_true(wait_until(is_draining, &client));
	assert_int_equal(daemon_log_lines(&daemon_, "left regions that could not be destroyed"), 1);
	child_say(&client);
	assert_int_equal(child_end(&client), 0);
}

/* ---- a small device ---- */

static void a_device_has_room_for_so_many(void **state)
{
	struct holder h;
	uint32_t region;

	(void)state;
	start("max_mr = 2");
	h = hold();
	assert_true(refused(try_register(&h, 3), KVREG_E_UNKNOWN, KVREG_STAGE_PIN, EINVAL));
	assert_true(holds(&h, 1, 1, 0));
	region = must_register(&h);
	must_register(&h);
	assert_true(refused(try_register(&h, 1), KVREG_E_UNKNOWN, KVREG_STAGE_PIN, EINVAL));
	assert_true(holds(&h, 1, 1, 2));
	assert_non_null(raw_deregister(h.raw, region)->done);
	must_register(&h);
	assert_true(holds(&h, 1, 1, 2));
	let_go(&h);
}

static void a_device_takes_so_large_a_region(void **state)
{
	Kvreg__RegisterItem item;
	struct holder h;

	(void)state;
	start("max_mr_size = 1M");
	h = hold();
	assert_true(refused(try_register(&h, 1), KVREG_E_UNKNOWN, KVREG_STAGE_PIN, ENOMEM));
	assert_true(holds(&h, 1, 1, 0));
	item = raw_item(h.domain, h.buffer, 1 << 20);
	assert_non_null(raw_register(h.raw, &item, 1)->register_);
	let_go(&h);
}

/* ---- not to be overlooked, and not to be had by others ---- */

static bool status_says(const char *words)
{
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__StatusRequest body = KVREG__STATUS_REQUEST__INIT;
	struct raw *admin = raw_open(daemon_.admin_socket);
	const Kvreg__AdminReply *reply;
	bool found = false;

	request.body_case = KVREG__ADMIN_REQUEST__BODY_STATUS;
	request.status = &body;
	admin_send(admin, &request);
	do {
		reply = admin_reply(admin);
		require(reply && reply->status);
		for (size_t i = 0; i < reply->status->n_missing; i++)
			found |= strstr(reply->status->missing[i], words) != NULL;
	} while (reply->more);
	raw_close(admin);
	return found;
}

static void status_and_log_name_the_faults(void **state)
{
	const struct daemon_options none = { .allow_faults = true };

	(void)state;
	start("max_mr = 5");
	assert_true(status_says("on purpose"));
	assert_int_equal(daemon_log_lines(&daemon_, "warning: kernel calls fail or wait"), 1);
	daemon_end(&daemon_);
	daemon_start(&daemon_, &none);
	assert_false(status_says("on purpose"));
}

static void without_the_option_there_is_no_start(void **state)
{
	const struct daemon_options options = { .config = "[test default]\nmax_mr = 5\n" };

	(void)state;
	daemon_prepare(&daemon_, &options);
	assert_int_equal(daemon_refuses(&daemon_), 1);
	assert_int_equal(daemon_log_lines(&daemon_, "/kvregd.conf:4: [test default] max_mr: "), 1);
	assert_int_equal(daemon_log_lines(&daemon_, "--allow-faults"), 1);
}

/* A session that its attacker owns (tests/attack). @stage: what it says to be held in. */
static void owned_session_says_held(uint32_t stage)
{
	Kvreg__ImportBuffer import = KVREG__IMPORT_BUFFER__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;
	struct holder h = connect_only();
	char label[32];

	snprintf(label, sizeof(label), "attack:held:%u", stage);
	import.label = label;
	request.body_case = KVREG__REQUEST__BODY_IMPORT_BUFFER;
	request.import_buffer = &import;
	request.seq = ++h.raw->seq;
	raw_send_request(h.raw, &request, &h.memory, 1);
	/* Whether its answer comes before its end is chance. */
	while (raw_reply(h.raw))
		;
	let_go(&h);
}

static void who_is_not_held_may_not_say_so(void **state)
{
	char programs[4096];

	(void)state;
	build_path(programs, sizeof(programs), "attack");
	const struct daemon_options options = { .config = "[test default]\ndelay = map:1\n",
						.allow_faults = true,
						.programs = programs },
				    none = { .programs = programs };
	daemon_start(&daemon_, &options);
	owned_session_says_held(FAULT_REGISTER);
	owned_session_says_held(FAULT_STAGES);
	assert_true(daemon_log_soon(&daemon_, "said what it may not: ended", 2));
	daemon_end(&daemon_);
	daemon_start(&daemon_, &none);
	owned_session_says_held(FAULT_MAP);
	assert_true(daemon_log_soon(&daemon_, "said what it may not: ended", 1));
	assert_int_equal(daemon_log_lines(&daemon_, "held in stage"), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_session_that_cannot_be_started_is_refused),
		TEST(a_failing_look_up_of_the_pd_attaches_nothing),
		TEST(a_memory_fd_without_seals_is_not_imported),
		TEST(a_failing_registration_leaves_nothing),
		TEST(a_kernel_without_populate_does_without),
		TEST(a_region_that_cannot_be_destroyed_stays),
		TEST(a_session_that_cannot_destroy_stays_booked),
		TEST(a_device_has_room_for_so_many),
		TEST(a_device_takes_so_large_a_region),
		TEST(status_and_log_name_the_faults),
		TEST(without_the_option_there_is_no_start),
		TEST(who_is_not_held_may_not_say_so),
	};

	return RUN_GROUP("faults", tests);
}
