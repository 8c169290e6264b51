/* SPDX-License-Identifier: Apache-2.0 */
/* One question to a daemon that answers well, badly or not at all: what each comes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/ctl/admin.h"
#include "client/ctl/complain.h"
#include "proto/codec.h"
#include "proto/failure.h"
#include "proto/fdset.h"

/* A daemon for one connection. It serves in a thread of its own and is joined before a check. */
struct fake {
	char directory[32];
	struct sockaddr_un address;
	int listener;
	pthread_t thread;
	void (*serve)(int sock, const Kvreg__AdminRequest *request);
};

static void send_reply(int sock, const Kvreg__AdminReply *reply)
{
	uint8_t record[4096];
	size_t length = codec_pack(&reply->base, record, sizeof(record));

	(void)!send(sock, record, length, MSG_NOSIGNAL);
}

static void *fake_main(void *arg)
{
	static struct arena arena;
	_cleanup_fd_ int sock = -1;
	struct fake *fake = arg;
	const Kvreg__AdminRequest *request;
	uint8_t record[4096];
	ssize_t length;

	sock = accept(fake->listener, NULL, NULL);
	length = recv(sock, record, sizeof(record), 0);
	if (length <= 0)
		return NULL;
	request = (const Kvreg__AdminRequest *)codec_unpack(
		&arena, &kvreg__admin_request__descriptor, record, (size_t)length);
	if (request && request->major == PROTOCOL_MAJOR && request->seq)
		fake->serve(sock, request);
	return NULL;
}

static int setup(void **state)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	strcpy(fake->directory, "/tmp/kvreg-ctl-XXXXXX");
	assert_non_null(mkdtemp(fake->directory));
	fake->address.sun_family = AF_UNIX;
	snprintf(fake->address.sun_path, sizeof(fake->address.sun_path), "%s/admin",
		 fake->directory);
	fake->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(fake->listener >= 0);
	*state = fake;
	return 0;
}

static int teardown(void **state)
{
	struct fake *fake = *state;

	fd_close(&fake->listener);
	unlink(fake->address.sun_path);
	rmdir(fake->directory);
	free(fake);
	return 0;
}

static void fake_listen(struct fake *fake)
{
	assert_int_equal(bind(fake->listener, (const struct sockaddr *)&fake->address,
			      sizeof(fake->address)),
			 0);
	assert_int_equal(listen(fake->listener, 1), 0);
}

/* What was taken: the records, and the pids of all clients in them added up. */
struct taken {
	unsigned records;
	uint32_t pids;
	int status; /* to return */
};

static int take(void *arg, const Kvreg__AdminReply *reply)
{
	struct taken *taken = arg;

	taken->records++;
	for (size_t i = 0; i < reply->n_clients; i++)
		taken->pids += reply->clients[i]->pid;
	return taken->status;
}

static int ask(struct fake *fake, struct taken *taken)
{
	const struct options options = { .admin_socket = fake->address.sun_path };
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__ClientsRequest body = KVREG__CLIENTS_REQUEST__INIT;

	request.body_case = KVREG__ADMIN_REQUEST__BODY_CLIENTS;
	request.clients = &body;
	return admin_ask(&options, &request, take, taken);
}

static int ask_fake(struct fake *fake, void (*serve)(int sock, const Kvreg__AdminRequest *request),
		    struct taken *taken)
{
	int status;

	fake->serve = serve;
	fake_listen(fake);
	assert_int_equal(pthread_create(&fake->thread, NULL, fake_main, fake), 0);
	status = ask(fake, taken);
	pthread_join(fake->thread, NULL);
	return status;
}

static void serve_two_records(int sock, const Kvreg__AdminRequest *request)
{
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;
	Kvreg__ClientInfo client = KVREG__CLIENT_INFO__INIT;
	Kvreg__ClientInfo *clients[] = { &client };

	reply.seq = request->seq;
	reply.clients = clients;
	reply.n_clients = 1;
	reply.more = 1;
	client.pid = 40;
	send_reply(sock, &reply);
	reply.more = 0;
	client.pid = 2;
	send_reply(sock, &reply);
}

static void serve_first_of_two(int sock, const Kvreg__AdminRequest *request)
{
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;

	reply.seq = request->seq;
	reply.more = 1;
	send_reply(sock, &reply);
}

static void serve_nothing(int sock, const Kvreg__AdminRequest *request)
{
	(void)sock;
	(void)request;
}

static void serve_other_seq(int sock, const Kvreg__AdminRequest *request)
{
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;

	reply.seq = request->seq + 1;
	send_reply(sock, &reply);
}

static void serve_garbage(int sock, const Kvreg__AdminRequest *request)
{
	(void)request;
	(void)!send(sock, "\xff\xff\xff", 3, MSG_NOSIGNAL);
}

static void serve_fd(int sock, const Kvreg__AdminRequest *request)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;
	uint8_t record[64];
	struct iovec part = { .iov_base = record };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	reply.seq = request->seq;
	part.iov_len = codec_pack(&reply.base, record, sizeof(record));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &sock, sizeof(sock));
	(void)!sendmsg(sock, &message, MSG_NOSIGNAL);
}

static void serve_error(int sock, const Kvreg__AdminRequest *request, enum kvreg_code code)
{
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;
	struct failure_wire wire;
	struct failure failure;

	failure_init(&failure);
	failure_set(&failure, code, KVREG_STAGE_CONNECT, "a test");
	failure_to_wire(&failure, &wire);
	reply.seq = request->seq;
	reply.error = &wire.error;
	send_reply(sock, &reply);
}

static void serve_version(int sock, const Kvreg__AdminRequest *request)
{
	serve_error(sock, request, KVREG_E_VERSION);
}

static void serve_no_permission(int sock, const Kvreg__AdminRequest *request)
{
	serve_error(sock, request, KVREG_E_NO_PERMISSION);
}

static void records_come_until_the_last(void **state)
{
	struct taken taken = { 0 };

	assert_int_equal(ask_fake(*state, serve_two_records, &taken), CTL_OK);
	assert_int_equal(taken.records, 2);
	assert_int_equal(taken.pids, 42);
}

static void the_taker_can_stop(void **state)
{
	struct taken taken = { .status = CTL_FAILED };

	assert_int_equal(ask_fake(*state, serve_two_records, &taken), CTL_FAILED);
	assert_int_equal(taken.records, 1);
}

static void half_an_answer_fails(void **state)
{
	struct taken taken = { 0 };

	assert_int_equal(ask_fake(*state, serve_first_of_two, &taken), CTL_FAILED);
	assert_int_equal(taken.records, 1);
}

static void no_socket_is_no_daemon(void **state)
{
	struct taken taken = { 0 };

	assert_int_equal(ask(*state, &taken), CTL_NO_DAEMON);
}

static void no_listener_is_no_daemon(void **state)
{
	struct fake *fake = *state;
	struct taken taken = { 0 };

	fake_listen(fake);
	fd_close(&fake->listener);
	assert_int_equal(ask(fake, &taken), CTL_NO_DAEMON);
}

static void a_closed_directory_is_no_permission(void **state)
{
	struct fake *fake = *state;
	struct taken taken = { 0 };
	int status;

	fake_listen(fake);
	assert_int_equal(chmod(fake->directory, 0), 0);
	if (!geteuid())
		assert_int_equal(seteuid(65534), 0);
	status = ask(fake, &taken);
	assert_int_equal(seteuid(getuid()), 0);
	assert_int_equal(chmod(fake->directory, 0700), 0);
	assert_int_equal(status, CTL_NO_PERMISSION);
}

static void other_sockets_fail(void **state)
{
	struct fake *fake = *state;
	struct taken taken = { 0 };

	fd_close(&fake->listener);
	fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fake_listen(fake);
	assert_int_equal(ask(fake, &taken), CTL_FAILED);
}

static void a_path_too_long_is_usage(void **state)
{
	struct taken taken = { 0 };
	char path[200];
	const struct options options = { .admin_socket = path };
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(admin_ask(&options, &request, take, &taken), CTL_USAGE);
}

#define FAILS(name, serve, status)                                                                 \
	static void name(void **state)                                                             \
	{                                                                                          \
		struct taken taken = { 0 };                                                        \
                                                                                                   \
		assert_int_equal(ask_fake(*state, serve, &taken), status);                         \
		assert_int_equal(taken.records, 0);                                                \
	}

FAILS(no_answer_fails, serve_nothing, CTL_FAILED)
FAILS(another_seq_fails, serve_other_seq, CTL_FAILED)
FAILS(garbage_fails, serve_garbage, CTL_FAILED)
FAILS(an_fd_fails, serve_fd, CTL_FAILED)
FAILS(a_refusal_fails, serve_version, CTL_FAILED)
FAILS(a_refused_user_is_no_permission, serve_no_permission, CTL_NO_PERMISSION)

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_come_until_the_last),
		TEST(the_taker_can_stop),
		TEST(half_an_answer_fails),
		TEST(no_socket_is_no_daemon),
		TEST(no_listener_is_no_daemon),
		TEST(a_closed_directory_is_no_permission),
		TEST(other_sockets_fail),
		TEST(a_path_too_long_is_usage),
		TEST(no_answer_fails),
		TEST(another_seq_fails),
		TEST(garbage_fails),
		TEST(an_fd_fails),
		TEST(a_refusal_fails),
		TEST(a_refused_user_is_no_permission),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
