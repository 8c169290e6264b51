/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/admin.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/gather.h"
#include "daemon/session.h"
#include "daemon/supervisor.h"
#include "daemon/sysfs.h"
#include "proto/failure.h"
#include "proto/procfs.h"

void admin_reply(struct session *admin, Kvreg__AdminReply *reply)
{
	Kvreg__Down down = KVREG__DOWN__INIT;

	down.body_case = KVREG__DOWN__BODY_ADMIN;
	down.admin = reply;
	session_send(admin, &down);
}

static void refuse(struct session *admin, uint32_t seq, struct failure *f)
{
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;
	struct failure_wire wire;

	failure_to_wire(f, &wire);
	reply.seq = seq;
	reply.error = &wire.error;
	admin_reply(admin, &reply);
}

static uint64_t milliseconds(const struct supervisor *supervisor, double since)
{
	return (uint64_t)((ev_now(supervisor->loop) - since) * 1000.);
}

/* ---- status ---- */

static void fill_usage(const struct amounts *used, const struct limits *limits,
		       Kvreg__Usage *ret_usage)
{
	ret_usage->sessions = (uint32_t)used->of[BOOK_SESSIONS];
	ret_usage->sessions_limit = limits->most[BOOK_SESSIONS];
	ret_usage->memory = used->of[BOOK_MEMORY];
	ret_usage->memory_limit = limits->most[BOOK_MEMORY];
	ret_usage->charge = used->of[BOOK_CHARGE];
	ret_usage->charge_limit = limits->most[BOOK_CHARGE];
	ret_usage->gpu = used->of[BOOK_GPU];
	ret_usage->gpu_limit = limits->most[BOOK_GPU];
	ret_usage->domains = used->of[BOOK_DOMAINS];
	ret_usage->domains_limit = limits->most[BOOK_DOMAINS];
	ret_usage->buffers = used->of[BOOK_BUFFERS];
	ret_usage->buffers_limit = limits->most[BOOK_BUFFERS];
	ret_usage->regions = used->of[BOOK_REGIONS];
	ret_usage->regions_limit = limits->most[BOOK_REGIONS];
}

static void fill_account(struct supervisor *supervisor, const struct account *account,
			 Kvreg__Usage *ret_usage)
{
	struct limits limits =
		books_limits(&supervisor->books, account->scope, account->klass, account->id);

	kvreg__usage__init(ret_usage);
	ret_usage->scope =
		account->scope == SCOPE_UID ? KVREG__SCOPE__SCOPE_UID : KVREG__SCOPE__SCOPE_GID;
	ret_usage->id = account->id;
	ret_usage->class_ = (char *)supervisor->config.classes[account->klass].name;
	fill_usage(&account->used, &limits, ret_usage);
}

/* The uids and gids, as many records as they take; a host may serve a thousand. */
static void tell_accounts(struct supervisor *supervisor, struct session *admin, uint32_t seq)
{
	Kvreg__Usage usage[USERS_PER_RECORD], *list[USERS_PER_RECORD];
	struct account *account = LIST_FIRST(&supervisor->books.accounts);

	do {
		Kvreg__StatusReply status = KVREG__STATUS_REPLY__INIT;
		Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;

		status.usage = list;
		while (account && status.n_usage < USERS_PER_RECORD) {
			list[status.n_usage] = &usage[status.n_usage];
			fill_account(supervisor, account, &usage[status.n_usage++]);
			account = LIST_NEXT(account, link);
		}
		reply.seq = seq;
		reply.more = account != NULL;
		reply.status = &status;
		admin_reply(admin, &reply);
	} while (account);
}

static struct limits lower(const struct limits *a, const struct limits *b)
{
	struct limits limits;

	for (size_t i = 0; i < BOOKS; i++)
		limits.most[i] = a->most[i] < b->most[i] ? a->most[i] : b->most[i];
	return limits;
}

/* The host, then each class: what binds a class is the lower of its limits and the host's. */
static size_t fill_scopes(struct supervisor *supervisor, Kvreg__Usage *usage, Kvreg__Usage **list)
{
	const struct config *config = &supervisor->config;
	const struct books *books = &supervisor->books;
	struct limits host = books_limits(books, SCOPE_HOST, 0, 0);

	kvreg__usage__init(&usage[0]);
	usage[0].scope = KVREG__SCOPE__SCOPE_HOST;
	fill_usage(&books->total, &host, &usage[0]);
	list[0] = &usage[0];
	for (size_t i = 0; i < config->n_classes; i++) {
		Kvreg__Usage *one = list[1 + i] = &usage[1 + i];
		struct limits limits = books_limits(books, SCOPE_CLASS, i, 0);

		limits = lower(&limits, &host);
		kvreg__usage__init(one);
		one->scope = KVREG__SCOPE__SCOPE_CLASS;
		one->class_ = (char *)config->classes[i].name;
		one->socket = supervisor->clients[i].path;
		fill_usage(&books->classes[i], &limits, one);
	}
	return 1 + config->n_classes;
}

static int on_status(struct supervisor *supervisor, struct session *admin,
		     const Kvreg__AdminRequest *request)
{
	Kvreg__Usage usage[2 + CLASSES_MAX], *list[2 + CLASSES_MAX];
	Kvreg__StatusReply status = KVREG__STATUS_REPLY__INIT;
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;

	status.version = KVREG_VERSION;
	status.pid = (uint32_t)getpid();
	status.uptime_ms = milliseconds(supervisor, supervisor->started);
	status.device = (char *)supervisor->device;
	status.state = supervisor_paused(supervisor) ? "paused" : "serving";
	status.privileged = supervisor->privilege.switch_user && supervisor->privilege.raise_limit;
	status.missing = (char **)supervisor->privilege.missing;
	status.n_missing = supervisor->privilege.n_missing;
	supervisor->books.devices = sysfs_devices();
	status.usage = list;
	status.n_usage = fill_scopes(supervisor, usage, list);
	status.accepted = supervisor->accepted;
	status.refused = supervisor->refused;
	status.grants_refused = supervisor->grants_refused;
	status.session_user = supervisor->config.session_user;
	status.config = supervisor->config.path;
	reply.seq = request->seq;
	reply.more = true;
	reply.status = &status;
	admin_reply(admin, &reply);
	tell_accounts(supervisor, admin, request->seq);
	return 0;
}

/* ---- clients and regions ---- */

void admin_tell_client(struct session *admin, uint32_t seq, struct session *session,
		       const Kvreg__Report *report)
{
	struct supervisor *supervisor = session->supervisor;
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;
	Kvreg__ClientInfo info = KVREG__CLIENT_INFO__INIT, *list = &info;
	struct proc_status status;

	info.pid = (uint32_t)session->peer.pid;
	info.uid = session->peer.uid;
	info.gid = session->peer.gid;
	info.comm = session->peer.comm;
	info.cgroup = session->peer.cgroup;
	info.class_ = (char *)session_class(session);
	info.session_pid = (uint32_t)session->pid;
	info.session_uid = supervisor->privilege.uid;
	/* Whatever it was at: a process of the session's that is asked and does not answer. */
	info.state = !report && session->pid ? "stuck" : (char *)session_state_name(session->state);
	if (session->pid == 0 && lease_is_held(session))
		info.state = "leasing";
	info.leased = lease_booked(session);
	info.age_ms = milliseconds(supervisor, session->started);
	info.granted = session->charge.held.of[BOOK_CHARGE];
	info.memory = session->charge.held.of[BOOK_MEMORY];
	info.gpu = session->charge.held.of[BOOK_GPU];
	info.program = session->program;
	/* The mock device locks where verbs pin. */
	if (session->pid && proc_status(session->pid, &status) == 0)
		info.session_vm_pin = status.vm_pin + status.vm_lck;
	/* The number may be another process's by now: only while the pidfd is quiet is it ours. */
	if (ev_is_active(&session->orphan) && proc_status(session->peer.pid, &status) == 0)
		info.client_vm_pin = status.vm_pin;
	if (report) {
		info.answered = true;
		info.domains = report->domains;
		info.buffers = report->buffers;
		info.regions = report->regions;
		info.registered = report->registered;
	}
	reply.seq = seq;
	reply.more = true;
	reply.clients = &list;
	reply.n_clients = 1;
	admin_reply(admin, &reply);
}

void admin_tell_regions(struct session *admin, uint32_t seq, struct session *session,
			const Kvreg__Report *report)
{
	Kvreg__AdminReply reply = KVREG__ADMIN_REPLY__INIT;

	/* Whose they are is not for the session to say. */
	for (size_t i = 0; i < report->n_list; i++) {
		report->list[i]->client_pid = (uint32_t)session->peer.pid;
		report->list[i]->client_uid = session->peer.uid;
	}
	if (report->n_list == 0)
		return;
	reply.seq = seq;
	reply.more = true;
	reply.regions = report->list;
	reply.n_regions = report->n_list;
	admin_reply(admin, &reply);
}

static int on_clients(struct supervisor *supervisor, struct session *admin,
		      const Kvreg__AdminRequest *request)
{
	return gather_start(supervisor, admin, request->seq, false, 0);
}

static int on_regions(struct supervisor *supervisor, struct session *admin,
		      const Kvreg__AdminRequest *request)
{
	return gather_start(supervisor, admin, request->seq, true, request->regions->client_pid);
}

/* ---- the table ---- */

static const struct {
	Kvreg__AdminRequest__BodyCase body;
	int (*handler)(struct supervisor *supervisor, struct session *admin,
		       const Kvreg__AdminRequest *request);
} rows[] = {
	{ KVREG__ADMIN_REQUEST__BODY_STATUS, on_status },
	{ KVREG__ADMIN_REQUEST__BODY_CLIENTS, on_clients },
	{ KVREG__ADMIN_REQUEST__BODY_REGIONS, on_regions },
};

void admin_request(struct supervisor *supervisor, struct session *admin,
		   const Kvreg__AdminRequest *request)
{
	struct failure f;
	int r = -ENOSYS;

	failure_init(&f);
	if (request->major != PROTOCOL_MAJOR) {
		failure_set(&f, KVREG_E_VERSION, KVREG_STAGE_CONNECT,
			    "the request is of version %u, the daemon of %u", request->major,
			    PROTOCOL_MAJOR);
		refuse(admin, request->seq, &f);
		return;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].body == request->body_case)
			r = rows[i].handler(supervisor, admin, request);
	if (r == 0)
		return;
	if (r == -ENOSYS)
		failure_set(&f, KVREG_E_UNSUPPORTED, KVREG_STAGE_NONE, "the request is not known");
	else
		failure_set(&f, KVREG_E_INTERNAL, KVREG_STAGE_NONE, "out of memory");
	refuse(admin, request->seq, &f);
}
