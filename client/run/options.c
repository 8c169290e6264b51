/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "client/ctl/format.h"
#include "client/ctl/optable.h"

static bool take_memlock(void *arg, const char *argument)
{
	struct options *options = arg;

	options->memlock = true;
	options->bytes = 0;
	if (strcmp(argument, "auto") == 0)
		return true;
	return parse_size(argument, &options->bytes) && options->bytes > 0;
}

static bool take_procs(void *arg, const char *argument)
{
	struct options *options = arg;

	return parse_pid(argument, &options->processes) && options->processes <= PROCESSES_MAX;
}

static bool take_preload(void *arg, const char *argument)
{
	struct options *options = arg;

	(void)argument;
	options->preload = true;
	return true;
}

static bool take_help(void *arg, const char *argument)
{
	struct options *options = arg;

	(void)argument;
	options->help = true;
	return true;
}

static bool take_version(void *arg, const char *argument)
{
	struct options *options = arg;

	(void)argument;
	options->version = true;
	return true;
}

static const struct option_row rows[] = {
	{ "memlock", 0, "SIZE", NULL,
	  "lease a limit of locked memory of SIZE bytes (K, M, G or T may follow);\n"
	  "auto: as much as the quota allows",
	  take_memlock, "a number of bytes, with K, M, G or T if you like, or auto" },
	{ "procs", 0, "N", NULL,
	  "the command will have N processes (1): each has the limit of SIZE,\n"
	  "N times SIZE is booked; auto is divided by N",
	  take_procs, "a number from 1 to 65536" },
	{ "preload", 0, NULL, NULL,
	  "load libkvreg-preload.so into the command, so that calls which fail\n"
	  "for locked memory lease it; without --memlock this is done anyway",
	  take_preload, NULL },
	{ "help", 'h', NULL, NULL, "print this", take_help, NULL },
	{ "version", 'V', NULL, NULL, "print the version", take_version, NULL },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct option_table table = {
	.program = "kvreg-run",
	.usage = RUN_FAILED,
	.ends_at_word = true,
	.help_width = 15,
	.rows = rows,
	.n_rows = N_ROWS,
};
_Static_assert(N_ROWS <= OPTIONS_MAX, "a bit for each");

int complain(enum run_status status, const char *format, ...)
{
	va_list args;

	fputs("kvreg-run: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return (int)status;
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	struct options options = { 0 };
	uint32_t given = 0;
	int r = optable_parse(&table, argc, argv, &options, &given);

	if (r)
		return r;
	options.command = argv + optind;
	if (!options.help && !options.version) {
		if (optind == argc)
			return complain(RUN_FAILED, "which command? kvreg-run --help");
		if (options.processes && !options.memlock)
			return complain(RUN_FAILED, "--procs belongs to --memlock");
	}
	if (options.processes == 0)
		options.processes = 1;
	options.preload = options.preload || !options.memlock;
	*ret_options = options;
	return 0;
}

void options_help(FILE *out)
{
	optable_help(&table, out);
}
