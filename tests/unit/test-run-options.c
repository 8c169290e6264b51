/* SPDX-License-Identifier: Apache-2.0 */
/* kvreg-run's command line: what it takes, what it leaves to the command, and what it refuses. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "client/run/options.h"

#define ARGUMENTS_MAX 12

/* Parses "kvreg-run" and @arguments, which end with NULL. */
static int parse(const char *const *arguments, struct options *ret_options)
{
	static char *argv[ARGUMENTS_MAX + 2];
	int argc = 1;

	argv[0] = (char *)"kvreg-run";
	for (; arguments[argc - 1]; argc++) {
		assert_true(argc <= ARGUMENTS_MAX);
		argv[argc] = (char *)arguments[argc - 1];
	}
	argv[argc] = NULL;
	return options_parse(argc, argv, ret_options);
}

#define PARSE(options, ...) parse((const char *const[]){ __VA_ARGS__, NULL }, options)

static void without_memlock_the_library_is_preloaded(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "true"), 0);
	assert_false(options.memlock);
	assert_true(options.preload);
	assert_string_equal(options.command[0], "true");
	assert_null(options.command[1]);
}

static void a_lease_has_a_size_and_processes(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "--memlock", "64G", "--procs=8", "--", "true"), 0);
	assert_true(options.memlock);
	assert_false(options.preload);
	assert_int_equal(options.bytes, 64ull << 30);
	assert_int_equal(options.processes, 8);
	assert_int_equal(PARSE(&options, "--memlock=auto", "true"), 0);
	assert_true(options.memlock);
	assert_int_equal(options.bytes, 0);
	assert_int_equal(options.processes, 1);
	assert_int_equal(PARSE(&options, "--preload", "--memlock", "4096", "true"), 0);
	assert_true(options.preload);
	assert_int_equal(options.bytes, 4096);
}

static void the_commands_options_are_its_own(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "ls", "--help", "--memlock", "x"), 0);
	assert_false(options.help);
	assert_false(options.memlock);
	assert_string_equal(options.command[1], "--help");
	assert_string_equal(options.command[3], "x");
	assert_int_equal(PARSE(&options, "--", "--procs"), 0);
	assert_string_equal(options.command[0], "--procs");
}

static void help_needs_no_command(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(PARSE(&options, "--help"), 0);
	assert_true(options.help);
	assert_int_equal(PARSE(&options, "-V"), 0);
	assert_true(options.version);
}

static void bad_usage_is_told(void **state)
{
	static const char *const bad[][5] = {
		{ NULL },
		{ "--", NULL },
		{ "--memlock", NULL },
		{ "--memlock", "1M", NULL },
		{ "--memlock", "0", "true", NULL },
		{ "--memlock", "much", "true", NULL },
		{ "--memlock=", "true", NULL },
		{ "--memlock=-1", "true", NULL },
		{ "--procs", "2", "true", NULL },
		{ "--memlock=1M", "--procs=0", "true", NULL },
		{ "--memlock=1M", "--procs=65537", "true", NULL },
		{ "--preload=yes", "true", NULL },
		{ "--nonsense", "true", NULL },
		{ "-x", "true", NULL },
	};
	struct options options = { .processes = 7 };

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(parse(bad[i], &options), RUN_FAILED);
	assert_int_equal(options.processes, 7);
}

/* The manual page and the completion name every option that the help does. */
static void pages_know_every_option(void **state)
{
	static const char *const files[] = {
		KVREG_SRC "/client/run/kvreg-run.1.scd",
		KVREG_SRC "/client/run/kvreg-run.bash-completion",
	};
	char *help = NULL, page[16384], *word, *rest;
	size_t size;
	FILE *out = open_memstream(&help, &size);

	(void)state;
	options_help(out);
	fclose(out);
	for (size_t i = 0; i < COUNT(files); i++) {
		char *copy = strdup(help);
		FILE *f = fopen(files[i], "r");

		assert_non_null(f);
		page[fread(page, 1, sizeof(page) - 1, f)] = '\0';
		fclose(f);
		for (word = strtok_r(copy, " \n;", &rest); word;
		     word = strtok_r(NULL, " \n;", &rest))
			if (strncmp(word, "--", 2) == 0)
				assert_non_null(strstr(page, word));
		free(copy);
	}
	free(help);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memlock_the_library_is_preloaded),
		cmocka_unit_test(a_lease_has_a_size_and_processes),
		cmocka_unit_test(the_commands_options_are_its_own),
		cmocka_unit_test(help_needs_no_command),
		cmocka_unit_test(bad_usage_is_told),
		cmocka_unit_test(pages_know_every_option),
	};

	return RUN_GROUP("run-options", tests);
}
