/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvregctl selftest: does what an engine does, as an ordinary client of the daemon. It opens an
 * RDMA device, has memory registered, moves bytes through it with RDMA WRITE and READ between two
 * queue pairs of its own, compares them, and gives everything back.
 *
 * The steps are a table; the first that fails ends the test and is explained. What makes no sense
 * on this device (no data path behind a mock) is left out, and the result says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <infiniband/verbs.h>

#include "client/kvreg-client.h"
#include "command.h"
#include "complain.h"
#include "format.h"
#include "json.h"
#include "loopback.h"
#include "proto/fdset.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
/* The daemon's stand-in for an RDMA device takes any character device for one. */
#define MOCK_DEVICE "/dev/null"

struct selftest {
	const struct options *options;
	struct json json;
	struct loopback lb; /* open when there are verbs */
	int mock_fd;        /* open when there are none */
	struct kvreg *k;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	void *address;
	struct kvreg_identity identity;
	const char *no_data; /* why no bytes are moved, NULL if they are */
	bool moved;
	char detail[320];                /* of the current step: what it found, or why it failed */
	const struct kvreg_error *error; /* the library's, of the step that failed */
};

__attribute__((format(printf, 2, 3))) static void say(struct selftest *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t->detail, sizeof(t->detail), format, args);
	va_end(args);
}

/* A step that the library failed: the one-line error, with its hint. */
static int failed_call(struct selftest *t)
{
	t->error = kvreg_last_error();
	return (int)status_of_code(kvreg_error_code(t->error));
}

/* A step that the device failed. */
static int failed_device(struct selftest *t)
{
	say(t, "%s", t->lb.problem);
	return CTL_FAILED;
}

static bool is_mock(const struct selftest *t)
{
	return !strcmp(kvreg_device_kind(t->k), "mock");
}

/* ---------------------------------------------------------------- steps */

static int step_connect(struct selftest *t)
{
	const struct kvreg_open_options open_options = {
		.size = sizeof(open_options),
		.socket = t->options->socket,
		.program = "kvregctl selftest",
	};

	if (kvreg_open(&open_options, &t->k) || kvreg_whoami(t->k, &t->identity))
		return failed_call(t);
	say(t, "session pid %" PRIu32 " of uid %" PRIu32 " is charged, not this process",
	    t->identity.session_pid, t->identity.session_uid);
	return 0;
}

static int step_open_device(struct selftest *t)
{
	if (is_mock(t)) {
		t->no_data = "the daemon's device is a mock";
		t->mock_fd = open(MOCK_DEVICE, O_RDWR | O_CLOEXEC);
		if (t->mock_fd < 0) {
			say(t, "cannot open " MOCK_DEVICE ": %s", strerror(errno));
			return CTL_FAILED;
		}
		say(t, MOCK_DEVICE " for the daemon's mock device");
		return 0;
	}
	if (loopback_open(&t->lb, t->options->device))
		return failed_device(t);
	if (!loopback_can_connect(&t->lb))
		t->no_data = "queue pairs of this device connect through rdma_cm only";
	say(t, "%s, port %d %s", loopback_name(&t->lb), LOOPBACK_PORT,
	    ibv_port_state_str(t->lb.port.state));
	return 0;
}

static int step_attach(struct selftest *t)
{
	int rc;

	if (is_mock(t))
		rc = kvreg_attach_fd(t->k, t->mock_fd, /* pd_handle */ 0, &t->domain);
	else
		rc = kvreg_attach_pd(t->k, t->lb.pd, &t->domain);
	if (rc)
		return failed_call(t);
	say(t, "the daemon knows it as %s", format_text(kvreg_domain_device(t->domain)).text);
	return 0;
}

static int step_allocate(struct selftest *t)
{
	if (kvreg_buffer_alloc(t->k, (size_t)t->options->size, 0, &t->address, &t->buffer))
		return failed_call(t);
	say(t, "%s at %s", format_size(t->options->size).text,
	    format_address((uintptr_t)t->address).text);
	return 0;
}

static int step_register(struct selftest *t)
{
	struct rlimit limit = { 0 };

	if (kvreg_register(t->domain, t->buffer, 0, t->options->size, 0, ACCESS, NULL, &t->region))
		return failed_call(t);
	if (kvreg_whoami(t->k, &t->identity))
		return failed_call(t);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	say(t, "handle %" PRIu32 ", %s charged to the session (ulimit -l here: %s)",
	    kvreg_handle(t->region), format_size(t->identity.charged).text,
	    limit.rlim_cur == RLIM_INFINITY ? "unlimited" : format_size(limit.rlim_cur).text);
	return 0;
}

static int step_queues(struct selftest *t)
{
	if (loopback_connect(&t->lb))
		return failed_device(t);
	if (t->lb.port.link_layer == IBV_LINK_LAYER_ETHERNET)
		say(t, "GID %" PRIu32 ", %s", t->lb.gid.gid_index,
		    t->lb.gid.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "RoCE v1");
	else
		say(t, "LID %" PRIu16, t->lb.port.lid);
	return 0;
}

/* Bytes that no neighbour and no other round has. */
static void fill(uint8_t *bytes, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

/*
 * The first half of the buffer is the local end, the second half the remote one. The bytes go from
 * @from to @to, which hold different ones before.
 */
static int move(struct selftest *t, enum ibv_wr_opcode opcode, uint8_t *from, uint8_t *to)
{
	const size_t half = (size_t)t->options->size / 2;
	const struct transfer transfer = {
		.local = kvreg_iova(t->region),
		.remote = kvreg_iova(t->region) + half,
		.length = half,
		.lkey = kvreg_lkey(t->region),
		.rkey = kvreg_rkey(t->region),
	};

	fill(from, half, (uint32_t)opcode + 1);
	memset(to, 0, half);
	if (loopback_move(&t->lb, opcode, &transfer))
		return failed_device(t);
	if (memcmp(from, to, half) != 0) {
		say(t, "it completed, but other bytes arrived than were sent");
		return CTL_FAILED;
	}
	t->moved = true;
	say(t, "%s arrived as sent", format_size(half).text);
	return 0;
}

static int step_write(struct selftest *t)
{
	uint8_t *local = t->address, *remote = local + t->options->size / 2;

	return move(t, IBV_WR_RDMA_WRITE, local, remote);
}

static int step_read(struct selftest *t)
{
	uint8_t *local = t->address, *remote = local + t->options->size / 2;

	return move(t, IBV_WR_RDMA_READ, remote, local);
}

static int step_deregister(struct selftest *t)
{
	if (kvreg_deregister(t->region))
		return failed_call(t);
	t->region = NULL;
	if (kvreg_whoami(t->k, &t->identity))
		return failed_call(t);
	say(t, "%s charged to the session now", format_size(t->identity.charged).text);
	return 0;
}

static const struct step {
	const char *name;
	int (*run)(struct selftest *t); /* 0, or an exit status with detail or error set */
	bool data;                      /* left out where no data can be moved */
} steps[] = {
	{ "connect", step_connect, false },       { "open device", step_open_device, false },
	{ "attach domain", step_attach, false },  { "allocate buffer", step_allocate, false },
	{ "register", step_register, false },     { "connect queues", step_queues, true },
	{ "RDMA write", step_write, true },       { "RDMA read", step_read, true },
	{ "deregister", step_deregister, false },
};

/* ---------------------------------------------------------------- report */

static void report_passed(struct selftest *t, const struct step *step)
{
	if (!t->options->json) {
		printf("%-16s ok      %s\n", step->name, t->detail);
		fflush(stdout);
		return;
	}
	json_object(&t->json, NULL);
	json_text(&t->json, "step", step->name);
	json_bool(&t->json, "ok", true);
	json_text(&t->json, "detail", t->detail);
	json_end(&t->json);
}

static void report_failed(struct selftest *t, const struct step *step)
{
	const struct kvreg_error *e = t->error;
	char line[1024];

	if (t->options->json) {
		json_object(&t->json, NULL);
		json_text(&t->json, "step", step->name);
		json_bool(&t->json, "ok", false);
		json_text(&t->json, "detail", e ? kvreg_error_detail(e) : t->detail);
		json_text(&t->json, "code", e ? kvreg_error_name(e) : NULL);
		json_text(&t->json, "hint", e ? kvreg_error_hint(e) : NULL);
		json_end(&t->json);
	} else {
		printf("%-16s FAILED\n", step->name);
		fflush(stdout);
	}
	if (!e) {
		complain(CTL_FAILED, "%s failed: %s", step->name, t->detail);
		return;
	}
	kvreg_error_text(e, line, sizeof(line));
	complain_line(CTL_FAILED, line);
}

static void report_end(struct selftest *t, int status)
{
	if (t->options->json) {
		json_end(&t->json);
		json_bool(&t->json, "passed", !status);
		json_bool(&t->json, "data_moved", t->moved);
		json_text(&t->json, "no_data_because", t->no_data);
		json_text(&t->json, "kind", t->k ? kvreg_device_kind(t->k) : NULL);
		json_text(&t->json, "device", t->domain ? kvreg_domain_device(t->domain) : NULL);
		if (t->identity.session_pid) {
			json_number(&t->json, "session_pid", t->identity.session_pid);
			json_number(&t->json, "session_uid", t->identity.session_uid);
		}
		json_end(&t->json);
	} else if (!status && t->no_data) {
		printf("passed; no data was moved: %s\n", t->no_data);
	} else if (!status) {
		puts("passed");
	}
}

static int run_steps(struct selftest *t)
{
	int status;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (steps[i].data && t->no_data)
			continue;
		t->detail[0] = '\0';
		status = steps[i].run(t);
		if (status) {
			report_failed(t, &steps[i]);
			return status;
		}
		report_passed(t, &steps[i]);
	}
	return 0;
}

int selftest_run(const struct options *options)
{
	struct selftest t = { .options = options, .json = { .out = stdout }, .mock_fd = -1 };
	int status;

	if (options->json) {
		json_object(&t.json, NULL);
		json_array(&t.json, "steps");
	}
	status = run_steps(&t);
	report_end(&t, status);
	/* Regions and domain end with the connection, and must before the device is closed. */
	kvreg_close(t.k);
	loopback_close(&t.lb);
	fd_close(&t.mock_fd);
	return status;
}
