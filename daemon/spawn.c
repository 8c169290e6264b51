/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/fdset.h"
#include "proto/limits.h"
#include "proto/session-fds.h"

#ifndef KVREG_LIBEXECDIR
#define KVREG_LIBEXECDIR "/usr/libexec/kvreg"
#endif

/* In a child above the fds that it places: never in the way of a fixed number. */
#define HIGH_FD 20

int spawner_init(struct spawner *s, const struct privilege *privilege)
{
	struct rlimit limit = { 0 };
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("-session"));

	*s = (struct spawner){ .exe = -1, .privilege = privilege };
	getrlimit(RLIMIT_MEMLOCK, &limit);
	s->fixed_limit = limit.rlim_max;
	if (n > 0) {
		strcpy(path + n, "-session");
		s->exe = open(path, O_PATH | O_CLOEXEC);
	}
	if (s->exe < 0)
		s->exe = open(KVREG_LIBEXECDIR "/kvregd-session", O_PATH | O_CLOEXEC);
	return s->exe < 0 ? -errno : 0;
}

void spawner_fini(struct spawner *s)
{
	fd_close(&s->exe);
}

static int fill_down(int down[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, down) < 0)
		return -errno;
	/* What a session sends towards us on this socket fails at its end. */
	if (shutdown(down[0], SHUT_RD) < 0 || fcntl(down[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static int fill_up(int up[2])
{
	if (pipe2(up, O_DIRECT | O_CLOEXEC) < 0 || fcntl(up[0], F_SETFL, O_NONBLOCK | O_DIRECT) < 0)
		return -errno;
	return 0;
}

int spare_fill(struct spare *spare)
{
	int r = 0;

	if (spare->down[0] < 0)
		r = fill_down(spare->down);
	if (r == 0 && spare->up[0] < 0)
		r = fill_up(spare->up);
	if (r == 0 && spare->go[0] < 0 && pipe2(spare->go, O_CLOEXEC) < 0)
		r = -errno;
	for (size_t i = 0; r == 0 && i < SPARE_SLACK; i++) {
		if (spare->slack[i] < 0)
			spare->slack[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (spare->slack[i] < 0)
			r = -errno;
	}
	return r;
}

void spare_release(struct spare *spare)
{
	for (size_t i = 0; i < SPARE_SLACK; i++)
		fd_close(&spare->slack[i]);
}

void spare_fini(struct spare *spare)
{
	int *fds[] = { spare->down, spare->up, spare->go };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		fd_close(&fds[i][0]);
		fd_close(&fds[i][1]);
	}
	spare_release(spare);
}

/* ---- in the child, until exec or _exit: no allocation, no libev, no stdio ---- */

static void child_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Nothing of the supervisor's surroundings: its terminal, its log, its directory. */
static int child_detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), r = 0;

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		r = -1;
#ifndef KVREG_NO_FILTER /* a sanitizer's report is for the tests to see */
	if (dup2(null, 2) < 0)
		r = -1;
#endif
	if (null > 2)
		close(null);
	umask(077);
	(void)setsid();
	return r < 0 || chdir("/") < 0 ? -errno : 0;
}

static void child_wait(const struct spare *spare)
{
	char byte;

	close(spare->go[1]);
	while (read(spare->go[0], &byte, 1) < 0 && errno == EINTR)
		;
}

static int child_drop(const struct privilege *p)
{
	/* The order matters: after setresuid() there is no capability left to change groups with.
	 */
	if (!p->switch_user)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(p->gid, p->gid, p->gid) < 0 ||
	    setresuid(p->uid, p->uid, p->uid) < 0)
		return -errno;
	return 0;
}

static int child_limits(const struct spawner *s)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit files = { 0, 0 };
	const struct rlimit fixed = { s->fixed_limit, s->fixed_limit };

	/* A daemon with few fds has sessions with few: only what it has can be passed on. */
	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max > SESSION_NOFILE)
		files.rlim_max = SESSION_NOFILE;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	/* Nothing may be pinned before the first grant. */
	if (setrlimit(RLIMIT_MEMLOCK, s->privilege->raise_limit ? &none : &fixed) < 0)
		return -errno;
	return 0;
}

/* What the supervisor has left of its own limit: it may have no fd free when it forks. */
static void child_room(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static int child_place(int fd, int at)
{
	if (fd < 0) {
		close(at);
		return 0;
	}
	return dup2(fd, at) < 0 ? -errno : 0;
}

static void child_session(const struct spawner *s, int client, int client_pidfd,
			  const struct leaf *leaf, const struct spare *spare)
{
	char *argv[] = { "kvregd-session", KVREG_VERSION, NULL }, *envp[] = { NULL };
	int from[] = { client, spare->down[1], spare->up[1], client_pidfd, s->exe };
	int exe = SESSION_FD_COUNT;

	child_signals();
	child_wait(spare);
	child_room();
	if (leaf_enter(leaf) < 0 || child_detach() < 0)
		_exit(EXIT_SPAWN);
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		if (from[i] >= 0 && (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, HIGH_FD)) < 0)
			_exit(EXIT_SPAWN);
	if (child_place(from[0], SESSION_FD_CLIENT) < 0 ||
	    child_place(from[1], SESSION_FD_DOWN) < 0 || child_place(from[2], SESSION_FD_UP) < 0 ||
	    child_place(from[3], SESSION_FD_PIDFD) < 0 || dup3(from[4], exe, O_CLOEXEC) < 0 ||
	    syscall(SYS_close_range, (unsigned int)exe + 1, ~0u, 0) < 0)
		_exit(EXIT_SPAWN);
	if (child_limits(s) < 0 || child_drop(s->privilege) < 0)
		_exit(EXIT_SPAWN);
	syscall(SYS_execveat, exe, "", argv, envp, AT_EMPTY_PATH);
	_exit(EXIT_SPAWN);
}

static void child_refusal(const struct spawner *s, int client, const struct spare *spare,
			  const void *bytes, size_t length)
{
	child_signals();
	child_wait(spare);
	if (child_detach() < 0 || dup2(client, SESSION_FD_CLIENT) < 0 ||
	    syscall(SYS_close_range, SESSION_FD_CLIENT + 1u, ~0u, 0) < 0 ||
	    child_drop(s->privilege) < 0)
		_exit(EXIT_SPAWN);
	alarm(REFUSAL_WAIT_S);
	if (length > 0)
		(void)send(SESSION_FD_CLIENT, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	_exit(0);
}

/* The end of the process closes them: then a socket does not linger. */
static void child_sink(const struct spawner *s, const int go[2], const int *socks, size_t n)
{
	unsigned int first = 0;
	char byte;

	child_signals();
	close(go[1]);
	while (read(go[0], &byte, 1) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < n; i++) {
		if (first < (unsigned int)socks[i])
			syscall(SYS_close_range, first, (unsigned int)socks[i] - 1, 0);
		first = (unsigned int)socks[i] + 1;
	}
	syscall(SYS_close_range, first, ~0u, 0);
	_exit(child_drop(s->privilege) < 0 ? EXIT_SPAWN : 0);
}

/* ---- in the supervisor ---- */

pid_t spawn_session(const struct spawner *s, int *client, int client_pidfd, const struct leaf *leaf,
		    struct spare *spare)
{
	pid_t pid = fork();
	int r = pid < 0 ? -errno : pid;

	if (pid == 0)
		child_session(s, *client, client_pidfd, leaf, spare);
	if (pid < 0)
		return r;
	fd_close(client);
	fd_close(&spare->down[1]);
	fd_close(&spare->up[1]);
	fd_close(&spare->go[0]);
	fd_close(&spare->go[1]);
	return r;
}

pid_t spawn_refusal(const struct spawner *s, int *client, struct spare *spare, const void *bytes,
		    size_t length)
{
	pid_t pid = fork();
	int r = pid < 0 ? -errno : pid;

	if (pid == 0)
		child_refusal(s, *client, spare, bytes, length);
	if (pid < 0)
		return r;
	fd_close(client);
	fd_close(&spare->go[0]);
	fd_close(&spare->go[1]);
	return r;
}

pid_t spawn_sink(const struct spawner *s, int *socks, size_t n)
{
	int go[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		child_sink(s, go, socks, n);
	if (pid < 0)
		pid = -errno;
	for (size_t i = 0; pid > 0 && i < n; i++)
		fd_close(&socks[i]);
	fd_close(&go[0]);
	fd_close(&go[1]);
	return pid;
}

pid_t spawn_heir(int *ret_go)
{
	int go[2];
	pid_t pid;
	char byte;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		child_signals();
		close(go[1]);
		while (read(go[0], &byte, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	fd_close(&go[0]);
	if (pid < 0) {
		fd_close(&go[1]);
		return -errno;
	}
	*ret_go = go[1];
	return pid;
}

/* It keeps its capabilities, and no fd but that one: connections wait in the others. */
static void child_sweep(const struct sweep *sweep, int out)
{
	child_signals();
	if (dup2(out, 3) < 0)
		_exit(EXIT_SPAWN);
	syscall(SYS_close_range, 4u, ~0u, 0);
	sweep_run(sweep, 3);
	_exit(0);
}

pid_t spawn_sweep(const struct sweep *sweep, int *ret_swept)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		child_sweep(sweep, ends[1]);
	if (pid < 0)
		pid = -errno;
	fd_close(&ends[1]);
	if (pid > 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) {
		*ret_swept = ends[0];
		return pid;
	}
	fd_close(&ends[0]);
	return pid;
}

pid_t spawn_killer(const struct spawner *s, int pidfd)
{
	pid_t pid;

	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	/* Root without CAP_KILL may not signal another uid; that uid may. */
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		child_signals();
		if (child_drop(s->privilege) < 0)
			_exit(EXIT_SPAWN);
		_exit(syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0);
	}
	return pid;
}
