/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "client/ctl/format.h"

struct option_row {
	const char *name;
	char letter;          /* 0: it has none */
	const char *argument; /* as shown in the help, NULL: it takes none */
	const char *help;
	bool (*take)(struct options *options, const char *argument); /* false: no such argument */
	const char *wanted;                                          /* what the argument must be */
};

static bool take_memlock(struct options *options, const char *argument)
{
	options->memlock = true;
	options->bytes = 0;
	if (strcmp(argument, "auto") == 0)
		return true;
	return parse_size(argument, &options->bytes) && options->bytes > 0;
}

static bool take_procs(struct options *options, const char *argument)
{
	return parse_pid(argument, &options->processes) && options->processes <= PROCESSES_MAX;
}

static bool take_preload(struct options *options, const char *argument)
{
	(void)argument;
	options->preload = true;
	return true;
}

static bool take_help(struct options *options, const char *argument)
{
	(void)argument;
	options->help = true;
	return true;
}

static bool take_version(struct options *options, const char *argument)
{
	(void)argument;
	options->version = true;
	return true;
}

static const struct option_row rows[] = {
	{ "memlock", 0, "SIZE",
	  "lease a limit of locked memory of SIZE bytes (K, M, G or T may follow);\n"
	  "auto: as much as the quota allows",
	  take_memlock, "a number of bytes, with K, M, G or T if you like, or auto" },
	{ "procs", 0, "N",
	  "the command will have N processes (1): each has the limit of SIZE,\n"
	  "N times SIZE is booked; auto is divided by N",
	  take_procs, "a number from 1 to 65536" },
	{ "preload", 0, NULL,
	  "load libkvreg-preload.so into the command, so that calls which fail\n"
	  "for locked memory lease it; without --memlock this is done anyway",
	  take_preload, NULL },
	{ "help", 'h', NULL, "print this", take_help, NULL },
	{ "version", 'V', NULL, "print the version", take_version, NULL },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))
/* getopt_long's value of row i: above every letter. */
#define ROW_BASE 256

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

static int find_row(int value)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (value == ROW_BASE + (int)i || (rows[i].letter && value == rows[i].letter))
			return (int)i;
	return -1;
}

static int bad_option(char **argv, int value)
{
	int row = find_row(optopt);

	if (value == ':')
		return complain(RUN_FAILED, "--%s wants %s", row < 0 ? "?" : rows[row].name,
				row < 0 ? "an argument" : rows[row].wanted);
	if (optopt > 0 && optopt < ROW_BASE)
		return complain(RUN_FAILED, "there is no option -%c: kvreg-run --help lists them",
				optopt);
	if (row >= 0)
		return complain(RUN_FAILED, "--%s takes no argument", rows[row].name);
	return complain(RUN_FAILED, "there is no option %s: kvreg-run --help lists them",
			format_text(argv[optind - 1]).text);
}

/* Makes what getopt_long wants out of the table. */
static void make_long(struct option *ret_long, char *ret_short)
{
	*ret_short++ = '+'; /* options end at the command */
	*ret_short++ = ':'; /* report a missing argument as such */
	for (size_t i = 0; i < N_ROWS; i++) {
		ret_long[i] = (struct option){
			.name = rows[i].name,
			.has_arg = rows[i].argument ? required_argument : no_argument,
			.val = ROW_BASE + (int)i,
		};
		if (rows[i].letter)
			*ret_short++ = rows[i].letter;
	}
	ret_long[N_ROWS] = (struct option){ 0 };
	*ret_short = '\0';
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	struct options options = { .processes = 1 };
	struct option long_options[N_ROWS + 1];
	char short_options[N_ROWS + 3];
	bool procs = false;
	int value, row;

	make_long(long_options, short_options);
	opterr = 0;
	optind = 0;
	while ((value = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		row = find_row(value);
		if (row < 0)
			return bad_option(argv, value);
		if (!rows[row].take(&options, optarg))
			return complain(RUN_FAILED, "--%s wants %s, not \"%s\"", rows[row].name,
					rows[row].wanted, format_text(optarg).text);
		procs = procs || rows[row].take == take_procs;
	}
	options.command = argv + optind;
	if (!options.help && !options.version) {
		if (optind == argc)
			return complain(RUN_FAILED, "which command? kvreg-run --help");
		if (procs && !options.memlock)
			return complain(RUN_FAILED, "--procs belongs to --memlock");
	}
	options.preload = options.preload || !options.memlock;
	*ret_options = options;
	return 0;
}

static void help_line(FILE *out, const char *left, const char *text, int length)
{
	fprintf(out, "  %-15s %.*s\n", left, length, text);
}

void options_help(FILE *out)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		const char *help = rows[i].help, *end = strchr(help, '\n');
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
			 rows[i].argument ? rows[i].argument : "");
		help_line(out, left, help, end ? (int)(end - help) : (int)strlen(help));
		if (end)
			help_line(out, "", end + 1, (int)strlen(end + 1));
	}
}
