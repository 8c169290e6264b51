/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "daemon/holders.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/refuse.h"
#include "daemon/session.h"
#include "proto/failure.h"
#include "proto/fdset.h"

/* ---- children that are no sessions ---- */

void supervisor_adopt(struct supervisor *supervisor, pid_t pid, bool refuses)
{
	struct child *child = calloc(1, sizeof(*child));

	if (!child)
		return; /* a zombie is left until we end */
	child->pid = pid;
	child->refuses = refuses;
	LIST_INSERT_HEAD(&supervisor->children, child, link);
}

static void on_child(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct supervisor *supervisor = watcher->data;
	struct child *child, *next;

	(void)loop;
	(void)events;
	for (child = LIST_FIRST(&supervisor->children); child; child = next) {
		next = LIST_NEXT(child, link);
		if (waitpid(child->pid, NULL, WNOHANG) == 0)
			continue;
		LIST_REMOVE(child, link);
		if (child->refuses)
			refuse_ended(supervisor);
		free(child);
	}
}

/* ---- who connects ---- */

static void refuse_for_number(struct supervisor *supervisor, size_t klass, const struct peer *peer,
			      const struct quota *quota, int *sock, struct spare *spare)
{
	char words[128 + HOLDERS_TEXT], holders[HOLDERS_TEXT];
	int n;

	n = snprintf(words, sizeof(words),
		     "%s: %" PRIu64 " of %" PRIu64 " connections of uid %u, class %s",
		     scope_name(quota->scope), quota->used, quota->limit, peer->uid,
		     supervisor->config.classes[klass].name);
	holders_text(supervisor, klass, peer->uid, peer->gid, quota, holders, sizeof(holders));
	if (holders[0])
		snprintf(words + n, sizeof(words) - (size_t)n, "; held by %s", holders);
	refuse_connection(supervisor, sock, spare, KVREG_E_LIMIT_SESSIONS, words);
}

static void on_client(struct listener *listener, int *sock, struct spare *spare)
{
	struct supervisor *supervisor = listener->owner;
	size_t klass = (size_t)(listener - supervisor->clients);
	struct charge charge = { 0 };
	struct quota quota;
	struct peer peer;
	int r;

	spare_release(spare);
	r = peer_init(&peer, *sock);
	if (r < 0) {
		refuse_connection(supervisor, sock, spare, KVREG_E_INTERNAL, strerror(-r));
		supervisor->accepted += *sock < 0;
		return;
	}
	r = charge_init(&charge, &supervisor->books, klass, peer.uid, peer.gid, &quota);
	if (r == KVREG_E_LIMIT_SESSIONS) {
		refuse_for_number(supervisor, klass, &peer, &quota, sock, spare);
	} else {
		if (r == 0)
			r = faults_connect(&supervisor->config.faults,
					   supervisor->config.classes[klass].name);
		if (r == 0)
			r = session_new(supervisor, KVREG__ROLE__ROLE_CLIENT, &peer, &charge, sock,
					spare);
		if (r < 0) {
			log_error("no session for client %d: %s", peer.pid, strerror(-r));
			refuse_connection(supervisor, sock, spare, KVREG_E_SPAWN, strerror(-r));
		}
	}
	supervisor->accepted += *sock < 0;
	charge_fini(&charge);
	peer_fini(&peer);
}

static void on_admin(struct listener *listener, int *sock, struct spare *spare)
{
	struct supervisor *supervisor = listener->owner;
	struct charge charge = { 0 };
	struct session *session;
	struct peer peer;
	uint32_t n = 0;
	int r;

	LIST_FOREACH(session, &supervisor->sessions, link)
		n += session->role == KVREG__ROLE__ROLE_ADMIN;
	r = peer_init(&peer, *sock);
	if (r == 0 && n >= ADMIN_SESSIONS_MAX)
		r = -EUSERS;
	if (r == 0)
		r = session_new(supervisor, KVREG__ROLE__ROLE_ADMIN, &peer, &charge, sock, spare);
	if (r < 0) {
		log_error("no session for administrator %d: %s", peer.pid, strerror(-r));
		refuse_connection(supervisor, sock, spare, KVREG_E_SPAWN, NULL);
	}
	peer_fini(&peer);
}

bool supervisor_paused(const struct supervisor *supervisor)
{
	bool paused = listener_paused(&supervisor->admins);

	for (size_t i = 0; i < supervisor->config.n_classes; i++)
		paused |= listener_paused(&supervisor->clients[i]);
	return paused;
}

/* ---- begin, run, end ---- */

static void on_stop(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct supervisor *supervisor = watcher->data;
	Kvreg__Draining draining = KVREG__DRAINING__INIT;
	Kvreg__Down down = KVREG__DOWN__INIT;
	struct session *session;

	(void)events;
	log_info("stops: live regions stay, %u sessions end with their clients",
		 (unsigned int)supervisor->books.total.of[BOOK_SESSIONS]);
	(void)sd_notify(0, "STOPPING=1");
	down.body_case = KVREG__DOWN__BODY_DRAINING;
	down.draining = &draining;
	LIST_FOREACH(session, &supervisor->sessions, link)
		if (session->role == KVREG__ROLE__ROLE_CLIENT)
			session_send(session, &down);
	ev_break(loop, EVBREAK_ALL);
}

static int bind_all(struct supervisor *supervisor, const struct options *options, char *words,
		    size_t size)
{
	const struct config *config = &supervisor->config;
	const char *path = options->socket;
	/* Who may connect is decided by who reaches the directory: containers mount it. */
	int r = listener_bind(&supervisor->clients[0], path, 0755, 0666);

	for (size_t i = 1; r == 0 && i < config->n_classes; i++) {
		path = config->classes[i].socket;
		r = listener_bind(&supervisor->clients[i], path, 0755, config->classes[i].mode);
	}
	if (r == 0) {
		path = options->admin_socket;
		r = listener_bind(&supervisor->admins, path, 0700, 0600);
	}
	if (r == -EADDRINUSE)
		snprintf(words, size, "%s: another kvregd listens there, or it is no socket", path);
	else if (r < 0)
		snprintf(words, size, "%s: %s", path, strerror(-r));
	return r;
}

/* Without leaves the books fall back to the client's lifetime: said once, in log and status. */
static void find_leaves(struct supervisor *supervisor)
{
	static char words[512];
	struct timespec since_boot;
	const char *path = supervisor->config.cgroup[0] ? supervisor->config.cgroup : NULL;

	if (!supervisor->privilege.switch_user)
		return;
	/* Sessions outlive us in their leaves, and their clients may come again. */
	clock_gettime(CLOCK_BOOTTIME, &since_boot);
	supervisor->next_leaf =
		(uint64_t)since_boot.tv_sec * 1000u + (uint64_t)since_boot.tv_nsec / 1000000u;
	if (path && strcmp(path, "none") == 0)
		snprintf(words, sizeof(words), "no cgroup leaves for sessions: switched off");
	else
		(void)leaves_init(&supervisor->leaves, path, words, sizeof(words));
	if (words[0])
		privilege_lacks(&supervisor->privilege, words);
}

int supervisor_init(struct supervisor *supervisor, const struct options *options, char *ret_words,
		    size_t size)
{
	struct rlimit files = { 0 };
	int r;

	*supervisor = (struct supervisor){
		.device = options->device,
		.spawner = { .exe = -1 },
		.leaves = { .dir = -1 },
		.admins = { .fd = -1, .parked = -1, .spare = SPARE_INIT },
	};
	for (size_t i = 0; i <= CLASSES_MAX; i++)
		listener_init(&supervisor->clients[i]);
	r = config_load(options->config, options->allow_faults, &supervisor->config, ret_words,
			size);
	if (r < 0)
		return r;
	books_init(&supervisor->books, &supervisor->config);
	r = privilege_init(&supervisor->privilege, supervisor->config.session_user, ret_words,
			   size);
	if (r < 0)
		return r;
	r = spawner_init(&supervisor->spawner, &supervisor->privilege);
	if (r < 0) {
		snprintf(ret_words, size, "kvregd-session: %s", strerror(-r));
		return r;
	}
	find_leaves(supervisor);
	/* Not a privilege: but where this stands nobody overlooks it. */
	if (supervisor->config.faults.count > 0)
		privilege_lacks(&supervisor->privilege,
				"kernel calls fail or wait on purpose: the configuration has "
				"[test ...] sections, which is for tests alone");
	/* Five fds a session. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max > CHILD_NOFILE) {
		files.rlim_cur = files.rlim_max - CHILD_NOFILE;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	return bind_all(supervisor, options, ret_words, size);
}

/* Sent by habit to have a configuration read anew. */
static void on_hangup(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	(void)loop;
	(void)watcher;
	(void)events;
	log_debug("SIGHUP is ignored: the configuration is read at the start");
}

static void watch_signals(struct supervisor *supervisor)
{
	static const int stops[] = { SIGTERM, SIGINT };

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < 2; i++) {
		ev_signal_init(&supervisor->stop[i], on_stop, stops[i]);
		supervisor->stop[i].data = supervisor;
		ev_signal_start(supervisor->loop, &supervisor->stop[i]);
	}
	ev_signal_init(&supervisor->hangup, on_hangup, SIGHUP);
	ev_signal_start(supervisor->loop, &supervisor->hangup);
	ev_signal_init(&supervisor->child, on_child, SIGCHLD);
	supervisor->child.data = supervisor;
	ev_signal_start(supervisor->loop, &supervisor->child);
}

int supervisor_run(struct supervisor *supervisor)
{
	/* Not the default loop: that one would reap every child, and sessions are reaped by pidfd.
	 */
	supervisor->loop = ev_loop_new(EVFLAG_AUTO);
	if (!supervisor->loop)
		return -ENOMEM;
	supervisor->started = ev_now(supervisor->loop);
	watch_signals(supervisor);
	for (size_t i = 0; i < supervisor->config.n_classes; i++)
		listener_start(&supervisor->clients[i], supervisor->loop, on_client, supervisor);
	listener_start(&supervisor->admins, supervisor->loop, on_admin, supervisor);
	for (size_t i = 0; i < supervisor->privilege.n_missing; i++)
		log_warning("%s", supervisor->privilege.missing[i]);
	log_info("%s serves %s with device %s", KVREG_VERSION, supervisor->clients[0].path,
		 supervisor->device);
	(void)sd_notify(0, "READY=1");
	ev_run(supervisor->loop, 0);
	return 0;
}

void supervisor_fini(struct supervisor *supervisor)
{
	struct child *child;
	int go = -1;

	/* Not waited for: it ends when the kernel lets it. */
	if (supervisor->loop)
		(void)spawn_heir(&go);
	for (size_t i = 0; i <= CLASSES_MAX; i++)
		listener_fini(&supervisor->clients[i]);
	listener_fini(&supervisor->admins);
	refusals_fini(&supervisor->refusals);
	fd_close(&go);
	while (!LIST_EMPTY(&supervisor->sessions))
		session_free(LIST_FIRST(&supervisor->sessions));
	if (supervisor->loop)
		leases_fini(supervisor);
	while ((child = LIST_FIRST(&supervisor->children))) {
		LIST_REMOVE(child, link);
		free(child);
	}
	if (supervisor->loop)
		ev_loop_destroy(supervisor->loop);
	books_fini(&supervisor->books);
	spawner_fini(&supervisor->spawner);
	leaves_fini(&supervisor->leaves);
	config_fini(&supervisor->config);
}
