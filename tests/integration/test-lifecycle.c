/* SPDX-License-Identifier: Apache-2.0 */
/* Clients, sessions and the supervisor end, each by itself and in each way; the books follow. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <kvreg-client.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "child.h"
#include "daemon.h"
#include "device.h"
#include "raw.h"

#define SIZE 65536u

static struct daemon_under_test daemon_;

static int set_up(void **state)
{
	/* Without leaves, everywhere: what a leaf knows of MRs, the mock device has none of. */
	const struct daemon_options options = { .config = "cgroup = none\n" };

	(void)state;
	daemon_start(&daemon_, &options);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	daemon_end(&daemon_);
	return 0;
}

/* A client of the library with one live region. */
struct engine {
	struct kvreg *k;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	struct kvreg_identity who;
	enum kvreg_event seen; /* the last event */
	uint64_t registered;   /* how often */
	struct device device;
};

static void note_event(void *arg, enum kvreg_event event)
{
	struct engine *e = arg;

	e->seen = event;
}

/* Not the same again, which would be the same region: a byte less each time. */
static int register_all(struct engine *e, struct kvreg_region **ret_region)
{
	return kvreg_register(e->domain, e->buffer, 0, SIZE - e->registered++, 0,
			      IB_UVERBS_ACCESS_LOCAL_WRITE, NULL, ret_region);
}

static void start_engine(struct engine *e)
{
	const struct kvreg_open_options options = { .size = sizeof(options),
						    .on_event = note_event,
						    .arg = e };
	void *address;

	*e = (struct engine){ .device = device_open() };
	require(kvreg_open(&options, &e->k) == 0);
	require(kvreg_attach_fd(e->k, e->device.fd, e->device.pd, &e->domain) == 0);
	require(kvreg_buffer_alloc(e->k, SIZE, 0, &address, &e->buffer) == 0);
	require(register_all(e, &e->region) == 0);
	require(kvreg_whoami(e->k, &e->who) == 0);
}

static void stop_engine(struct engine *e)
{
	kvreg_close(e->k);
	device_close(&e->device);
}

/* In a process of its own: says when it is ready with its region, and holds it. */
static int be_an_engine(struct child *me, void *arg)
{
	struct engine e;

	(void)arg;
	start_engine(&e);
	child_say(me);
	child_hear(me);
	stop_engine(&e);
	return 0;
}

static bool is_gone(void *arg)
{
	const uint32_t *pid = arg;

	return kill((pid_t)*pid, 0) < 0 && errno == ESRCH;
}

static bool draining(void *arg)
{
	const uint32_t *pid = arg;
	struct admin_client client;

	return admin_client(daemon_.admin_socket, *pid, &client) &&
	       strcmp(client.state, "draining") == 0;
}

static uint64_t granted(void)
{
	struct admin_status status;

	require(admin_status(daemon_.admin_socket, &status));
	return status.granted;
}

static void a_killed_client_leaves_nothing(void **state)
{
	struct admin_client seen;
	struct child client;

	(void)state;
	child_start(&client, 0, be_an_engine, NULL);
	require(child_hear(&client));
	require(admin_client(daemon_.admin_socket, (uint32_t)client.pid, &seen));
	assert_string_equal(seen.state, "serving");
	assert_true(seen.answered && !seen.unanswered);
	assert_int_equal(seen.regions, 1);
	assert_int_equal(seen.registered, SIZE);
	assert_true(seen.granted >= SIZE);
	child_kill(&client);
	daemon_idle(&daemon_);
	assert_true(wait_until(is_gone, &seen.session_pid));
}

/* The process that connects ends; one that it forked keeps the socket. */
static int leave_the_socket_behind(struct child *me, void *arg)
{
	struct engine e;

	(void)arg;
	start_engine(&e);
	if (fork() == 0) {
		child_say(me);
		child_hear(me);
		_exit(0);
	}
	return 0;
}

static void a_forked_child_does_not_keep_the_session(void **state)
{
	struct child client;

	(void)state;
	child_start(&client, 0, leave_the_socket_behind, NULL);
	require(child_hear(&client));
	require(waitpid(client.pid, NULL, 0) == client.pid);
	daemon_idle(&daemon_);
	close(client.sock);
}

static int lose_the_session(struct child *me, void *arg)
{
	struct kvreg_region *second = NULL;
	struct engine e;

	(void)arg;
	start_engine(&e);
	require(kill((pid_t)e.who.session_pid, SIGKILL) == 0);
	require(register_all(&e, &second) == -ECONNRESET);
	require(kvreg_error_code(kvreg_last_error()) == KVREG_E_SESSION_LOST);
	require(e.seen == KVREG_EVENT_SESSION_LOST);
	require(kvreg_whoami(e.k, &e.who) == -ECONNRESET);
	require(kvreg_dispatch(e.k) == -ECONNRESET);
	child_say(me);
	child_hear(me);
	require(kvreg_buffer_release(e.buffer) == 0);
	/* Its region is left: nobody has destroyed it. */
	kvreg_close(e.k);
	device_abandon(&e.device);
	return 0;
}

static void a_lost_session_stays_booked_as_long_as_its_client_lives(void **state)
{
	struct admin_client seen;
	struct child client;
	uint32_t pid;

	(void)state;
	child_start(&client, 0, lose_the_session, NULL);
	require(child_hear(&client));
	pid = (uint32_t)client.pid;
	assert_true(wait_until(draining, &pid));
	assert_true(granted() >= SIZE);
	require(admin_client(daemon_.admin_socket, pid, &seen));
	assert_false(seen.answered);
	assert_true(seen.granted >= SIZE);
	assert_int_equal(seen.session_pid, 0);
	assert_int_equal(daemon_log_lines(&daemon_, "session ended by signal 9"), 1);
	child_say(&client);
	assert_int_equal(child_end(&client), 0);
	daemon_idle(&daemon_);
}

static void a_lost_session_without_a_grant_is_forgotten(void **state)
{
	struct raw *raw = raw_greet(daemon_.socket);
	pid_t session = (pid_t)raw_who_am_i(raw)->who_am_i->session_pid;

	(void)state;
	require(kill(session, SIGKILL) == 0);
	assert_true(raw_closed(raw));
	daemon_idle(&daemon_);
	raw_close(raw);
}

static void sessions_outlive_a_killed_supervisor(void **state)
{
	struct kvreg_region *second;
	struct engine e;

	(void)state;
	start_engine(&e);
	daemon_kill(&daemon_);
	assert_int_equal(register_all(&e, &second), 0);
	assert_int_equal(kvreg_deregister(second), 0);
	assert_int_equal(kvreg_whoami(e.k, &e.who), 0);
	assert_int_equal(e.who.charged, SIZE);
	assert_int_equal(kvreg_deregister(e.region), 0);
	stop_engine(&e);
}

static void without_a_supervisor_nothing_more_is_granted(void **state)
{
	struct raw *raw = raw_greet(daemon_.socket);
	struct device device = device_open();
	int memory = memory_fd(4096, F_SEAL_SHRINK);
	uint32_t domain = raw_attach(raw, device.fd, device.pd)->attach_domain->domain;
	uint32_t buffer = raw_import(raw, memory, 4096, 0)->import_buffer->buffer;
	Kvreg__RegisterItem item = raw_item(domain, buffer, 4096);
	const Kvreg__Reply *reply;

	(void)state;
	daemon_kill(&daemon_);
	reply = raw_register(raw, &item, 1);
	assert_true(raw_refused(reply, KVREG_E_LIMIT_QUOTA));
	assert_non_null(strstr(reply->error->detail, "the supervisor is gone"));
	assert_non_null(raw_who_am_i(raw)->who_am_i);
	raw_close(raw);
	device_close(&device);
	close(memory);
}

static void a_stop_is_announced_and_breaks_nothing(void **state)
{
	struct pollfd waited;
	struct kvreg_region *second;
	struct engine e;

	(void)state;
	start_engine(&e);
	assert_int_equal(kvreg_dispatch(e.k), 0);
	assert_int_equal(e.seen, 0);
	daemon_stop(&daemon_);
	waited = (struct pollfd){ .fd = kvreg_fd(e.k), .events = POLLIN };
	require(poll(&waited, 1, 30000) == 1);
	assert_int_equal(kvreg_dispatch(e.k), 0);
	assert_int_equal(e.seen, KVREG_EVENT_DRAINING);
	assert_int_equal(register_all(&e, &second), 0);
	assert_int_equal(kvreg_whoami(e.k, &e.who), 0);
	assert_int_equal(e.who.regions, 2);
	assert_int_equal(access(daemon_.socket, F_OK), -1);
	assert_int_equal(access(daemon_.admin_socket, F_OK), -1);
	stop_engine(&e);
}

static void a_new_supervisor_takes_a_killed_ones_place(void **state)
{
	struct engine old, new;

	(void)state;
	start_engine(&old);
	daemon_kill(&daemon_);
	assert_int_equal(access(daemon_.socket, F_OK), 0);
	daemon_again(&daemon_);
	start_engine(&new);
	assert_int_equal(kvreg_whoami(old.k, &old.who), 0);
	stop_engine(&old);
	stop_engine(&new);
}

static void a_second_supervisor_gives_way(void **state)
{
	struct engine e;

	(void)state;
	start_engine(&e);
	assert_int_equal(daemon_refuses(&daemon_), 1);
	assert_int_equal(daemon_log_lines(&daemon_, "another kvregd listens there"), 1);
	assert_int_equal(daemon_log_lines(&daemon_, daemon_.socket), 2);
	stop_engine(&e);
	start_engine(&e);
	stop_engine(&e);
}

/* Its child keeps the socket, and sees it close: the session ended by itself, and was not killed. */
static void an_administrator_gone_ends_its_session(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int ended[2], fd;
	char byte;
	pid_t pid;

	(void)state;
	require(pipe2(ended, O_CLOEXEC) == 0);
	strcpy(address.sun_path, daemon_.admin_socket);
	pid = fork();
	if (pid == 0) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		require(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
		if (fork() == 0) {
			(void)recv(fd, &byte, 1, 0);
			_exit(write(ended[1], "e", 1) != 1);
		}
		_exit(0);
	}
	require(waitpid(pid, NULL, 0) == pid);
	assert_true(wait_readable(ended[0]));
	assert_int_equal(daemon_log_lines(&daemon_, "killed"), 0);
	close(ended[0]);
	close(ended[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_killed_client_leaves_nothing),
		TEST(a_forked_child_does_not_keep_the_session),
		TEST(a_lost_session_stays_booked_as_long_as_its_client_lives),
		TEST(a_lost_session_without_a_grant_is_forgotten),
		TEST(sessions_outlive_a_killed_supervisor),
		TEST(without_a_supervisor_nothing_more_is_granted),
		TEST(a_stop_is_announced_and_breaks_nothing),
		TEST(a_new_supervisor_takes_a_killed_ones_place),
		TEST(a_second_supervisor_gives_way),
		TEST(an_administrator_gone_ends_its_session),
	};

	return RUN_GROUP("lifecycle", tests);
}
