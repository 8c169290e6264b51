/* SPDX-License-Identifier: Apache-2.0 */
/* kvregctl doctor as a person runs it, beside a real daemon, a stopped one, and none. */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "ctl.h"
#include "daemon.h"
#include "device.h"

#define OTHER_UID 64990u
#define UNFIT     5

static int set_up(void **state)
{
	static struct daemon_under_test daemon;

	daemon_start(&daemon, NULL);
	*state = &daemon;
	return 0;
}

static int tear_down(void **state)
{
	daemon_end(*state);
	return 0;
}

/* The line of a check in the output for people, or "". */
static const char *line_of(const struct ctl_run *run, const char *verdict, const char *check)
{
	char words[64];
	const char *line;

	snprintf(words, sizeof(words), "%s  %-13s  ", verdict, check);
	line = strstr(run->out, words);
	return line ? line : "";
}

static void is_line(const struct ctl_run *run, const char *verdict, const char *check,
		    const char *found)
{
	const char *line = line_of(run, verdict, check), *hit = strstr(line, found);

	if (!hit || memchr(line, '\n', (size_t)(hit - line)))
		fail_msg("no \"%s %s ...%s\" in: %s%s", verdict, check, found, run->out, run->err);
}

/* Whether what the machine itself lacks may show: a daemon of real devices beside none. */
static bool devices_are_well(void)
{
	return device_is_mock() && access("/sys/class/infiniband", F_OK) != 0;
}

/* Runs it as another user, where we can, with a small limit: what most clients are. */
static int run_as_client(struct ctl_run *run)
{
	struct rlimit before, small;
	int status;

	(void)ctl_path(); /* skips the test where it is not built */
	getrlimit(RLIMIT_MEMLOCK, &before);
	small = (struct rlimit){ .rlim_cur = 64 << 10, .rlim_max = before.rlim_max };
	require(setrlimit(RLIMIT_MEMLOCK, &small) == 0);
	status = ctl_run_copy(run, geteuid() == 0 ? OTHER_UID : 0);
	require(setrlimit(RLIMIT_MEMLOCK, &before) == 0);
	return status;
}

static void a_client_of_the_daemon_is_well_with_a_small_limit(void **state)
{
	struct ctl_run run = { .argv = { NULL, "doctor" } };
	int status = run_as_client(&run);

	(void)state;
	is_line(&run, "WARN", "memlock", "RLIMIT_MEMLOCK is 64K");
	is_line(&run, "PASS", "daemon", " answers (protocol 1, device ");
	is_line(&run, "PASS", "daemon", device_kind());
	is_line(&run, "PASS", "quota", "class default");
	is_line(&run, "SKIP", "fits-direct", "--for");
	assert_non_null(strstr(run.out, "change: nothing for what kvregd registers; else "));
	assert_string_equal(run.err, "");
	if (devices_are_well())
		assert_int_equal(status, 0);
}

static void what_does_not_fit_is_a_status_of_its_own(void **state)
{
	struct ctl_run run = { .argv = { NULL, "doctor", "--for", "16384T", "--nics", "4" } };

	(void)state;
	assert_int_equal(run_as_client(&run), UNFIT);
	is_line(&run, "WARN", "fits-direct", "4 x 16P = 64P");
	is_line(&run, "FAIL", "fits-brokered", "MemAvailable");
	run.argv[3] = "1M";
	if (run_as_client(&run) != 0)
		assert_false(devices_are_well());
	is_line(&run, "PASS", "fits-brokered", "4 x 1M = 4M");
}

static void json_says_the_same(void **state)
{
	static const char *const checks[] = { "memlock", "origin", "capability",  "devices",
					      "daemon",  "quota",  "fits-direct", "fits-brokered" };
	struct ctl_run run = { .argv = { NULL, "doctor", "--json", "--for", "1M" } };
	const char *at = run.out, *hit;
	char words[64];

	(void)state;
	run_as_client(&run);
	assert_true(is_json(run.out));
	assert_non_null(strstr(run.out, "\"for\": 1048576,\n  \"nics\": 1,\n"));
	for (size_t i = 0; i < COUNT(checks); i++) {
		snprintf(words, sizeof(words), "\"check\": \"%s\"", checks[i]);
		hit = strstr(at, words);
		if (hit)
			at = hit;
		else
			fail_msg("no %s, or not in its place: %s", words, run.out);
	}
	if (devices_are_well())
		assert_non_null(strstr(run.out, "{\n  \"verdict\": \"WARN\","));
	assert_string_equal(run.err, "");
}

static void colours_are_for_who_wants_them(void **state)
{
	struct ctl_run run = { .argv = { NULL, "doctor", "--color", "always" } };

	(void)state;
	ctl_run(&run, ctl_path(), 0);
	assert_non_null(strstr(run.out, "\033[32mPASS\033[0m  daemon"));
	run.argv[3] = "auto";
	ctl_run(&run, ctl_path(), 0);
	assert_null(strchr(run.out, '\033'));
}

static void no_daemon_fails_who_needs_one(void **state)
{
	struct ctl_run run = { .argv = { NULL, "doctor", "--socket", "/no/such/socket" } };

	(void)state;
	assert_int_equal(run_as_client(&run), UNFIT);
	is_line(&run, "FAIL", "daemon", "/no/such/socket");
	is_line(&run, "SKIP", "quota", "no daemon");
	assert_non_null(strstr(run.out, "change: start kvregd"));
	assert_string_equal(run.err, "");
}

static void a_stopped_daemon_does_not_stop_the_doctor(void **state)
{
	struct ctl_run run = { .argv = { NULL, "doctor" } };
	struct daemon_under_test *daemon = *state;
	int status;

	require(kill(daemon->pid, SIGSTOP) == 0);
	status = run_as_client(&run);
	require(kill(daemon->pid, SIGCONT) == 0);
	assert_int_equal(status, UNFIT);
	is_line(&run, "FAIL", "daemon", "does not answer within");
	run_as_client(&run);
	is_line(&run, "PASS", "daemon", "answers");
}

static void devices_alone_are_a_slip(void **state)
{
	struct ctl_run run = { .argv = { NULL, "doctor", "--nics", "4" } };

	(void)state;
	assert_int_equal(ctl_run(&run, ctl_path(), 0), 2);
	assert_non_null(strstr(run.err, "--for"));
	assert_string_equal(run.out, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_client_of_the_daemon_is_well_with_a_small_limit),
		TEST(what_does_not_fit_is_a_status_of_its_own),
		TEST(json_says_the_same),
		TEST(colours_are_for_who_wants_them),
		TEST(no_daemon_fails_who_needs_one),
		TEST(a_stopped_daemon_does_not_stop_the_doctor),
		TEST(devices_alone_are_a_slip),
	};

	return RUN_GROUP("doctor", tests);
}
