/* SPDX-License-Identifier: Apache-2.0 */
/* kvregd's command line. What it says goes to a file for the time of the call. */
#include "test.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/options.h"
#include "proto/fdset.h"
#include "proto/limits.h"

static char said[8192];

/* Runs options_parse() with what it prints in said. */
static int parse(struct options *options, int argc, char **argv)
{
	_cleanup_fd_ int file = memfd_create("said", MFD_CLOEXEC);
	_cleanup_fd_ int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
	ssize_t n;
	int r;

	fflush(NULL);
	dup2(file, STDOUT_FILENO);
	dup2(file, STDERR_FILENO);
	optind = 0;
	r = options_parse(argc, argv, options);
	fflush(NULL);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	n = pread(file, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	return r;
}

#define PARSE(options, ...)                                                                        \
	({                                                                                         \
		char *argv_[] = { "kvregd", ##__VA_ARGS__, NULL };                                 \
		parse(options, (int)COUNT(argv_) - 1, argv_);                                      \
	})

static void no_option_is_the_defaults(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options), 0);
	assert_string_equal(options.socket, DEFAULT_SOCKET);
	assert_string_equal(options.admin_socket, DEFAULT_ADMIN_SOCKET);
	assert_string_equal(options.device, "verbs");
	assert_false(options.foreground);
	assert_false(options.allow_faults);
	assert_int_equal(options.log_level, LOG_LEVEL_INFO);
	assert_string_equal(said, "");
}

static void each_option_is_taken(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "--config", "/c", "--socket=/s", "--admin-socket", "/a",
			       "--device", "mock", "--foreground", "--log-level", "debug"),
			 0);
	assert_string_equal(options.config, "/c");
	assert_string_equal(options.socket, "/s");
	assert_string_equal(options.admin_socket, "/a");
	assert_string_equal(options.device, "mock");
	assert_true(options.foreground);
	assert_int_equal(options.log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(
		PARSE(&options, "-c", "/c", "-s/s", "-a", "/a", "-d", "verbs", "-f", "-l", "error"),
		0);
	assert_string_equal(options.socket, "/s");
	assert_int_equal(options.log_level, LOG_LEVEL_ERROR);
	assert_false(options.allow_faults);
	assert_int_equal(PARSE(&options, "--allow-faults"), 0);
	assert_true(options.allow_faults);
}

static void what_is_wrong_is_said(void **state)
{
	struct options options = { .device = "untouched" };

	(void)state;
	assert_int_equal(PARSE(&options, "--device", "gpu"), -EINVAL);
	assert_non_null(strstr(said, "kvregd: there is no device 'gpu': verbs or mock\n"));
	assert_int_equal(PARSE(&options, "--log-level", "loud"), -EINVAL);
	assert_non_null(strstr(said, "kvregd: there is no log level 'loud'\n"));
	assert_int_equal(PARSE(&options, "--frobnicate"), -EINVAL);
	assert_non_null(strstr(said, "--help"));
	assert_int_equal(PARSE(&options, "--socket"), -EINVAL);
	assert_non_null(strstr(said, "--help"));
	assert_int_equal(PARSE(&options, "start"), -EINVAL);
	assert_non_null(strstr(said, "kvregd: takes no argument 'start'\n"));
	assert_string_equal(options.device, "untouched");
}

static void help_and_version_are_all_there_is(void **state)
{
	static const char *const names[] = { "--config",  "--socket",     "--admin-socket",
					     "--device",  "--foreground", "--log-level",
					     "--version", "--help",       "--allow-faults" };
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "--version"), 1);
	assert_string_equal(said, "kvregd " KVREG_VERSION "\n");
	assert_int_equal(PARSE(&options, "--help", "--device", "gpu"), 1);
	for (size_t i = 0; i < COUNT(names); i++)
		assert_non_null(strstr(said, names[i]));
	assert_non_null(strstr(said, DEFAULT_SOCKET));
	assert_non_null(strstr(said, DEFAULT_CONFIG));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_option_is_the_defaults),
		cmocka_unit_test(each_option_is_taken),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(help_and_version_are_all_there_is),
	};

	return RUN_GROUP("daemon-options", tests);
}
