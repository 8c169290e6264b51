/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/log.h"
#include "proto/fdset.h"
#include "proto/limits.h"

void listener_init(struct listener *listener)
{
	*listener = (struct listener){ .fd = -1, .parked = -1, .spare = SPARE_INIT };
}

/* Makes the last two parts of the path's directory: /run/kvregd and /run/kvregd/client. */
static int make_directory(const char *path, mode_t mode)
{
	char dir[108];
	char *last, *parent;

	snprintf(dir, sizeof(dir), "%s", path);
	last = strrchr(dir, '/');
	if (!last || last == dir)
		return 0;
	*last = '\0';
	parent = strrchr(dir, '/');
	if (parent && parent != dir) {
		*parent = '\0';
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			return -errno;
		*parent = '/';
	}
	if (mkdir(dir, mode) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

/* Return: 1 somebody listens at @address; 0 nobody. */
static int is_served(const struct sockaddr_un *address)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
			   errno == EAGAIN);
}

int listener_bind(struct listener *listener, const char *path, mode_t dir_mode, mode_t mode)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int r;

	listener_init(listener);
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	/* Modes are what is written here, whatever umask we were started with. */
	mode_t old = umask(0);
	r = make_directory(path, dir_mode);
	umask(old);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode) || is_served(&address))
			return -EADDRINUSE;
		unlink(path);
	}
	/* The mode is set by umask at bind: between bind and a chmod the socket would be open. */
	old = umask(0777 & ~mode);
	r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(old);
	if (r < 0)
		return r;
	if (listen(fd, SOMAXCONN) < 0)
		return -errno;
	strcpy(listener->path, path);
	listener->fd = fd;
	fd = -1;
	return 0;
}

static void pause_accept(struct listener *listener, int error)
{
	log_debug("%s: %s: accepting pauses", listener->path, strerror(error));
	ev_io_stop(listener->loop, &listener->readable);
	ev_timer_set(&listener->pause, ACCEPT_PAUSE_S, 0.);
	ev_timer_start(listener->loop, &listener->pause);
}

static void on_pause_over(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct listener *listener = timer->data;

	(void)events;
	ev_io_start(loop, &listener->readable);
}

static int take(struct listener *listener)
{
	if (listener->parked < 0)
		listener->parked = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
	return listener->parked < 0 ? -errno : 0;
}

/* Return: whether to go on accepting in this turn. */
static bool accept_one(struct listener *listener)
{
	int r = spare_fill(&listener->spare);

	if (r == 0)
		r = take(listener);
	if (r == 0) {
		listener->on_connection(listener, &listener->parked, &listener->spare);
		if (listener->parked >= 0)
			pause_accept(listener, EAGAIN);
		return listener->parked < 0;
	}
	if (r == -EAGAIN)
		return false;
	/* These pass; the rest (ECONNABORTED, ...) is of the one connection that failed. */
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS) {
		pause_accept(listener, -r);
		return false;
	}
	return true;
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	(void)loop;
	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN && accept_one(watcher->data); i++)
		;
}

void listener_start(struct listener *listener, struct ev_loop *loop,
		    void (*on_connection)(struct listener *, int *, struct spare *), void *owner)
{
	listener->loop = loop;
	listener->on_connection = on_connection;
	listener->owner = owner;
	ev_io_init(&listener->readable, on_readable, listener->fd, EV_READ);
	ev_timer_init(&listener->pause, on_pause_over, ACCEPT_PAUSE_S, 0.);
	listener->readable.data = listener->pause.data = listener;
	ev_io_start(loop, &listener->readable);
}

void listener_fini(struct listener *listener)
{
	if (listener->loop) {
		ev_io_stop(listener->loop, &listener->readable);
		ev_timer_stop(listener->loop, &listener->pause);
	}
	if (listener->path[0])
		unlink(listener->path);
	spare_fini(&listener->spare);
	fd_close(&listener->parked);
	fd_close(&listener->fd);
	listener_init(listener);
}

bool listener_paused(const struct listener *listener)
{
	return ev_is_active(&listener->pause);
}
