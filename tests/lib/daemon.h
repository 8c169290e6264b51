/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_DAEMON_H
#define KVREG_TEST_DAEMON_H
/*
 * The real kvregd on sockets of its own. Its end is a test too: all books at zero, no process of
 * its left, no descriptor of ours left open, and nothing in its log from a sanitizer.
 *
 * The programs come from the build directory or, if it is set, from $KVREG_BUILD.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Who sessions run as when the daemon is root: nobody's uid. */
#define SESSION_UID 64998u

struct daemon_options {
	const char *device;        /* NULL: as device_kind() */
	const char *config;        /* text of the file, after [daemon]; NULL: none */
	bool allow_faults;         /* the configuration has [test ...] sections */
	const char *programs;      /* directory of kvregd; NULL: the build's */
	void (*before_exec)(void); /* in the daemon's process: limits; may be NULL */
};

struct daemon_under_test {
	struct daemon_options options;
	pid_t pid; /* 0: does not run */
	int fds;   /* open when it was started */
	char dir[64];
	char socket[160], admin_socket[160], config[96], log[96];
};

/**
 * daemon_start() - starts kvregd and waits until it answers. $KVREG_SOCKET names its socket then.
 * @options: copied; NULL: the defaults
 */
void daemon_start(struct daemon_under_test *d, const struct daemon_options *options);

/** daemon_prepare() - all but the start itself: a directory, and the configuration. */
void daemon_prepare(struct daemon_under_test *d, const struct daemon_options *options);

/** daemon_again() - starts it (again) on the same sockets, and waits until it answers. */
void daemon_again(struct daemon_under_test *d);

/** daemon_launch() - starts it and does not wait. */
void daemon_launch(struct daemon_under_test *d);

/** daemon_refuses() - runs one more kvregd that is to give up. Return: its exit status. */
int daemon_refuses(struct daemon_under_test *d);

/** daemon_stop() - SIGTERM; it must end with status 0. */
void daemon_stop(struct daemon_under_test *d);

/** daemon_kill() - SIGKILL. Its sessions become children of the test program. */
void daemon_kill(struct daemon_under_test *d);

/** daemon_end() - stops it if it runs, and makes the checks. Connections must be closed. */
void daemon_end(struct daemon_under_test *d);

/** daemon_idle() - waits until all books are at zero. */
void daemon_idle(struct daemon_under_test *d);

/** daemon_rest() - waits until it has @n children, and has dealt with all that happened. */
void daemon_rest(const struct daemon_under_test *d, size_t n);

/** daemon_fds() - how many descriptors the supervisor has open. */
size_t daemon_fds(const struct daemon_under_test *d);

/** daemon_children() - how many children it has: sessions, and what gets rid of connections. */
size_t daemon_children(const struct daemon_under_test *d);

/** daemon_log_lines() - how many lines of its log hold @words. */
size_t daemon_log_lines(const struct daemon_under_test *d, const char *words);

/** daemon_log_soon() - waits for @n lines with @words. Return: whether they came. */
bool daemon_log_soon(const struct daemon_under_test *d, const char *words, size_t n);

/** build_path() - path of @program, as the daemon is started from. */
void build_path(char *ret_path, size_t size, const char *program);

#endif
