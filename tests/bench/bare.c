/* SPDX-License-Identifier: Apache-2.0 */
#include "bare.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "kvreg.pb-c.h"
#include "proto/codec.h"

/* Numbers of objects, with the varint length that they have in a session that has been used. */
#define HANDLE 0x7fff0001u
#define SEQ    10000u

enum work {
	WORK_NONE,
	WORK_REGISTER,
	WORK_DEREGISTER,
};

/* How each record to the echo begins. The shortest real record is longer. */
struct order {
	uint8_t work;
	uint8_t reply; /* bytes */
};

/* ---- the real records' lengths ---- */

static size_t register_request(const void *address, uint64_t length)
{
	Kvreg__RegisterItem item = KVREG__REGISTER_ITEM__INIT, *items[] = { &item };
	Kvreg__Register registration = KVREG__REGISTER__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;

	item.domain = item.buffer = 0x10001;
	item.length = length;
	item.iova = (uintptr_t)address;
	item.access = IB_UVERBS_ACCESS_LOCAL_WRITE;
	registration.items = items;
	registration.n_items = 1;
	request.seq = SEQ;
	request.body_case = KVREG__REQUEST__BODY_REGISTER;
	request.register_ = &registration;
	return protobuf_c_message_get_packed_size(&request.base);
}

static size_t register_reply(void)
{
	Kvreg__Region region = KVREG__REGION__INIT, *regions[] = { &region };
	Kvreg__RegisterReply registered = KVREG__REGISTER_REPLY__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	region.region = HANDLE;
	region.handle = 1;
	region.lkey = region.rkey = 0x1000;
	registered.regions = regions;
	registered.n_regions = 1;
	reply.seq = SEQ;
	reply.body_case = KVREG__REPLY__BODY_REGISTER;
	reply.register_ = &registered;
	return protobuf_c_message_get_packed_size(&reply.base);
}

static size_t deregister_request(void)
{
	Kvreg__Deregister deregister = KVREG__DEREGISTER__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;

	deregister.region = HANDLE;
	request.seq = SEQ;
	request.body_case = KVREG__REQUEST__BODY_DEREGISTER;
	request.deregister = &deregister;
	return protobuf_c_message_get_packed_size(&request.base);
}

static size_t deregister_reply(void)
{
	Kvreg__Done done = KVREG__DONE__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	reply.seq = SEQ;
	reply.body_case = KVREG__REPLY__BODY_DONE;
	reply.done = &done;
	return protobuf_c_message_get_packed_size(&reply.base);
}

struct record_sizes record_sizes(const void *address, uint64_t length)
{
	return (struct record_sizes){ register_request(address, length), register_reply(),
				      deregister_request(), deregister_reply() };
}

/* ---- the kernel's part: see daemon/session/buffer.c and mock.c ---- */

static void mock_register(struct bare *b, void *map)
{
	b->locked = mremap(map, 0, b->length, MREMAP_MAYMOVE);
	require(b->locked != MAP_FAILED);
	require(mlock(b->locked, b->length) == 0);
}

static void mock_deregister(struct bare *b)
{
	munmap(b->locked, b->length);
}

const struct bare_device bare_mock = { mock_register, mock_deregister };

static void work_register(struct bare *b, void *address)
{
	int flags = MAP_SHARED | MAP_NORESERVE | (address ? MAP_FIXED_NOREPLACE : 0);
	void *map = mmap(address, b->length, PROT_READ | PROT_WRITE, flags, b->memory, 0);

	require(map != MAP_FAILED);
	require(madvise(map, b->length, MADV_POPULATE_READ) == 0);
	b->device->reg(b, map);
	munmap(map, b->length);
}

/* ---- the echo ---- */

static int echo(struct bare *b)
{
	uint8_t record[RECORD_MAX] = { 0 };
	struct order order;

	/* The session has the client's address free, and registers there. */
	munmap(b->address, b->length);
	while (recv(b->sock, record, sizeof(record), 0) > 0) {
		memcpy(&order, record, sizeof(order));
		if (order.work == WORK_REGISTER)
			work_register(b, b->address);
		else if (order.work == WORK_DEREGISTER)
			b->device->dereg(b);
		if (send(b->sock, record, order.reply, MSG_NOSIGNAL) < 0)
			break;
	}
	return 0;
}

void bare_open(struct bare *b, int memory, void *address, size_t length)
{
	int pair[2];

	b->memory = memory;
	b->address = address;
	b->length = length;
	b->sizes = record_sizes(address, length);
	require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	b->pid = fork();
	require(b->pid >= 0);
	b->sock = pair[b->pid == 0];
	close(pair[b->pid != 0]);
	if (b->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		_exit(echo(b));
	}
}

void bare_close(struct bare *b)
{
	close(b->sock);
	require(waitpid(b->pid, NULL, 0) == b->pid);
}

/* ---- ways ---- */

static void round_trip(const struct bare *b, enum work work, size_t request, size_t reply)
{
	struct order order = { (uint8_t)work, (uint8_t)reply };
	uint8_t record[256] = { 0 };

	require(reply <= UINT8_MAX && request <= sizeof(record));
	memcpy(record, &order, sizeof(order));
	require(send(b->sock, record, request, MSG_NOSIGNAL) == (ssize_t)request);
	require(recv(b->sock, record, sizeof(record), 0) == (ssize_t)reply);
}

void bare_register(void *arg)
{
	const struct bare *b = arg;

	round_trip(b, WORK_NONE, b->sizes.register_request, b->sizes.register_reply);
}

void bare_deregister(void *arg)
{
	const struct bare *b = arg;

	round_trip(b, WORK_NONE, b->sizes.deregister_request, b->sizes.deregister_reply);
}

void bare_both(void *arg)
{
	bare_register(arg);
	bare_deregister(arg);
}

void bare_both_and_work(void *arg)
{
	const struct bare *b = arg;

	round_trip(b, WORK_REGISTER, b->sizes.register_request, b->sizes.register_reply);
	round_trip(b, WORK_DEREGISTER, b->sizes.deregister_request, b->sizes.deregister_reply);
}

void bare_work(void *arg)
{
	struct bare *b = arg;

	work_register(b, /* address */ NULL);
	b->device->dereg(b);
}

void bare_exec(void *arg)
{
	pid_t pid = fork();
	int status = 0;

	(void)arg;
	require(pid >= 0);
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	require(waitpid(pid, &status, 0) == pid && status == 0);
}
