/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's side of the client's socket: whatever bytes and fds a client sends go through the
 * decoder, the dispatcher and the handlers, on the mock device.
 *
 * The steps of a script (script.h):
 *
 *	REQUEST     bytes: a record; arg: which fds come along, one in each half (enum fd_kind)
 *	SUPERVISOR  arg: how the supervisor answers from now on (enum policy); with VERBS, domains
 *		    attached from now on are the kernel's (none is, but the way there is taken)
 *	DOWN        bytes: a record from the supervisor, served at once
 *
 * The supervisor is played here: what the session sends up is taken at control_send(), checked, and
 * answered on its socket before the session begins to wait. After each request: the answer packs,
 * unpacks, and is either an error or a body. At the end: the books agree with the regions, no
 * buffer is mapped, and after client_fini() no fd is open and no byte locked that was not before.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/session/buffer.h"
#include "daemon/session/client.h"
#include "daemon/session/dispatch.h"
#include "daemon/session/domain.h"
#include "daemon/session/events.h"
#include "daemon/session/region.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/steps.h"

#define MEMORY     (64u << 10)
#define BIG_MEMORY (4u << 20) /* above POPULATE_MIN */
#define OBJECTS    24u
#define REGIONS    (ITEMS_PER_REGISTER + OBJECTS)
#define QUOTA      (6u << 20)

static int fds[FD_KINDS];
static int up[2];     /* packet-mode pipe, as the supervisor makes it */
static int sock = -1; /* one end of a socket that nobody reads */
static int down = -1; /* the supervisor's end of the control socket */
static enum policy policy;
static struct client client;
static struct answer answer;
static struct arena arena; /* of what the harness unpacks */

/* ---- what is replaced ---- */

int __real_handles_init(struct handles *h, size_t capacity);
int __wrap_handles_init(struct handles *h, size_t capacity);
int __real_control_send(struct control *c, const Kvreg__Up *message);
int __wrap_control_send(struct control *c, const Kvreg__Up *message);

/* Tables that a script can fill, and that are searched in no time. */
int __wrap_handles_init(struct handles *h, size_t capacity)
{
	return __real_handles_init(h, capacity > BUFFERS_PER_SESSION ? REGIONS : OBJECTS);
}

static void say(Kvreg__Down *message)
{
	uint8_t record[1024];
	size_t length = codec_pack(&message->base, record, sizeof(record));

	must(length > 0);
	(void)wire_send(down, record, length, NULL, 0, MSG_DONTWAIT);
}

static void answer_grant(uint32_t seq, const Kvreg__Amounts *need)
{
	struct amounts granted = amounts_from_wire(need);
	Kvreg__GrantReply reply = KVREG__GRANT_REPLY__INIT;
	Kvreg__Down message = KVREG__DOWN__INIT;
	Kvreg__Amounts wire;

	reply.seq = seq;
	reply.refused = policy == REFUSES || granted.of[BOOK_CHARGE] > QUOTA;
	if (reply.refused)
		granted = client.grant.granted;
	for (size_t i = 0; policy == GRANTS_SLABS && !reply.refused && i < BOOKS; i++)
		granted.of[i] = book_room((enum book)i, granted.of[i]);
	amounts_to_wire(&granted, &wire);
	reply.granted = &wire;
	reply.book = seq % (BOOKS + 2u);
	reply.quota_used = QUOTA / 2;
	reply.quota_limit = QUOTA;
	reply.scope = seq & 1 ? "uid" : "a scope that is far too long";
	reply.holders = seq & 2 ? "" : "1 (fuzz) 4096";
	message.body_case = KVREG__DOWN__BODY_GRANT;
	message.grant = &reply;
	say(&message);
}

static void answer_lease(uint32_t seq)
{
	Kvreg__LeaseMemlockReply lease = KVREG__LEASE_MEMLOCK_REPLY__INIT;
	static const uint32_t codes[] = { KVREG_E_OK,
					  KVREG_E_LIMIT_QUOTA,
					  KVREG_E_LEASE_FORBIDDEN,
					  KVREG_E_LIMIT_MEMLOCK,
					  KVREG_E_BAD_HANDLE,
					  12345 };
	Kvreg__LeaseReply reply = KVREG__LEASE_REPLY__INIT;
	Kvreg__Down message = KVREG__DOWN__INIT;

	lease.lease = lease.booked = seq;
	reply.seq = seq;
	reply.code = policy == REFUSES ? codes[seq % COUNT(codes)] : (uint32_t)KVREG_E_OK;
	reply.book = seq % (BOOKS + 2u);
	reply.scope = "uid";
	reply.holders = seq & 2 ? "" : "1 (fuzz) 4096";
	if (seq & 1)
		reply.lease = &lease;
	message.body_case = KVREG__DOWN__BODY_LEASE;
	message.lease = &reply;
	say(&message);
}

static void answer_device(uint32_t seq)
{
	Kvreg__DeviceReply reply = KVREG__DEVICE_REPLY__INIT;
	Kvreg__Down message = KVREG__DOWN__INIT;

	reply.seq = seq;
	reply.is_uverbs = true;
	reply.name = "fuzz0";
	message.body_case = KVREG__DOWN__BODY_DEVICE;
	message.device = &reply;
	say(&message);
}

/* What the session says must be a message that the supervisor takes; then it is answered. */
int __wrap_control_send(struct control *c, const Kvreg__Up *message)
{
	uint8_t record[UP_RECORD_MAX];
	const Kvreg__Up *said;
	ssize_t n;
	int r = __real_control_send(c, message);

	if (r < 0) {
		must(r == -EPIPE);
		return r;
	}
	n = read(up[0], record, sizeof(record));
	must(n > 0);
	said = (const Kvreg__Up *)codec_unpack(&arena, &kvreg__up__descriptor, record, (size_t)n);
	must(said && said->body_case == message->body_case);
	if (policy == GONE)
		fd_close(&down);
	else if (said->body_case == KVREG__UP__BODY_GRANT) {
		Kvreg__Amounts most = KVREG__AMOUNTS__INIT;

		most.charge = most.memory = UINT64_MAX;
		if (policy == ANSWERS_ANOTHER_FIRST)
			answer_grant(said->grant->seq - 1, &most);
		answer_grant(said->grant->seq, said->grant->need);
	} else if (said->body_case == KVREG__UP__BODY_LEASE)
		answer_lease(said->lease->seq);
	else if (said->body_case == KVREG__UP__BODY_LEASE_END)
		answer_lease(said->lease_end->seq);
	else if (said->body_case == KVREG__UP__BODY_DEVICE)
		answer_device(said->device->seq);
	return 0;
}

/* ---- the client ---- */

static void take_fds(uint8_t arg, struct fdset *ret_set)
{
	const unsigned int kinds[] = { arg & 15u, arg >> 4 };

	for (size_t i = 0; i < COUNT(kinds); i++)
		if (kinds[i] > FD_NONE && kinds[i] < FD_KINDS)
			ret_set->fds[ret_set->count++] = fcntl(fds[kinds[i]], F_DUPFD_CLOEXEC, 0);
}

static void check_answer(uint32_t seq)
{
	size_t length = codec_pack(&answer.reply.base, client.answer, sizeof(client.answer));
	const Kvreg__Reply *reply = (const Kvreg__Reply *)codec_unpack(
		&arena, &kvreg__reply__descriptor, client.answer, length);

	must(length > 0 && reply && reply->seq == seq);
	must(!reply->error == (reply->body_case != KVREG__REPLY__BODY__NOT_SET));
	must(!reply->error || reply->error->code != KVREG_E_OK);
}

/* As serve_record() does it. Return: whether the connection goes on. */
static bool request(const struct step *step)
{
	_cleanup_fdset_ struct fdset set = FDSET_INIT;
	const Kvreg__Request *message;
	const char *words = NULL;
	uint32_t seq;
	int r;

	/* In memory of its own size, so that a byte too many shows. */
	uint8_t *record = malloc(step->length);
	must(record || step->length == 0);
	if (step->length > 0)
		memcpy(record, step->bytes, step->length);
	take_fds(step->arg, &set);
	message = (const Kvreg__Request *)codec_unpack(&client.arena, &kvreg__request__descriptor,
						       record, step->length);
	free(record);
	if (!message)
		return false;
	seq = message->seq;
	r = dispatch(&client, message, &set, &answer, &words);
	must(r <= 0 && (r == -EPROTO) == (words != NULL));
	if (r == 0)
		check_answer(seq);
	return r == 0 && client.greeted;
}

static bool serve_down(const struct step *step)
{
	int r;

	if (step->length == 0 || step->length > 1024 || down < 0 || client.control.gone)
		return true;
	if (wire_send(down, step->bytes, step->length, NULL, 0, MSG_DONTWAIT) < 0)
		return true;
	r = events_wait(&client, 0);
	must(r == 0 || r == -ECONNRESET);
	return r == 0;
}

static void set_policy(uint8_t arg)
{
	policy = (arg & ~VERBS) % POLICIES;
	if (client.domains.count == 0)
		client.device = arg & VERBS ? &verbs_device : &mock_device;
}

static void run(const struct script *script)
{
	bool goes_on = true;

	for (size_t i = 0; goes_on && i < script->count; i++) {
		const struct step *step = &script->steps[i];

		if (step->op % SESSION_OPS == SESSION_REQUEST)
			goes_on = request(step);
		else if (step->op % SESSION_OPS == SESSION_SUPERVISOR)
			set_policy(step->arg);
		else
			goes_on = serve_down(step);
	}
}

/* ---- begin and end of one input ---- */

static void begin(void)
{
	Kvreg__Welcome welcome = KVREG__WELCOME__INIT;
	int pair[2];

	/* All but the big buffers, which nobody reads before they are written. */
	memset(&client, 0, offsetof(struct client, control.arena));
	memset(&client.grant, 0, offsetof(struct client, arena) - offsetof(struct client, grant));
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	down = pair[0];
	policy = GRANTS_SLABS;
	client.control.down = pair[1];
	client.control.up = up[1];
	must(self_open(&client.self) == 0);
	welcome.client_pid = 1;
	welcome.class_ = "fuzz";
	welcome.device = "mock";
	welcome.access_allowed = 0x1f;
	must(client_init(&client, &welcome, fcntl(sock, F_DUPFD_CLOEXEC, 0), /* pidfd */ -1) == 0);
}

static bool is_nothing(const struct amounts *amounts)
{
	for (size_t i = 0; i < BOOKS; i++)
		if (amounts->of[i])
			return false;
	return true;
}

static void check_books(void)
{
	struct amounts used = { { 0 } };
	uint64_t references = 0, covered = 0;
	struct backing *backing;
	struct region *region;
	struct buffer *buffer;
	struct domain *domain;

	for (size_t at = 0; (region = handles_each(&client.regions, &at));) {
		must(region->state == REGION_LIVE && region->taken.of[BOOK_CHARGE] > 0);
		must(region->uses > 0 && region->taken.of[BOOK_REGIONS] == 1);
		for (size_t i = 0; i < BOOKS; i++)
			used.of[i] += region->taken.of[i];
	}
	for (size_t at = 0; (domain = handles_each(&client.domains, &at));)
		references += domain->regions;
	for (size_t at = 0; (buffer = handles_each(&client.buffers, &at));)
		must(!buffer->map);
	LIST_FOREACH(backing, &client.backings, link)
		for (size_t i = 0; i < backing->coverage.count; i++)
			covered +=
				backing->coverage.ranges[i].end - backing->coverage.ranges[i].first;
	must(client.grant.used.of[BOOK_CHARGE] == used.of[BOOK_CHARGE]);
	must(client.grant.used.of[BOOK_MEMORY] == covered);
	must(client.grant.used.of[BOOK_REGIONS] == client.regions.count);
	must(client.grant.used.of[BOOK_BUFFERS] == client.buffers.count);
	must(client.grant.used.of[BOOK_DOMAINS] == client.domains.count);
	must(references == client.regions.count);
}

static void end(void)
{
	check_books();
	must(client_fini(&client));
	must(is_nothing(&client.grant.used) && LIST_EMPTY(&client.backings));
	fd_close(&client.control.down);
	fd_close(&client.self.status);
	fd_close(&client.self.meminfo);
	fd_close(&down);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned int runs;
	struct script script;
	int before = lowest_fd();

	script_read(&script, data, size);
	begin();
	run(&script);
	end();
	must(lowest_fd() == before);
	if (++runs % 512 == 0)
		must(count_mappings("memfd:fuzz") == 0);
	return 0;
}

/* ---- what clients bring ---- */

static int memory(size_t size, size_t resident, unsigned int seals)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	must(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	must(resident == 0 || fallocate(fd, 0, 0, (off_t)resident) == 0);
	must(fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static int reopen(int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int pair[2];

	(void)argc;
	(void)argv;
	signal(SIGPIPE, SIG_IGN);
	must(pipe2(up, O_DIRECT | O_CLOEXEC | O_NONBLOCK) == 0);
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	sock = pair[0];
	fds[FD_SOCKET] = pair[1];
	fds[FD_DEVICE] = open("/dev/null", O_RDWR | O_CLOEXEC);
	fds[FD_SEALED] = memory(MEMORY, MEMORY, F_SEAL_SHRINK);
	fds[FD_BIG] = memory(BIG_MEMORY, BIG_MEMORY, F_SEAL_SHRINK | F_SEAL_GROW);
	fds[FD_SPARSE] = memory(MEMORY, MEMORY / 2, F_SEAL_SHRINK);
	fds[FD_UNSEALED] = memory(MEMORY, MEMORY, 0);
	fds[FD_WRITE_SEALED] = memory(MEMORY, MEMORY, F_SEAL_SHRINK | F_SEAL_WRITE);
	fds[FD_READ_ONLY] = reopen(fds[FD_SEALED], O_RDONLY);
	fds[FD_DEVICE_READ_ONLY] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fds[FD_PATH] = open("/dev/null", O_PATH | O_CLOEXEC);
	fds[FD_PIPE] = up[0];
	fds[FD_DIRECTORY] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fds[FD_FILE] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	for (size_t i = FD_DEVICE; i < COUNT(fds); i++)
		must(fds[i] >= 0);
	return 0;
}
