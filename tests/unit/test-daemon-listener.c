/* SPDX-License-Identifier: Apache-2.0 */
/* Binding a listening socket: whose place it takes, and who may reach it. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/listener.h"
#include "proto/fdset.h"

struct place {
	char dir[64], run[80], inner[96], path[107];
};

static int set_up(void **state)
{
	static struct place place;

	strcpy(place.dir, "/tmp/kvreg-listener-XXXXXX");
	assert_non_null(mkdtemp(place.dir));
	snprintf(place.run, sizeof(place.run), "%s/run", place.dir);
	snprintf(place.inner, sizeof(place.inner), "%s/client", place.run);
	snprintf(place.path, sizeof(place.path), "%s/a.sock", place.inner);
	*state = &place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	unlink(place->path);
	rmdir(place->inner);
	rmdir(place->run);
	return rmdir(place->dir);
}

static mode_t mode_of(const char *path)
{
	struct stat st = { 0 };

	lstat(path, &st);
	return st.st_mode & 07777;
}

static void modes_are_as_asked_whatever_the_umask(void **state)
{
	struct place *place = *state;
	struct listener listener;
	mode_t old = umask(0);

	assert_int_equal(listener_bind(&listener, place->path, 0700, 0600), 0);
	assert_int_equal(mode_of(place->run), 0755);
	assert_int_equal(mode_of(place->inner), 0700);
	assert_int_equal(mode_of(place->path), 0600);
	assert_int_equal(umask(0), 0);
	listener_fini(&listener);
	umask(0022);
	assert_int_equal(listener_bind(&listener, place->path, 0700, 0666), 0);
	assert_int_equal(mode_of(place->path), 0666);
	assert_int_equal(umask(old), 0022);
	assert_true(fcntl(listener.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(listener.fd, F_GETFL) & O_NONBLOCK);
	listener_fini(&listener);
	assert_int_equal(access(place->path, F_OK), -1);
}

static void a_live_socket_is_left_alone(void **state)
{
	struct place *place = *state;
	struct listener first, second;

	assert_int_equal(listener_bind(&first, place->path, 0755, 0666), 0);
	assert_int_equal(listener_bind(&second, place->path, 0755, 0666), -EADDRINUSE);
	listener_fini(&second);
	assert_int_equal(access(place->path, F_OK), 0);
	listener_fini(&first);
}

static void a_stale_socket_is_replaced(void **state)
{
	struct place *place = *state;
	struct listener dead, next;

	assert_int_equal(listener_bind(&dead, place->path, 0755, 0666), 0);
	fd_close(&dead.fd); /* as if its process had been killed */
	assert_int_equal(access(place->path, F_OK), 0);
	assert_int_equal(listener_bind(&next, place->path, 0755, 0666), 0);
	listener_fini(&next);
}

static void another_file_is_left_alone(void **state)
{
	struct place *place = *state;
	struct listener listener;

	assert_int_equal(listener_bind(&listener, place->path, 0755, 0666), 0);
	listener_fini(&listener);
	int fd = open(place->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(listener_bind(&listener, place->path, 0755, 0666), -EADDRINUSE);
	listener_fini(&listener);
	assert_int_equal(access(place->path, F_OK), 0);
	unlink(place->path);
	assert_int_equal(symlink("/nowhere", place->path), 0);
	assert_int_equal(listener_bind(&listener, place->path, 0755, 0666), -EADDRINUSE);
	listener_fini(&listener);
}

static void a_path_too_long_is_refused(void **state)
{
	struct sockaddr_un address;
	struct listener listener;
	char path[sizeof(address.sun_path) + 1];

	(void)state;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(listener_bind(&listener, path, 0755, 0666), -ENAMETOOLONG);
	listener_fini(&listener);
}

static void a_missing_parent_is_an_error(void **state)
{
	struct listener listener;

	(void)state;
	assert_int_equal(listener_bind(&listener, "/no/such/dir/a.sock", 0755, 0666), -ENOENT);
	listener_fini(&listener);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(modes_are_as_asked_whatever_the_umask),
		TEST(a_live_socket_is_left_alone),
		TEST(a_stale_socket_is_replaced),
		TEST(another_file_is_left_alone),
		TEST(a_path_too_long_is_refused),
		TEST(a_missing_parent_is_an_error),
	};

	return RUN_GROUP("daemon-listener", tests);
}
