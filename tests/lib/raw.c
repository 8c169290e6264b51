/* SPDX-License-Identifier: Apache-2.0 */
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "proto/failure.h"
#include "proto/wire.h"

#define SCM_MAX_FD 253

struct raw *raw_open(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct raw *raw = calloc(1, sizeof(*raw));

	require(raw && strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	raw->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	require(raw->sock >= 0);
	if (connect(raw->sock, (struct sockaddr *)&address, sizeof(address)) == 0)
		return raw;
	raw_close(raw);
	return NULL;
}

void raw_close(struct raw *raw)
{
	if (raw)
		close(raw->sock);
	free(raw);
}

void raw_send(struct raw *raw, const void *bytes, size_t length, const int *fds, size_t n_fds)
{
	static union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * SCM_MAX_FD)];
	} control;
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	require(n_fds <= SCM_MAX_FD);
	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	/* Who has hung up may have said why: reading shows it. */
	require(sendmsg(raw->sock, &msg, MSG_NOSIGNAL) >= 0 || errno == EPIPE ||
		errno == ECONNRESET);
}

const ProtobufCMessage *raw_receive(struct raw *raw, const ProtobufCMessageDescriptor *type)
{
	_cleanup_fdset_ struct fdset fds = FDSET_INIT;
	const ProtobufCMessage *message;
	ssize_t n;

	require(wait_readable(raw->sock));
	n = wire_recv(raw->sock, raw->record, sizeof(raw->record), &fds, 0);
	/* Once, and ahead of what came before: the other side closed with our bytes unread. */
	if (n == -ECONNRESET)
		n = wire_recv(raw->sock, raw->record, sizeof(raw->record), &fds, 0);
	if (n == 0)
		return NULL;
	require(n > 0 && fds.count == 0);
	message = codec_unpack(&raw->arena, type, raw->record, (size_t)n);
	require(message);
	return message;
}

void raw_send_request(struct raw *raw, const Kvreg__Request *request, const int *fds, size_t n_fds)
{
	static uint8_t record[2 * RECORD_MAX];
	size_t length = codec_pack(&request->base, record, sizeof(record));

	require(length > 0);
	raw_send(raw, record, length, fds, n_fds);
}

const Kvreg__Reply *raw_reply(struct raw *raw)
{
	return (const Kvreg__Reply *)raw_receive(raw, &kvreg__reply__descriptor);
}

bool raw_closed(struct raw *raw)
{
	return raw_reply(raw) == NULL;
}

const Kvreg__Reply *raw_call(struct raw *raw, Kvreg__Request *request, int fd)
{
	const Kvreg__Reply *reply;

	request->seq = ++raw->seq;
	raw_send_request(raw, request, &fd, fd >= 0);
	reply = raw_reply(raw);
	require(reply && reply->seq == raw->seq);
	return reply;
}

struct raw *raw_greet(const char *path)
{
	struct raw *raw = raw_open(path);
	const Kvreg__Reply *reply;

	require(raw);
	reply = raw_hello(raw, PROTOCOL_MAJOR);
	require(reply->hello && !reply->error);
	return raw;
}

/* ---- one function a request ---- */

#define REQUEST(NAME, member, body)                                                                \
	(Kvreg__Request)                                                                           \
	{                                                                                          \
		PROTOBUF_C_MESSAGE_INIT(&kvreg__request__descriptor), 0,                           \
			KVREG__REQUEST__BODY_##NAME,                                               \
		{                                                                                  \
			.member = body                                                             \
		}                                                                                  \
	}

const Kvreg__Reply *raw_hello(struct raw *raw, uint32_t major)
{
	Kvreg__Hello hello = KVREG__HELLO__INIT;
	Kvreg__Request request = REQUEST(HELLO, hello, &hello);

	hello.major = major;
	hello.features = FEATURE_MEMFD;
	hello.program = "raw";
	return raw_call(raw, &request, -1);
}

const Kvreg__Reply *raw_attach(struct raw *raw, int fd, uint32_t pd_handle)
{
	Kvreg__AttachDomain attach = KVREG__ATTACH_DOMAIN__INIT;
	Kvreg__Request request = REQUEST(ATTACH_DOMAIN, attach_domain, &attach);

	attach.pd_handle = pd_handle;
	return raw_call(raw, &request, fd);
}

const Kvreg__Reply *raw_detach(struct raw *raw, uint32_t domain)
{
	Kvreg__DetachDomain detach = KVREG__DETACH_DOMAIN__INIT;
	Kvreg__Request request = REQUEST(DETACH_DOMAIN, detach_domain, &detach);

	detach.domain = domain;
	return raw_call(raw, &request, -1);
}

const Kvreg__Reply *raw_import(struct raw *raw, int fd, uint64_t length, uint64_t address)
{
	Kvreg__ImportBuffer import = KVREG__IMPORT_BUFFER__INIT;
	Kvreg__Request request = REQUEST(IMPORT_BUFFER, import_buffer, &import);

	import.kind = KVREG__BUFFER_KIND__BUFFER_MEMFD;
	import.length = length;
	import.address = address;
	import.label = "raw buffer";
	return raw_call(raw, &request, fd);
}

void raw_send_import(struct raw *raw, int fd, uint64_t length)
{
	Kvreg__ImportBuffer import = KVREG__IMPORT_BUFFER__INIT;
	Kvreg__Request request = REQUEST(IMPORT_BUFFER, import_buffer, &import);

	import.kind = KVREG__BUFFER_KIND__BUFFER_MEMFD;
	import.length = length;
	request.seq = ++raw->seq;
	raw_send_request(raw, &request, &fd, 1);
}

void raw_send_attach(struct raw *raw, int fd)
{
	Kvreg__AttachDomain attach = KVREG__ATTACH_DOMAIN__INIT;
	Kvreg__Request request = REQUEST(ATTACH_DOMAIN, attach_domain, &attach);

	attach.pd_handle = 1;
	request.seq = ++raw->seq;
	raw_send_request(raw, &request, &fd, 1);
}

const Kvreg__Reply *raw_release(struct raw *raw, uint32_t buffer)
{
	Kvreg__ReleaseBuffer release = KVREG__RELEASE_BUFFER__INIT;
	Kvreg__Request request = REQUEST(RELEASE_BUFFER, release_buffer, &release);

	release.buffer = buffer;
	return raw_call(raw, &request, -1);
}

const Kvreg__Reply *raw_register(struct raw *raw, Kvreg__RegisterItem *items, size_t n_items)
{
	Kvreg__RegisterItem *list[ITEMS_PER_REGISTER + 1];
	Kvreg__Register batch = KVREG__REGISTER__INIT;
	Kvreg__Request request = REQUEST(REGISTER, register_, &batch);

	require(n_items <= COUNT(list));
	for (size_t i = 0; i < n_items; i++)
		list[i] = &items[i];
	batch.items = list;
	batch.n_items = n_items;
	return raw_call(raw, &request, -1);
}

const Kvreg__Reply *raw_deregister(struct raw *raw, uint32_t region)
{
	Kvreg__Deregister deregister = KVREG__DEREGISTER__INIT;
	Kvreg__Request request = REQUEST(DEREGISTER, deregister, &deregister);

	deregister.region = region;
	return raw_call(raw, &request, -1);
}

const Kvreg__Reply *raw_who_am_i(struct raw *raw)
{
	Kvreg__WhoAmI who = KVREG__WHO_AM_I__INIT;
	Kvreg__Request request = REQUEST(WHO_AM_I, who_am_i, &who);

	return raw_call(raw, &request, -1);
}

/* ---- */

bool raw_refused(const Kvreg__Reply *reply, enum kvreg_code code)
{
	if (reply->error && reply->error->code == (uint32_t)code && reply->error->hint[0] &&
	    reply->body_case == KVREG__REPLY__BODY__NOT_SET)
		return true;
	print_error("wanted %s, got %s: %s\n", failure_code_name(code),
		    reply->error ? failure_code_name((enum kvreg_code)reply->error->code)
				 : "no error",
		    reply->error ? reply->error->detail : "");
	return false;
}

Kvreg__RegisterItem raw_item(uint32_t domain, uint32_t buffer, uint64_t length)
{
	Kvreg__RegisterItem item = KVREG__REGISTER_ITEM__INIT;

	item.domain = domain;
	item.buffer = buffer;
	item.length = length;
	item.access = IB_UVERBS_ACCESS_LOCAL_WRITE;
	return item;
}

int memory_fd(uint64_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	require(fd >= 0 && (size == 0 || posix_fallocate(fd, 0, (off_t)size) == 0));
	require(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}
