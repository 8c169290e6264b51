/* SPDX-License-Identifier: Apache-2.0 */
/* One record and its fds: what arrives, what is refused, and that nothing of it leaks. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire.h"

#define SCM_MAX_FD 253

struct pair {
	int a, b;
	int file; /* something to send */
	int open; /* descriptors, with all of these */
};

static int set_up(void **state)
{
	static struct pair pair;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	pair.a = fds[0];
	pair.b = fds[1];
	pair.file = open("/dev/null", O_RDWR | O_CLOEXEC);
	pair.open = open_fds();
	*state = &pair;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *pair = *state;

	fd_close(&pair->a);
	fd_close(&pair->b);
	fd_close(&pair->file);
	return 0;
}

static void send_many(struct pair *pair, size_t n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * SCM_MAX_FD)];
	} control = { 0 };
	struct iovec iov = { .iov_base = "x", .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes };

	msg.msg_controllen = CMSG_SPACE(sizeof(int) * n);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	for (size_t i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &pair->file, sizeof(int));
	assert_int_equal(sendmsg(pair->a, &msg, 0), 1);
}

static void bytes_and_fds_arrive(void **state)
{
	struct pair *pair = *state;
	int two[] = { pair->file, pair->a };
	struct fdset set = FDSET_INIT;
	char text[8] = "";

	for (size_t n = 0; n <= FDS_PER_RECORD; n++) {
		assert_int_equal(wire_send(pair->a, "hello", 5, two, n, 0), 0);
		assert_int_equal(wire_recv(pair->b, text, sizeof(text), &set, 0), 5);
		assert_memory_equal(text, "hello", 5);
		assert_int_equal(set.count, n);
		for (size_t i = 0; i < n; i++)
			assert_true(fcntl(set.fds[i], F_GETFD) & FD_CLOEXEC);
		fdset_fini(&set);
		assert_int_equal(open_fds(), pair->open);
	}
	assert_int_equal(wire_send(pair->a, "hello", 5, two, FDS_PER_RECORD + 1, 0), -EINVAL);
}

static void a_taken_fd_is_the_takers(void **state)
{
	struct pair *pair = *state;
	int two[] = { pair->file, pair->file };
	struct fdset set = FDSET_INIT;
	char byte;
	int fd;

	wire_send(pair->a, "x", 1, two, 2, 0);
	assert_int_equal(wire_recv(pair->b, &byte, 1, &set, 0), 1);
	fd = fdset_take(&set, 1);
	assert_true(fd >= 0);
	assert_int_equal(fdset_take(&set, 1), -1);
	assert_int_equal(fdset_take(&set, 2), -1);
	fdset_fini(&set);
	assert_int_equal(open_fds(), pair->open + 1);
	fd_close(&fd);
	assert_int_equal(fd, -1);
}

static void a_long_record_is_refused_with_its_fds(void **state)
{
	struct pair *pair = *state;
	struct fdset set = FDSET_INIT;
	char text[4];

	wire_send(pair->a, "hello", 5, &pair->file, 1, 0);
	assert_int_equal(wire_recv(pair->b, text, sizeof(text), &set, 0), -EPROTO);
	assert_int_equal(set.count, 0);
	assert_int_equal(open_fds(), pair->open);
	/* The next one is whole. */
	wire_send(pair->a, "four", 4, NULL, 0, 0);
	assert_int_equal(wire_recv(pair->b, text, sizeof(text), &set, 0), 4);
}

static void too_many_fds_are_refused_and_closed(void **state)
{
	static const size_t counts[] = { FDS_PER_RECORD + 1, 17, SCM_MAX_FD };
	struct pair *pair = *state;
	struct fdset set = FDSET_INIT;
	char byte;

	for (size_t i = 0; i < COUNT(counts); i++) {
		send_many(pair, counts[i]);
		assert_int_equal(wire_recv(pair->b, &byte, 1, &set, 0), -EPROTO);
		assert_int_equal(set.count, 0);
		assert_int_equal(open_fds(), pair->open);
	}
}

static void the_end_is_zero(void **state)
{
	struct pair *pair = *state;
	struct fdset set = FDSET_INIT;
	char byte;

	wire_send(pair->a, "x", 1, NULL, 0, 0);
	fd_close(&pair->a);
	assert_int_equal(wire_recv(pair->b, &byte, 1, &set, 0), 1);
	assert_int_equal(wire_recv(pair->b, &byte, 1, &set, 0), 0);
}

static void nothing_there_is_eagain(void **state)
{
	struct pair *pair = *state;
	struct fdset set = FDSET_INIT;
	char byte;

	assert_int_equal(wire_recv(pair->b, &byte, 1, &set, MSG_DONTWAIT), -EAGAIN);
}

static void a_reader_who_does_not_read_is_eagain(void **state)
{
	static const char text[4096];
	struct pair *pair = *state;
	int r = 0;

	for (int i = 0; r == 0 && i < 100000; i++)
		r = wire_send(pair->a, text, sizeof(text), NULL, 0, MSG_DONTWAIT);
	assert_int_equal(r, -EAGAIN);
}

static void a_reader_who_is_gone_is_epipe_and_no_signal(void **state)
{
	struct pair *pair = *state;

	fd_close(&pair->b);
	assert_int_equal(wire_send(pair->a, "x", 1, NULL, 0, 0), -EPIPE);
}

static void closing_keeps_errno(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), none = -1;

	(void)state;
	errno = ENOTTY;
	fd_close(&fd);
	fd_close(&fd);
	fd_close(&none);
	assert_int_equal(errno, ENOTTY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_and_fds_arrive),
		TEST(a_taken_fd_is_the_takers),
		TEST(a_long_record_is_refused_with_its_fds),
		TEST(too_many_fds_are_refused_and_closed),
		TEST(the_end_is_zero),
		TEST(nothing_there_is_eagain),
		TEST(a_reader_who_does_not_read_is_eagain),
		TEST(a_reader_who_is_gone_is_epipe_and_no_signal),
		TEST(closing_keeps_errno),
	};

	return RUN_GROUP("proto-wire", tests);
}
