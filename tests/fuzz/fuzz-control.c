/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of the control pipes: what hostile sessions send up, in any order with
 * their ends, their clients' ends, and an administrator's questions. No assert of the supervisor
 * may be within their reach: it would be a denial of service for everybody.
 *
 * The supervisor and its sessions are the real ones (all of daemon/ but its main, spawning and
 *log): a session is made by session_new(), read through its pipe and the loop, freed by
 *session_free(). Played here: the processes. Every session has the pid of one that does nothing, so
 *that prlimit, pidfd and /proc are real; that it ended is told by waitid(), its MRs by
 *leaf_objects(), both replaced at link time. Timers fire when the script says so.
 *
 * The steps of a script (script.h); arg: which session, unless it says otherwise:
 *
 *	CLIENT, ADMIN  a connection; arg: its uid and class
 *	UP             bytes: a record, written into the session's pipe
 *	ENDED          byte 0: exit status, or a signal from 128 on
 *	ORPHAN         the client's process is gone
 *	TIME           all timers that run fire; arg: MRs left in every leaf, 255: there is no leaf
 *	READ           the session reads all that waits for it; each must be a message
 *	CLOSE          the session closes its ends, arg's top bit: only its pipe
 *	HOST           arg: what the host is able to do (enum ability), from now on
 *
 * After each step the books agree with the sessions; at the end supervisor_fini() asserts that they
 * are empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/gather.h"
#include "daemon/log.h"
#include "daemon/session.h"
#include "daemon/supervisor.h"
#include "proto/fdset.h"
#include "proto/wire.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/host.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/steps.h"

#define ENDS_MAX    8u
#define FIRST_UID   1000u
#define UIDS        3u
#define TURNS       2 /* of the loop after each step */
#define QUOTA       (1ull << 30)
#define UID_QUOTA   (3ull << 28)
#define CLIENTS     5u
#define CLASSES     2u
#define CLASS_QUOTA (1ull << 29)
#define PER_CLASS   2u
#define PER_UID     3u
#define OBJECTS     40000u

/* The other ends of a session's channels, which its process holds. */
struct ends {
	struct session *session; /* NULL: free */
	int down, up;
};

static struct supervisor supervisor;
static struct ends ends[ENDS_MAX];
static size_t shown, may_be_shown; /* lines about clients in administrators' answers */

/* ---- sessions ---- */

static bool lives(const struct session *session)
{
	const struct session *s;

	LIST_FOREACH(s, &supervisor.sessions, link)
		if (s == session)
			return true;
	return false;
}

static void close_ends(struct ends *e)
{
	fd_close(&e->down);
	fd_close(&e->up);
	e->session = NULL;
}

/* Ends of sessions that are freed go too: another session may come to lie at their address. */
static void sweep(void)
{
	for (size_t i = 0; i < ENDS_MAX; i++)
		if (ends[i].session && !lives(ends[i].session))
			close_ends(&ends[i]);
}

static struct ends *find(uint8_t arg)
{
	struct ends *e = &ends[arg % ENDS_MAX];

	return e->session ? e : NULL;
}

static void connect_one(Kvreg__Role role, uint8_t arg)
{
	struct peer peer = { .pid = host.process, .uid = FIRST_UID + arg % UIDS, .comm = "fuzz" };
	struct charge charge = { 0 };
	struct quota quota;
	struct spare spare = SPARE_INIT;
	struct ends *e = ends;
	int sock = -1;

	while (e < ends + ENDS_MAX && e->session)
		e++;
	if (e == ends + ENDS_MAX)
		return;
	peer.pidfd = (int)syscall(SYS_pidfd_open, host.process, 0);
	must(peer.pidfd >= 0 && spare_fill(&spare) == 0);
	/* The least there is: a few records fill it, and then they are queued. */
	must(setsockopt(spare.down[0], SOL_SOCKET, SO_SNDBUF, &(int){ 1 }, sizeof(int)) == 0);
	spare_release(&spare);
	if (role == KVREG__ROLE__ROLE_ADMIN ||
	    charge_init(&charge, &supervisor.books, arg / UIDS % CLASSES, peer.uid, peer.gid,
			&quota) == 0) {
		must(session_new(&supervisor, role, &peer, &charge, &sock, &spare) == 0);
		*e = (struct ends){
			.session = LIST_FIRST(&supervisor.sessions),
			.down = host.spawned.down[1],
			.up = host.spawned.up[1],
		};
		must(fcntl(e->up, F_SETFL, O_DIRECT | O_NONBLOCK) == 0);
	}
	spare_fini(&spare);
	charge_fini(&charge);
	peer_fini(&peer);
}

/* How many lines an administrator may be shown for it: one for each client. */
static size_t lines_asked_for(const struct ends *e, const struct step *step)
{
	static struct arena arena;
	const Kvreg__Up *message = (const Kvreg__Up *)codec_unpack(&arena, &kvreg__up__descriptor,
								   step->bytes, step->length);

	if (e->session->role != KVREG__ROLE__ROLE_ADMIN || !message ||
	    message->body_case != KVREG__UP__BODY_ADMIN ||
	    message->admin->body_case != KVREG__ADMIN_REQUEST__BODY_CLIENTS)
		return 0;
	return supervisor.books.total.of[BOOK_SESSIONS];
}

static void say_up(struct ends *e, const struct step *step)
{
	if (e->up < 0 || step->length == 0 || step->length > UP_RECORD_MAX)
		return;
	may_be_shown += lines_asked_for(e, step);
	(void)!write(e->up, step->bytes, step->length);
}

static void read_down(struct ends *e)
{
	static uint8_t record[RECORD_MAX];
	static struct arena arena;
	const Kvreg__Down *message;
	struct fdset set = FDSET_INIT;
	ssize_t n;

	while (e->down >= 0 &&
	       (n = wire_recv(e->down, record, sizeof(record), &set, MSG_DONTWAIT)) > 0) {
		message = (const Kvreg__Down *)codec_unpack(&arena, &kvreg__down__descriptor,
							    record, (size_t)n);
		must(message && message->body_case != KVREG__DOWN__BODY__NOT_SET);
		must(set.count == 0);
		if (message->body_case == KVREG__DOWN__BODY_ADMIN)
			shown += message->admin->n_clients;
		must(message->body_case != KVREG__DOWN__BODY_ADMIN ||
		     message->admin->n_regions <= REGIONS_PER_REPORT);
	}
	/* One line a question and client, however often its session reports. */
	must(shown <= may_be_shown);
}

/* ---- what happens ---- */

static void fire(struct ev_timer *timer)
{
	if (!ev_is_active(timer))
		return;
	if (timer->repeat == 0.)
		ev_timer_stop(supervisor.loop, timer);
	ev_invoke(supervisor.loop, timer, EV_TIMER);
}

static void time_passes(void)
{
	while (!LIST_EMPTY(&supervisor.gathers))
		fire(&LIST_FIRST(&supervisor.gathers)->deadline);
	for (size_t i = 0; i < ENDS_MAX; i++) {
		if (ends[i].session)
			fire(&ends[i].session->grace);
		if (ends[i].session)
			fire(&ends[i].session->drained);
		sweep();
	}
	/* One process has all the leases. */
	if (!LIST_EMPTY(&supervisor.leaseholders))
		fire(&LIST_FIRST(&supervisor.leaseholders)->look);
}

static void fire_io(struct ev_io *watcher)
{
	if (ev_is_active(watcher))
		ev_invoke(supervisor.loop, watcher, EV_READ);
}

static void happens(struct ends *e, const struct step *step)
{
	switch (step->op % CONTROL_OPS) {
	case CONTROL_UP:
		say_up(e, step);
		break;
	case CONTROL_ENDED:
		host.exit_status = step_byte(step, 0);
		/* Not while the loop may still have its words: those come first, or with it. */
		fire_io(&e->session->ended);
		break;
	case CONTROL_ORPHAN:
		fire_io(&e->session->orphan);
		break;
	case CONTROL_READ:
		read_down(e);
		break;
	case CONTROL_CLOSE:
		fd_close(&e->up);
		if (!(step->arg & ONLY_PIPE))
			fd_close(&e->down);
		break;
	}
}

static void set_host(uint8_t arg)
{
	host.abilities = arg;
	supervisor.privilege.raise_limit = arg & RAISES_LIMITS;
}

static void take(const struct step *step)
{
	uint8_t op = step->op % CONTROL_OPS;

	if (op == CONTROL_CLIENT || op == CONTROL_ADMIN) {
		connect_one(op == CONTROL_ADMIN ? KVREG__ROLE__ROLE_ADMIN
						: KVREG__ROLE__ROLE_CLIENT,
			    step->arg);
	} else if (op == CONTROL_HOST) {
		set_host(step->arg);
	} else if (op == CONTROL_TIME) {
		host.objects = step->arg;
		time_passes();
	} else if (find(step->arg)) {
		happens(find(step->arg), step);
	}
}

static bool is_same(const struct amounts *a, const struct amounts *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static void add(struct amounts *sum, const struct amounts *more)
{
	for (size_t i = 0; i < BOOKS; i++)
		sum->of[i] += more->of[i];
}

static void check_books(void)
{
	const struct session *session;
	const struct leaseholder *holder;
	struct amounts total = { { 0 } }, classes[CLASSES] = { { { 0 } } };

	LIST_FOREACH(holder, &supervisor.leaseholders, link) {
		add(&total, &holder->charge.held);
		add(&classes[holder->charge.uid->klass], &holder->charge.held);
	}
	must(LIST_EMPTY(&supervisor.leaseholders) ||
	     !LIST_NEXT(LIST_FIRST(&supervisor.leaseholders), link));
	LIST_FOREACH(session, &supervisor.sessions, link) {
		/* cppcheck-suppress uninitvar */
		bool is_client = session->role == KVREG__ROLE__ROLE_CLIENT;

		must(session->charge.held.of[BOOK_SESSIONS] == is_client);
		add(&total, &session->charge.held);
		add(&classes[session->klass], &session->charge.held);
		must(session->state != SESSION_GONE);
		must(session->channel.queued <= session->channel.queue_max);
	}
	must(is_same(&total, &supervisor.books.total));
	for (size_t i = 0; i < CLASSES; i++)
		must(is_same(&classes[i], &supervisor.books.classes[i]));
	must(total.of[BOOK_MEMORY] <= QUOTA && total.of[BOOK_CHARGE] <= QUOTA);
	must(total.of[BOOK_SESSIONS] <= CLIENTS && total.of[BOOK_REGIONS] <= OBJECTS);
	must(classes[1].of[BOOK_CHARGE] <= CLASS_QUOTA);
	must(classes[1].of[BOOK_SESSIONS] <= PER_CLASS);
}

/* ---- one input ---- */

static struct limits limits(uint64_t memory, uint64_t sessions, uint64_t regions)
{
	struct limits limits = limits_none();

	limits.most[BOOK_MEMORY] = memory;
	limits.most[BOOK_SESSIONS] = sessions;
	limits.most[BOOK_REGIONS] = regions;
	return limits;
}

static void begin(void)
{
	supervisor = (struct supervisor){
		.device = "mock",
		.spawner = { .exe = -1 },
		.leaves = { .dir = -1 },
		.admins = { .fd = -1, .parked = -1, .spare = SPARE_INIT },
		.config = {
			.session_user = "fuzz",
			.quotas = {
				.host = limits(QUOTA, CLIENTS, OBJECTS),
				.per_uid = limits(UID_QUOTA, PER_UID, NO_LIMIT),
				.per_gid = limits_none(),
			},
			.access = 0x1f,
			.n_classes = CLASSES,
			.classes = {
				{ .name = "default", .limits = limits_none() },
				{ .name = "fuzz", .limits = limits(CLASS_QUOTA, PER_CLASS, NO_LIMIT) },
			},
			/* Whose sessions may say that they are held in one of the stages. */
			.faults = { 1, { { .klass = "fuzz", .stages[FAULT_REGISTER] = { 1, 0, 0 } } } },
		},
	};
	for (size_t i = 0; i < COUNT(supervisor.clients); i++)
		listener_init(&supervisor.clients[i]);
	books_init(&supervisor.books, &supervisor.config);
	supervisor.loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_POLL);
	must(supervisor.loop);
	supervisor.started = ev_now(supervisor.loop);
	host.abilities = host.exit_status = 0;
	host.objects = NO_LEAF;
	shown = may_be_shown = 0;
	for (size_t i = 0; i < ENDS_MAX; i++)
		ends[i] = (struct ends){ .down = -1, .up = -1 };
}

static void end(void)
{
	while (!LIST_EMPTY(&supervisor.gathers))
		fire(&LIST_FIRST(&supervisor.gathers)->deadline);
	for (size_t i = 0; i < ENDS_MAX; i++)
		close_ends(&ends[i]);
	supervisor_fini(&supervisor);
	must(LIST_EMPTY(&supervisor.sessions));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script script;
	int before = lowest_fd();

	script_read(&script, data, size);
	begin();
	for (size_t i = 0; i < script.count; i++) {
		take(&script.steps[i]);
		for (int turn = 0; turn < TURNS; turn++)
			ev_run(supervisor.loop, EVRUN_NOWAIT);
		sweep();
		check_books();
	}
	end();
	must(lowest_fd() == before);
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	signal(SIGPIPE, SIG_IGN);
	host.process = bystander();
	return 0;
}
