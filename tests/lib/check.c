/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S  30
#define STEP_NS (2 * 1000 * 1000)

/* Of the test program, not of what it forks. */
static pid_t own_pid;

__attribute__((constructor)) static void note_pid(void)
{
	own_pid = getpid();
}

void check_failed(const char *file, int line, const char *words)
{
	if (getpid() == own_pid) {
		print_error("%s\n", words);
		_fail(file, line); /* does not return, and cmocka does not say so */
		abort();
	}
	fprintf(stderr, "%s:%d: in child %d: %s\n", file, line, getpid(), words);
	_exit(CHILD_FAILED);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool wait_until(bool (*holds)(void *arg), void *arg)
{
	const struct timespec step = { .tv_nsec = STEP_NS };
	double deadline = now() + WAIT_S;

	while (!holds(arg)) {
		if (now() > deadline)
			return false;
		nanosleep(&step, NULL);
	}
	return true;
}

bool wait_readable(int fd)
{
	struct pollfd waited = { .fd = fd, .events = POLLIN };
	int n;

	do
		n = poll(&waited, 1, WAIT_S * 1000);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

void skip_test(const char *reason)
{
	const char *must = getenv("KVREG_MUST_WORK");

	if (must && *must == '1')
		fail_msg("would be skipped: %s", reason);
	print_message("skipped: %s\n", reason);
	skip();
}
