/* SPDX-License-Identifier: Apache-2.0 */
/* A kvregd beside a kvregd-session that is not its own: its clients hear of it, and it lives. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <kvreg-client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "daemon.h"

static struct daemon_under_test daemon_;
static char programs[80];

/* A directory for the programs, still empty. */
static int set_up(void **state)
{
	(void)state;
	daemon_prepare(&daemon_, NULL);
	snprintf(programs, sizeof(programs), "%s/programs", daemon_.dir);
	require(mkdir(programs, 0755) == 0);
	daemon_.options.programs = programs;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	daemon_end(&daemon_);
	return 0;
}

/* Puts @bytes there as @name. */
static void install(const char *name, const void *bytes, size_t length)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", programs, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	require(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
	close(fd);
}

/* The bytes of a file, to be freed. */
static void *read_file(const char *path, size_t *ret_length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	require(fd >= 0 && fstat(fd, &st) == 0);
	bytes = malloc((size_t)st.st_size);
	require(bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size);
	close(fd);
	*ret_length = (size_t)st.st_size;
	return bytes;
}

/*
 * @lies: whether it says to be of another version. Only the first digit is changed: the linker lets
 * other strings ("0") be the end of this one.
 */
static void install_kvregd(bool lies)
{
	char path[4096];
	size_t length;
	char *bytes, *p;

	build_path(path, sizeof(path), "kvregd");
	bytes = read_file(path, &length);
	for (p = bytes; lies && (p = memmem(p, length - (size_t)(p - bytes), KVREG_VERSION,
					    sizeof(KVREG_VERSION)));)
		*p = '9';
	install("kvregd", bytes, length);
	free(bytes);
}

/* A session is found by its name, and may be run where it may not be read (its mode is 0711). */
static void install_session(const char *target)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/kvregd-session", programs);
	require(symlink(target, path) == 0);
}

/* Administrators are served by sessions too: only the log tells that this daemon runs. */
static void launch(void)
{
	daemon_launch(&daemon_);
	require(daemon_log_soon(&daemon_, "serves", 1));
}

/* No session comes up: each client hears of it, the daemon says why, and lives. */
static void assert_no_session(const char *words)
{
	struct kvreg *k;

	for (size_t i = 1; i <= 2; i++) {
		assert_int_equal(kvreg_open(NULL, &k), -ECONNRESET);
		assert_int_equal(kvreg_error_code(kvreg_last_error()), KVREG_E_SESSION_LOST);
		assert_int_equal(kvreg_error_stage(kvreg_last_error()), KVREG_STAGE_CONNECT);
		assert_true(daemon_log_soon(&daemon_, words, i));
	}
	assert_int_equal(daemon_log_lines(&daemon_, words), 2);
	daemon_stop(&daemon_);
}

static void a_session_of_another_version_is_named(void **state)
{
	char session[4096];

	(void)state;
	build_path(session, sizeof(session), "kvregd-session");
	install_kvregd(true);
	install_session(session);
	launch();
	assert_no_session("session ended with status 100: kvregd-session is of another version");
}

static void a_session_that_fails_is_named(void **state)
{
	(void)state;
	install_kvregd(false);
	install_session("/bin/false");
	launch();
	assert_no_session("session ended with status 1: it failed");
}

static void a_session_that_cannot_be_run_is_named(void **state)
{
	static const char script[] = "#!/no/such/interpreter\n";

	(void)state;
	install_kvregd(false);
	install("kvregd-session", script, strlen(script));
	launch();
	assert_no_session("session ended with status 127: it could not be started");
}

static void without_a_session_there_is_no_start(void **state)
{
	(void)state;
	if (access("/usr/libexec/kvreg/kvregd-session", F_OK) == 0)
		skip_test("kvregd-session is installed");
	install_kvregd(false);
	assert_int_equal(daemon_refuses(&daemon_), 1);
	assert_int_equal(daemon_log_lines(&daemon_, "error: kvregd-session: No such file"), 1);
	assert_int_equal(access(daemon_.socket, F_OK), -1);
}

static void a_kvregd_elsewhere_finds_its_session(void **state)
{
	char session[4096];
	struct kvreg *k;

	(void)state;
	build_path(session, sizeof(session), "kvregd-session");
	install_kvregd(false);
	install_session(session);
	daemon_again(&daemon_);
	assert_int_equal(kvreg_open(NULL, &k), 0);
	kvreg_close(k);
}

/* ---- what else keeps it from starting ---- */

static void a_bad_configuration_is_no_start(void **state)
{
	FILE *file = fopen(daemon_.config, "ae");

	(void)state;
	require(file && fputs("[quota]\ntotl = 5G\n", file) >= 0 && fclose(file) == 0);
	daemon_.options.programs = NULL;
	assert_int_equal(daemon_refuses(&daemon_), 1);
	assert_int_equal(daemon_log_lines(&daemon_, "/kvregd.conf:4: [quota] totl: unknown key"),
			 1);
}

static void a_path_too_long_is_no_start(void **state)
{
	char *paths[] = { daemon_.socket, daemon_.admin_socket };

	(void)state;
	daemon_.options.programs = NULL;
	for (size_t i = 0; i < COUNT(paths); i++) {
		char *end = paths[i] + strlen(paths[i]);

		memset(end, 'n', 120 - (size_t)(end - paths[i]));
		assert_int_equal(daemon_refuses(&daemon_), 1);
		assert_int_equal(daemon_log_lines(&daemon_, "nnn: File name too long"), i + 1);
		*end = '\0';
	}
}

static void sessions_do_not_run_as_root(void **state)
{
	FILE *file;

	(void)state;
	if (geteuid() != 0)
		skip_test("only root starts sessions as another user");
	daemon_.options.programs = NULL;
	file = fopen(daemon_.config, "we");
	require(file && fputs("[daemon]\nsession_user = 0:0\n", file) >= 0 && fclose(file) == 0);
	assert_int_equal(daemon_refuses(&daemon_), 1);
	assert_int_equal(daemon_log_lines(&daemon_, "sessions must not run as root"), 1);
	file = fopen(daemon_.config, "we");
	require(file && fputs("[daemon]\nsession_user = no-such-user\n", file) >= 0 &&
		fclose(file) == 0);
	assert_int_equal(daemon_refuses(&daemon_), 1);
	assert_int_equal(daemon_log_lines(&daemon_, "there is no user no-such-user"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_session_of_another_version_is_named),
		TEST(a_session_that_fails_is_named),
		TEST(a_session_that_cannot_be_run_is_named),
		TEST(without_a_session_there_is_no_start),
		TEST(a_kvregd_elsewhere_finds_its_session),
		TEST(a_bad_configuration_is_no_start),
		TEST(a_path_too_long_is_no_start),
		TEST(sessions_do_not_run_as_root),
	};

	return RUN_GROUP("spawn", tests);
}
