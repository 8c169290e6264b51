/* SPDX-License-Identifier: Apache-2.0 */
/* A kvregd beside a kvregd-session that is not its own: its clients hear of it, and it lives. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <kvreg-client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "daemon.h"

static struct daemon_under_test daemon_;
static char programs[80];

/* A directory for the programs, with kvregd in it. */
static int set_up(void **state)
{
	(void)state;
	daemon_prepare(&daemon_, NULL);
	snprintf(programs, sizeof(programs), "%s/programs", daemon_.dir);
	require(mkdir(programs, 0755) == 0);
	daemon_.options.programs = programs;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	daemon_end(&daemon_);
	return 0;
}

/* Puts @bytes there as @name. */
static void install(const char *name, const void *bytes, size_t length)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", programs, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	require(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
	close(fd);
}

/* The bytes of a file, to be freed. */
static void *read_file(const char *path, size_t *ret_length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	require(fd >= 0 && fstat(fd, &st) == 0);
	bytes = malloc((size_t)st.st_size);
	require(bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size);
	close(fd);
	*ret_length = (size_t)st.st_size;
	return bytes;
}

/* @version: what this kvregd says to be, of the same length as its own; NULL: the truth. */
static void install_kvregd(const char *version)
{
	char path[4096];
	size_t length;
	char *bytes, *p;

	build_path(path, sizeof(path), "kvregd");
	bytes = read_file(path, &length);
	for (p = bytes; version && (p = memmem(p, length - (size_t)(p - bytes), KVREG_VERSION,
					       sizeof(KVREG_VERSION)));)
		memcpy(p, version, sizeof(KVREG_VERSION));
	install("kvregd", bytes, length);
	free(bytes);
}

static void install_copy(const char *name, const char *from)
{
	size_t length;
	void *bytes = read_file(from, &length);

	install(name, bytes, length);
	free(bytes);
}

/* No session comes up; the daemon says why, lives, and forgets the client. */
static void assert_no_session(const char *words)
{
	struct admin_status status;
	struct kvreg *k;

	assert_int_equal(kvreg_open(NULL, &k), -ECONNRESET);
	assert_int_equal(kvreg_error_code(kvreg_last_error()), KVREG_E_SESSION_LOST);
	assert_int_equal(kvreg_error_stage(kvreg_last_error()), KVREG_STAGE_CONNECT);
	assert_true(daemon_log_soon(&daemon_, words, 1));
	daemon_idle(&daemon_);
	assert_int_equal(daemon_log_lines(&daemon_, words), 1);
	require(admin_status(daemon_.admin_socket, &status));
}

/* These start no session for administrators either: only that the daemon runs can be seen. */
static void start_without_admin(void)
{
	daemon_.pid = daemon_launch(&daemon_);
	require(daemon_log_soon(&daemon_, "serves", 1));
}
