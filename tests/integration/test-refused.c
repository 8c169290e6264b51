/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections over the limit, with files in them that hang whoever drops them: the refused client
 * sees its connection close, the processes that this takes are bounded, and nobody else waits.
 */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "child.h"
#include "daemon.h"
#include "fuse.h"
#include "linger.h"
#include "raw.h"

#define SIZE      65536u
#define ROUNDS    50
#define OTHER_UID 64990u

static struct daemon_under_test daemon_;
static struct fuse fuse;
static struct raw *first; /* the one connection that this user may have */
static size_t fds;        /* of the supervisor, at the start */

static int set_up(void **state)
{
	const struct daemon_options options = { .config = "[quota]\nsessions_per_uid = 1\n" };

	(void)state;
	fuse = (struct fuse){ .server = 0 };
	daemon_start(&daemon_, &options);
	first = raw_greet(daemon_.socket);
	daemon_rest(&daemon_, 1);
	fds = daemon_fds(&daemon_);
	return 0;
}

/* A session that has ended may be kept a moment longer, now or when they were counted. */
static bool no_fd_is_left(void *arg)
{
	(void)arg;
	return daemon_fds(&daemon_) <= fds;
}

static int tear_down(void **state)
{
	(void)state;
	fuse_stop(&fuse);
	daemon_rest(&daemon_, 1);
	require(wait_until(no_fd_is_left, NULL));
	assert_non_null(raw_who_am_i(first)->who_am_i);
	raw_close(first);
	daemon_end(&daemon_);
	return 0;
}

static void send_import(struct raw *raw, int fd)
{
	raw_send_import(raw, fd, SIZE);
}

/* A connection over the limit with @fd in it. */
static struct raw *refused_with(int fd)
{
	struct raw *raw = raw_open(daemon_.socket);

	require(raw);
	raw_send_import(raw, fd, SIZE);
	return raw;
}

static bool was_refused(struct raw *raw)
{
	const Kvreg__Reply *reply = raw_reply(raw);
	bool as_wanted = !reply || raw_refused(reply, KVREG_E_LIMIT_SESSIONS);

	raw_close(raw);
	return as_wanted;
}

static int others_ask(struct child *me, void *arg)
{
	struct raw *raw = raw_greet(daemon_.socket);

	(void)me;
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		require(raw_who_am_i(raw)->who_am_i);
	raw_close(raw);
	return 0;
}

static void assert_others_are_served(void)
{
	struct admin_status status;

	assert_true(admin_status(daemon_.admin_socket, &status));
	assert_non_null(raw_who_am_i(first)->who_am_i);
	if (geteuid() == 0)
		assert_int_equal(run_as(OTHER_UID, others_ask, NULL), 0);
}

/* What is in a message is no descriptor: it is dropped without a question to its server. */
static void a_refused_fuse_file_hangs_nobody(void **state)
{
	struct raw *raws[2 * REFUSALS_MAX];
	int file;

	(void)state;
	fuse_start(&fuse, false);
	file = fuse_open(&fuse);
	for (size_t i = 0; i < COUNT(raws); i++)
		raws[i] = refused_with(file);
	for (size_t i = 0; i < COUNT(raws); i++)
		assert_true(was_refused(raws[i]));
	daemon_rest(&daemon_, 1);
	assert_others_are_served();
	fuse_kill(&fuse);
	close(file);
}

static void refusals_that_hang_are_bounded(void **state)
{
	enum { MANY = 2 * REFUSALS_MAX + REFUSED_WAITING_MAX };
	struct admin_status status;
	struct raw *raws[MANY];

	(void)state;
	fuse_start(&fuse, true);
	/* Stopped until nobody else holds the files: else we could be the last who does. */
	require(kill(daemon_.pid, SIGSTOP) == 0);
	for (size_t i = 0; i < MANY; i++) {
		int file = fuse_open(&fuse);

		raws[i] = refused_with(file);
		close(file);
	}
	require(kill(daemon_.pid, SIGCONT) == 0);
	for (size_t i = 0; i < MANY; i++)
		assert_true(was_refused(raws[i]));
	assert_true(admin_status(daemon_.admin_socket, &status));
	assert_int_equal(status.refused, MANY);
	/* They do hang, or this shows nothing. */
	assert_in_range(daemon_children(&daemon_), 1 + REFUSALS_MAX / 2, 1 + REFUSALS_MAX);
	assert_others_are_served();
}

/* Whose last holder ends, and does not close it, waits for nobody. */
static void a_refused_lingering_socket_hangs_nobody(void **state)
{
	struct linger_pair pair;
	struct raw *raw;

	(void)state;
	linger_open(&pair);
	/* Stopped until nobody else holds it: if the supervisor closed it, it would linger. */
	require(kill(daemon_.pid, SIGSTOP) == 0);
	raw = raw_open(daemon_.socket);
	require(raw);
	linger_send(&pair, raw, send_import);
	require(kill(daemon_.pid, SIGCONT) == 0);
	assert_true(was_refused(raw));
	assert_others_are_served();
	daemon_rest(&daemon_, 1);
	linger_release(&pair);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_refused_fuse_file_hangs_nobody),
		TEST(refusals_that_hang_are_bounded),
		TEST(a_refused_lingering_socket_hangs_nobody),
	};

	return RUN_GROUP("refused", tests);
}
