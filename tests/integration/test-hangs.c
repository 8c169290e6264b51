/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands still holds nobody else up: a stopped session, a supervisor that is slow to look,
 * and a supervisor without descriptors.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "child.h"
#include "daemon.h"
#include "raw.h"

static struct daemon_under_test daemon_;

/* A client whose number is not ours: it says Hello, and stays. */
static int stay(struct child *me, void *arg)
{
	struct raw *raw = raw_greet(arg);

	child_say(me);
	child_hear(me);
	raw_close(raw);
	return 0;
}

static struct admin_client client_line(const struct child *client)
{
	struct admin_client line;

	require(admin_client(daemon_.admin_socket, (uint32_t)client->pid, &line));
	return line;
}

static void a_stopped_session_is_named(void **state)
{
	struct admin_client line;
	struct child still, lively;
	struct raw *raw;

	(void)state;
	daemon_start(&daemon_, NULL);
	child_start(&still, 0, stay, daemon_.socket);
	child_start(&lively, 0, stay, daemon_.socket);
	require(child_hear(&still) && child_hear(&lively));
	line = client_line(&still);
	assert_true(line.answered && !line.unanswered);
	pid_t session = (pid_t)line.session_pid;
	require(kill(session, SIGSTOP) == 0);
	line = client_line(&still);
	assert_true(!line.answered && line.unanswered);
	assert_string_equal(line.state, "stuck");
	line = client_line(&lively);
	assert_true(line.answered && !line.unanswered);
	assert_string_equal(line.state, "serving");
	raw = raw_greet(daemon_.socket);
	assert_non_null(raw_who_am_i(raw)->who_am_i);
	raw_close(raw);
	require(kill(session, SIGCONT) == 0);
	child_say(&still);
	child_say(&lively);
	assert_int_equal(child_end(&still), 0);
	assert_int_equal(child_end(&lively), 0);
	daemon_end(&daemon_);
}

/* Also where the supervisor has another uid than its sessions and may not signal them. */
static void a_stopped_session_is_ended_after_its_client(void **state)
{
	struct admin_client line;
	struct child client;

	(void)state;
	daemon_start(&daemon_, NULL);
	child_start(&client, 0, stay, daemon_.socket);
	require(child_hear(&client));
	line = client_line(&client);
	require(kill((pid_t)line.session_pid, SIGSTOP) == 0);
	child_kill(&client);
	daemon_idle(&daemon_);
	assert_int_equal(daemon_log_lines(&daemon_, "did not end: killed"), 1);
	daemon_end(&daemon_);
}

/* ---- a supervisor that looks later ---- */

static bool is_zombie(void *arg)
{
	const pid_t *pid = arg;
	char path[64], line[512] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", *pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	require(fgets(line, sizeof(line), file));
	fclose(file);
	return strstr(line, ") Z ") != NULL;
}

/* The end of a session and its last words are seen at once. */
static void last_words_are_heard(void **state)
{
	struct raw *raw;
	pid_t session;

	(void)state;
	daemon_start(&daemon_, NULL);
	raw = raw_greet(daemon_.socket);
	session = (pid_t)raw_who_am_i(raw)->who_am_i->session_pid;
	require(kill(daemon_.pid, SIGSTOP) == 0);
	raw_send(raw, "\xff", 1, NULL, 0);
	assert_true(raw_closed(raw));
	assert_true(wait_until(is_zombie, &session));
	require(kill(daemon_.pid, SIGCONT) == 0);
	daemon_idle(&daemon_);
	assert_int_equal(daemon_log_lines(&daemon_, "broke the protocol"), 1);
	raw_close(raw);
	daemon_end(&daemon_);
}

static int come_and_go(struct child *me, void *arg)
{
	struct raw *raw = raw_open(arg);

	child_say(me);
	child_hear(me);
	require(raw_hello(raw, PROTOCOL_MAJOR)->hello);
	child_say(me);
	child_hear(me);
	return 0;
}

static bool has_session(void *arg)
{
	struct admin_status status;

	(void)arg;
	return admin_status(daemon_.admin_socket, &status) && status.sessions == 1;
}

/* A session's first word is read after its client is seen to be gone. */
static void a_client_that_comes_and_goes_is_no_error(void **state)
{
	struct admin_client line;
	struct child client;

	(void)state;
	daemon_start(&daemon_, NULL);
	child_start(&client, 0, come_and_go, daemon_.socket);
	require(child_hear(&client));
	require(wait_until(has_session, NULL));
	line = client_line(&client);
	assert_string_equal(line.state, "spawning");
	require(kill(daemon_.pid, SIGSTOP) == 0);
	child_say(&client);
	require(child_hear(&client));
	require(kill((pid_t)line.session_pid, SIGSTOP) == 0);
	pid_t pid = client.pid;
	child_say(&client);
	assert_int_equal(child_end(&client), 0);
	require(kill(daemon_.pid, SIGCONT) == 0);
	require(admin_client(daemon_.admin_socket, (uint32_t)pid, &line));
	assert_string_equal(line.state, "stuck");
	require(kill((pid_t)line.session_pid, SIGCONT) == 0);
	daemon_idle(&daemon_);
	assert_int_equal(daemon_log_lines(&daemon_, "error"), 0);
	assert_int_equal(daemon_log_lines(&daemon_, "warning: client"), 0);
	daemon_end(&daemon_);
}

/* ---- no descriptors ---- */

#define WAITING 14u

/* How many the supervisor may still open. */
static unsigned int room;

/* All but some are taken. The limit itself is not low: sessions need theirs. */
static void take_fds(void)
{
	const struct rlimit limit = { SESSION_NOFILE + 100, SESSION_NOFILE + 100 };
	int fd;

	setrlimit(RLIMIT_NOFILE, &limit);
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && (unsigned int)fd < SESSION_NOFILE + 100 - room);
}

/* Takes the answers that are there and ends their connections. Return: how many. */
static size_t serve_and_close(struct raw **raws)
{
	struct pollfd fds[WAITING];
	size_t n = 0;

	for (size_t i = 0; i < WAITING; i++)
		fds[i] = (struct pollfd){ .fd = raws[i] ? raws[i]->sock : -1, .events = POLLIN };
	require(poll(fds, WAITING, 30000) > 0);
	for (size_t i = 0; i < WAITING; i++) {
		if (!fds[i].revents)
			continue;
		const Kvreg__Reply *reply = raw_reply(raws[i]);
		require(reply && reply->hello);
		raw_close(raws[i]);
		raws[i] = NULL;
		n++;
	}
	return n;
}

static void clients_wait_while_descriptors_are_short(void **state)
{
	const struct daemon_options options = { .before_exec = take_fds };
	Kvreg__Hello hello = KVREG__HELLO__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;
	struct raw *raws[WAITING];

	(void)state;
	hello.major = PROTOCOL_MAJOR;
	request.seq = 1;
	request.body_case = KVREG__REQUEST__BODY_HELLO;
	request.hello = &hello;
	/* A session takes four: so that they run out at each step of starting one. */
	for (room = 40; room < 44; room++) {
		daemon_start(&daemon_, &options);
		for (size_t i = 0; i < WAITING; i++) {
			raws[i] = raw_open(daemon_.socket);
			require(raws[i]);
			raw_send_request(raws[i], &request, NULL, 0);
		}
		require(daemon_log_soon(&daemon_, "accepting pauses", 1));
		for (size_t served = 0; served < WAITING;)
			served += serve_and_close(raws);
		daemon_end(&daemon_);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_session_is_named),
		cmocka_unit_test(a_stopped_session_is_ended_after_its_client),
		cmocka_unit_test(last_words_are_heard),
		cmocka_unit_test(a_client_that_comes_and_goes_is_no_error),
		cmocka_unit_test(clients_wait_while_descriptors_are_short),
	};

	return RUN_GROUP("hangs", tests);
}
