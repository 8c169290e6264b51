/* SPDX-License-Identifier: Apache-2.0 */
/* Signals by the thousand: in a client that the library serves, in its session, and in kvregd. */
#include "test.h"

#include <fcntl.h>
#include <kvreg-client.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "daemon.h"
#include "device.h"
#include "raw.h"

#define SIZE   65536u
#define ROUNDS 300

static struct daemon_under_test daemon_;

static int set_up(void **state)
{
	(void)state;
	daemon_start(&daemon_, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	daemon_end(&daemon_);
	return 0;
}

/* Through the library, as a program does it: open, register and deregister, close. */
static void register_many_times(void)
{
	struct device device = device_open();
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	struct kvreg *k;
	void *address;

	require(kvreg_open(NULL, &k) == 0);
	require(kvreg_attach_fd(k, device.fd, device.pd, &domain) == 0);
	require(kvreg_buffer_alloc(k, SIZE, 0, &address, &buffer) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		require(kvreg_register(domain, buffer, 0, SIZE, 0, IB_UVERBS_ACCESS_LOCAL_WRITE,
				       NULL, &region) == 0);
		require(kvreg_deregister(region) == 0);
	}
	kvreg_close(k);
	device_close(&device);
}

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	ticks = ticks + 1;
}

/* Without SA_RESTART: every call that waits ends with EINTR, again and again. */
static void set_timer(suseconds_t microseconds)
{
	const struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };
	struct sigaction action = { .sa_handler = microseconds ? tick : SIG_IGN };

	require(sigaction(SIGALRM, &action, NULL) == 0);
	require(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void a_client_under_a_fast_timer_registers(void **state)
{
	(void)state;
	ticks = 0;
	set_timer(50);
	register_many_times();
	set_timer(0);
	assert_true(ticks > ROUNDS);
}

/* Sends them to @arg until it is killed. */
static int storm(struct child *me, void *arg)
{
	static const int sigs[] = { SIGCHLD, SIGURG, SIGCONT, SIGWINCH, SIGPIPE, SIGHUP };
	const pid_t *pids = arg;

	child_say(me);
	for (;;)
		for (size_t i = 0; i < COUNT(sigs); i++) {
			/* A session does not outlive SIGHUP, and need not: only root could send it. */
			require(kill(pids[0], sigs[i]) == 0);
			if (sigs[i] != SIGHUP)
				require(kill(pids[1], sigs[i]) == 0);
		}
}

static void daemon_and_session_live_through_a_storm(void **state)
{
	struct device device = device_open();
	int memory = memory_fd(SIZE, F_SEAL_SHRINK);
	struct raw *raw = raw_greet(daemon_.socket);
	pid_t pids[] = { daemon_.pid, (pid_t)raw_who_am_i(raw)->who_am_i->session_pid };
	struct child sender;
	Kvreg__RegisterItem item;

	(void)state;
	item = raw_item(raw_attach(raw, device.fd, device.pd)->attach_domain->domain,
			raw_import(raw, memory, SIZE, 0)->import_buffer->buffer, SIZE);
	child_start(&sender, 0, storm, pids);
	require(child_hear(&sender));
	for (int i = 0; i < ROUNDS; i++) {
		const Kvreg__Reply *reply = raw_register(raw, &item, 1);

		require(reply->register_);
		require(raw_deregister(raw, reply->register_->regions[0]->region)->done);
	}
	/* New connections, and questions to the supervisor. */
	for (int i = 0; i < 10; i++)
		raw_close(raw_greet(daemon_.socket));
	register_many_times();
	child_kill(&sender);
	raw_close(raw);
	device_close(&device);
	close(memory);
}

static void a_hangup_is_ignored_and_logged(void **state)
{
	struct raw *raw;

	(void)state;
	require(kill(daemon_.pid, SIGHUP) == 0);
	assert_true(daemon_log_soon(&daemon_, "debug: SIGHUP is ignored", 1));
	raw = raw_greet(daemon_.socket);
	assert_non_null(raw_who_am_i(raw)->who_am_i);
	raw_close(raw);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_client_under_a_fast_timer_registers),
		TEST(daemon_and_session_live_through_a_storm),
		TEST(a_hangup_is_ignored_and_logged),
	};

	return RUN_GROUP("signals", tests);
}
