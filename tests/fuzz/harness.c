/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int lowest_fd(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	must(fd >= 0);
	close(fd);
	return fd;
}

size_t count_mappings(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	size_t n = 0;

	must(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, name) != NULL;
	fclose(maps);
	return n;
}

int bystander(void)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	syscall(SYS_close_range, 0u, ~0u, 0u);
	for (;;)
		pause();
}
