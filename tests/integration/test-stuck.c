/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients send what hangs whoever closes it: a FUSE file whose server does not answer, a TCP socket
 * that lingers. Their own session stands still, and is shown as stuck; nobody else does. When the
 * server is dead, or the socket's other end reads, everything is at zero again.
 */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "child.h"
#include "ctl.h"
#include "daemon.h"
#include "device.h"
#include "fuse.h"
#include "linger.h"
#include "raw.h"

#define SIZE   65536u
#define ROUNDS 50

struct world {
	struct daemon_under_test daemon;
	struct fuse fuse;
	int file;   /* of the server that never answers; -1 */
	size_t fds; /* of the supervisor, at the start */
};

static struct world w;

static void start(void)
{
	daemon_start(&w.daemon, NULL);
	raw_close(raw_greet(w.daemon.socket));
	daemon_idle(&w.daemon);
	daemon_rest(&w.daemon, 0);
	w.fds = daemon_fds(&w.daemon);
	w.fuse = (struct fuse){ .server = 0 };
}

/* A session that has ended may be kept a moment longer, now or when they were counted. */
static bool no_fd_is_left(void *arg)
{
	(void)arg;
	return daemon_fds(&w.daemon) <= w.fds;
}

static int tear_down(void **state)
{
	(void)state;
	fuse_stop(&w.fuse);
	if (w.daemon.pid) {
		daemon_idle(&w.daemon);
		daemon_rest(&w.daemon, 0);
		require(wait_until(no_fd_is_left, NULL));
	}
	daemon_end(&w.daemon);
	return 0;
}

/* ---- a bystander, and the victim's line ---- */

/* Registers and deregisters, many times, and is listed; while whatever is stuck is stuck. */
static int live_well(struct child *me, void *arg)
{
	struct device device = device_open();
	int memory = memory_fd(SIZE, F_SEAL_SHRINK);
	struct raw *raw = raw_greet(w.daemon.socket);
	uint32_t domain = raw_attach(raw, device.fd, device.pd)->attach_domain->domain;
	uint32_t buffer = raw_import(raw, memory, SIZE, 0)->import_buffer->buffer;
	Kvreg__RegisterItem item = raw_item(domain, buffer, SIZE);

	(void)me;
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		const Kvreg__Reply *reply = raw_register(raw, &item, 1);

		require(reply->register_);
		require(raw_deregister(raw, reply->register_->regions[0]->region)->done);
	}
	raw_close(raw);
	device_close(&device);
	return 0;
}

static void assert_others_are_served(void)
{
	struct admin_status status;

	assert_int_equal(run_as(0, live_well, NULL), 0);
	assert_true(admin_status(w.daemon.admin_socket, &status));
	assert_int_equal(status.pid, w.daemon.pid);
}

static bool is_stuck(void *arg)
{
	const uint32_t *pid = arg;
	struct admin_client line;

	return admin_client(w.daemon.admin_socket, *pid, &line) &&
	       strcmp(line.state, "stuck") == 0 && !line.answered && line.unanswered;
}

static void assert_stuck(pid_t pid)
{
	uint32_t number = (uint32_t)pid;

	assert_true(wait_until(is_stuck, &number));
}

/* By kvregctl too, in both its forms. */
static void assert_shown_as_stuck(void)
{
	struct ctl_run run;

	assert_int_equal(ctl_ask(&run, w.daemon.admin_socket, "clients", NULL), 0);
	assert_non_null(strstr(run.out, "stuck"));
	assert_int_equal(ctl_ask(&run, w.daemon.admin_socket, "clients", "--json"), 0);
	assert_non_null(strstr(run.out, "\"state\": \"stuck\""));
	assert_non_null(strstr(run.out, "\"answered\": false"));
}

static bool silent(const struct raw *raw)
{
	struct pollfd answer = { .fd = raw->sock, .events = POLLIN };

	return poll(&answer, 1, 0) == 0;
}

/* ---- what they send ---- */

/* A client with a region, so that it holds a grant. */
struct victim {
	struct raw *raw;
	struct device device;
	int memory;
};

static struct victim victim_start(void)
{
	struct victim v = { .device = device_open(), .memory = memory_fd(SIZE, F_SEAL_SHRINK) };
	Kvreg__RegisterItem item;

	v.raw = raw_greet(w.daemon.socket);
	item = raw_item(raw_attach(v.raw, v.device.fd, v.device.pd)->attach_domain->domain,
			raw_import(v.raw, v.memory, SIZE, 0)->import_buffer->buffer, SIZE);
	require(raw_register(v.raw, &item, 1)->register_);
	return v;
}

static void victim_end(struct victim *v)
{
	raw_close(v->raw);
	device_close(&v->device);
	close(v->memory);
}

static void send_as_memory(struct raw *raw, int fd)
{
	raw_send_import(raw, fd, SIZE);
}

/* ---- a FUSE file ---- */

static void a_fuse_file(linger_send_fn *send, enum kvreg_code code)
{
	struct victim v;
	int file;

	start();
	fuse_start(&w.fuse, false);
	file = fuse_open(&w.fuse);
	v = victim_start();
	send(v.raw, file);
	close(file);
	assert_stuck(getpid());
	assert_shown_as_stuck();
	assert_others_are_served();
	assert_true(silent(v.raw));
	fuse_kill(&w.fuse);
	assert_true(raw_refused(raw_reply(v.raw), code));
	assert_int_equal(raw_who_am_i(v.raw)->who_am_i->regions, 1);
	victim_end(&v);
}

static void a_fuse_file_as_memory(void **state)
{
	(void)state;
	a_fuse_file(send_as_memory, KVREG_E_BAD_MEMORY_FD);
}

static void a_fuse_file_as_uverbs(void **state)
{
	(void)state;
	a_fuse_file(raw_send_attach, KVREG_E_BAD_UVERBS);
}

/* Has a region, and sends the file many times; only the first is ever received. */
static int send_and_wait(struct child *me, void *arg)
{
	struct victim v = victim_start();
	int file = fuse_open(&w.fuse);

	(void)arg;
	for (int i = 0; i < 20; i++)
		raw_send_import(v.raw, file, SIZE);
	child_say(me);
	child_hear(me);
	return 0;
}

static void a_client_that_dies_while_its_session_hangs(void **state)
{
	struct admin_client line;
	struct child client;
	uint32_t pid;

	(void)state;
	start();
	fuse_start(&w.fuse, false);
	child_start(&client, 0, send_and_wait, NULL);
	pid = (uint32_t)client.pid;
	require(child_hear(&client));
	assert_stuck(client.pid);
	child_kill(&client);
	/* It is killed, and the kernel lets it wait on: it stays listed, its grant booked. */
	assert_true(daemon_log_soon(&w.daemon, "did not end: killed", 1));
	assert_others_are_served();
	require(admin_client(w.daemon.admin_socket, pid, &line));
	assert_string_equal(line.state, "stuck");
	assert_true(line.granted >= SIZE);
	fuse_kill(&w.fuse);
	daemon_idle(&w.daemon);
}

/* ---- a TCP socket that lingers ---- */

static void a_lingering_socket(linger_send_fn *send, enum kvreg_code code)
{
	struct linger_pair pair;
	struct victim v;
	pid_t session;

	start();
	v = victim_start();
	linger_open(&pair);
	/* Stopped until it is the last who holds it. */
	session = (pid_t)raw_who_am_i(v.raw)->who_am_i->session_pid;
	require(kill(session, SIGSTOP) == 0);
	linger_send(&pair, v.raw, send);
	require(kill(session, SIGCONT) == 0);
	/* It stands in close(2), or this shows nothing; and there it stays until the peer reads. */
	assert_stuck(getpid());
	assert_others_are_served();
	assert_true(silent(v.raw));
	linger_release(&pair);
	assert_true(raw_refused(raw_reply(v.raw), code));
	assert_int_equal(raw_who_am_i(v.raw)->who_am_i->regions, 1);
	victim_end(&v);
}

static void a_lingering_socket_as_memory(void **state)
{
	(void)state;
	a_lingering_socket(send_as_memory, KVREG_E_BAD_MEMORY_FD);
}

static void a_lingering_socket_as_uverbs(void **state)
{
	(void)state;
	a_lingering_socket(raw_send_attach, KVREG_E_BAD_UVERBS);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_fuse_file_as_memory),
		TEST(a_fuse_file_as_uverbs),
		TEST(a_client_that_dies_while_its_session_hangs),
		TEST(a_lingering_socket_as_memory),
		TEST(a_lingering_socket_as_uverbs),
	};

	return RUN_GROUP("stuck", tests);
}
