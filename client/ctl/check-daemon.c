/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon, asked as any client asks it. The library waits as long as the daemon lets it, and a
 * path may lead through a file system that hangs, so a child asks. When it does not come back it is
 * killed, and not waited for without end: who waits in such a file system may not even die.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exam.h"
#include "format.h"
#include "proto/codec.h"
#include "proto/fdset.h"
#include "proto/limits.h"

#define KILL_WAIT_MS 1000

_Static_assert(sizeof(struct daemon_answer) <= PIPE_BUF, "it is written and read at once");

static void refused(struct daemon_answer *answer)
{
	const struct kvreg_error *e = kvreg_last_error();

	answer->state = DAEMON_REFUSED;
	answer->code = kvreg_error_code(e);
	text_clean(answer->meaning, sizeof(answer->meaning), kvreg_strerror(answer->code));
	text_clean(answer->detail, sizeof(answer->detail), kvreg_error_detail(e));
	text_clean(answer->hint, sizeof(answer->hint), kvreg_error_hint(e));
}

static void ask(const struct host *host, struct daemon_answer *answer)
{
	const struct kvreg_open_options options = {
		.size = sizeof(options),
		.socket = host->socket,
		.program = "kvregctl doctor",
	};
	struct kvreg *k = NULL;

	if (kvreg_open(&options, &k) || kvreg_whoami(k, &answer->identity)) {
		refused(answer);
	} else {
		answer->state = DAEMON_ANSWERED;
		text_clean(answer->device, sizeof(answer->device), kvreg_device_kind(k));
	}
	kvreg_close(k);
}

/* Waits for the child's answer. Return: whether it came, whole. */
static bool await(int from, int wait_ms, struct daemon_answer *ret_answer)
{
	struct pollfd fd = { .fd = from, .events = POLLIN };
	struct daemon_answer answer;

	if (poll(&fd, 1, wait_ms) <= 0 || read(from, &answer, sizeof(answer)) != sizeof(answer))
		return false;
	*ret_answer = answer;
	return true;
}

static void end_child(pid_t child)
{
	_cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	kill(child, SIGKILL);
	poll(&fd, 1, KILL_WAIT_MS);
	waitpid(child, NULL, WNOHANG);
}

void daemon_ask(const struct host *host, struct daemon_answer *ret_answer)
{
	_cleanup_fd_ int from = -1, to = -1;
	int ends[2];
	pid_t child;

	*ret_answer = (struct daemon_answer){ .state = DAEMON_UNASKED };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	from = ends[0];
	to = ends[1];
	child = fork();
	if (child < 0)
		return;
	if (child == 0) {
		ask(host, ret_answer);
		_exit(write(to, ret_answer, sizeof(*ret_answer)) != sizeof(*ret_answer));
	}
	fd_close(&to);
	if (await(from, host->daemon_wait_ms, ret_answer)) {
		waitpid(child, NULL, 0);
		return;
	}
	ret_answer->state = DAEMON_SILENT;
	end_child(child);
}

static const char *socket_name(const struct host *host)
{
	const char *given = host->socket ? host->socket : secure_getenv("KVREG_SOCKET");

	return given ? given : DEFAULT_SOCKET;
}

static void explain_refusal(struct exam *exam)
{
	const struct daemon_answer *answer = &exam->daemon;
	bool absent = answer->code == KVREG_E_NO_DAEMON || answer->code == KVREG_E_NO_PERMISSION;

	/* Who may pin without it can do without it. */
	found(&exam->findings, absent && exam_may_pin(exam) ? VERDICT_WARN : VERDICT_FAIL,
	      "%s (%s)", answer->meaning, answer->detail);
	change(&exam->findings, "%s", answer->hint);
}

void check_daemon(struct exam *exam)
{
	const struct daemon_answer *answer = &exam->daemon;

	switch (answer->state) {
	case DAEMON_ANSWERED:
		found(&exam->findings, VERDICT_PASS,
		      "%s answers (protocol %u, device %s): session pid %" PRIu32 " of uid %" PRIu32
		      " would be charged, not this process",
		      format_text(socket_name(exam->host)).text, PROTOCOL_MAJOR, answer->device,
		      answer->identity.session_pid, answer->identity.session_uid);
		break;
	case DAEMON_REFUSED:
		explain_refusal(exam);
		break;
	case DAEMON_SILENT:
		found(&exam->findings, VERDICT_FAIL, "%s does not answer within %d ms",
		      format_text(socket_name(exam->host)).text, exam->host->daemon_wait_ms);
		change(&exam->findings,
		       "see the daemon's log, and whether it is stopped or the host "
		       "is overloaded; regions survive its restart");
		break;
	case DAEMON_UNASKED:
		found(&exam->findings, VERDICT_FAIL, "it could not be asked: %s",
		      "this process can start no other (fork, pipe)");
		change(&exam->findings, "raise the limits on processes and open files of this user "
					"(ulimit -u, ulimit -n, pids.max)");
		break;
	}
}

void check_quota(struct exam *exam)
{
	const struct kvreg_identity *me = &exam->daemon.identity;

	if (exam->daemon.state != DAEMON_ANSWERED)
		found(&exam->findings, VERDICT_SKIP, "no daemon answers");
	else
		found(&exam->findings, VERDICT_PASS,
		      "class %s: a new session has %s granted, %s charged; the limits of uid "
		      "%" PRIu32 " are for administrators to see (kvregctl status)",
		      format_text(me->klass).text, format_size(me->granted).text,
		      format_size(me->charged).text, me->uid);
}
