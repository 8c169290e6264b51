/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "device.h"

void build_path(char *ret_path, size_t size, const char *program)
{
	const char *build = getenv("KVREG_BUILD");

	snprintf(ret_path, size, "%s/%s", build && *build ? build : KVREG_BUILD, program);
}

/* ---- start ---- */

static void write_config(const struct daemon_under_test *d)
{
	FILE *file = fopen(d->config, "we");

	require(file);
	fprintf(file, "[daemon]\nsession_user = %u:%u\n%s", SESSION_UID, SESSION_UID,
		d->options.config ? d->options.config : "");
	require(fclose(file) == 0);
}

/* Of a test that failed half-way: the next one begins with none. */
static void end_leftovers(void)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	pid_t pid;

	while (file && fscanf(file, "%d", &pid) == 1) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (file)
		fclose(file);
}

void daemon_prepare(struct daemon_under_test *d, const struct daemon_options *options)
{
	end_leftovers();
	*d = (struct daemon_under_test){ .fds = open_fds() };
	if (options)
		d->options = *options;
	/* What a daemon leaves behind becomes our child, so that the end can wait for it. */
	require(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	strcpy(d->dir, "/tmp/kvreg-test-XXXXXX");
	require(mkdtemp(d->dir));
	/* Clients of other users pass through here. */
	require(chmod(d->dir, 0711) == 0);
	snprintf(d->socket, sizeof(d->socket), "%s/client/kvregd.sock", d->dir);
	snprintf(d->admin_socket, sizeof(d->admin_socket), "%s/admin/admin.sock", d->dir);
	snprintf(d->config, sizeof(d->config), "%s/kvregd.conf", d->dir);
	snprintf(d->log, sizeof(d->log), "%s/log", d->dir);
	write_config(d);
	require(setenv("KVREG_SOCKET", d->socket, 1) == 0);
}

static void run_program(const struct daemon_under_test *d)
{
	char *const argv[] = {
		"kvregd",
		"--foreground",
		"--log-level=debug",
		"--device",
		(char *)(d->options.device ? d->options.device : device_kind()),
		"--socket",
		(char *)d->socket,
		"--admin-socket",
		(char *)d->admin_socket,
		"--config",
		(char *)d->config,
		d->options.allow_faults ? "--allow-faults" : NULL,
		NULL,
	};
	int log = open(d->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	char path[4096];

	if (d->options.programs)
		snprintf(path, sizeof(path), "%s/kvregd", d->options.programs);
	else
		build_path(path, sizeof(path), "kvregd");
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		_exit(126);
	if (d->options.before_exec)
		d->options.before_exec();
	execv(path, argv);
	perror(path);
	_exit(126);
}

void daemon_launch(struct daemon_under_test *d)
{
	fflush(NULL);
	d->pid = fork();
	require(d->pid >= 0);
	if (d->pid == 0)
		run_program(d);
}

static void show_log(const struct daemon_under_test *d)
{
	char line[1024];
	FILE *log = fopen(d->log, "re");

	while (log && fgets(line, sizeof(line), log))
		print_error("log: %s", line);
	if (log)
		fclose(log);
}

static bool answers(void *arg)
{
	struct daemon_under_test *d = arg;
	struct admin_status status;

	if (waitpid(d->pid, NULL, WNOHANG) != 0) {
		show_log(d);
		fail_msg("kvregd did not start");
	}
	return admin_status(d->admin_socket, &status) && status.pid == (uint32_t)d->pid;
}

void daemon_again(struct daemon_under_test *d)
{
	daemon_launch(d);
	require(wait_until(answers, d));
}

void daemon_start(struct daemon_under_test *d, const struct daemon_options *options)
{
	daemon_prepare(d, options);
	daemon_again(d);
}

struct ending {
	pid_t pid;
	int status;
};

static bool has_ended(void *arg)
{
	struct ending *ending = arg;

	return waitpid(ending->pid, &ending->status, WNOHANG) == ending->pid;
}

int daemon_refuses(struct daemon_under_test *d)
{
	struct daemon_under_test other = *d;
	struct ending ending = { 0 };

	daemon_launch(&other);
	ending.pid = other.pid;
	if (!wait_until(has_ended, &ending)) {
		kill(other.pid, SIGKILL);
		waitpid(other.pid, NULL, 0);
		fail_msg("a kvregd started that was to give up");
	}
	require(WIFEXITED(ending.status));
	return WEXITSTATUS(ending.status);
}

/* ---- end ---- */

void daemon_stop(struct daemon_under_test *d)
{
	int status = 0;

	require(kill(d->pid, SIGTERM) == 0);
	require(waitpid(d->pid, &status, 0) == d->pid);
	d->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		show_log(d);
		fail_msg("kvregd ended with wait status 0x%x", (unsigned int)status);
	}
}

void daemon_kill(struct daemon_under_test *d)
{
	int status = 0;

	require(kill(d->pid, SIGKILL) == 0);
	require(waitpid(d->pid, &status, 0) == d->pid);
	require(WIFSIGNALED(status));
	d->pid = 0;
}

static bool is_idle(void *arg)
{
	const struct daemon_under_test *d = arg;
	struct admin_status status;

	return admin_status(d->admin_socket, &status) && status.sessions == 0 &&
	       status.granted == 0 && status.memory == 0 && status.regions == 0 &&
	       status.users == 0;
}

void daemon_idle(struct daemon_under_test *d)
{
	if (wait_until(is_idle, d))
		return;
	show_log(d);
	fail_msg("the books are not at zero");
}

static bool no_child_is_left(void *arg)
{
	(void)arg;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return errno == ECHILD;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

void daemon_end(struct daemon_under_test *d)
{
	static const char *const alarms[] = { "ERROR: AddressSanitizer",
					      "runtime error:", "LeakSanitizer", "ThreadSanitizer",
					      "Assertion" };

	if (!d->dir[0])
		return; /* the test was skipped before it started one */
	if (d->pid) {
		daemon_idle(d);
		daemon_stop(d);
	}
	require(wait_until(no_child_is_left, NULL));
	for (size_t i = 0; i < COUNT(alarms); i++) {
		if (daemon_log_lines(d, alarms[i]) == 0)
			continue;
		show_log(d);
		fail_msg("the log holds \"%s\"", alarms[i]);
	}
	require(nftw(d->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
	d->dir[0] = '\0';
	require(unsetenv("KVREG_SOCKET") == 0);
	assert_int_equal(open_fds(), d->fds);
}

/* ---- what it holds ---- */

size_t daemon_fds(const struct daemon_under_test *d)
{
	char path[32];
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", d->pid);
	dir = opendir(path);
	require(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* "." and ".." */
}

size_t daemon_children(const struct daemon_under_test *d)
{
	char path[64];
	pid_t child;
	size_t n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", d->pid, d->pid);
	file = fopen(path, "re");
	require(file);
	while (fscanf(file, "%d", &child) == 1)
		n++;
	fclose(file);
	return n;
}

struct rest {
	const struct daemon_under_test *daemon;
	size_t n;
};

static bool rests(void *arg)
{
	const struct rest *rest = arg;
	char path[32], line[512] = "";
	const char *state;
	FILE *file;

	if (daemon_children(rest->daemon) != rest->n)
		return false;
	/* Its children are reaped before all of theirs is freed; then it sleeps. */
	snprintf(path, sizeof(path), "/proc/%d/stat", rest->daemon->pid);
	file = fopen(path, "re");
	require(file && fgets(line, sizeof(line), file));
	fclose(file);
	state = strrchr(line, ')');
	return state && state[2] == 'S';
}

void daemon_rest(const struct daemon_under_test *d, size_t n)
{
	struct rest rest = { d, n };

	require(wait_until(rests, &rest));
}

/* ---- log ---- */

size_t daemon_log_lines(const struct daemon_under_test *d, const char *words)
{
	char line[1024];
	size_t n = 0;
	FILE *log = fopen(d->log, "re");

	while (log && fgets(line, sizeof(line), log))
		n += strstr(line, words) != NULL;
	if (log)
		fclose(log);
	return n;
}

struct wanted {
	const struct daemon_under_test *daemon;
	const char *words;
	size_t n;
};

static bool log_has(void *arg)
{
	const struct wanted *wanted = arg;

	return daemon_log_lines(wanted->daemon, wanted->words) >= wanted->n;
}

bool daemon_log_soon(const struct daemon_under_test *d, const char *words, size_t n)
{
	struct wanted wanted = { d, words, n };

	return wait_until(log_has, &wanted);
}
