/* SPDX-License-Identifier: Apache-2.0 */
/* The connection: who can be reached, who refuses, and which replies end it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "client/connection.h"
#include "fake-session.h"

static int open_path(const char *path)
{
	struct kvreg_open_options options = { .size = sizeof(options), .socket = path };
	struct kvreg *k;

	return kvreg_open(&options, &k);
}

/* ---------------------------------------------------------------- reaching a daemon */

static void nobody_listens(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct fake *fake = fake_new("mock", fake_oblige);
	_cleanup_fd_ int deaf = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct kvreg *k;

	(void)state;
	assert_fails(open_path("/nonexistent/kvregd.sock"), ECONNREFUSED, NO_DAEMON);
	assert_non_null(strstr(kvreg_error_detail(kvreg_last_error()), "/nonexistent/kvregd.sock"));
	assert_int_equal(kvreg_error_errno(kvreg_last_error()), ENOENT);
	assert_fails(open_path("/dev/null/kvregd.sock"), ECONNREFUSED, NO_DAEMON);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/deaf", fake->dir);
	assert_int_equal(bind(deaf, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_fails(open_path(address.sun_path), ECONNREFUSED, NO_DAEMON);
	assert_int_equal(kvreg_error_errno(kvreg_last_error()), ECONNREFUSED);
	unlink(address.sun_path);
	assert_int_equal(fake_open(fake, &k), 0);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

/* In a child, since the one thing that a root test needs for it is another user. */
static void no_permission(void **state)
{
	struct fake *fake = fake_new("mock", fake_oblige);
	struct kvreg *k;
	int status;

	(void)state;
	assert_int_equal(chmod(fake->path, 0), 0);
	pid_t child = fork();
	if (child == 0) {
		if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		_exit(open_path(fake->path) == -EACCES && last_code() == KVREG_E_NO_PERMISSION ? 0
											       : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(fake->path, 0600), 0);
	assert_int_equal(fake_open(fake, &k), 0);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

static void paths_have_bounds(void **state)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];

	(void)state;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_fails(open_path(path), EINVAL, INVALID_ARG);
	path[sizeof(path) - 2] = '\0';
	assert_fails(open_path(path), ECONNREFUSED, NO_DAEMON);
	assert_fails(open_path(""), EINVAL, INVALID_ARG);
}

static void environment_names_the_socket(void **state)
{
	struct fake *fake = fake_new("mock", fake_oblige);
	struct kvreg *k;

	(void)state;
	setenv("KVREG_SOCKET", fake->path, 1);
	assert_int_equal(kvreg_open(NULL, &k), 0);
	unsetenv("KVREG_SOCKET");
	assert_string_equal(kvreg_device_kind(k), "mock");
	assert_int_equal(fcntl(kvreg_fd(k), F_GETFD), FD_CLOEXEC);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

static void options_are_checked(void **state)
{
	char name[LABEL_MAX + 2] = { 0 };
	struct kvreg_open_options options = { .size = sizeof(options), .program = name };
	struct kvreg *k;

	(void)state;
	memset(name, 'n', LABEL_MAX + 1);
	assert_fails(kvreg_open(&options, &k), EINVAL, INVALID_ARG);
	options.size = 0;
	assert_fails(kvreg_open(&options, &k), EINVAL, INVALID_ARG);
}

/* ---------------------------------------------------------------- being refused */

static void refuse_version(struct fake *fake)
{
	fake_refuse(fake, fake_take(fake)->seq, KVREG_E_VERSION);
}

static void other_major(struct fake *fake)
{
	fake_hello(fake, fake_take(fake)->seq, PROTOCOL_MAJOR + 1);
}

static void close_at_once(struct fake *fake)
{
	fake_take(fake);
}

static void opening_fails(void (*script)(struct fake *fake), int errnum, enum kvreg_code code)
{
	struct fake *fake = fake_new("mock", script);
	struct kvreg *k = NULL;

	assert_int_equal(fake_open(fake, &k), -errnum);
	assert_int_equal(last_code(), code);
	assert_null(k);
	fake_join(fake);
	fake_free(fake);
}

static void versions_must_agree(void **state)
{
	(void)state;
	opening_fails(refuse_version, EPROTONOSUPPORT, KVREG_E_VERSION);
	assert_string_equal(kvreg_error_detail(kvreg_last_error()), "said by the fake");
	opening_fails(other_major, EPROTONOSUPPORT, KVREG_E_VERSION);
}

static void end_instead_of_a_greeting(void **state)
{
	(void)state;
	opening_fails(close_at_once, ECONNRESET, KVREG_E_SESSION_LOST);
}

static void refuse_unread(struct fake *fake)
{
	fake_refuse(fake, /* seq */ 1, KVREG_E_LIMIT_SESSIONS);
}

static int whoami_call(struct connection *c, struct failure *f)
{
	Kvreg__WhoAmI who_am_i = KVREG__WHO_AM_I__INIT;
	struct call call = CALL(CONNECT, WHO_AM_I);
	Kvreg__Reply *reply;

	call.request.body_case = KVREG__REQUEST__BODY_WHO_AM_I;
	call.request.who_am_i = &who_am_i;
	return connection_call(c, &call, f, &reply);
}

/* The refusing side is gone before the first byte is sent: that gives EPIPE, the refusal waits. */
static void refusal_outlives_its_sender(void **state)
{
	struct fake *fake = fake_new("mock", refuse_unread);
	struct connection *c = calloc(1, sizeof(*c));
	struct failure f;

	(void)state;
	failure_init(&f);
	assert_non_null(c);
	connection_init(c);
	assert_int_equal(connection_open(c, fake->path, &f), KVREG_E_OK);
	fake_join(fake);
	assert_int_equal(whoami_call(c, &f), KVREG_E_LIMIT_SESSIONS);
	assert_int_equal(whoami_call(c, &f), KVREG_E_SESSION_LOST);
	assert_true(c->lost);
	connection_fini(c);
	free(c);
	fake_free(fake);
}

/* The same with bytes that it left unread: sending gives ECONNRESET. */
static void refuse_when_told(struct fake *fake)
{
	struct pollfd readable = { .fd = fake->sock, .events = POLLIN };

	assert(poll(&readable, 1, -1) == 1);
	fake_refuse(fake, /* seq */ 1, KVREG_E_LIMIT_SESSIONS);
}

static void refusal_outlives_a_reset(void **state)
{
	struct fake *fake = fake_new("mock", refuse_when_told);
	struct connection *c = calloc(1, sizeof(*c));
	struct failure f;

	(void)state;
	failure_init(&f);
	assert_non_null(c);
	connection_init(c);
	assert_int_equal(connection_open(c, fake->path, &f), KVREG_E_OK);
	assert_int_equal(wire_send(c->sock, "unread", 6, NULL, 0, 0), 0);
	fake_join(fake);
	assert_int_equal(whoami_call(c, &f), KVREG_E_LIMIT_SESSIONS);
	connection_fini(c);
	free(c);
	fake_free(fake);
}

/* ---------------------------------------------------------------- broken replies */

static void wrong_seq(struct fake *fake)
{
	fake_greet(fake);
	fake_who(fake, fake_take(fake)->seq + 1);
	fake_take(fake);
}

static void garbage(struct fake *fake)
{
	fake_greet(fake);
	fake_take(fake);
	wire_send(fake->sock, "\xff\xff\xff", 3, NULL, 0, 0);
	fake_take(fake);
}

static void too_long(struct fake *fake)
{
	static const uint8_t zeros[RECORD_MAX + 1];

	fake_greet(fake);
	fake_take(fake);
	assert(wire_send(fake->sock, zeros, sizeof(zeros), NULL, 0, 0) == 0);
	fake_take(fake);
}

static void other_kind(struct fake *fake)
{
	fake_greet(fake);
	fake_done(fake, fake_take(fake)->seq);
	fake_take(fake);
}

static void refusal_without_code(struct fake *fake)
{
	fake_greet(fake);
	fake_refuse(fake, fake_take(fake)->seq, KVREG_E_OK);
	fake_take(fake);
}

/* The session still lives: closing the socket would make it destroy regions that are in use. */
static void breaks_protocol(void (*script)(struct fake *fake))
{
	struct fake *fake = fake_new("mock", script);
	struct kvreg_identity who;
	struct kvreg *k;

	assert_int_equal(fake_open(fake, &k), 0);
	assert_fails(kvreg_whoami(k, &who), EPROTO, PROTOCOL);
	assert_fails(kvreg_whoami(k, &who), ECONNRESET, SESSION_LOST);
	assert_fails(kvreg_dispatch(k), ECONNRESET, SESSION_LOST);
	assert_true(fcntl(kvreg_fd(k), F_GETFD) >= 0);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

static void broken_replies_end_the_connection(void **state)
{
	(void)state;
	breaks_protocol(wrong_seq);
	breaks_protocol(garbage);
	breaks_protocol(too_long);
	breaks_protocol(other_kind);
	breaks_protocol(refusal_without_code);
}

static void reply_with_an_fd(struct fake *fake)
{
	Kvreg__WhoAmIReply who = KVREG__WHO_AM_IREPLY__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;
	uint8_t bytes[256];
	int fds[] = { 0, 0 };

	fake_greet(fake);
	reply.seq = fake_take(fake)->seq;
	reply.body_case = KVREG__REPLY__BODY_WHO_AM_I;
	reply.who_am_i = &who;
	wire_send(fake->sock, bytes, codec_pack(&reply.base, bytes, sizeof(bytes)), fds, 2, 0);
	fake_take(fake);
}

static void fds_from_the_session_are_closed(void **state)
{
	struct fake *fake = fake_new("mock", reply_with_an_fd);
	struct kvreg_identity who;
	struct kvreg *k;
	int fds;

	(void)state;
	assert_int_equal(fake_open(fake, &k), 0);
	fds = fake_count_fds();
	assert_int_equal(kvreg_whoami(k, &who), 0);
	assert_int_equal(fake_count_fds(), fds);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(no_permission),
		cmocka_unit_test(paths_have_bounds),
		cmocka_unit_test(environment_names_the_socket),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(versions_must_agree),
		cmocka_unit_test(end_instead_of_a_greeting),
		cmocka_unit_test(refusal_outlives_its_sender),
		cmocka_unit_test(refusal_outlives_a_reset),
		cmocka_unit_test(broken_replies_end_the_connection),
		cmocka_unit_test(fds_from_the_session_are_closed),
	};
	int fds = fake_count_fds(), failed = cmocka_run_group_tests(tests, NULL, NULL);

	return failed || fake_count_fds() != fds;
}
