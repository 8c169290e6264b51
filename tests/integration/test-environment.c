/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon was started with, and what it hands on: umask, limits, descriptors, directories;
 * and who connected but is not there any more. Each was a fault once.
 */
#include "test.h"

#include <fcntl.h>
#include <kvreg-client.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "daemon.h"
#include "device.h"
#include "raw.h"

static struct daemon_under_test daemon_;

static int tear_down(void **state)
{
	(void)state;
	daemon_end(&daemon_);
	return 0;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	require(stat(path, &st) == 0);
	return st.st_mode & 07777;
}

static void close_umask(void)
{
	umask(077);
}

static void modes_do_not_come_from_the_umask(void **state)
{
	const struct daemon_options options = { .before_exec = close_umask };
	char path[sizeof(daemon_.socket)];

	(void)state;
	daemon_start(&daemon_, &options);
	assert_int_equal(mode_of(daemon_.socket), 0666);
	assert_int_equal(mode_of(daemon_.admin_socket), 0600);
	snprintf(path, sizeof(path), "%s", daemon_.socket);
	*strrchr(path, '/') = '\0';
	assert_int_equal(mode_of(path), 0755);
	snprintf(path, sizeof(path), "%s", daemon_.admin_socket);
	*strrchr(path, '/') = '\0';
	assert_int_equal(mode_of(path), 0700);
}

static void few_files(void)
{
	const struct rlimit few = { 200, 200 };

	setrlimit(RLIMIT_NOFILE, &few);
}

/* Fewer than a session would like: a hard limit cannot be raised, and need not be. */
static void a_daemon_with_few_files_serves(void **state)
{
	const struct daemon_options options = { .before_exec = few_files };
	struct raw *raw;

	(void)state;
	daemon_start(&daemon_, &options);
	raw = raw_greet(daemon_.socket);
	assert_non_null(raw_who_am_i(raw)->who_am_i);
	raw_close(raw);
}

static void assert_link(pid_t pid, const char *file, const char *expected)
{
	char path[64], target[128];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	n = readlink(path, target, sizeof(target) - 1);
	require(n > 0);
	target[n] = '\0';
	assert_string_equal(target, expected);
}

/* A session that is owned must not write into the daemon's log, nor into its terminal. */
static void a_session_inherits_nothing(void **state)
{
	struct raw *raw;
	pid_t pid;

	(void)state;
	if (getuid() != 0)
		skip_test("a session that is not dumpable shows its files to root only");
	daemon_start(&daemon_, NULL);
	raw = raw_greet(daemon_.socket);
	pid = (pid_t)raw_who_am_i(raw)->who_am_i->session_pid;
	assert_link(pid, "fd/0", "/dev/null");
	assert_link(pid, "fd/1", "/dev/null");
#ifndef KVREG_NO_FILTER
	assert_link(pid, "fd/2", "/dev/null");
#endif
	assert_link(pid, "cwd", "/");
	assert_int_not_equal(getsid(pid), getsid(daemon_.pid));
	raw_close(raw);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	require(strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	require(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

/*
 * A process connects, hands its socket on, and is gone before it is accepted: nobody could tell
 * when it ends, so nobody is served in its place.
 */
static void who_is_gone_is_not_served(void **state)
{
	struct admin_status status;
	int pair[2], fd;
	char byte = 0;
	pid_t pid;

	(void)state;
	daemon_start(&daemon_, NULL);
	require(kill(daemon_.pid, SIGSTOP) == 0);
	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	pid = fork();
	if (pid == 0) {
		union {
			struct cmsghdr align;
			char bytes[CMSG_SPACE(sizeof(int))];
		} control = { 0 };
		struct iovec iov = { &byte, 1 };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control.bytes,
				      .msg_controllen = sizeof(control.bytes) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		fd = connect_to(daemon_.socket);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
		_exit(sendmsg(pair[0], &msg, 0) != 1);
	}
	require(waitpid(pid, NULL, 0) == pid);
	require(kill(daemon_.pid, SIGCONT) == 0);
	/* Whatever the kernel still knows of it, it ends without us closing anything. */
	assert_true(admin_status(daemon_.admin_socket, &status));
	daemon_idle(&daemon_);
	close(pair[0]);
	close(pair[1]);
}

/* Touched when it was imported, and punched out before it is registered. */
static void punched_pages_are_not_pinned(void **state)
{
	const uint64_t size = 1 << 20;
	const Kvreg__Reply *reply;
	struct raw *raw;
	Kvreg__RegisterItem item;
	struct device device;
	int memory;
	uint32_t domain;

	(void)state;
	daemon_start(&daemon_, NULL);
	device = device_open();
	memory = memory_fd(size, F_SEAL_SHRINK);
	raw = raw_greet(daemon_.socket);
	domain = raw_attach(raw, device.fd, device.pd)->attach_domain->domain;
	item = raw_item(domain, raw_import(raw, memory, size, 0)->import_buffer->buffer, size);
	require(fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size) == 0);
	reply = raw_register(raw, &item, 1);
	assert_true(raw_refused(reply, KVREG_E_SPARSE));
	assert_int_equal(reply->error->snapshot->fd_resident, 0);
	assert_int_equal(raw_who_am_i(raw)->who_am_i->charged, 0);
	raw_close(raw);
	close(memory);
	device_close(&device);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(modes_do_not_come_from_the_umask), TEST(a_daemon_with_few_files_serves),
		TEST(a_session_inherits_nothing),       TEST(who_is_gone_is_not_served),
		TEST(punched_pages_are_not_pinned),
	};

	return RUN_GROUP("environment", tests);
}
