/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that does one step at a time, as its standard input says: a line a command, a line an
 * answer ("ok ..." or "error ..."). Scripts drive it to hold a client in any state, kill it there,
 * and look at the kernel meanwhile; the demo tells its story with it.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <kvreg-client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/ctl/loopback.h"
#include "proto/procfs.h"
#include "proto/uverbs.h"

#define ACCESS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_MW_BIND)

struct worker {
	struct loopback lb;
	struct kvreg *k;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *region, *again;
	uint8_t *address;
	uint64_t size;
	uint64_t offset, length; /* of the region within the buffer */
};

static int failed(int r)
{
	char text[2048];

	kvreg_error_text(kvreg_last_error(), text, sizeof(text));
	printf("error errno=%s code=%s %s\n", strerrorname_np(-r),
	       kvreg_error_name(kvreg_last_error()), text);
	return 0;
}

static int done(int r)
{
	if (r < 0)
		return failed(r);
	printf("ok\n");
	return 0;
}

static int failed_verbs(struct worker *w, int r)
{
	printf("error errno=%s %s\n", strerrorname_np(-r), w->lb.problem);
	return 0;
}

static int do_open(struct worker *w, char **args)
{
	(void)args;
	return done(kvreg_open(NULL, &w->k));
}

static int do_device(struct worker *w, char **args)
{
	int r = loopback_open(&w->lb, args[0][0] ? args[0] : NULL);

	if (r < 0)
		return failed_verbs(w, r);
	printf("ok device=%s\n", loopback_name(&w->lb));
	return 0;
}

static int do_connect(struct worker *w, char **args)
{
	int r = loopback_connect(&w->lb);

	(void)args;
	return r < 0 ? failed_verbs(w, r) : done(0);
}

/* What every program does today: the kernel's answer to ibv_reg_mr in this very process. */
static int do_direct(struct worker *w, char **args)
{
	size_t size = strtoull(args[0], NULL, 0);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	if (memory == MAP_FAILED)
		return failed_verbs(w, -errno);
	errno = 0;
	mr = ibv_reg_mr(w->lb.pd, memory, size, ACCESS);
	if (mr) {
		ibv_dereg_mr(mr);
		printf("ok\n");
	} else {
		printf("error errno=%s ibv_reg_mr of %zu bytes: %s\n", strerrorname_np(errno), size,
		       strerror(errno));
	}
	munmap(memory, size);
	return 0;
}

static int do_attach(struct worker *w, char **args)
{
	uint32_t handle = w->lb.pd->handle + (uint32_t)strtoul(args[0], NULL, 0);

	return done(kvreg_attach_fd(w->k, w->lb.context->cmd_fd, handle, &w->domain));
}

static int do_alloc(struct worker *w, char **args)
{
	void *address;
	int r;

	w->size = strtoull(args[0], NULL, 0);
	r = kvreg_buffer_alloc(w->k, w->size, 0, &address, &w->buffer);
	if (r < 0)
		return failed(r);
	w->address = address;
	printf("ok address=%p\n", address);
	return 0;
}

/* A memfd of one size that claims another. */
static int do_short(struct worker *w, char **args)
{
	uint64_t size = strtoull(args[0], NULL, 0);
	int fd = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (ftruncate(fd, (off_t)size) < 0)
		return failed_verbs(w, -errno);
	r = kvreg_buffer_memfd(w->k, fd, NULL, 2 * size, NULL, &w->buffer);
	close(fd);
	return done(r);
}

/* register [OFFSET [LENGTH [IOVA]]] */
static int do_register(struct worker *w, char **args)
{
	uint64_t iova = strtoull(args[2], NULL, 0);
	int r;

	w->offset = strtoull(args[0], NULL, 0);
	w->length = args[1][0] ? strtoull(args[1], NULL, 0) : w->size - w->offset;
	r = kvreg_register(w->domain, w->buffer, w->offset, w->length, iova, ACCESS, NULL,
			   &w->region);
	if (r < 0)
		return failed(r);
	printf("ok handle=%u lkey=0x%x rkey=0x%x address=0x%" PRIx64 " length=%" PRIu64 "\n",
	       kvreg_handle(w->region), kvreg_lkey(w->region), kvreg_rkey(w->region),
	       kvreg_iova(w->region), w->length);
	return 0;
}

/* The range of the last register once more; deregister ends the first of the two. */
static int do_again(struct worker *w, char **args)
{
	int r = kvreg_register(w->domain, w->buffer, w->offset, w->length, 0, ACCESS, NULL,
			       &w->again);

	(void)args;
	if (r < 0)
		return failed(r);
	printf("ok handle=%u rkey=0x%x\n", kvreg_handle(w->again), kvreg_rkey(w->again));
	return 0;
}

static void fill(uint8_t *p, uint64_t n, uint32_t seed)
{
	for (uint64_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed = seed * 1664525u + 1013904223u, seed >> 24);
}

/* move [SEED]: WRITE the first half over the second and READ it back, with our own addresses. */
static int do_move(struct worker *w, char **args)
{
	uint64_t half = w->length / 2, first = kvreg_iova(w->region);
	uint8_t *a = w->address + w->offset, *b = a + half;
	struct transfer t = { first, first + half, half, kvreg_lkey(w->region),
			      kvreg_rkey(w->region) };
	int r;

	fill(a, half, (uint32_t)strtoul(args[0], NULL, 0));
	memset(b, 0, half);
	r = loopback_move(&w->lb, IBV_WR_RDMA_WRITE, &t);
	if (r < 0)
		return failed_verbs(w, r);
	if (memcmp(a, b, half) != 0) {
		printf("error RDMA WRITE: the bytes differ\n");
		return 0;
	}
	memset(a, 0, half);
	r = loopback_move(&w->lb, IBV_WR_RDMA_READ, &t);
	if (r < 0)
		return failed_verbs(w, r);
	if (memcmp(a, b, half) != 0 || half == 0) {
		printf("error RDMA READ: the bytes differ\n");
		return 0;
	}
	printf("ok moved=%" PRIu64 "\n", half);
	return 0;
}

/* foreign ADDRESS RKEY: an RDMA WRITE into what another client has registered. */
static int do_foreign(struct worker *w, char **args)
{
	struct transfer t = {
		.local = kvreg_iova(w->region),
		.remote = strtoull(args[0], NULL, 0),
		.length = 4096,
		.lkey = kvreg_lkey(w->region),
		.rkey = (uint32_t)strtoul(args[1], NULL, 0),
	};
	int r = loopback_move(&w->lb, IBV_WR_RDMA_WRITE, &t);

	return r < 0 ? failed_verbs(w, r) : done(0);
}

/* Destroys the brokered MR behind the daemon's back, as its owner may. */
static int do_destroy(struct worker *w, char **args)
{
	uint32_t driver;
	int r = uverbs_driver(w->lb.context->cmd_fd, &driver);

	(void)args;
	if (r == 0)
		r = uverbs_destroy_mr(w->lb.context->cmd_fd, driver, kvreg_handle(w->region));
	return r < 0 ? failed_verbs(w, r) : done(0);
}

/* attack NAME PID: asks a session that runs its attacker's code (tests/attack). */
static int do_attack(struct worker *w, char **args)
{
	struct kvreg_buffer_options options = { .size = sizeof(options) };
	int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct kvreg_buffer *buffer;
	char label[65];
	int r;

	snprintf(label, sizeof(label), "attack:%s:%s", args[0], args[1]);
	options.label = label;
	if (ftruncate(fd, 4096) < 0)
		return failed_verbs(w, -errno);
	r = kvreg_buffer_memfd(w->k, fd, NULL, 4096, &options, &buffer);
	close(fd);
	return done(r);
}

/* Ends the connection without a word, and goes on. */
static int do_hangup(struct worker *w, char **args)
{
	(void)args;
	return done(shutdown(kvreg_fd(w->k), SHUT_RDWR) < 0 ? -errno : 0);
}

/* Binds a memory window to the region: from then on its MR cannot be destroyed. */
static int do_window(struct worker *w, char **args)
{
	struct ibv_mw *mw = ibv_alloc_mw(w->lb.pd, IBV_MW_TYPE_2);
	struct ibv_mr mr = {
		.context = w->lb.context,
		.pd = w->lb.pd,
		.addr = w->address,
		.length = w->length,
		.handle = kvreg_handle(w->region),
		.lkey = kvreg_lkey(w->region),
		.rkey = kvreg_rkey(w->region),
	};
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw,
			.rkey = mw ? ibv_inc_rkey(mw->rkey) : 0,
			.bind_info = { &mr, (uintptr_t)w->address, 4096, IBV_ACCESS_REMOTE_WRITE },
		},
	};
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
	int r = mw ? -ibv_post_send(w->lb.qps[0], &wr, &bad) : -errno;

	(void)args;
	if (r < 0)
		return failed_verbs(w, r);
	while (ibv_poll_cq(w->lb.cq, 1, &wc) == 0)
		;
	return wc.status == IBV_WC_SUCCESS ? done(0) : failed_verbs(w, -EIO);
}

/* A child that holds all that we hold, and does nothing. */
static int do_fork(struct worker *w, char **args)
{
	pid_t pid = fork();

	(void)w;
	(void)args;
	if (pid == 0) {
		close(0);
		close(1);
		for (;;)
			pause();
	}
	printf("ok pid=%d\n", pid);
	return 0;
}

static int do_whoami(struct worker *w, char **args)
{
	struct kvreg_identity id;
	int r = kvreg_whoami(w->k, &id);

	(void)args;
	if (r < 0)
		return failed(r);
	printf("ok pid=%u uid=%u session=%u session_uid=%u granted=%" PRIu64 " charged=%" PRIu64
	       " regions=%u\n",
	       id.pid, id.uid, id.session_pid, id.session_uid, id.granted, id.charged, id.regions);
	return 0;
}

static int do_pin(struct worker *w, char **args)
{
	struct proc_status status;
	int r = proc_status(0, &status);

	(void)args;
	if (r < 0)
		return failed_verbs(w, r);
	printf("ok vm_pin=%" PRIu64 " cap_eff=%" PRIx64 "\n", status.vm_pin, status.cap_eff);
	return 0;
}

static int do_deregister(struct worker *w, char **args)
{
	int r = kvreg_deregister(w->region);

	(void)args;
	if (r < 0 && r != -ENOENT) /* which frees it too */
		return failed(r);
	if (w->again)
		w->region = w->again;
	w->again = NULL;
	return done(r);
}

static int do_release(struct worker *w, char **args)
{
	(void)args;
	return done(kvreg_buffer_release(w->buffer));
}

static int do_detach(struct worker *w, char **args)
{
	(void)args;
	return done(kvreg_detach(w->domain));
}

static int do_close(struct worker *w, char **args)
{
	(void)args;
	kvreg_close(w->k);
	return done(0);
}

/* The PD goes only when no MR is left in it (EBUSY): the kernel's own proof. */
static int do_leave(struct worker *w, char **args)
{
	int r;

	(void)args;
	for (size_t i = 0; i < 2; i++) {
		if (w->lb.qps[i])
			ibv_destroy_qp(w->lb.qps[i]);
		w->lb.qps[i] = NULL;
	}
	r = -ibv_dealloc_pd(w->lb.pd);
	if (r < 0)
		return failed_verbs(w, r);
	w->lb.pd = NULL;
	loopback_close(&w->lb);
	return done(0);
}

static const struct {
	const char *name;
	int (*run)(struct worker *w, char **args);
} commands[] = {
	{ "open", do_open },       { "device", do_device },         { "connect", do_connect },
	{ "direct", do_direct },   { "attach", do_attach },         { "alloc", do_alloc },
	{ "short", do_short },     { "register", do_register },     { "move", do_move },
	{ "foreign", do_foreign }, { "destroy", do_destroy },       { "whoami", do_whoami },
	{ "pin", do_pin },         { "deregister", do_deregister }, { "release", do_release },
	{ "detach", do_detach },   { "close", do_close },           { "leave", do_leave },
	{ "fork", do_fork },       { "window", do_window },         { "hangup", do_hangup },
	{ "attack", do_attack },   { "again", do_again },
};

static int run(struct worker *w, char *line)
{
	char *words[4] = { "", "", "", "" }, *word = strtok(line, " \n");

	for (size_t i = 0; word && i < 4; i++, word = strtok(NULL, " \n"))
		words[i] = word;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, words[0]) == 0)
			return commands[i].run(w, words + 1);
	printf("error no such command: %s\n", words[0]);
	return 0;
}

int main(int argc, char **argv)
{
	static struct worker w;
	char line[256];

	/* The name that scripts and listings know it by. */
	if (argc > 1)
		prctl(PR_SET_NAME, argv[1], 0, 0, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin))
		run(&w, line);
	return 0;
}
