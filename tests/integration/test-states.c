/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client can end in every state: killed, stopped, or gone while a child that it forked keeps its
 * socket and its device. Nobody else waits for it, and nothing of it is left.
 *
 * The table says how a client gets into each state of a session and of a region, and into each stage
 * that a fault can hold its session in; one that is missing does not compile. Each stage has a class
 * of its own whose sessions are held there much longer than a test lasts, so that all clients of one
 * way to end are held at once, and the grace that a held session gets passes once for all of them.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "child.h"
#include "daemon.h"
#include "daemon/session.h"
#include "daemon/session/region.h"
#include "device.h"
#include "proto/faults.h"
#include "raw.h"

#define SIZE (2u << 20)

#define LONG_MS  60000u
#define SHORT_MS 300u

enum way { KILLED, STOPPED, FORKED };

static struct daemon_under_test daemon_;

/* ---- how far a client goes ---- */

struct victim {
	const struct row *row;
	enum way way;
	struct child child;
	pid_t session; /* as last listed; 0: it has none */
	/* In its own process. */
	struct raw *raw; /* connected from the start */
	struct device device;
	int memory;
	uint32_t domain, buffer, region;
};

static void say_nothing(struct victim *v)
{
	(void)v;
}

static void greet(struct victim *v)
{
	require(raw_hello(v->raw, PROTOCOL_MAJOR)->hello);
}

static void attach(struct victim *v)
{
	greet(v);
	v->domain = raw_attach(v->raw, v->device.fd, v->device.pd)->attach_domain->domain;
}

static void import(struct victim *v)
{
	attach(v);
	v->buffer = raw_import(v->raw, v->memory, SIZE, 0)->import_buffer->buffer;
}

static void register_(struct victim *v)
{
	import(v);
	Kvreg__RegisterItem item = raw_item(v->domain, v->buffer, SIZE);
	const Kvreg__Reply *reply = raw_register(v->raw, &item, 1);
	require(reply->register_);
	v->region = reply->register_->regions[0]->region;
}

static void deregister(struct victim *v)
{
	register_(v);
	require(raw_deregister(v->raw, v->region)->done);
}

static void lose_the_session(struct victim *v)
{
	register_(v);
	require(kill((pid_t)raw_who_am_i(v->raw)->who_am_i->session_pid, SIGKILL) == 0);
}

static void hang_up(struct victim *v)
{
	deregister(v);
	require(shutdown(v->raw->sock, SHUT_RDWR) == 0);
}

/* ---- the table ---- */

struct row {
	const char *name;
	unsigned int number;                /* among all states and stages */
	void (*get_there)(struct victim *); /* of a held one, does not return */
	const char *klass; /* NULL: the default; else that of the stage of this name */
	bool held;         /* in that stage */
	const char *state; /* as administrators see it; NULL: not any more */
	uint32_t regions;  /* that they see, of one that is not held */
};

#define SESSION(state) "session " #state, SESSION_##state
#define REGION(state)  "region " #state, SESSION_STATES + REGION_##state
#define STAGE(stage)   "stage " #stage, SESSION_STATES + REGION_STATES + FAULT_##stage

static const struct row rows[] = {
	{ SESSION(SPAWNING), say_nothing, NULL, false, "spawning", 0 },
	{ SESSION(SERVING), greet, NULL, false, "serving", 0 },
	{ SESSION(DRAINING), lose_the_session, NULL, false, "draining", 0 },
	{ SESSION(GONE), hang_up, NULL, false, NULL, 0 },
	{ REGION(REGISTERING), register_, "register", true, "stuck", 0 },
	/* Its session is held when it destroys the region that its client has left. */
	{ REGION(LIVE), register_, "deregister", false, "serving", 1 },
	{ REGION(RELEASING), deregister, "deregister", true, "stuck", 0 },
	{ REGION(DEAD), deregister, NULL, false, "serving", 0 },
	{ STAGE(CONNECT), greet, "connect", true, "stuck", 0 },
	{ STAGE(ATTACH), attach, "attach", true, "stuck", 0 },
	{ STAGE(IMPORT), import, "import", true, "stuck", 0 },
	{ STAGE(MAP), register_, "map", true, "stuck", 0 },
	{ STAGE(POPULATE), register_, "populate", true, "stuck", 0 },
	{ STAGE(REGISTER), register_, "register", true, "stuck", 0 },
	{ STAGE(DEREGISTER), deregister, "deregister", true, "stuck", 0 },
};
_Static_assert(COUNT(rows) == SESSION_STATES + REGION_STATES + FAULT_STAGES,
	       "each state and stage needs a way for a client to get there");

static const char *const stages[] = { "connect",  "attach",   "import",    "map",
				      "populate", "register", "deregister" };
_Static_assert(COUNT(stages) == FAULT_STAGES, "each stage needs a class that is held there");

/* ---- a victim's process ---- */

/* The forked child: when told that its parent is gone, it waits for the connection's end. */
static int keep_all(struct child *me, struct victim *v)
{
	require(child_hear(me));
	while (raw_reply(v->raw))
		;
	child_say(me);
	child_hear(me);
	return 0;
}

static int be_a_client(struct child *me, void *arg)
{
	struct victim *v = arg;
	const char *klass = v->row->klass;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s/kvregd.sock", daemon_.dir, klass ? klass : "");
	v->raw = raw_open(klass ? path : daemon_.socket);
	require(v->raw);
	v->device = device_open();
	v->memory = memory_fd(SIZE, F_SEAL_SHRINK);
	if (v->way == FORKED && fork() == 0)
		return keep_all(me, v);
	v->row->get_there(v);
	child_say(me);
	for (;;)
		pause();
}

static struct victim victims[COUNT(rows)];

static void await(struct victim *v)
{
	char comm[16] = "", words[128];

	if (!v->row->held) {
		require(child_hear(&v->child));
		return;
	}
	prctl(PR_GET_NAME, comm, 0, 0, 0);
	snprintf(words, sizeof(words), "client %d (%s, uid %u): held in stage %s by [test]",
		 v->child.pid, comm, geteuid(), v->row->klass);
	require(daemon_log_soon(&daemon_, words, 1));
}

/* ---- what administrators see ---- */

static struct victim *victim_of(uint32_t pid)
{
	for (size_t i = 0; i < COUNT(victims); i++)
		if (victims[i].child.pid == (pid_t)pid)
			return &victims[i];
	return NULL;
}

struct line {
	bool listed, answered, unanswered;
	uint32_t regions;
	char state[16];
};

static void take_clients(const Kvreg__AdminReply *reply, struct line *lines)
{
	for (size_t i = 0; i < reply->n_clients; i++) {
		const Kvreg__ClientInfo *info = reply->clients[i];
		struct victim *v = victim_of(info->pid);

		if (!v)
			continue;
		struct line *line = &lines[v - victims];
		line->listed = true;
		line->answered = info->answered;
		line->regions = info->regions;
		snprintf(line->state, sizeof(line->state), "%s", info->state);
		v->session = (pid_t)info->session_pid;
	}
	for (size_t i = 0; i < reply->n_unanswered; i++)
		if (victim_of(reply->unanswered[i]))
			lines[victim_of(reply->unanswered[i]) - victims].unanswered = true;
}

static bool is_there(const struct victim *v, const struct line *line)
{
	const struct row *row = v->row;

	if (!row->state || !line->listed)
		return !row->state && !line->listed;
	if (strcmp(line->state, row->state) != 0)
		return false;
	if (row->held)
		return line->unanswered && !line->answered;
	return v->session == 0 || (line->answered && line->regions == row->regions);
}

/* One question for all of them: a held session costs it the time that it waits for any. */
static bool all_are_there(void *arg)
{
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__ClientsRequest body = KVREG__CLIENTS_REQUEST__INIT;
	struct raw *admin = raw_open(daemon_.admin_socket);
	struct line lines[COUNT(rows)] = { 0 };
	const Kvreg__AdminReply *reply;
	const char **ret_missing = arg;

	require(admin);
	request.body_case = KVREG__ADMIN_REQUEST__BODY_CLIENTS;
	request.clients = &body;
	admin_send(admin, &request);
	do {
		reply = admin_reply(admin);
		require(reply && !reply->error);
		take_clients(reply, lines);
	} while (reply->more);
	raw_close(admin);
	*ret_missing = NULL;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (!is_there(&victims[i], &lines[i]))
			*ret_missing = rows[i].name;
	return !*ret_missing;
}

static void assert_all_are_there(void)
{
	const char *missing;

	if (!wait_until(all_are_there, &missing))
		fail_msg("a client is not where it should be: %s", missing);
}

/* ---- the test ---- */

static void start(unsigned int delay_ms)
{
	/* Without leaves: what a leaf knows of MRs, the mock device has none of. */
	const struct daemon_options options = { .config = "cgroup = none\n", .allow_faults = true };
	FILE *file;

	daemon_prepare(&daemon_, &options);
	file = fopen(daemon_.config, "ae");
	require(file);
	for (size_t i = 0; i < COUNT(stages); i++)
		fprintf(file,
			"[class %s]\nsocket = %s/%s/kvregd.sock\n"
			"[test %s]\ndelay = %s:%u\n",
			stages[i], daemon_.dir, stages[i], stages[i], stages[i], delay_ms);
	require(fclose(file) == 0);
	daemon_again(&daemon_);
}

static int tear_down(void **state)
{
	(void)state;
	daemon_end(&daemon_);
	return 0;
}

static void get_all_there(enum way way)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		victims[i] = (struct victim){ .row = &rows[i], .way = way };
		child_start(&victims[i].child, 0, be_a_client, &victims[i]);
	}
	for (size_t i = 0; i < COUNT(rows); i++)
		await(&victims[i]);
}

/* A client that nothing holds. */
static void others_are_served(void)
{
	struct victim bystander = { .raw = raw_open(daemon_.socket) };

	require(bystander.raw);
	bystander.device = device_open();
	bystander.memory = memory_fd(SIZE, F_SEAL_SHRINK);
	deregister(&bystander);
	raw_close(bystander.raw);
	device_close(&bystander.device);
	close(bystander.memory);
}

static bool is_gone(void *arg)
{
	return kill(*(const pid_t *)arg, 0) < 0 && errno == ESRCH;
}

static void nothing_is_left(void)
{
	daemon_idle(&daemon_);
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_true(victims[i].session == 0 || wait_until(is_gone, &victims[i].session));
}

static void each_state_has_one_row(void **state)
{
	bool seen[COUNT(rows)] = { false };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(rows[i].number < COUNT(rows) && !seen[rows[i].number]);
		seen[rows[i].number] = true;
	}
}

static void a_client_killed_in_any_state_leaves_nothing(void **state)
{
	(void)state;
	start(LONG_MS);
	get_all_there(KILLED);
	others_are_served();
	assert_all_are_there();
	for (size_t i = 0; i < COUNT(rows); i++)
		child_kill(&victims[i].child);
	others_are_served();
	nothing_is_left();
}

static void a_client_stopped_in_any_state_is_seen_and_delays_nobody(void **state)
{
	int status;

	(void)state;
	start(LONG_MS);
	get_all_there(STOPPED);
	for (size_t i = 0; i < COUNT(rows); i++) {
		pid_t pid = victims[i].child.pid;

		require(kill(pid, SIGSTOP) == 0);
		require(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	}
	others_are_served();
	assert_all_are_there();
	for (size_t i = 0; i < COUNT(rows); i++)
		child_kill(&victims[i].child);
	nothing_is_left();
}

static void a_forked_child_keeps_no_session_in_any_state(void **state)
{
	(void)state;
	start(LONG_MS);
	get_all_there(FORKED);
	others_are_served();
	assert_all_are_there();
	for (size_t i = 0; i < COUNT(rows); i++) {
		require(kill(victims[i].child.pid, SIGKILL) == 0);
		require(waitpid(victims[i].child.pid, NULL, 0) == victims[i].child.pid);
		child_say(&victims[i].child);
	}
	others_are_served();
	/* What it keeps is a socket that nobody answers, and a device. */
	for (size_t i = 0; i < COUNT(rows); i++)
		require(child_hear(&victims[i].child));
	for (size_t i = 0; i < COUNT(rows); i++)
		close(victims[i].child.sock);
	nothing_is_left();
}

/* As long as the grace lasts the session ends by itself: it undoes what it was at. */
static void a_session_that_is_let_go_on_undoes_what_it_did(void **state)
{
	(void)state;
	start(SHORT_MS);
	get_all_there(KILLED);
	for (size_t i = 0; i < COUNT(rows); i++)
		child_kill(&victims[i].child);
	nothing_is_left();
	assert_int_equal(daemon_log_lines(&daemon_, "session ended with status"), 0);
	/* The one whose client ended it. */
	assert_int_equal(daemon_log_lines(&daemon_, "session ended by signal"),
			 daemon_log_lines(&daemon_, "session ended by signal 9"));
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_state_has_one_row),
		TEST(a_client_killed_in_any_state_leaves_nothing),
		TEST(a_client_stopped_in_any_state_is_seen_and_delays_nobody),
		TEST(a_forked_child_keeps_no_session_in_any_state),
		TEST(a_session_that_is_let_go_on_undoes_what_it_did),
	};

	return RUN_GROUP("states", tests);
}
