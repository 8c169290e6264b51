/* SPDX-License-Identifier: Apache-2.0 */
/* What an administrator is told: by the protocol, and by kvregctl where it is built. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "child.h"
#include "ctl.h"
#include "daemon.h"
#include "device.h"

#define SIZE      65536u
#define REGIONS   30u /* more than one record of a session's answer holds */
#define OTHER_UID 64990u

struct world {
	struct daemon_under_test daemon;
	struct raw *raw; /* a client with REGIONS regions of a page */
	struct raw *admin;
	struct device device;
	int memory;
	uint64_t iova;
};

static int set_up(void **state)
{
	static struct world w;
	Kvreg__RegisterItem items[REGIONS];
	uint32_t domain, buffer;

	daemon_start(&w.daemon, NULL);
	w.device = device_open();
	w.memory = memory_fd(SIZE, F_SEAL_SHRINK);
	w.raw = raw_greet(w.daemon.socket);
	w.admin = raw_open(w.daemon.admin_socket);
	w.iova = 1ull << 40;
	domain = raw_attach(w.raw, w.device.fd, w.device.pd)->attach_domain->domain;
	buffer = raw_import(w.raw, w.memory, SIZE, 1u << 30)->import_buffer->buffer;
	for (uint32_t i = 0; i < REGIONS; i++) {
		items[i] = raw_item(domain, buffer, 4096);
		items[i].iova = w.iova + i * 4096;
	}
	require(raw_register(w.raw, items, REGIONS)->register_);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	raw_close(w->admin);
	raw_close(w->raw);
	device_close(&w->device);
	close(w->memory);
	daemon_end(&w->daemon);
	return 0;
}

/* ---- the protocol ---- */

static Kvreg__AdminRequest ask_status(void)
{
	static Kvreg__StatusRequest body;
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;

	kvreg__status_request__init(&body);
	request.body_case = KVREG__ADMIN_REQUEST__BODY_STATUS;
	request.status = &body;
	return request;
}

static void status_is_the_books(void **state)
{
	Kvreg__AdminRequest request = ask_status();
	struct world *w = *state;

	admin_send(w->admin, &request);
	const Kvreg__AdminReply *reply = admin_reply(w->admin);
	assert_true(reply && reply->status && reply->more && !reply->error);
	const Kvreg__StatusReply *s = reply->status;
	assert_string_equal(s->version, KVREG_VERSION);
	assert_int_equal(s->pid, w->daemon.pid);
	assert_string_equal(s->device, device_kind());
	assert_string_equal(s->state, "serving");
	assert_string_equal(s->config, w->daemon.config);
	assert_true(s->privileged == (s->n_missing == 0));
	assert_int_equal(s->accepted, 1);
	assert_int_equal(s->refused, 0);
	assert_int_equal(s->n_usage, 2);
	Kvreg__Usage host = *s->usage[0];
	assert_int_equal(host.scope, KVREG__SCOPE__SCOPE_HOST);
	assert_int_equal(host.sessions, 1);
	assert_int_equal(host.sessions_limit, DEFAULT_SESSIONS);
	assert_int_equal(host.regions_limit, DEFAULT_REGIONS);
	assert_true(host.gpu_limit == UINT64_MAX && host.gpu == 0);
	assert_int_equal(s->usage[1]->scope, KVREG__SCOPE__SCOPE_CLASS);
	assert_string_equal(s->usage[1]->class_, "default");
	assert_string_equal(s->usage[1]->socket, w->daemon.socket);
	reply = admin_reply(w->admin);
	assert_true(reply && reply->status && !reply->more && !reply->error);
	s = reply->status;
	assert_int_equal(s->n_usage, 2);
	for (size_t i = 0; i < 2; i++) {
		const Kvreg__Usage *one = s->usage[i];
		bool is_uid = one->scope == KVREG__SCOPE__SCOPE_UID;

		assert_int_equal(one->id, is_uid ? getuid() : getgid());
		assert_string_equal(one->class_, "default");
		assert_int_equal(one->sessions, 1);
		assert_int_equal(one->charge, host.charge);
		assert_int_equal(one->memory, host.memory);
		assert_true(one->charge >= REGIONS * 4096ull);
		assert_true(one->memory >= 4096);
		assert_true(one->domains >= 1 && one->buffers >= 1 && one->regions >= REGIONS);
		if (is_uid)
			assert_int_equal(one->sessions_limit, DEFAULT_SESSIONS_PER_UID);
		assert_true((one->charge_limit <= host.charge_limit) == is_uid);
	}
}

static void clients_are_listed_with_what_they_hold(void **state)
{
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__ClientsRequest body = KVREG__CLIENTS_REQUEST__INIT;
	struct world *w = *state;

	request.body_case = KVREG__ADMIN_REQUEST__BODY_CLIENTS;
	request.clients = &body;
	admin_send(w->admin, &request);
	const Kvreg__AdminReply *reply = admin_reply(w->admin);
	assert_true(reply && reply->more && reply->n_clients == 1);
	const Kvreg__ClientInfo *c = reply->clients[0];
	assert_int_equal(c->pid, getpid());
	assert_int_equal(c->uid, getuid());
	assert_int_equal(c->gid, getgid());
	assert_string_equal(c->comm, "test-admin");
	assert_string_equal(c->program, "raw");
	assert_string_equal(c->state, "serving");
	assert_int_equal(c->session_uid, geteuid() == 0 ? SESSION_UID : geteuid());
	assert_true(c->answered);
	assert_int_equal(c->domains, 1);
	assert_int_equal(c->buffers, 1);
	assert_int_equal(c->regions, REGIONS);
	assert_int_equal(c->registered, REGIONS * 4096);
	assert_int_equal(c->session_vm_pin, REGIONS * 4096);
	reply = admin_reply(w->admin);
	assert_true(reply && !reply->more && reply->n_clients == 0 && reply->n_unanswered == 0);
}

static size_t count_regions(struct world *w, uint32_t pid)
{
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__RegionsRequest body = KVREG__REGIONS_REQUEST__INIT;
	const Kvreg__AdminReply *reply;
	size_t n = 0;

	body.client_pid = pid;
	request.body_case = KVREG__ADMIN_REQUEST__BODY_REGIONS;
	request.regions = &body;
	admin_send(w->admin, &request);
	do {
		reply = admin_reply(w->admin);
		require(reply && !reply->error && reply->seq == w->admin->seq);
		for (size_t i = 0; i < reply->n_regions; i++) {
			const Kvreg__RegionInfo *r = reply->regions[i];

			require(r->client_pid == (uint32_t)getpid() && r->client_uid == getuid());
			require(r->iova == w->iova + n * 4096 && r->length == 4096);
			require(r->address == 1u << 30 && !strcmp(r->label, "raw buffer"));
			require(!strcmp(r->device, device_name(&w->device)) &&
				!strcmp(r->state, "live"));
			n++;
		}
	} while (reply->more);
	return n;
}

static void regions_are_listed_over_several_records(void **state)
{
	struct world *w = *state;

	assert_int_equal(count_regions(w, 0), REGIONS);
	assert_int_equal(count_regions(w, (uint32_t)getpid()), REGIONS);
	assert_int_equal(count_regions(w, (uint32_t)getppid()), 0);
}

static void other_requests_are_refused(void **state)
{
	static const uint8_t unknown[] = { 1 << 3, 9, 2 << 3, PROTOCOL_MAJOR, 15 << 3 | 2, 0 };
	Kvreg__AdminRequest request = ask_status();
	const Kvreg__AdminReply *reply;
	struct world *w = *state;

	request.major = PROTOCOL_MAJOR + 1;
	admin_send(w->admin, &request);
	reply = admin_reply(w->admin);
	assert_true(reply && reply->error && !reply->more);
	assert_int_equal(reply->error->code, KVREG_E_VERSION);
	raw_send(w->admin, unknown, sizeof(unknown), NULL, 0);
	reply = admin_reply(w->admin);
	assert_true(reply && reply->error && reply->seq == 9);
	assert_int_equal(reply->error->code, KVREG_E_UNSUPPORTED);
	raw_send(w->admin, "\xff", 1, NULL, 0);
	assert_null(admin_reply(w->admin));
}

/* ---- kvregctl ---- */

static void tables_are_for_people(void **state)
{
	struct world *w = *state;
	struct ctl_run run;

	assert_int_equal(ctl_ask(&run, w->daemon.admin_socket, "status", NULL), 0);
	assert_non_null(strstr(run.out, "kvregd " KVREG_VERSION));
	assert_non_null(strstr(run.out, device_kind()));
	assert_int_equal(ctl_ask(&run, w->daemon.admin_socket, "clients", NULL), 0);
	assert_non_null(strstr(run.out, "test-admin"));
	assert_int_equal(ctl_ask(&run, w->daemon.admin_socket, "regions", NULL), 0);
	assert_non_null(strstr(run.out, "raw buffer"));
	assert_string_equal(run.err, "");
}

static void json_is_for_programs(void **state)
{
	static const char *const commands[] = { "status", "clients", "regions" };
	static const char *const holds[] = { "\"granted\"", "\"session_pid\"", "\"raw buffer\"" };
	struct world *w = *state;
	struct ctl_run run;

	for (size_t i = 0; i < COUNT(commands); i++) {
		assert_int_equal(ctl_ask(&run, w->daemon.admin_socket, commands[i], "--json"), 0);
		if (!is_json(run.out) || !strstr(run.out, holds[i]))
			fail_msg("%s: %s", commands[i], run.out);
		assert_string_equal(run.err, "");
	}
	assert_true(is_json("{\"a\": [\"}\\\"\"]}") && !is_json("[}") && !is_json("[]]"));
}

static void a_slip_is_usage(void **state)
{
	struct world *w = *state;
	struct ctl_run run;

	assert_int_equal(ctl_ask(&run, w->daemon.admin_socket, "frobnicate", NULL), 2);
	assert_non_null(strstr(run.err, "frobnicate"));
	assert_int_equal(ctl_ask(&run, w->daemon.admin_socket, "status", "--frobnicate"), 2);
	assert_string_equal(run.out, "");
}

static void no_daemon_is_said(void **state)
{
	struct world *w = *state;
	struct ctl_run run = { .argv = { NULL, "--admin-socket", w->daemon.config, "status" } };

	/* A file that is no socket, and none at all. */
	assert_int_equal(ctl_run(&run, ctl_path(), 0), 3);
	assert_non_null(strstr(run.err, "no daemon listens on"));
	run.argv[2] = "/no/such/socket";
	assert_int_equal(ctl_run(&run, ctl_path(), 0), 3);
	assert_non_null(strstr(run.err, "start kvregd"));
	assert_string_equal(run.out, "");
}

/* Another user, or where there is only one, a directory that admits nobody. */
static void other_users_are_not_admitted(void **state)
{
	struct world *w = *state;
	struct ctl_run run = { .argv = { NULL, "--admin-socket", w->daemon.admin_socket,
					 "status" } };
	char dir[96];
	int status;

	snprintf(dir, sizeof(dir), "%s/admin", w->daemon.dir);
	if (geteuid() != 0)
		require(chmod(dir, 0) == 0);
	status = ctl_run_copy(&run, geteuid() == 0 ? OTHER_UID : 0);
	require(chmod(dir, 0700) == 0);
	assert_int_equal(status, 4);
	assert_non_null(strstr(run.err, "this user may not ask"));
	assert_string_equal(run.out, "");
}

/* More users than one record of a status holds: none may be missing, and nobody left waiting. */
static void a_status_has_any_number_of_users(void **state)
{
	enum { USERS = USERS_PER_RECORD + 3 };
	struct world *w = *state;
	struct raw *raws[USERS];
	struct admin_status status;

	if (geteuid() != 0)
		skip_test("only root can connect as many users");
	for (uint32_t i = 0; i < USERS; i++) {
		require(seteuid(30000 + i) == 0);
		raws[i] = raw_greet(w->daemon.socket);
		require(seteuid(0) == 0);
	}
	assert_true(admin_status(w->daemon.admin_socket, &status));
	assert_true(status.users >= USERS);
	for (size_t i = 0; i < USERS; i++)
		raw_close(raws[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(status_is_the_books),
		TEST(clients_are_listed_with_what_they_hold),
		TEST(regions_are_listed_over_several_records),
		TEST(other_requests_are_refused),
		TEST(tables_are_for_people),
		TEST(json_is_for_programs),
		TEST(a_slip_is_usage),
		TEST(no_daemon_is_said),
		TEST(other_users_are_not_admitted),
		TEST(a_status_has_any_number_of_users),
	};

	return RUN_GROUP("admin", tests);
}
