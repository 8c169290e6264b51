/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <getopt.h>
#include <string.h>

#include "complain.h"
#include "format.h"
#include "proto/limits.h"

struct option_row {
	const char *name;
	char letter;          /* 0: it has none */
	const char *argument; /* as shown in the help, NULL: it takes none */
	const char *command;  /* the only command it belongs to, NULL: all */
	const char *help;
	bool (*take)(struct options *options, const char *argument); /* false: no such argument */
	const char *wanted;                                          /* what the argument must be */
};

static bool take_socket(struct options *options, const char *argument)
{
	options->socket = argument;
	return *argument != '\0';
}

static bool take_admin_socket(struct options *options, const char *argument)
{
	options->admin_socket = argument;
	return *argument != '\0';
}

static bool take_json(struct options *options, const char *argument)
{
	(void)argument;
	options->json = true;
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

static bool take_color(struct options *options, const char *argument)
{
	static const char *const modes[] = {
		[COLOR_AUTO] = "auto",
		[COLOR_ALWAYS] = "always",
		[COLOR_NEVER] = "never",
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argument, modes[i]) != 0)
			continue;
		options->color = (enum color_mode)i;
		return true;
	}
	return false;
}

static bool take_client(struct options *options, const char *argument)
{
	return parse_pid(argument, &options->client);
}

static bool take_device(struct options *options, const char *argument)
{
	options->device = argument;
	return *argument != '\0';
}

static bool take_size(struct options *options, const char *argument)
{
	/* Half of it is addressed with a size_t in one process: the top bit is out of reach. */
	return parse_size(argument, &options->size) && options->size >= SELFTEST_SIZE_MIN &&
	       options->size <= SIZE_MAX / 2;
}

static bool take_for(struct options *options, const char *argument)
{
	return parse_size(argument, &options->fit) && options->fit > 0;
}

static bool take_nics(struct options *options, const char *argument)
{
	return parse_count(argument, DOCTOR_NICS_MAX, &options->nics);
}

static const struct option_row rows[] = {
	{ "socket", 0, "PATH", NULL,
	  "the clients' socket, else $KVREG_SOCKET, else\n" DEFAULT_SOCKET, take_socket, "a path" },
	{ "admin-socket", 0, "PATH", NULL,
	  "the administrators' socket, else $KVREG_ADMIN_SOCKET, else\n" DEFAULT_ADMIN_SOCKET,
	  take_admin_socket, "a path" },
	{ "json", 0, NULL, NULL, "print one JSON document instead of tables", take_json, NULL },
	{ "color", 0, "WHEN", NULL, "colour tables: auto, always or never", take_color,
	  "auto, always or never" },
	{ "client", 0, "PID", "regions", "regions: of this client only", take_client,
	  "a process id" },
	{ "device", 0, "NAME", "selftest", "selftest: the RDMA device, else the first one",
	  take_device, "a device name" },
	{ "size", 0, "BYTES", "selftest", "selftest: of the buffer, else 1M (K, M, G may follow)",
	  take_size, "a number of bytes from 4096, with K, M, G or T if you like" },
	{ "for", 0, "BYTES", "doctor", "doctor: would so many bytes fit? (K, M, G, T may follow)",
	  take_for, "a number of bytes, with K, M, G or T if you like" },
	{ "nics", 0, "N", "doctor", "doctor: registered with so many devices, else 1", take_nics,
	  "a number of devices" },
	{ "help", 'h', NULL, NULL, "print this", take_help, NULL },
	{ "version", 'V', NULL, NULL, "print the version", take_version, NULL },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))
/* getopt_long's value of row i: above every letter. */
#define ROW_BASE 256

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
		return complain(CTL_USAGE, "--%s wants %s", row < 0 ? "?" : rows[row].name,
				row < 0 ? "an argument" : rows[row].wanted);
	if (optopt > 0 && optopt < ROW_BASE)
		return complain(CTL_USAGE, "there is no option -%c: kvregctl --help lists them",
				optopt);
	if (row >= 0)
		return complain(CTL_USAGE, "--%s takes no argument", rows[row].name);
	return complain(CTL_USAGE, "there is no option %s: kvregctl --help lists them",
			format_text(argv[optind - 1]).text);
}

static int bad_argument(const struct option_row *row, const char *argument)
{
	if (!*argument)
		return complain(CTL_USAGE, "--%s wants %s", row->name, row->wanted);
	return complain(CTL_USAGE, "--%s wants %s, not \"%s\"", row->name, row->wanted,
			format_text(argument).text);
}

/* Makes what getopt_long wants out of the table. */
static void make_long(struct option *ret_long, char *ret_short)
{
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

static int check_command(const struct options *options, uint32_t given)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (given & 1u << i && rows[i].command &&
		    strcmp(options->command, rows[i].command) != 0)
			return complain(CTL_USAGE, "--%s belongs to the command %s", rows[i].name,
					rows[i].command);
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	struct options options = { .size = SELFTEST_SIZE_DEFAULT };
	struct option long_options[N_ROWS + 1];
	char short_options[N_ROWS + 2];
	uint32_t given = 0;
	int value, row;

	make_long(long_options, short_options);
	opterr = 0;
	optind = 0;
	while ((value = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		row = find_row(value);
		if (row < 0)
			return bad_option(argv, value);
		if (!rows[row].take(&options, optarg))
			return bad_argument(&rows[row], optarg);
		given |= 1u << row;
	}
	if (optind < argc)
		options.command = argv[optind++];
	if (!options.help && !options.version) {
		if (!options.command)
			return complain(CTL_USAGE, "which command? kvregctl --help lists them");
		if (optind < argc)
			return complain(CTL_USAGE, "%s takes no argument \"%s\"",
					format_text(options.command).text,
					format_text(argv[optind]).text);
		if (check_command(&options, given))
			return CTL_USAGE;
	}
	*ret_options = options;
	return 0;
}

void options_help(FILE *out)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		const char *help = rows[i].help, *end = strchr(help, '\n');
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
			 rows[i].argument ? rows[i].argument : "");
		fprintf(out, "  %-21s %.*s\n", left, end ? (int)(end - help) : (int)strlen(help),
			help);
		if (end)
			fprintf(out, "  %-21s %s\n", "", end + 1);
	}
}
