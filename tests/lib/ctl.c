/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

int ctl_run_copy(struct ctl_run *run, uid_t uid)
{
	char dir[] = "/tmp/kvreg-ctl-XXXXXX", command[640], program[64], library[256], path[256];
	int status;

	require(mkdtemp(dir) && chmod(dir, 0755) == 0);
	build_path(path, sizeof(path), "kvregctl");
	build_path(library, sizeof(library), "libkvreg-client.so.0");
	snprintf(command, sizeof(command), "cp '%s' '%s' %s", path, library, dir);
	require(system(command) == 0);
	snprintf(program, sizeof(program), "%s/kvregctl", dir);
	status = ctl_run(run, program, uid);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	require(system(command) == 0);
	return status;
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

bool is_json(const char *text)
{
	char open[64];
	size_t depth = 0, documents = 0;

	for (const char *p = text; *p; p++) {
		if (*p == '"')
			for (p++; *p && *p != '"'; p++)
				p += *p == '\\' && p[1];
		if (!*p)
			return false;
		if ((*p == '{' || *p == '[') && depth < sizeof(open))
			open[depth++] = *p == '{' ? '}' : ']';
		else if (*p == '}' || *p == ']') {
			if (depth == 0 || open[--depth] != *p)
				return false;
			documents += depth == 0;
		}
	}
	return depth == 0 && documents == 1;
}
