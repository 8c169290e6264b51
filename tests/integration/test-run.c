/* SPDX-License-Identifier: Apache-2.0 */
/* kvreg-run as a shell starts it: the command's status and surroundings are its own. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon.h"

struct run {
	char out[4096], err[4096];
	int status; /* as waitpid(2) has it */
	pid_t pid;
};

static void read_all(int fd, char *text, size_t size)
{
	size_t used = 0;
	ssize_t n;

	while ((n = read(fd, text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(fd);
}

static void run(struct run *r, const char *const *arguments)
{
	char path[512], *argv[12] = { path };
	int out[2], err[2];

	build_path(path, sizeof(path), "kvreg-run");
	for (int i = 0; arguments[i]; i++)
		argv[i + 1] = (char *)arguments[i];
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	r->pid = fork();
	if (r->pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		execv(path, argv);
		_exit(99);
	}
	close(out[1]);
	close(err[1]);
	read_all(out[0], r->out, sizeof(r->out));
	read_all(err[0], r->err, sizeof(r->err));
	assert_int_equal(waitpid(r->pid, &r->status, 0), r->pid);
}

#define RUN(r, ...) run(r, (const char *const[]){ __VA_ARGS__, NULL })

static bool exited(const struct run *r, int status)
{
	return WIFEXITED(r->status) && WEXITSTATUS(r->status) == status;
}

static void the_status_is_the_commands(void **state)
{
	struct run r;

	(void)state;
	RUN(&r, "true");
	assert_true(exited(&r, 0));
	RUN(&r, "--", "sh", "-c", "exit 7");
	assert_true(exited(&r, 7));
	RUN(&r, "sh", "-c", "kill -TERM $$");
	assert_true(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGTERM);
	assert_string_equal(r.err, "");
}

static void own_failures_have_a_status_of_their_own(void **state)
{
	struct run r;

	(void)state;
	RUN(&r, "--nonsense", "true");
	assert_true(exited(&r, 125));
	assert_string_equal(r.out, "");
	assert_non_null(strstr(r.err, "kvreg-run: there is no option --nonsense"));
	RUN(&r, "/no/such/command");
	assert_true(exited(&r, 127));
	RUN(&r, "/");
	assert_true(exited(&r, 126));
}

/* It is the same process, with no descriptor more than it had. */
static void the_command_is_the_process(void **state)
{
	char pid[32];
	struct run r;

	(void)state;
	RUN(&r, "sh", "-c", "echo $$; ls /proc/self/fd | wc -l");
	snprintf(pid, sizeof(pid), "%d\n", (int)r.pid);
	assert_int_equal(strncmp(r.out, pid, strlen(pid)), 0);
	/* 0, 1, 2 and ls's own directory, and what this test has open beside. */
	assert_int_equal(atoi(r.out + strlen(pid)), open_fds() + 1);
}

static void the_library_comes_first(void **state)
{
	char expected[1200], path[512];
	struct run r;

	(void)state;
	build_path(path, sizeof(path), "libkvreg-preload.so");
	unsetenv("LD_PRELOAD");
	RUN(&r, "sh", "-c", "printf %s \"$LD_PRELOAD\"");
	assert_string_equal(r.out, path);
	setenv("LD_PRELOAD", "libc.so.6", 1);
	RUN(&r, "sh", "-c", "printf %s \"$LD_PRELOAD\"");
	unsetenv("LD_PRELOAD");
	snprintf(expected, sizeof(expected), "%s:libc.so.6", path);
	assert_string_equal(r.out, expected);
}

static void no_daemon_is_told(void **state)
{
	struct run r;

	(void)state;
	setenv("KVREG_SOCKET", "/nonexistent/sock", 1);
	RUN(&r, "--memlock", "1M", "echo", "ran");
	unsetenv("KVREG_SOCKET");
	assert_true(exited(&r, 125));
	assert_string_equal(r.out, "");
	assert_int_equal(strncmp(r.err, "kvreg: connect failed: NO_DAEMON: ", 34), 0);
}

/* A daemon that may not raise limits, and one whose quota is too small. */
static void a_refused_lease_is_told(void **state)
{
	struct daemon_options options = { .config = "[quota]\nper_uid = 1M\n" };
	struct daemon_under_test d;
	struct run r;

	(void)state;
	daemon_start(&d, &options);
	RUN(&r, "--memlock", "2M", "echo", "ran");
	assert_true(exited(&r, 125));
	assert_string_equal(r.out, "");
	assert_int_equal(strncmp(r.err, "kvreg: lease failed: LIMIT_", 27), 0);
	daemon_end(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_is_the_commands),
		cmocka_unit_test(own_failures_have_a_status_of_their_own),
		cmocka_unit_test(the_command_is_the_process),
		cmocka_unit_test(the_library_comes_first),
		cmocka_unit_test(no_daemon_is_told),
		cmocka_unit_test(a_refused_lease_is_told),
	};

	return RUN_GROUP("run", tests);
}
