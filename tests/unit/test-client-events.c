/* SPDX-License-Identifier: Apache-2.0 */
/* The connection over time: events, a session that ends, several threads, and fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <semaphore.h>
#include <sys/wait.h>

#include "fake-session.h"

/* The script goes on; the library has asked. */
static sem_t go, asked;

struct events {
	int draining, lost;
	sem_t *wait_in_draining; /* NULL: do not */
};

static void count_event(void *arg, enum kvreg_event event)
{
	struct events *events = arg;

	if (event == KVREG_EVENT_DRAINING)
		events->draining++;
	if (event == KVREG_EVENT_SESSION_LOST)
		events->lost++;
	if (event == KVREG_EVENT_DRAINING && events->wait_in_draining)
		sem_wait(events->wait_in_draining);
}

static struct kvreg *open_counting(struct fake *fake, struct events *events)
{
	struct kvreg_open_options options = {
		.size = sizeof(options),
		.socket = fake->path,
		.on_event = count_event,
		.arg = events,
	};
	struct kvreg *k;

	assert_int_equal(kvreg_open(&options, &k), 0);
	return k;
}

static void event_then_reply(struct fake *fake)
{
	uint32_t seq;

	fake_greet(fake);
	seq = fake_take(fake)->seq;
	fake_draining(fake);
	fake_draining(fake);
	fake_who(fake, seq);
	fake_take(fake);
}

static void event_before_a_reply(void **state)
{
	struct fake *fake = fake_new("mock", event_then_reply);
	struct events events = { 0 };
	struct kvreg_identity who;
	struct kvreg *k = open_counting(fake, &events);

	(void)state;
	assert_int_equal(kvreg_whoami(k, &who), 0);
	assert_int_equal(who.pid, 7);
	assert_string_equal(who.klass, "default");
	assert_int_equal(events.draining, 2);
	assert_int_equal(events.lost, 0);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

static void event_then_end(struct fake *fake)
{
	fake_greet(fake);
	fake_take(fake);
	fake_draining(fake);
}

static void end_while_waiting(void **state)
{
	struct fake *fake = fake_new("mock", event_then_end);
	struct events events = { 0 };
	struct kvreg_identity who;
	struct kvreg *k = open_counting(fake, &events);

	(void)state;
	assert_fails(kvreg_whoami(k, &who), ECONNRESET, SESSION_LOST);
	assert_fails(kvreg_whoami(k, &who), ECONNRESET, SESSION_LOST);
	assert_int_equal(events.draining, 1);
	assert_int_equal(events.lost, 1);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

/* Leaves the request unread, which makes the kernel say ECONNRESET ahead of the reply. */
static void reply_then_reset(struct fake *fake)
{
	struct pollfd readable = { .events = POLLIN };

	fake_greet(fake);
	readable.fd = fake->sock;
	assert(poll(&readable, 1, -1) == 1);
	fake_draining(fake);
	fake_refuse(fake, /* seq */ 2, KVREG_E_LIMIT_OBJECTS);
	fake_hang_up(fake);
	sem_post(&go);
}

static void reply_behind_a_reset(void **state)
{
	struct fake *fake = fake_new("mock", reply_then_reset);
	struct events events = { .wait_in_draining = &go };
	struct kvreg_identity who;
	struct kvreg *k = open_counting(fake, &events);

	(void)state;
	assert_fails(kvreg_whoami(k, &who), ENOSPC, LIMIT_OBJECTS);
	assert_fails(kvreg_whoami(k, &who), ECONNRESET, SESSION_LOST);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

static void event_unasked(struct fake *fake)
{
	fake_greet(fake);
	sem_wait(&go);
	fake_draining(fake);
	sem_wait(&go);
}

static void wait_readable(const struct kvreg *k)
{
	struct pollfd readable = { .fd = kvreg_fd(k), .events = POLLIN };

	assert_int_equal(poll(&readable, 1, -1), 1);
}

static void dispatch_takes_what_waits(void **state)
{
	struct fake *fake = fake_new("mock", event_unasked);
	struct events events = { 0 };
	struct kvreg *k = open_counting(fake, &events);

	(void)state;
	assert_int_equal(kvreg_dispatch(k), 0);
	assert_int_equal(events.draining, 0);
	sem_post(&go);
	wait_readable(k);
	assert_int_equal(kvreg_dispatch(k), 0);
	assert_int_equal(events.draining, 1);
	sem_post(&go);
	wait_readable(k);
	assert_fails(kvreg_dispatch(k), ECONNRESET, SESSION_LOST);
	assert_int_equal(events.lost, 1);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

static void reply_unasked(struct fake *fake)
{
	fake_greet(fake);
	fake_done(fake, 99);
	fake_take(fake);
}

static void dispatch_refuses_replies(void **state)
{
	struct fake *fake = fake_new("mock", reply_unasked);
	struct events events = { 0 };
	struct kvreg *k = open_counting(fake, &events);

	(void)state;
	wait_readable(k);
	assert_fails(kvreg_dispatch(k), EPROTO, PROTOCOL);
	assert_int_equal(events.lost, 1);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

static void answer_late(struct fake *fake)
{
	uint32_t seq;

	fake_greet(fake);
	seq = fake_take(fake)->seq;
	sem_post(&asked);
	sem_wait(&go);
	fake_who(fake, seq);
	fake_take(fake);
}

static void *ask_who(void *k)
{
	struct kvreg_identity who;

	return kvreg_whoami(k, &who) == 0 ? k : NULL;
}

static void dispatch_does_not_wait_for_a_call(void **state)
{
	struct fake *fake = fake_new("mock", answer_late);
	struct kvreg *k;
	pthread_t thread;
	void *answered;

	(void)state;
	assert_int_equal(fake_open(fake, &k), 0);
	assert_int_equal(pthread_create(&thread, NULL, ask_who, k), 0);
	sem_wait(&asked);
	assert_int_equal(kvreg_dispatch(k), 0);
	sem_post(&go);
	pthread_join(thread, &answered);
	assert_ptr_equal(answered, k);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

#define ASKERS 4

static void threads_take_turns(void **state)
{
	struct fake *fake = fake_new("mock", fake_oblige);
	pthread_t threads[ASKERS];
	struct kvreg *k;
	void *answered;

	(void)state;
	assert_int_equal(fake_open(fake, &k), 0);
	for (int i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_who, k), 0);
	for (int i = 0; i < ASKERS; i++) {
		pthread_join(threads[i], &answered);
		assert_ptr_equal(answered, k);
	}
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

/* ---------------------------------------------------------------- fork */

static int use_in_child(struct kvreg *k)
{
	struct kvreg_identity who;

	if (kvreg_whoami(k, &who) != -EINVAL || last_code() != KVREG_E_FORKED)
		return 1;
	if (kvreg_dispatch(k) != -EINVAL || last_code() != KVREG_E_FORKED)
		return 2;
	kvreg_close(k);
	return 0;
}

static void child_has_no_connection(void **state)
{
	struct fake *fake = fake_new("mock", fake_oblige);
	struct kvreg_identity who;
	struct kvreg *k;
	int status;

	(void)state;
	assert_int_equal(fake_open(fake, &k), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(use_in_child(k));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(kvreg_whoami(k, &who), 0);
	kvreg_close(k);
	fake_join(fake);
	fake_free(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_before_a_reply),
		cmocka_unit_test(end_while_waiting),
		cmocka_unit_test(reply_behind_a_reset),
		cmocka_unit_test(dispatch_takes_what_waits),
		cmocka_unit_test(dispatch_refuses_replies),
		cmocka_unit_test(dispatch_does_not_wait_for_a_call),
		cmocka_unit_test(threads_take_turns),
		cmocka_unit_test(child_has_no_connection),
	};
	int fds = fake_count_fds(), failed;

	sem_init(&go, 0, 0);
	sem_init(&asked, 0, 0);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	return failed || fake_count_fds() != fds;
}
