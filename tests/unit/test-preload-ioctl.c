/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preloaded ioctl from end to end, with a kernel and a session of the test's own: the kernel
 * refuses what exceeds the leases that the session has given.
 *
 * Each test is a process: what the preload keeps for a process begins anew.
 */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/preload/kernel.h"
#include "client/preload/settings.h"
#include "fake-session.h"
#include "fake-verbs.h"

#define MIB     (1ull << 20)
#define THREADS 64

/* ---- the kernel and the environment */

static struct settings environment;
static atomic_int calls;          /* that reached the kernel */
static _Atomic uint64_t needed;   /* bytes that a call must have leased */
static int refusal = ENOMEM;      /* of a call that has not */
static _Atomic uint64_t leased;   /* at this moment */
static atomic_uint leases, ended; /* requests for them */
static void (*during_call)(void); /* may be NULL */

int __wrap_kernel_verbs(int fd, void *buffer);
const struct settings *__wrap_settings(void);

int __wrap_kernel_verbs(int fd, void *buffer)
{
	assert(fd == 42 && buffer);
	calls++;
	if (during_call)
		during_call();
	if (leased >= needed)
		return 0;
	errno = refusal;
	return -1;
}

const struct settings *__wrap_settings(void)
{
	return &environment;
}

/* ---- the session */

static void give_lease(struct fake *fake, const Kvreg__Request *request)
{
	Kvreg__LeaseMemlockReply lease = KVREG__LEASE_MEMLOCK_REPLY__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	assert(!request->lease_memlock->held);
	leases++;
	leased += request->lease_memlock->bytes;
	lease.lease = leases;
	lease.bytes = request->lease_memlock->bytes;
	reply.seq = request->seq;
	reply.body_case = KVREG__REPLY__BODY_LEASE_MEMLOCK;
	reply.lease_memlock = &lease;
	fake_send(fake, &reply);
}

static void lend(struct fake *fake)
{
	uint64_t bytes[1024];
	const Kvreg__Request *request;

	fake_greet(fake);
	while ((request = fake_take(fake))) {
		if (request->body_case == KVREG__REQUEST__BODY_LEASE_MEMLOCK) {
			bytes[leases + 1] = request->lease_memlock->bytes;
			give_lease(fake, request);
			continue;
		}
		assert(request->body_case == KVREG__REQUEST__BODY_END_LEASE);
		leased -= bytes[request->end_lease->lease];
		ended++;
		fake_done(fake, request->seq);
	}
}

static void lend_once(struct fake *fake)
{
	const Kvreg__Request *request;

	fake_greet(fake);
	give_lease(fake, fake_take(fake));
	request = fake_take(fake);
	leased = 0;
	ended++;
	fake_done(fake, request->seq);
}

static void refuse(struct fake *fake)
{
	const Kvreg__Request *request;

	Kvreg__Error error = KVREG__ERROR__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	error.code = KVREG_E_LIMIT_QUOTA;
	error.stage = KVREG_STAGE_LEASE;
	error.detail = "said by the fake";
	reply.error = &error;
	fake_greet(fake);
	while ((request = fake_take(fake))) {
		reply.seq = request->seq;
		fake_send(fake, &reply);
	}
}

/* ---- the program */

static int reg_mr(uint64_t length)
{
	union verbs_buffer buffer;
	struct ib_uverbs_reg_mr in;

	verbs_reg_mr(&buffer, &in, 0x10000, length);
	return ioctl(42, RDMA_VERBS_IOCTL, &buffer);
}

static int create_cq(void)
{
	union verbs_buffer buffer;

	verbs_begin(&buffer, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	return ioctl(42, RDMA_VERBS_IOCTL, &buffer);
}

static struct fake *session(void (*script)(struct fake *fake))
{
	struct fake *fake = fake_new("mock", script);

	environment.socket = fake->path;
	return fake;
}

static int messages = -1; /* what went to stderr */

/* The whole of it so far; the caller does not free it. */
static const char *said(void)
{
	static char text[8192];
	ssize_t n = pread(messages, text, sizeof(text) - 1, 0);

	assert(n >= 0);
	text[n] = '\0';
	return text;
}

static size_t lines(void)
{
	size_t n = 0;

	for (const char *p = said(); *p; p++)
		n += *p == '\n';
	return n;
}

/* Runs @body in a process whose limit is 64 KiB. Its own complaints go where ours do. */
static void in_process(void (*body)(void))
{
	struct rlimit limit = { .rlim_cur = 65536, .rlim_max = 65536 };
	pid_t pid;
	int status;

	messages = memfd_create("stderr", MFD_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		assert(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
		assert(dup2(messages, STDERR_FILENO) == STDERR_FILENO);
		body();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		print_error("%s", said());
	close(messages);
	assert_int_equal(status, 0);
}

#define PROCESS_TEST(name)                                                                         \
	static void name##_body(void);                                                             \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		in_process(name##_body);                                                           \
	}                                                                                          \
	static void name##_body(void)

PROCESS_TEST(other_requests_go_straight_to_the_kernel)
{
	int fds[2], n = 0;

	assert(pipe(fds) == 0 && write(fds[1], "abc", 3) == 3);
	assert(ioctl(fds[0], FIONREAD, &n) == 0 && n == 3);
	errno = 0;
	assert(ioctl(fds[0], TIOCGWINSZ, &n) == -1 && errno == ENOTTY);
	assert(ioctl(-1, FIONREAD, &n) == -1 && errno == EBADF);
	assert(calls == 0 && lines() == 0);
}

PROCESS_TEST(a_call_that_works_is_all_there_is)
{
	struct fake *fake = session(lend);

	errno = EDOM;
	assert(reg_mr(MIB) == 0 && create_cq() == 0);
	/* As a caller that keeps the request in an int has it. */
	assert(ioctl(42, (unsigned long)(int)RDMA_VERBS_IOCTL, fake) == 0);
	assert(errno == EDOM && calls == 3 && leases == 0 && fake->sock == 0);
}

PROCESS_TEST(a_registration_is_leased_its_pages_and_made_again)
{
	session(lend);
	needed = MIB + 4096;
	errno = EDOM;
	assert(reg_mr(MIB + 1) == 0);
	assert(errno == EDOM && calls == 2 && leases == 1 && ended == 1 && leased == 0);
	needed = 8 * MIB;
	assert(reg_mr(8 * MIB) == 0);
	assert(calls == 4 && leases == 2 && ended == 2 && lines() == 0);
}

PROCESS_TEST(a_ring_is_leased_more_each_time)
{
	session(lend);
	needed = 20 * MIB;
	assert(create_cq() == 0);
	/* 0, 4, 16, 64 MiB. */
	assert(calls == 4 && leases == 3 && ended == 3 && leased == 0);
}

PROCESS_TEST(a_ring_that_no_lease_helps_fails_as_it_did)
{
	session(lend);
	needed = UINT64_MAX;
	assert(create_cq() == -1 && errno == ENOMEM);
	assert(calls == 6 && leases == 5 && leased == 0);
	assert(lines() == 1 && strstr(said(), "UNKNOWN") && strstr(said(), "CQ_CREATE"));
}

PROCESS_TEST(room_that_another_thread_took_is_leased_again)
{
	session(lend);
	needed = 3 * MIB; /* each lease is of 1 MiB: never enough */
	assert(reg_mr(MIB) == -1 && errno == ENOMEM);
	assert(leases >= 1 && leases <= 8 && leases == ended);
}

PROCESS_TEST(other_failures_are_told_once_and_passed_on)
{
	session(lend);
	needed = 1;
	refusal = EFAULT;
	for (int i = 0; i < 3; i++)
		assert(reg_mr(MIB) == -1 && errno == EFAULT);
	assert(calls == 3 && leases == 0 && lines() == 1);
	assert(strncmp(said(), "kvreg: register failed: BAD_REGION: ", 36) == 0);
	refusal = EIO;
	assert(reg_mr(MIB) == -1 && errno == EIO);
	assert(lines() == 2 && strstr(said(), "DEVICE_GONE"));
	assert(create_cq() == -1 && errno == EIO);
	assert(lines() == 2);
}

PROCESS_TEST(lines_are_bounded)
{
	session(lend);
	needed = 1;
	for (refusal = 1; refusal < 120; refusal++)
		if (refusal != ENOMEM)
			assert(reg_mr(MIB) == -1 && errno == refusal);
	assert(lines() == 16);
}

PROCESS_TEST(a_refused_lease_is_told_with_its_reason)
{
	session(refuse);
	needed = 2 * MIB;
	for (int i = 0; i < 3; i++)
		assert(reg_mr(2 * MIB) == -1 && errno == ENOMEM);
	assert(calls == 3 && lines() == 1);
	assert(strstr(said(), ": LIMIT_QUOTA: ") && strstr(said(), "said by the fake"));
	assert(strstr(said(), "for REG_MR of 2097152 bytes"));
}

PROCESS_TEST(without_a_daemon_one_line_says_so)
{
	environment.socket = "/nonexistent/sock";
	needed = 1;
	assert(reg_mr(MIB) == -1 && errno == ENOMEM);
	assert(create_cq() == -1 && errno == ENOMEM);
	assert(calls == 2 && lines() == 1);
	assert(strstr(said(), ": LIMIT_MEMLOCK: ") &&
	       strstr(said(), "NO_DAEMON: /nonexistent/sock"));
	assert(strstr(said(), "1048576 bytes to pin") && strstr(said(), "RLIMIT_MEMLOCK 65536"));
	assert(strstr(said(), "ulimit -l"));
}

PROCESS_TEST(off_is_off)
{
	session(lend);
	environment.off = true;
	needed = 1;
	assert(reg_mr(MIB) == -1 && errno == ENOMEM);
	assert(calls == 1 && leases == 0 && lines() == 0);
}

PROCESS_TEST(verbose_tells_each_lease)
{
	session(lend);
	environment.verbose = true;
	needed = MIB;
	assert(reg_mr(MIB) == 0 && reg_mr(MIB) == 0);
	assert(lines() == 2 && strstr(said(), "1048576 bytes leased for REG_MR"));
}

PROCESS_TEST(a_session_that_is_gone_is_replaced_within_the_call)
{
	struct fake *first = session(lend_once);

	needed = MIB;
	assert(reg_mr(MIB) == 0);
	fake_join(first);
	session(lend);
	assert(reg_mr(MIB) == 0);
	assert(leases == 2 && ended == 2 && lines() == 0);
}

PROCESS_TEST(a_child_has_a_connection_of_its_own)
{
	struct fake *parents = session(lend), *childs;
	int before, status;
	pid_t pid;

	needed = MIB;
	assert(reg_mr(MIB) == 0);
	childs = session(lend);
	before = fake_count_fds();
	pid = fork();
	if (pid == 0) {
		/* What the session does shows in the parent only. */
		needed = 0;
		assert(reg_mr(MIB) == 0);
		leased = 0;
		needed = MIB;
		reg_mr(MIB);
		assert(!strstr(said(), "FORKED"));
		/* One socket is closed, and another opened in its place. */
		_exit(fake_count_fds() != before);
	}
	assert(waitpid(pid, &status, 0) == pid && status == 0);
	fake_join(childs);
	assert(leases > 1 && leases == ended);
	environment.socket = "/nonexistent/sock"; /* the parent's is open */
	assert(parents->sock > 0 && reg_mr(MIB) == 0);
}

/* What a hook of malloc may do while we are at it. */
static void call_again(void)
{
	union verbs_buffer buffer;

	during_call = NULL;
	verbs_begin(&buffer, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	if (calls == 2) {
		needed = UINT64_MAX;
		assert(ioctl(42, RDMA_VERBS_IOCTL, &buffer) == -1 && errno == ENOMEM);
		needed = MIB;
	} else {
		during_call = call_again;
	}
}

PROCESS_TEST(a_call_from_within_is_the_kernels_alone)
{
	session(lend);
	needed = MIB;
	during_call = call_again;
	assert(reg_mr(MIB) == 0);
	assert(calls == 3 && leases == 1 && leased == 0 && lines() == 0);
}

static pthread_barrier_t barrier;

static void *register_at_once(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	assert(reg_mr(MIB) == 0);
	return NULL;
}

PROCESS_TEST(threads_share_one_connection)
{
	pthread_t threads[THREADS];

	session(lend); /* takes one */
	needed = MIB;
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert(pthread_create(&threads[i], NULL, register_at_once, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert(leases == ended && leased == 0 && lines() == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_requests_go_straight_to_the_kernel),
		cmocka_unit_test(a_call_that_works_is_all_there_is),
		cmocka_unit_test(a_registration_is_leased_its_pages_and_made_again),
		cmocka_unit_test(a_ring_is_leased_more_each_time),
		cmocka_unit_test(a_ring_that_no_lease_helps_fails_as_it_did),
		cmocka_unit_test(room_that_another_thread_took_is_leased_again),
		cmocka_unit_test(other_failures_are_told_once_and_passed_on),
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(a_refused_lease_is_told_with_its_reason),
		cmocka_unit_test(without_a_daemon_one_line_says_so),
		cmocka_unit_test(off_is_off),
		cmocka_unit_test(verbose_tells_each_lease),
		cmocka_unit_test(a_session_that_is_gone_is_replaced_within_the_call),
		cmocka_unit_test(a_child_has_a_connection_of_its_own),
		cmocka_unit_test(a_call_from_within_is_the_kernels_alone),
		cmocka_unit_test(threads_share_one_connection),
	};

	return RUN_GROUP("preload-ioctl", tests);
}
