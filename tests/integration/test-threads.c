/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library in programs with threads: one connection used by all of them, connections opened and
 * closed at once, a session lost under them, and forks in the midst of it.
 *
 * cmocka's asserts jump, which only the main thread may: a thread returns what did not hold.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <kvreg-client.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "daemon.h"
#include "proto/limits.h"

#define THREADS 8
#define ROUNDS  25
#define FORKS   600 /* of them one in 200 once met a list that another thread was changing */
#define SIZE    (2u * 4096u)

/* Ends the function with what does not hold. */
#define HOLDS(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return #condition;                                                         \
	} while (0)

struct worker {
	struct kvreg *k; /* of all threads, or NULL: its own */
	unsigned int number;
	pthread_t thread;
	const char *(*run)(struct worker *w);
};

static struct daemon_under_test daemon_;
static atomic_bool stop;

/* Which of the mock's keys belong to a live region: two threads must never be given one. */
static atomic_uint live[REGIONS_PER_SESSION];

static int tear_down(void **state)
{
	(void)state;
	daemon_end(&daemon_);
	return 0;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	return (void *)w->run(w);
}

static void start_workers(struct worker *workers, struct kvreg *k,
			  const char *(*run)(struct worker *w))
{
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .k = k, .number = i, .run = run };
		require(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) == 0);
	}
}

/* Return: how many said that something did not hold. */
static int join_workers(struct worker *workers)
{
	int failures = 0;

	for (size_t i = 0; i < THREADS; i++) {
		void *words = NULL;

		require(pthread_join(workers[i].thread, &words) == 0);
		if (words)
			print_error("thread %zu: %s\n", i, (const char *)words);
		failures += words != NULL;
	}
	return failures;
}

/* A failure of this thread's own, told apart from the others' by the length that it asked for. */
static const char *fail_once(const struct worker *w, struct kvreg_domain *domain,
			     struct kvreg_buffer *buffer)
{
	uint64_t length = SIZE + 1 + w->number;
	struct kvreg_region *region;
	char text[1024], number[32];

	HOLDS(kvreg_register(domain, buffer, 0, length, 0, IB_UVERBS_ACCESS_LOCAL_WRITE, NULL,
			     &region) == -ERANGE);
	sched_yield();
	snprintf(number, sizeof(number), "length %llu", (unsigned long long)length);
	HOLDS(kvreg_error_code(kvreg_last_error()) == KVREG_E_SHORT_HANDLE);
	HOLDS(kvreg_error_length(kvreg_last_error()) == length);
	HOLDS(strstr(kvreg_error_detail(kvreg_last_error()), number));
	HOLDS(kvreg_error_text(kvreg_last_error(), text, sizeof(text)) > 0);
	return NULL;
}

static const char *hold_region(const struct worker *w, struct kvreg *k, struct kvreg_domain *domain,
			       struct kvreg_buffer *buffer)
{
	struct kvreg_identity identity;
	struct kvreg_region *region;
	const char *words;
	unsigned int key;

	HOLDS(kvreg_register(domain, buffer, 0, SIZE, 0, IB_UVERBS_ACCESS_LOCAL_WRITE, NULL,
			     &region) == 0);
	key = kvreg_lkey(region) >> 8;
	HOLDS(key > 0 && key < REGIONS_PER_SESSION);
	HOLDS(!w->k || atomic_exchange(&live[key], w->number + 1) == 0);
	HOLDS(kvreg_detach(domain) == -EBUSY);
	words = fail_once(w, domain, buffer);
	if (words)
		return words;
	HOLDS(kvreg_dispatch(k) == 0);
	HOLDS(kvreg_whoami(k, &identity) == 0 && identity.pid == (uint32_t)getpid());
	HOLDS(identity.regions > 0);
	HOLDS(!w->k || atomic_exchange(&live[key], 0) == w->number + 1);
	HOLDS(kvreg_deregister(region) == 0);
	return NULL;
}

static const char *one_round(const struct worker *w, struct kvreg *k)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	const char *words;
	void *address;

	HOLDS(fd >= 0);
	HOLDS(kvreg_attach_fd(k, fd, w->number, &domain) == 0);
	close(fd);
	HOLDS(kvreg_buffer_alloc(k, SIZE, 0, &address, &buffer) == 0);
	memset(address, 0x5a, SIZE);
	words = hold_region(w, k, domain, buffer);
	if (words)
		return words;
	HOLDS(kvreg_buffer_release(buffer) == 0);
	HOLDS(kvreg_detach(domain) == 0);
	return NULL;
}

static const char *share(struct worker *w)
{
	const char *words = NULL;

	for (int i = 0; !words && i < ROUNDS; i++)
		words = one_round(w, w->k);
	return words;
}

static void threads_share_a_connection(void **state)
{
	struct kvreg_identity identity;
	struct worker workers[THREADS];
	struct kvreg *k;

	(void)state;
	daemon_start(&daemon_, NULL);
	require(kvreg_open(NULL, &k) == 0);
	start_workers(workers, k, share);
	assert_int_equal(join_workers(workers), 0);
	assert_int_equal(kvreg_whoami(k, &identity), 0);
	assert_int_equal(identity.regions + identity.buffers + identity.domains, 0);
	assert_int_equal(identity.charged, 0);
	kvreg_close(k);
}

/* Every other one leaves all that it made to kvreg_close(). */
static const char *open_and_close(struct worker *w)
{
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	struct kvreg *k;
	void *address;

	for (unsigned int i = 0; i < 4; i++) {
		int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		const char *words;

		HOLDS(fd >= 0 && kvreg_open(NULL, &k) == 0);
		words = one_round(w, k);
		if (words)
			return words;
		if ((i + w->number) % 2) {
			HOLDS(kvreg_attach_fd(k, fd, 1, &domain) == 0);
			HOLDS(kvreg_buffer_alloc(k, SIZE, 0, &address, &buffer) == 0);
			HOLDS(kvreg_register(domain, buffer, 0, SIZE, 0,
					     IB_UVERBS_ACCESS_LOCAL_WRITE, NULL, &region) == 0);
		}
		kvreg_close(k);
		close(fd);
	}
	return NULL;
}

static void threads_open_and_close_connections(void **state)
{
	struct worker workers[THREADS];

	(void)state;
	daemon_start(&daemon_, NULL);
	start_workers(workers, NULL, open_and_close);
	assert_int_equal(join_workers(workers), 0);
}

static const char *share_until_stop(struct worker *w)
{
	const char *words = NULL;

	while (!words && !atomic_load(&stop))
		words = one_round(w, w->k);
	return words;
}

/* In a child that was forked while other threads were in calls, or held the lock: it never waits. */
static int use_in_child(struct kvreg *k)
{
	struct kvreg_identity identity;
	struct kvreg_buffer *buffer;
	void *address;

	signal(SIGSEGV, SIG_DFL); /* cmocka's handler would run the rest of the tests here */
	signal(SIGABRT, SIG_DFL);
	alarm(60); /* it would wait for ever for a lock that no thread of its own holds */
	if (kvreg_whoami(k, &identity) != -EINVAL ||
	    kvreg_error_code(kvreg_last_error()) != KVREG_E_FORKED)
		return 1;
	if (kvreg_dispatch(k) != -EINVAL)
		return 2;
	if (kvreg_buffer_alloc(k, SIZE, 0, &address, &buffer) != -EINVAL)
		return 3;
	kvreg_close(k);
	return 0;
}

static void forks_meanwhile_harm_neither_side(void **state)
{
	struct worker workers[THREADS];
	int failures = 0, status = 0;
	struct kvreg *k;

	(void)state;
	daemon_start(&daemon_, NULL);
	require(kvreg_open(NULL, &k) == 0);
	atomic_store(&stop, false);
	start_workers(workers, k, share_until_stop);
	for (int i = 0; i < FORKS && failures == 0; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(use_in_child(k));
		require(pid > 0 && waitpid(pid, &status, 0) == pid);
		failures += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	atomic_store(&stop, true);
	assert_int_equal(join_workers(workers), 0);
	if (failures)
		print_error("the last child ended with wait status 0x%x\n", (unsigned int)status);
	assert_int_equal(failures, 0);
	kvreg_close(k);
}

static atomic_int lost_events;

static void on_event(void *arg, enum kvreg_event event)
{
	(void)arg;
	if (event == KVREG_EVENT_SESSION_LOST)
		atomic_fetch_add(&lost_events, 1);
}

/* Registers until the session is gone; what it holds then, it can still destroy. */
static const char *work_until_lost(struct worker *w)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), r;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *first, *region;
	void *address;

	HOLDS(fd >= 0 && kvreg_attach_fd(w->k, fd, w->number, &domain) == 0);
	close(fd);
	HOLDS(kvreg_buffer_alloc(w->k, SIZE, 0, &address, &buffer) == 0);
	HOLDS(kvreg_register(domain, buffer, 0, SIZE, 0, 1, NULL, &first) == 0);
	atomic_fetch_add(&live[0], 1);
	while ((r = kvreg_register(domain, buffer, 0, SIZE, 0, 1, NULL, &region)) == 0)
		HOLDS(kvreg_deregister(region) == 0);
	HOLDS(r == -ECONNRESET);
	HOLDS(kvreg_error_code(kvreg_last_error()) == KVREG_E_SESSION_LOST);
	HOLDS(kvreg_deregister(first) == 0);
	HOLDS(kvreg_buffer_release(buffer) == 0);
	HOLDS(kvreg_detach(domain) == 0);
	return NULL;
}

static bool all_work(void *arg)
{
	(void)arg;
	return atomic_load(&live[0]) == THREADS;
}

/* A process of its own: the grant of a session that was killed is held as long as its client lives. */
static int lose_session(struct child *me, void *arg)
{
	struct kvreg_open_options options = { .size = sizeof(options), .on_event = on_event };
	struct kvreg_identity identity;
	struct worker workers[THREADS];
	struct kvreg *k;

	(void)me;
	(void)arg;
	require(kvreg_open(&options, &k) == 0 && kvreg_whoami(k, &identity) == 0);
	atomic_store(&live[0], 0);
	start_workers(workers, k, work_until_lost);
	require(wait_until(all_work, NULL));
	require(kill((pid_t)identity.session_pid, SIGKILL) == 0);
	require(join_workers(workers) == 0);
	require(atomic_load(&lost_events) == 1);
	kvreg_close(k);
	return 0;
}

static void a_session_lost_under_threads_is_lost_to_each(void **state)
{
	(void)state;
	daemon_start(&daemon_, NULL);
	assert_int_equal(run_as(0, lose_session, NULL), 0);
}

#define TEST(function) cmocka_unit_test_teardown(function, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(threads_share_a_connection),
		TEST(threads_open_and_close_connections),
		TEST(forks_meanwhile_harm_neither_side),
		TEST(a_session_lost_under_threads_is_lost_to_each),
	};

	return RUN_GROUP("threads", tests);
}
