/* SPDX-License-Identifier: Apache-2.0 */
/* kvregctl's command line: what it accepts, and the exit status of what it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "client/ctl/command.h"
#include "client/ctl/complain.h"
#include "client/ctl/options.h"

#define ARGUMENTS_MAX 12

/* Parses "kvregctl" and @arguments, which end with NULL. getopt_long may sort a copy of them. */
static int parse(const char *const *arguments, struct options *ret_options)
{
	char *argv[ARGUMENTS_MAX + 2] = { (char *)"kvregctl" };
	int argc = 1;

	for (; arguments[argc - 1]; argc++) {
		assert_true(argc <= ARGUMENTS_MAX);
		argv[argc] = (char *)arguments[argc - 1];
	}
	return options_parse(argc, argv, ret_options);
}

#define PARSE(options, ...) parse((const char *const[]){ __VA_ARGS__, NULL }, options)

static void defaults_hold(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "status"), 0);
	assert_string_equal(options.command, "status");
	assert_null(options.socket);
	assert_null(options.admin_socket);
	assert_null(options.device);
	assert_false(options.json);
	assert_int_equal(options.color, COLOR_AUTO);
	assert_int_equal(options.client, 0);
	assert_int_equal(options.size, SELFTEST_SIZE_DEFAULT);
}

static void options_stand_anywhere(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "--admin-socket", "/a", "regions", "--client", "42",
			       "--json", "--color=never", "--socket=/s"),
			 0);
	assert_string_equal(options.command, "regions");
	assert_string_equal(options.admin_socket, "/a");
	assert_string_equal(options.socket, "/s");
	assert_int_equal(options.client, 42);
	assert_true(options.json);
	assert_int_equal(options.color, COLOR_NEVER);
}

static void selftest_has_its_own(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "selftest", "--device", "mlx5_0", "--size", "2M"), 0);
	assert_string_equal(options.device, "mlx5_0");
	assert_int_equal(options.size, 2u << 20);
	assert_int_equal(PARSE(&options, "selftest", "--size", "4096"), 0);
}

static void doctor_has_its_own(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "doctor"), 0);
	assert_true(options.fit == 0 && options.nics == 0);
	assert_int_equal(PARSE(&options, "doctor", "--for", "16G", "--nics", "4"), 0);
	assert_true(options.fit == 16ull << 30 && options.nics == 4);
	assert_int_equal(PARSE(&options, "doctor", "--nics", "1024"), 0);
}

static void help_needs_no_command(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "--help"), 0);
	assert_true(options.help);
	assert_int_equal(PARSE(&options, "-V"), 0);
	assert_true(options.version);
	assert_int_equal(PARSE(&options, "regions", "-h", "--size", "1M"), 0);
	assert_true(options.help);
}

static void bad_usage_is_told(void **state)
{
	static const char *const bad[][4] = {
		{ NULL },
		{ "--json", NULL },
		{ "status", "extra", NULL },
		{ "status", "--nonsense", NULL },
		{ "status", "-x", NULL },
		{ "status", "--json=yes", NULL },
		{ "status", "--socket", NULL },
		{ "status", "--socket=", NULL },
		{ "status", "--color=green", NULL },
		{ "status", "--client", "1", NULL },
		{ "clients", "--client", "1", NULL },
		{ "regions", "--client", "0", NULL },
		{ "regions", "--client", "self", NULL },
		{ "regions", "--device", "mlx5_0", NULL },
		{ "selftest", "--size", "4095", NULL },
		{ "selftest", "--size", "-1", NULL },
		{ "selftest", "--size", "9223372036854775808", NULL },
		{ "selftest", "--device=", NULL },
		{ "selftest", "--for", "1M", NULL },
		{ "doctor", "--for", "0", NULL },
		{ "doctor", "--for", "-1", NULL },
		{ "doctor", "--nics", "0", NULL },
		{ "doctor", "--nics", "1025", NULL },
		{ "doctor", "--nics", "1K", NULL },
	};
	struct options options = { .client = 7 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &options), CTL_USAGE);
	assert_int_equal(options.client, 7);
}

static void commands_are_found(void **state)
{
	static const char *const names[] = { "status", "clients", "regions", "selftest", "doctor" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_non_null(command_find(names[i]));
		assert_string_equal(command_find(names[i])->name, names[i]);
		assert_non_null(command_find(names[i])->run);
	}
	assert_null(command_find("stat"));
	assert_null(command_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_hold),        cmocka_unit_test(options_stand_anywhere),
		cmocka_unit_test(selftest_has_its_own), cmocka_unit_test(help_needs_no_command),
		cmocka_unit_test(doctor_has_its_own),   cmocka_unit_test(bad_usage_is_told),
		cmocka_unit_test(commands_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
