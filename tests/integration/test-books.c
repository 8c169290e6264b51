/* SPDX-License-Identifier: Apache-2.0 */
/* The books: memory, charge, and numbers of objects, each with its limits; and who is told of whom. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <kvreg-client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "child.h"
#include "daemon.h"
#include "holder.h"
#include "raw.h"

#define MIB (1ull << 20)

static struct daemon_under_test daemon_;

static bool one_session_is_left(void *arg)
{
	struct admin_status status;

	(void)arg;
	return admin_status(daemon_.admin_socket, &status) && status.sessions == 1;
}

static void start(const char *config)
{
	const struct daemon_options options = { .config = config };

	daemon_start(&daemon_, &options);
}

/* Of the refusal: the detail has it. */
static bool says(const Kvreg__Reply *reply, const char *words)
{
	if (raw_refused(reply, KVREG_E_LIMIT_QUOTA) && strstr(reply->error->detail, words))
		return true;
	if (reply && reply->error)
		print_error("%s\n", reply->error->detail);
	return false;
}

/* The same memory in a second domain: charged again, and no memory more. */
static void memory_counts_once_and_charge_each_time(void **state)
{
	struct admin_status status;

	(void)state;
	start("[quota]\nper_uid = 3M\ncharge_per_uid = 5M\n");
	struct holder h = hold(daemon_.socket, 2 * MIB);
	must_register(&h, 2 * MIB);
	require(admin_status(daemon_.admin_socket, &status));
	assert_int_equal(status.memory, 3 * MIB); /* with room, as far as there is any */
	assert_int_equal(status.granted, 4 * MIB);
	h.domain = raw_attach(h.raw, h.device.fd, h.device.pd)->attach_domain->domain;
	must_register(&h, 2 * MIB);
	h.domain = raw_attach(h.raw, h.device.fd, h.device.pd)->attach_domain->domain;
	assert_true(says(try_register(&h, 2 * MIB), "charge of the uid: 4194304 of 5242880 bytes"));
	assert_int_equal(raw_who_am_i(h.raw)->who_am_i->charged, 4 * MIB);
	let_go(&h);
	daemon_end(&daemon_);
}

/* Two fds of one memfd, imported one by one, are the same memory. */
static void another_fd_of_the_same_memory_is_no_more_memory(void **state)
{
	(void)state;
	start("[quota]\nper_uid = 3M\ncharge_per_uid = 100M\n");
	struct holder h = hold(daemon_.socket, 2 * MIB);
	struct holder other = h;
	must_register(&h, 2 * MIB);
	other.buffer = raw_import(h.raw, h.memory, 2 * MIB, 0)->import_buffer->buffer;
	must_register(&other, 2 * MIB);
	/* Other memory is more. */
	int memory = memory_fd(2 * MIB, F_SEAL_SHRINK);
	other.buffer = raw_import(h.raw, memory, 2 * MIB, 0)->import_buffer->buffer;
	assert_true(
		says(try_register(&other, 2 * MIB), "memory of the uid: 3145728 of 3145728 bytes"));
	close(memory);
	let_go(&h);
	daemon_end(&daemon_);
}

/* What is given back may be had by another. */
static void memory_comes_back_with_its_last_region(void **state)
{
	(void)state;
	start("[quota]\nper_uid = 2M\ncharge_per_uid = 100M\n");
	struct holder a = hold(daemon_.socket, 2 * MIB), b = hold(daemon_.socket, 2 * MIB);
	uint32_t whole = must_register(&a, 2 * MIB), part = must_register(&a, MIB);
	assert_int_equal(raw_who_am_i(a.raw)->who_am_i->memory, 2 * MIB);
	assert_non_null(raw_deregister(a.raw, whole)->done);
	assert_int_equal(raw_who_am_i(a.raw)->who_am_i->memory, MIB);
	assert_true(says(try_register(&b, 2 * MIB), "memory of the uid"));
	assert_non_null(raw_deregister(a.raw, part)->done);
	let_go(&a);
	assert_true(wait_until(one_session_is_left, NULL));
	must_register(&b, 2 * MIB);
	let_go(&b);
	daemon_end(&daemon_);
}

static void a_gid_has_a_section_of_its_own(void **state)
{
	char config[128];

	(void)state;
	snprintf(config, sizeof(config), "[gid %u]\nbytes = 1M\nsessions = 1\n", getgid());
	start(config);
	struct holder h = hold(daemon_.socket, 2 * MIB);
	must_register(&h, MIB);
	assert_true(says(try_register(&h, 2 * MIB), "of the gid: 1048576 of 1048576"));
	struct kvreg *k;
	assert_int_equal(kvreg_open(NULL, &k), -EUSERS);
	assert_non_null(strstr(kvreg_error_detail(kvreg_last_error()), "gid: 1 of 1"));
	let_go(&h);
	daemon_end(&daemon_);
}

static void objects_have_limits(void **state)
{
	(void)state;
	start("[quota]\nregions_per_uid = 2\nbuffers_per_uid = 2\ndomains = 2\n");
	struct holder h = hold(daemon_.socket, 2 * MIB);
	uint32_t first = must_register(&h, 4096);
	must_register(&h, 8192);
	assert_true(says(try_register(&h, 3 * 4096),
			 "regions of the uid: 2 of 2 are granted, and 1 more"));
	assert_non_null(raw_deregister(h.raw, first)->done);
	must_register(&h, 3 * 4096);
	uint32_t buffer = raw_import(h.raw, h.memory, MIB, 0)->import_buffer->buffer;
	assert_true(says(raw_import(h.raw, h.memory, MIB, 0), "buffers of the uid: 2 of 2"));
	assert_non_null(raw_release(h.raw, buffer)->done);
	assert_non_null(raw_import(h.raw, h.memory, MIB, 0)->import_buffer);
	uint32_t domain = raw_attach(h.raw, h.device.fd, h.device.pd)->attach_domain->domain;
	assert_true(
		says(raw_attach(h.raw, h.device.fd, h.device.pd), "domains of the host: 2 of 2"));
	assert_non_null(raw_detach(h.raw, domain)->done);
	assert_non_null(raw_attach(h.raw, h.device.fd, h.device.pd)->attach_domain);
	let_go(&h);
	daemon_end(&daemon_);
}

/* ---- who holds what ---- */

static int hold_a_mebibyte(struct child *me, void *arg)
{
	struct holder h;

	h = hold(arg, MIB);
	must_register(&h, MIB);
	child_say(me);
	child_hear(me);
	let_go(&h);
	return 0;
}

/* Who is refused learns who of his own class holds the most, and of no other class. */
static void a_refusal_names_the_holders_of_the_own_class(void **state)
{
	struct child mine, other;
	char config[256], words[64], dir[sizeof(daemon_.dir)];
	const Kvreg__Reply *reply;

	(void)state;
	strcpy(dir, "/tmp/kvreg-holders-XXXXXX");
	require(mkdtemp(dir) && chmod(dir, 0755) == 0);
	snprintf(config, sizeof(config),
		 "[quota]\ntotal = 5M\nper_uid = 5M\n[class b]\nsocket = %s/s\n", dir);
	start(config);
	char socket_b[sizeof(daemon_.dir) + 8];
	snprintf(socket_b, sizeof(socket_b), "%s/s", dir);
	child_start(&mine, 0, hold_a_mebibyte, daemon_.socket);
	require(child_hear(&mine));
	child_start(&other, 0, hold_a_mebibyte, socket_b);
	require(child_hear(&other));
	struct holder h = hold(daemon_.socket, 2 * MIB);
	reply = try_register(&h, 2 * MIB);
	assert_true(says(reply, "of the host: 4194304 of 5242880 bytes are granted, and 2097152 "
				"more needed; held by "));
	snprintf(words, sizeof(words), "held by %d (", mine.pid);
	assert_true(says(reply, words));
	snprintf(words, sizeof(words), "%d (", other.pid);
	assert_null(strstr(reply->error->detail, words));
	let_go(&h);
	child_say(&mine);
	child_say(&other);
	assert_int_equal(child_end(&mine), 0);
	assert_int_equal(child_end(&other), 0);
	daemon_end(&daemon_);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_counts_once_and_charge_each_time),
		cmocka_unit_test(another_fd_of_the_same_memory_is_no_more_memory),
		cmocka_unit_test(memory_comes_back_with_its_last_region),
		cmocka_unit_test(a_gid_has_a_section_of_its_own),
		cmocka_unit_test(objects_have_limits),
		cmocka_unit_test(a_refusal_names_the_holders_of_the_own_class),
	};

	return RUN_GROUP("books", tests);
}
