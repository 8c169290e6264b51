/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who breaks the protocol loses the connection, and the log says so once; nobody else notices. Who
 * only asks for what is not there is told so.
 */
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "daemon.h"
#include "device.h"
#include "raw.h"

#define SCM_MAX_FD 253

struct world {
	struct daemon_under_test daemon;
	struct raw *other; /* a client that does nothing wrong */
	struct raw *raw;   /* one that has not said Hello */
};

static int set_up(void **state)
{
	static struct world w;

	daemon_start(&w.daemon, NULL);
	w.other = raw_greet(w.daemon.socket);
	w.raw = raw_open(w.daemon.socket);
	require(w.raw);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	assert_non_null(raw_who_am_i(w->other)->who_am_i);
	raw_close(w->other);
	raw_close(w->raw);
	daemon_end(&w->daemon);
	return 0;
}

static void greet(struct world *w)
{
	require(raw_hello(w->raw, PROTOCOL_MAJOR)->hello);
}

/* The connection ends without an answer, and there is one line of it, with @words. */
static void assert_violation(struct world *w, const char *words)
{
	assert_true(raw_closed(w->raw));
	assert_true(daemon_log_soon(&w->daemon, "broke the protocol", 1));
	assert_true(daemon_log_soon(&w->daemon, words, 1));
	raw_close(w->other);
	raw_close(w->raw);
	/* All that it has to say it has said once the session is gone. */
	daemon_idle(&w->daemon);
	assert_int_equal(daemon_log_lines(&w->daemon, "broke the protocol"), 1);
	assert_int_equal(daemon_log_lines(&w->daemon, "error"), 0);
	w->other = raw_greet(w->daemon.socket);
	w->raw = raw_open(w->daemon.socket);
}

static Kvreg__Request who_am_i(uint32_t seq)
{
	static Kvreg__WhoAmI body;
	Kvreg__Request request = KVREG__REQUEST__INIT;

	kvreg__who_am_i__init(&body);
	request.seq = seq;
	request.body_case = KVREG__REQUEST__BODY_WHO_AM_I;
	request.who_am_i = &body;
	return request;
}

static void another_version_is_told_so(void **state)
{
	struct world *w = *state;
	const Kvreg__Reply *reply = raw_hello(w->raw, PROTOCOL_MAJOR + 1);

	assert_true(raw_refused(reply, KVREG_E_VERSION));
	assert_int_equal(reply->error->stage, KVREG_STAGE_CONNECT);
	assert_true(raw_closed(w->raw));
	assert_int_equal(daemon_log_lines(&w->daemon, "broke the protocol"), 0);
}

static void hello_tells_the_bounds(void **state)
{
	struct world *w = *state;
	const Kvreg__HelloReply *hello = raw_hello(w->raw, PROTOCOL_MAJOR)->hello;

	assert_int_equal(hello->major, PROTOCOL_MAJOR);
	assert_int_equal(hello->minor, PROTOCOL_MINOR);
	assert_int_equal(hello->features, FEATURE_MEMFD);
	assert_string_equal(hello->device, device_kind());
	assert_int_equal(hello->max_domains, DOMAINS_PER_SESSION);
	assert_int_equal(hello->max_buffers, BUFFERS_PER_SESSION);
	assert_int_equal(hello->max_regions, REGIONS_PER_SESSION);
	assert_int_equal(hello->max_items, ITEMS_PER_REGISTER);
	assert_true(hello->access_allowed != 0);
}

static void a_request_before_hello(void **state)
{
	Kvreg__Request request = who_am_i(1);
	struct world *w = *state;

	raw_send_request(w->raw, &request, NULL, 0);
	assert_violation(w, "a request before Hello");
}

static void an_unknown_request_before_hello(void **state)
{
	static const uint8_t unknown[] = { 1 << 3, 1, 15 << 3 | 2, 0 };
	struct world *w = *state;

	raw_send(w->raw, unknown, sizeof(unknown), NULL, 0);
	assert_violation(w, "a request before Hello");
}

static void a_second_hello(void **state)
{
	Kvreg__Hello hello = KVREG__HELLO__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;
	struct world *w = *state;

	greet(w);
	hello.major = PROTOCOL_MAJOR;
	request.seq = 2;
	request.body_case = KVREG__REQUEST__BODY_HELLO;
	request.hello = &hello;
	raw_send_request(w->raw, &request, NULL, 0);
	assert_violation(w, "a second Hello");
}

static void a_request_without_a_number(void **state)
{
	Kvreg__Request request = who_am_i(0);
	struct world *w = *state;

	greet(w);
	raw_send_request(w->raw, &request, NULL, 0);
	assert_violation(w, "a request without a number");
}

static void an_attach_with(struct world *w, size_t n_fds, const char *words)
{
	Kvreg__AttachDomain attach = KVREG__ATTACH_DOMAIN__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;
	int fds[SCM_MAX_FD], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < n_fds; i++)
		fds[i] = null;
	greet(w);
	request.seq = 2;
	request.body_case = KVREG__REQUEST__BODY_ATTACH_DOMAIN;
	request.attach_domain = &attach;
	raw_send_request(w->raw, &request, fds, n_fds);
	close(null);
	assert_violation(w, words);
}

static void a_record_without_its_fd(void **state)
{
	an_attach_with(*state, 0, "a wrong number of file descriptors");
}

static void a_record_with_a_second_fd(void **state)
{
	an_attach_with(*state, 2, "a wrong number of file descriptors");
}

static void a_record_with_three_fds(void **state)
{
	an_attach_with(*state, 3, "too many fds");
}

static void a_record_with_all_fds_that_there_can_be(void **state)
{
	an_attach_with(*state, SCM_MAX_FD, "too many fds");
}

static void an_fd_where_none_belongs(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	Kvreg__Request request = who_am_i(2);
	struct world *w = *state;

	greet(w);
	raw_send_request(w->raw, &request, &null, 1);
	close(null);
	assert_violation(w, "a wrong number of file descriptors");
}

static void garbage(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\n\r\n";
	struct world *w = *state;

	raw_send(w->raw, text, strlen(text), NULL, 0);
	assert_violation(w, "a record that is no message");
}

static void garbage_after_hello(void **state)
{
	static const uint8_t bytes[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct world *w = *state;

	greet(w);
	raw_send(w->raw, bytes, sizeof(bytes), NULL, 0);
	assert_violation(w, "a record that is no message");
}

static void a_record_too_long(void **state)
{
	static const uint8_t bytes[RECORD_MAX + 1];
	struct world *w = *state;

	raw_send(w->raw, bytes, sizeof(bytes), NULL, 0);
	assert_violation(w, "a record that is too long");
}

/* Register of 30000 empty items: 60 KB that would unpack to megabytes. */
static void a_bomb(void **state)
{
	enum { ITEMS = 30000 };
	static uint8_t bytes[6 + 2 * ITEMS] = { 1 << 3,
						2,
						7 << 3 | 2,
						0x80 | (2 * ITEMS & 0x7f),
						0x80 | (2 * ITEMS >> 7 & 0x7f),
						2 * ITEMS >> 14 };
	struct world *w = *state;

	for (size_t i = 6; i < sizeof(bytes); i += 2)
		bytes[i] = 1 << 3 | 2;
	greet(w);
	raw_send(w->raw, bytes, sizeof(bytes), NULL, 0);
	assert_violation(w, "a record that is no message");
}

/* It cannot be told from the end of the connection (recv(2) of 0), and is taken for it. */
static void an_empty_record_ends_the_connection(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct world *w = *state;

	greet(w);
	raw_send(w->raw, "", 0, &null, 1);
	close(null);
	assert_true(raw_closed(w->raw));
}

static void an_unknown_request_is_unsupported(void **state)
{
	static const uint8_t newer[] = { 1 << 3, 7, 15 << 3 | 2, 2, 'h', 'i' };
	const Kvreg__Reply *reply;
	struct world *w = *state;

	greet(w);
	raw_send(w->raw, newer, sizeof(newer), NULL, 0);
	reply = raw_reply(w->raw);
	assert_non_null(reply);
	assert_int_equal(reply->seq, 7);
	assert_true(raw_refused(reply, KVREG_E_UNSUPPORTED));
	assert_non_null(raw_who_am_i(w->raw)->who_am_i);
}

static void an_unknown_field_is_passed_over(void **state)
{
	/* WhoAmI (field 9) with a field 3 inside, and field 14 beside it. */
	static const uint8_t newer[] = { 1 << 3, 7, 9 << 3 | 2, 2, 3 << 3, 5, 14 << 3, 1 };
	const Kvreg__Reply *reply;
	struct world *w = *state;

	greet(w);
	raw_send(w->raw, newer, sizeof(newer), NULL, 0);
	reply = raw_reply(w->raw);
	assert_non_null(reply);
	assert_non_null(reply->who_am_i);
}

/* Who asks and does not listen waits: what it is owed stays bounded, and others are served. */
static void a_client_that_does_not_read_delays_nobody(void **state)
{
	Kvreg__Request request = who_am_i(5);
	uint8_t record[64];
	size_t length = codec_pack(&request.base, record, sizeof(record));
	struct world *w = *state;
	ssize_t n;

	greet(w);
	do
		n = send(w->raw->sock, record, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n > 0);
	assert_non_null(raw_who_am_i(w->other)->who_am_i);
	/* And it is served on once it reads. */
	assert_non_null(raw_reply(w->raw)->who_am_i);
	assert_non_null(raw_reply(w->raw)->who_am_i);
}

static void lines_about_one_user_are_bounded(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 12; i++) {
		struct raw *raw = raw_open(w->daemon.socket);

		raw_send(raw, "\xff", 1, NULL, 0);
		assert_true(raw_closed(raw));
		raw_close(raw);
	}
	raw_close(w->other);
	raw_close(w->raw);
	daemon_idle(&w->daemon);
	assert_int_equal(daemon_log_lines(&w->daemon, "broke the protocol"), LOG_BURST);
	w->other = raw_greet(w->daemon.socket);
	w->raw = raw_open(w->daemon.socket);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(another_version_is_told_so),
		TEST(hello_tells_the_bounds),
		TEST(a_request_before_hello),
		TEST(an_unknown_request_before_hello),
		TEST(a_second_hello),
		TEST(a_request_without_a_number),
		TEST(a_record_without_its_fd),
		TEST(a_record_with_a_second_fd),
		TEST(a_record_with_three_fds),
		TEST(a_record_with_all_fds_that_there_can_be),
		TEST(an_fd_where_none_belongs),
		TEST(garbage),
		TEST(garbage_after_hello),
		TEST(a_record_too_long),
		TEST(a_bomb),
		TEST(an_empty_record_ends_the_connection),
		TEST(an_unknown_request_is_unsupported),
		TEST(an_unknown_field_is_passed_over),
		TEST(a_client_that_does_not_read_delays_nobody),
		TEST(lines_about_one_user_are_bounded),
	};

	return RUN_GROUP("protocol", tests);
}
