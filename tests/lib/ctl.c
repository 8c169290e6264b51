/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "daemon.h"

static void read_back(int file, char *text, size_t size)
{
	ssize_t n = pread(file, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	close(file);
}

int ctl_run(struct ctl_run *run, const char *path, uid_t uid)
{
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
	int status = 0;
	pid_t pid;

	run->argv[0] = "kvregctl";
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		if (uid && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
			_exit(CHILD_FAILED);
		execv(path, (char *const *)run->argv);
		_exit(CHILD_FAILED);
	}
	require(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	read_back(out, run->out, sizeof(run->out));
	read_back(err, run->err, sizeof(run->err));
	return WEXITSTATUS(status);
}

const char *ctl_path(void)
{
	static char path[4096];

	build_path(path, sizeof(path), "kvregctl");
	if (access(path, X_OK) != 0)
		skip_test("kvregctl is not built");
	return path;
}

int ctl_ask(struct ctl_run *run, const char *admin, const char *command, const char *option)
{
	*run = (struct ctl_run){ .argv = { NULL, "--admin-socket", admin, command, option } };
	return ctl_run(run, ctl_path(), 0);
}
