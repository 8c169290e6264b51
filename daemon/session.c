/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/admin.h"
#include "daemon/gather.h"
#include "daemon/grant.h"
#include "daemon/log.h"
#include "daemon/supervisor.h"
#include "daemon/sysfs.h"
#include "proto/fdset.h"
#include "proto/procfs.h"
#include "proto/session-fds.h"

/* A pidfd is a waitable id since Linux 5.4. */
#define WAIT_PIDFD ((idtype_t)3)

static const char *const state_names[] = {
	[SESSION_SPAWNING] = "spawning",
	[SESSION_SERVING] = "serving",
	[SESSION_DRAINING] = "draining",
	[SESSION_GONE] = "gone",
};

const char *session_state_name(enum session_state state)
{
	return state_names[state];
}

const char *session_class(const struct session *session)
{
	return session->supervisor->config.classes[session->klass].name;
}

static void set_state(struct session *session, enum session_state state)
{
	assert(session->state != SESSION_GONE && state >= session->state);
	session->state = state;
}

#define log_session(session, level, format, ...)                                                   \
	do {                                                                                       \
		struct session *s_ = (session);                                                    \
		if (books_may_log(&s_->supervisor->books, s_->peer.uid,                            \
				  ev_now(s_->supervisor->loop)))                                   \
			log_line(level, "client %d (%s, uid %u): " format, s_->peer.pid,           \
				 s_->peer.comm, s_->peer.uid, ##__VA_ARGS__);                      \
	} while (0)

void session_send(struct session *session, const Kvreg__Down *down)
{
	int r;

	if (session->pid == 0 || !ev_is_active(&session->channel.readable))
		return;
	r = channel_send(&session->channel, down);
	/* Every message is bounded below a record: one that is not would leave its reader waiting. */
	if (r == -EMSGSIZE)
		log_error("a message to session %d is longer than a record", session->pid);
	if (r == -ENOBUFS || r == -ENOMEM) {
		log_session(session, LOG_LEVEL_WARNING, "its session does not read: ended");
		session_kill(session);
	}
}

void session_kill(struct session *session)
{
	pid_t pid;

	if (session->pid == 0)
		return;
	channel_deaf(&session->channel);
	if (leaf_kill(&session->leaf) == 0)
		return;
	pid = spawn_killer(&session->supervisor->spawner, session->pidfd);
	if (pid > 0)
		supervisor_adopt(session->supervisor, pid, false);
	else if (pid < 0)
		log_error("cannot end session %d: %s", session->pid, strerror(-(int)pid));
}

/* ---- what a session says ---- */

static void on_device(struct session *session, const Kvreg__DeviceQuery *query)
{
	Kvreg__DeviceReply reply = KVREG__DEVICE_REPLY__INIT;
	Kvreg__Down down = KVREG__DOWN__INIT;
	char name[DEVICE_NAME_MAX] = "";

	reply.seq = query->seq;
	reply.is_uverbs = sysfs_uverbs(query->major, query->minor, name, sizeof(name)) == 0;
	reply.name = name;
	down.body_case = KVREG__DOWN__BODY_DEVICE;
	down.device = &reply;
	session_send(session, &down);
}

static void on_report(struct session *session, const Kvreg__Report *report)
{
	session->reported += (uint32_t)report->n_list;
	if (report->n_list > REGIONS_PER_REPORT || session->reported > REGIONS_PER_SESSION) {
		log_session(session, LOG_LEVEL_ERROR, "session %d reports without end: ended",
			    session->pid);
		session_kill(session);
		return;
	}
	if (!report->more)
		session->reported = 0;
	gather_report(session->supervisor, session, report);
}

static void on_forbidden(struct session *session)
{
	log_session(session, LOG_LEVEL_ERROR, "session %d said what it may not: ended",
		    session->pid);
	session_kill(session);
}

/* Tests wait for this line, so it has no budget; who may say it is in a test's configuration. */
static void on_held(struct session *session, const Kvreg__Held *held)
{
	const struct fault_rule *rule =
		faults_of(&session->supervisor->config.faults, session_class(session));

	if (!rule || held->stage >= FAULT_STAGES || rule->stages[held->stage].delay_ms == 0)
		on_forbidden(session);
	else
		log_debug("client %d (%s, uid %u): held in stage %s by [test]", session->peer.pid,
			  session->peer.comm, session->peer.uid, fault_stage_name(held->stage));
}

static void on_client_message(struct session *session, const Kvreg__Up *up)
{
	if (up->body_case == KVREG__UP__BODY_READY) {
		text_clean(session->program, sizeof(session->program), up->ready->program);
		/* A client that came and went is seen to be gone before this is read. */
		if (session->state == SESSION_SPAWNING)
			set_state(session, SESSION_SERVING);
	} else if (up->body_case == KVREG__UP__BODY_GRANT) {
		grant_request(session, up->grant);
	} else if (up->body_case == KVREG__UP__BODY_GRANT_RETURN) {
		grant_return(session, up->grant_return);
	} else if (up->body_case == KVREG__UP__BODY_DEVICE) {
		on_device(session, up->device);
	} else if (up->body_case == KVREG__UP__BODY_REPORT) {
		on_report(session, up->report);
	} else if (up->body_case == KVREG__UP__BODY_VIOLATION) {
		char words[128];

		text_clean(words, sizeof(words), up->violation->words);
		log_session(session, LOG_LEVEL_WARNING, "broke the protocol: %s", words);
	} else if (up->body_case == KVREG__UP__BODY_LEASE) {
		lease_request(session, up->lease);
	} else if (up->body_case == KVREG__UP__BODY_LEASE_END) {
		lease_end(session, up->lease_end);
	} else if (up->body_case == KVREG__UP__BODY_HELD) {
		on_held(session, up->held);
	} else {
		on_forbidden(session);
	}
}

static void on_message(struct channel *channel, const Kvreg__Up *up)
{
	struct session *session =
		(struct session *)((char *)channel - offsetof(struct session, channel));

	if (!up) {
		log_session(session, LOG_LEVEL_ERROR, "session %d sent what is no message: ended",
			    session->pid);
		session_kill(session);
		return;
	}
	if (session->role == KVREG__ROLE__ROLE_CLIENT) {
		on_client_message(session, up);
	} else if (up->body_case == KVREG__UP__BODY_ADMIN) {
		admin_request(session->supervisor, session, up->admin);
	} else {
		log_error("administrator's session %d said what it may not: ended", session->pid);
		session_kill(session);
	}
}

/* ---- ends ---- */

static const char *exit_words(int status)
{
	switch (status) {
	case EXIT_WRONG_VERSION:
		return "kvregd-session is of another version than kvregd";
	case EXIT_NOT_CONFINED:
		return "it could not confine itself";
	case EXIT_NO_MEMORY:
		return "it had no memory";
	case EXIT_SPAWN:
		return "it could not be started: dropping privilege, a limit, or exec failed";
	default:
		return "it failed";
	}
}

static void client_is_gone(struct session *session)
{
	Kvreg__ClientGone gone = KVREG__CLIENT_GONE__INIT;
	Kvreg__Down down = KVREG__DOWN__INIT;

	if (session->pid == 0)
		return; /* on_drain_poll() finds out */
	set_state(session, SESSION_DRAINING);
	down.body_case = KVREG__DOWN__BODY_CLIENT_GONE;
	down.client_gone = &gone;
	session_send(session, &down);
	ev_timer_start(session->supervisor->loop, &session->grace);
}

static void on_orphan(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	(void)events;
	ev_io_stop(loop, watcher);
	client_is_gone(watcher->data);
}

static void on_grace(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	struct session *session = watcher->data;

	(void)loop;
	(void)events;
	log_session(session, LOG_LEVEL_WARNING, "is gone and its session %d did not end: killed",
		    session->pid);
	session_kill(session);
}

/* Whether no region is left of a session whose process is dead. */
static bool is_drained(const struct session *session)
{
	uint64_t objects;

	if (lease_is_held(session))
		return false;
	if (leaf_objects(&session->leaf, &objects) == 0)
		return objects == 0;
	return session->clean || session->charge.held.of[BOOK_CHARGE] == 0 ||
	       !ev_is_active(&session->orphan);
}

static void on_drain_poll(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct session *session = timer->data;

	(void)loop;
	(void)events;
	if (is_drained(session))
		session_free(session);
}

static void on_ended(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct session *session = watcher->data;
	siginfo_t info = { 0 };
	bool clean;

	(void)events;
	/* Its last words may still wait, and the loop runs the newest event first. Until it is
	 * reaped its number is its own. */
	channel_drain(&session->channel);
	if (waitid(WAIT_PIDFD, (id_t)session->pidfd, &info, WEXITED | WNOHANG) < 0 ||
	    info.si_pid == 0)
		return;
	ev_io_stop(loop, watcher);
	ev_timer_stop(loop, &session->grace);
	channel_fini(&session->channel);
	gather_forget(session->supervisor, session);
	lease_forget(session);
	session->pid = 0;
	clean = info.si_code == CLD_EXITED && info.si_status == 0;
	if (info.si_code == CLD_EXITED && info.si_status == EXIT_REGIONS_LEFT)
		log_debug("client %d left regions that could not be destroyed", session->peer.pid);
	else if (!clean && info.si_code == CLD_EXITED)
		log_session(session, LOG_LEVEL_ERROR, "session ended with status %d: %s",
			    info.si_status, exit_words(info.si_status));
	else if (!clean)
		log_session(session, LOG_LEVEL_WARNING, "session ended by signal %d",
			    info.si_status);
	session->clean = clean;
	if (is_drained(session)) {
		session_free(session);
		return;
	}
	set_state(session, SESSION_DRAINING);
	ev_timer_start(loop, &session->drained);
}

/* ---- begin and end ---- */

static void welcome(struct session *session)
{
	Kvreg__Welcome words = KVREG__WELCOME__INIT;
	Kvreg__Down down = KVREG__DOWN__INIT;
	const struct supervisor *supervisor = session->supervisor;
	const struct fault_rule *rule =
		faults_of(&supervisor->config.faults, session_class(session));
	struct faults_wire faults;

	words.version = CONTROL_VERSION;
	words.role = session->role;
	words.client_pid = (uint32_t)session->peer.pid;
	words.client_uid = session->peer.uid;
	words.client_gid = session->peer.gid;
	words.class_ = (char *)session_class(session);
	words.device = (char *)supervisor->device;
	words.access_allowed = supervisor->config.access;
	words.limit_is_fixed = !supervisor->privilege.raise_limit;
	if (rule && session->role == KVREG__ROLE__ROLE_CLIENT) {
		faults_to_wire(rule, &faults);
		words.faults = &faults.faults;
	}
	words.cuda = session->role == KVREG__ROLE__ROLE_CLIENT && supervisor->config.cuda_sessions;
	down.body_case = KVREG__DOWN__BODY_WELCOME;
	down.welcome = &words;
	session_send(session, &down);
}

static void watch(struct session *session)
{
	struct ev_loop *loop = session->supervisor->loop;

	ev_io_init(&session->ended, on_ended, session->pidfd, EV_READ);
	ev_io_init(&session->orphan, on_orphan, session->peer.pidfd, EV_READ);
	ev_timer_init(&session->grace, on_grace, SESSION_GRACE_S, SESSION_GRACE_S);
	ev_timer_init(&session->drained, on_drain_poll, DRAIN_POLL_S, DRAIN_POLL_S);
	session->ended.data = session->orphan.data = session;
	session->grace.data = session->drained.data = session;
	ev_io_start(loop, &session->ended);
	if (session->peer.pidfd >= 0)
		ev_io_start(loop, &session->orphan);
}

/* Without its channels it ends at once; its client sees the connection close. */
static int abandon(struct session *session, struct supervisor *supervisor, pid_t pid,
		   struct spare *spare)
{
	log_error("pidfd of session %d: %s", pid, strerror(errno));
	supervisor_adopt(supervisor, pid, false);
	fd_close(&spare->down[0]);
	fd_close(&spare->up[0]);
	fd_close(&session->leaf.dir);
	free(session);
	return 0;
}

int session_new(struct supervisor *supervisor, Kvreg__Role role, struct peer *peer,
		struct charge *charge, int *sock, struct spare *spare)
{
	struct session *session = calloc(1, sizeof(*session));
	pid_t pid;
	int r;

	if (!session)
		return -ENOMEM;
	r = leaf_new(&session->leaf, &supervisor->leaves, peer->uid, peer->pid,
		     supervisor->next_leaf++);
	pid = r < 0 ? r
		    : spawn_session(&supervisor->spawner, sock, peer->pidfd, &session->leaf, spare);
	if (pid < 0) {
		(void)leaf_remove(&session->leaf);
		free(session);
		return (int)pid;
	}
	session->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (session->pidfd < 0)
		return abandon(session, supervisor, pid, spare);
	session->supervisor = supervisor;
	session->role = role;
	session->klass = charge->uid ? charge->uid->klass : 0;
	session->peer = *peer;
	session->charge = *charge;
	session->pid = pid;
	session->started = ev_now(supervisor->loop);
	*peer = (struct peer){ .pidfd = -1 };
	*charge = (struct charge){ 0 };
	channel_init(&session->channel, supervisor->loop, spare->down[0], spare->up[0],
		     role == KVREG__ROLE__ROLE_ADMIN ? ADMIN_QUEUE_MAX : CLIENT_QUEUE_MAX,
		     on_message);
	spare->down[0] = spare->up[0] = -1;
	LIST_INSERT_HEAD(&supervisor->sessions, session, link);
	watch(session);
	welcome(session);
	if (role == KVREG__ROLE__ROLE_ADMIN)
		set_state(session, SESSION_SERVING);
	return 0;
}

void session_free(struct session *session)
{
	struct ev_loop *loop;

	if (!session)
		return;
	loop = session->supervisor->loop;
	set_state(session, SESSION_GONE);
	gather_forget(session->supervisor, session);
	lease_leave(session);
	LIST_REMOVE(session, link);
	ev_io_stop(loop, &session->ended);
	ev_io_stop(loop, &session->orphan);
	ev_timer_stop(loop, &session->grace);
	ev_timer_stop(loop, &session->drained);
	channel_fini(&session->channel);
	/* A session that goes on without us keeps its leaf: the next supervisor sweeps it. */
	(void)leaf_remove(&session->leaf);
	fd_close(&session->leaf.dir);
	fd_close(&session->pidfd);
	charge_fini(&session->charge);
	peer_fini(&session->peer);
	free(session);
}
