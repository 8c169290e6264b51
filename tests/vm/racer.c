/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that races session starts: it tries to seize (ptrace) every process that appears, until
 * its standard input ends, and says how often it tried a session and how often it got it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "proto/procfs.h"

/* Children of kvregd before and after exec, and under the name that they take. */
static int is_session(pid_t pid)
{
	char path[64], comm[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	return proc_read(path, comm, sizeof(comm)) == 0 && strncmp(comm, "kvreg", 5) == 0;
}

int main(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	unsigned long tries = 0, seized = 0;
	pid_t self = getpid();

	/* Numbers are given out in order: the next ones are tried before they can be listed. */
	for (pid_t next = self + 1; poll(&in, 1, 0) == 0;) {
		for (pid_t pid = next; pid < next + 16; pid++) {
			long r = ptrace(PTRACE_SEIZE, pid, NULL, NULL);

			if (r < 0 && errno == ESRCH)
				continue;
			if (is_session(pid))
				tries++;
			if (r == 0 && is_session(pid))
				seized++;
			if (r == 0)
				ptrace(PTRACE_DETACH, pid, NULL, NULL);
			if (pid > next)
				next = pid;
		}
	}
	printf("ok tries=%lu seized=%lu\n", tries, seized);
	return 0;
}
