/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's side of the client's socket: a hostile daemon answers a program's calls with
 * whatever bytes and fds it likes.
 *
 * The daemon is in the same thread: connect() and wire_send() of the library are replaced at link
 * time (and what the kernel says of a region). A request is taken apart (it must be one) and the
 *script's next answers are put into the library's socket before it begins to wait; when there is
 *none left, the socket is at its end.
 *
 * The steps of a script (script.h) are the program's calls and the daemon's answers, each taken in
 * their order:
 *
 *	enum client_call        arg, bytes: its arguments
 *	ANSWER + client_answer  bytes: a record; arg: how many fds come along (modulo 4)
 *
 * With ANSWER_SEQ the number of the request is put behind the record, as a field that counts
 * since it is the last. The program keeps to the public header: it uses no object after a call that
 * freed it, by the errno alone. At the end kvreg_close() leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/kvreg-client.h"
#include "kvreg.pb-c.h"
#include "proto/codec.h"
#include "proto/fdset.h"
#include "proto/uverbs.h"
#include "proto/wire.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/steps.h"

#define MEMORY   (8u << 10)
#define OBJECTS  4u
#define SENT_FDS 3u /* one more than a record may have */

static struct script script;
static size_t next_answer;
static int daemon_end = -1;
static int device, memory;
static struct kvreg *k;
static struct kvreg_domain *domains[OBJECTS];
static struct kvreg_buffer *buffers[OBJECTS];
static struct kvreg_region *regions[OBJECTS];

/* ---- the daemon ---- */

int __wrap_connect(int sock, const struct sockaddr *address, socklen_t length);
int __wrap_uverbs_destroy_same_mr(int fd, uint32_t driver_id, const struct uverbs_mr *mr);
int __real_wire_send(int sock, const void *bytes, size_t length, const int *fds, size_t n_fds,
		     int flags);
int __wrap_wire_send(int sock, const void *bytes, size_t length, const int *fds, size_t n_fds,
		     int flags);

int __wrap_connect(int sock, const struct sockaddr *address, socklen_t length)
{
	int pair[2];

	(void)address;
	(void)length;
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	must(dup3(pair[0], sock, O_CLOEXEC) == sock);
	close(pair[0]);
	daemon_end = pair[1];
	return 0;
}

/* The kernel, asked by the library itself once the session is lost: it may say anything. */
int __wrap_uverbs_destroy_same_mr(int fd, uint32_t driver_id, const struct uverbs_mr *mr)
{
	static const int results[] = {
		0, ESTALE, EBUSY, EINVAL, EIO, ENODEV, EBADF, ENOTTY, EPERM
	};

	must(fd == device);
	(void)driver_id;
	return -results[mr->lkey % COUNT(results)];
}

static void send_record(const uint8_t *bytes, size_t length, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * SENT_FDS)];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		for (size_t i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &device, sizeof(int));
	}
	(void)sendmsg(daemon_end, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static size_t put_seq(uint8_t *record, size_t length, uint32_t seq)
{
	record[length++] = 1 << 3; /* field 1, a varint */
	for (; seq >= 0x80; seq >>= 7)
		record[length++] = (uint8_t)(0x80 | seq);
	record[length++] = (uint8_t)seq;
	return length;
}

/* Return: whether the library takes the record for an event, and waits for another. */
static bool send_answer(const struct step *step, uint32_t seq)
{
	static uint8_t record[RECORD_MAX + 16];
	static struct arena arena;
	const Kvreg__Reply *reply;
	size_t length = step->length;

	memcpy(record, step->bytes, length);
	if (step->op & ANSWER_SEQ)
		length = put_seq(record, length, seq);
	if (step->op & ANSWER_LONG)
		length = RECORD_MAX + 1;
	send_record(record, length, step->arg % (SENT_FDS + 1));
	if (length == 0 || length > RECORD_MAX || step->arg % (SENT_FDS + 1) > FDS_PER_RECORD)
		return false;
	reply = (const Kvreg__Reply *)codec_unpack(&arena, &kvreg__reply__descriptor, record,
						   length);
	return reply && reply->seq == 0;
}

static const struct step *take_answer(void)
{
	while (next_answer < script.count) {
		const struct step *step = &script.steps[next_answer++];

		if (step->op & ANSWER)
			return step;
	}
	return NULL;
}

/* One answer and the events before it; at the end of the script, the end of the connection. */
static int answer(uint32_t seq)
{
	const struct step *step;

	while ((step = take_answer())) {
		if (step->op & ANSWER_FAILS)
			return seq & 1 ? -EPIPE : -ENOBUFS;
		bool more = send_answer(step, seq);
		if (step->op & ANSWER_CLOSES)
			break;
		if (!more)
			return 0;
	}
	shutdown(daemon_end, SHUT_RDWR);
	return 0;
}

int __wrap_wire_send(int sock, const void *bytes, size_t length, const int *fds, size_t n_fds,
		     int flags)
{
	static struct arena arena;
	const Kvreg__Request *request = (const Kvreg__Request *)codec_unpack(
		&arena, &kvreg__request__descriptor, bytes, length);
	int r;

	(void)sock;
	(void)flags;
	must(request && request->seq > 0 && request->body_case != KVREG__REQUEST__BODY__NOT_SET);
	must(n_fds == 0 || (n_fds == 1 && fcntl(fds[0], F_GETFD) >= 0));
	r = answer(request->seq);
	/* A send that fails with EPIPE is followed by a receive. */
	if (r == -EPIPE)
		shutdown(daemon_end, SHUT_RDWR);
	return r;
}

/* ---- the program ---- */

static int free_slot(void *const *slots)
{
	for (size_t i = 0; i < OBJECTS; i++)
		if (!slots[i])
			return (int)i;
	return -1;
}

static void check_clean(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	must(n < size);
	for (size_t i = 0; i < n; i++)
		must(text[i] >= 0x20 && text[i] < 0x7f);
}

/* What a failed call leaves for people: complete, and fit for a terminal. */
static int check(int r)
{
	const struct kvreg_error *e = kvreg_last_error();
	char text[2048], small[16];

	must(r <= 0);
	if (r == 0)
		return r;
	must(kvreg_error_code(e) != KVREG_E_OK);
	must(kvreg_error_text(e, text, sizeof(text)) < (int)sizeof(text));
	check_clean(text, sizeof(text));
	kvreg_error_text(e, small, sizeof(small));
	check_clean(kvreg_error_device(e), 64);
	check_clean(kvreg_error_label(e), 65);
	check_clean(kvreg_error_hint(e), 256);
	must(kvreg_error_name(e) && kvreg_strerror(kvreg_error_code(e)));
	return r;
}

static void on_event(void *arg, enum kvreg_event event)
{
	must(arg == &k);
	must(event == KVREG_EVENT_DRAINING || event == KVREG_EVENT_SESSION_LOST);
}

static void call_attach(const struct step *step)
{
	int i = free_slot((void **)domains);

	if (i < 0 ||
	    check(kvreg_attach_fd(k, step->arg & 1 ? -1 : device, step->arg, &domains[i])) < 0)
		return;
	must(domains[i]);
	check_clean(kvreg_domain_device(domains[i]), 64);
}

static void call_memory(const struct step *step)
{
	char label[80] = { 0 };
	struct kvreg_buffer_options options = { .size = sizeof(options), .label = label };
	int i = free_slot((void **)buffers);
	void *address;

	if (i < 0)
		return;
	memcpy(label, step->bytes, step->length < 79 ? step->length : 79);
	if (step->op % CALLS == CALL_ALLOC)
		check(kvreg_buffer_alloc(k, step->arg, 0, &address, &buffers[i]));
	else
		check(kvreg_buffer_memfd(k, memory, NULL, MEMORY - (step->arg & 15u), &options,
					 &buffers[i]));
}

static void call_register(const struct step *step)
{
	struct kvreg_domain *domain = domains[step_byte(step, 0) % OBJECTS];
	struct kvreg_buffer *buffer = buffers[step_byte(step, 1) % OBJECTS];
	uint64_t iova = step_byte(step, 2) * 4096ull;
	int i = free_slot((void **)regions);

	if (i < 0 || !domain || !buffer ||
	    check(kvreg_register(domain, buffer, 0, step->arg, iova, 1, NULL, &regions[i])) < 0)
		return;
	(void)(kvreg_lkey(regions[i]) + kvreg_rkey(regions[i]) + kvreg_handle(regions[i]));
	must(iova == 0 || kvreg_iova(regions[i]) == iova);
}

/* What is freed, the header says by errno: for regions with -EIO, the code. */
static void call_ends(const struct step *step)
{
	size_t i = step->arg % OBJECTS;
	int r;

	if (step->op % CALLS == CALL_DEREGISTER && regions[i]) {
		r = check(kvreg_deregister(regions[i]));
		if (r == 0 || r == -ENOENT || r == -EBADF ||
		    (r == -EIO && kvreg_error_code(kvreg_last_error()) == KVREG_E_DEVICE_GONE))
			regions[i] = NULL;
	} else if (step->op % CALLS == CALL_RELEASE && buffers[i]) {
		if (check(kvreg_buffer_release(buffers[i])) != -EINVAL)
			buffers[i] = NULL;
	} else if (step->op % CALLS == CALL_DETACH && domains[i]) {
		r = check(kvreg_detach(domains[i]));
		if (r != -EBUSY && r != -EINVAL)
			domains[i] = NULL;
	}
}

static void call_others(const struct step *step)
{
	struct kvreg_identity identity;

	if (step->op % CALLS == CALL_WHOAMI) {
		if (check(kvreg_whoami(k, &identity)) == 0)
			check_clean(identity.klass, sizeof(identity.klass));
	} else if (step->op % CALLS == CALL_DISPATCH) {
		for (unsigned int n = step->arg % 4; n > 0; n--)
			answer(0);
		check(kvreg_dispatch(k));
	}
}

static void run(void)
{
	struct kvreg_open_options options = {
		.size = sizeof(options),
		.socket = "/fuzz",
		.program = "fuzz",
		.on_event = on_event,
		.arg = &k,
	};

	if (check(kvreg_open(&options, &k)) < 0)
		return;
	check_clean(kvreg_device_kind(k), 64);
	for (size_t i = 0; i < script.count; i++) {
		const struct step *step = &script.steps[i];

		if (step->op & ANSWER)
			continue;
		switch (step->op % CALLS) {
		case CALL_ATTACH:
			call_attach(step);
			break;
		case CALL_ALLOC:
		case CALL_MEMFD:
			call_memory(step);
			break;
		case CALL_REGISTER:
			call_register(step);
			break;
		default:
			call_ends(step);
			call_others(step);
		}
	}
	kvreg_close(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned int runs;
	int before = lowest_fd();

	script_read(&script, data, size);
	next_answer = 0;
	k = NULL;
	memset(domains, 0, sizeof(domains));
	memset(buffers, 0, sizeof(buffers));
	memset(regions, 0, sizeof(regions));
	run();
	fd_close(&daemon_end);
	must(lowest_fd() == before);
	if (++runs % 512 == 0)
		must(count_mappings("memfd:kvreg") == 0);
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	device = open("/dev/null", O_RDWR | O_CLOEXEC);
	memory = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	must(device >= 0 && memory >= 0 && ftruncate(memory, MEMORY) == 0);
	return 0;
}
