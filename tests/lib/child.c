/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define CHILD_FD 3

static void become(uid_t uid)
{
	if (!uid)
		return;
	require(setgroups(0, NULL) == 0);
	require(setresgid(uid, uid, uid) == 0);
	require(setresuid(uid, uid, uid) == 0);
}

void child_start(struct child *c, uid_t uid, int (*fn)(struct child *me, void *arg), void *arg)
{
	struct child me = { .sock = CHILD_FD };
	int pair[2];

	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	fflush(NULL);
	c->pid = fork();
	require(c->pid >= 0);
	if (c->pid == 0) {
		dup2(pair[1], CHILD_FD);
		syscall(SYS_close_range, CHILD_FD + 1u, ~0u, 0);
		become(uid);
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		_exit(fn(&me, arg));
	}
	close(pair[1]);
	c->sock = pair[0];
}

void child_say(struct child *c)
{
	(void)send(c->sock, "", 1, MSG_NOSIGNAL);
}

bool child_hear(struct child *c)
{
	char byte;

	require(wait_readable(c->sock));
	return read(c->sock, &byte, 1) == 1;
}

int child_end(struct child *c)
{
	int status = 0;

	close(c->sock);
	c->sock = -1;
	require(waitpid(c->pid, &status, 0) == c->pid);
	c->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void child_kill(struct child *c)
{
	kill(c->pid, SIGKILL);
	require(child_end(c) == 128 + SIGKILL);
}

int run_as(uid_t uid, int (*fn)(struct child *me, void *arg), void *arg)
{
	struct child c;

	child_start(&c, uid, fn, arg);
	return child_end(&c);
}
