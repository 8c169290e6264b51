/* SPDX-License-Identifier: Apache-2.0 */
/* A class is the socket that a client came through: its quota is its own, whatever the uid. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "daemon.h"
#include "device.h"
#include "raw.h"

#define MIB (1ull << 20)

static struct daemon_under_test daemon_;
static char directory[] = "/tmp/kvreg-class-XXXXXX", team[64];

static int set_up(void **state)
{
	static char config[256];
	const struct daemon_options options = { .config = config };

	(void)state;
	require(mkdtemp(strcpy(directory, "/tmp/kvreg-class-XXXXXX")) != NULL);
	snprintf(team, sizeof(team), "%s/team/kvregd.sock", directory);
	snprintf(config, sizeof(config),
		 "[class team]\nsocket = %s\nmode = 0660\nbytes = 2M\nsessions = 2\n", team);
	daemon_start(&daemon_, &options);
	return 0;
}

static int tear_down(void **state)
{
	char path[80];

	(void)state;
	daemon_end(&daemon_);
	snprintf(path, sizeof(path), "%s/team", directory);
	require(rmdir(path) == 0 && rmdir(directory) == 0);
	return 0;
}

static void a_class_has_a_socket_of_its_own(void **state)
{
	struct stat st;
	struct raw *one, *other;

	(void)state;
	require(stat(team, &st) == 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	one = raw_greet(daemon_.socket);
	other = raw_greet(team);
	assert_string_equal(raw_who_am_i(one)->who_am_i->class_, "default");
	assert_string_equal(raw_who_am_i(other)->who_am_i->class_, "team");
	raw_close(one);
	raw_close(other);
}

static void sessions_are_counted_by_class(void **state)
{
	struct raw *a = raw_greet(team), *b = raw_greet(team), *c = raw_open(team), *d;

	(void)state;
	assert_true(raw_refused(raw_reply(c), KVREG_E_LIMIT_SESSIONS));
	d = raw_greet(daemon_.socket); /* the same uid, through the other socket */
	assert_non_null(raw_who_am_i(d)->who_am_i);
	raw_close(a);
	raw_close(b);
	raw_close(c);
	raw_close(d);
}

static const Kvreg__Reply *register_through(struct raw *raw, const struct device *device,
					    int memory, uint64_t size)
{
	uint32_t domain = raw_attach(raw, device->fd, device->pd)->attach_domain->domain;
	uint32_t buffer = raw_import(raw, memory, size, 0)->import_buffer->buffer;
	Kvreg__RegisterItem item = raw_item(domain, buffer, size);

	return raw_register(raw, &item, 1);
}

static void bytes_are_counted_by_class(void **state)
{
	struct device device = device_open();
	int memory = memory_fd(3 * MIB, F_SEAL_SHRINK);
	struct raw *one = raw_greet(daemon_.socket), *other = raw_greet(team);
	const Kvreg__Reply *reply;

	(void)state;
	assert_non_null(register_through(one, &device, memory, 3 * MIB)->register_);
	reply = register_through(other, &device, memory, 3 * MIB);
	assert_true(raw_refused(reply, KVREG_E_LIMIT_QUOTA));
	assert_int_equal(reply->error->snapshot->quota_limit, 2 * MIB);
	assert_non_null(strstr(reply->error->detail, "class"));
	assert_non_null(register_through(other, &device, memory, 2 * MIB)->register_);
	raw_close(one);
	raw_close(other);
	close(memory);
	device_close(&device);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_class_has_a_socket_of_its_own),
		TEST(sessions_are_counted_by_class),
		TEST(bytes_are_counted_by_class),
	};

	return RUN_GROUP("classes", tests);
}
