/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <getopt.h>
#include <string.h>

#include "complain.h"
#include "format.h"
#include "optable.h"
#include "proto/limits.h"

static bool take_socket(void *arg, const char *argument)
{
	struct options *options = arg;

	options->socket = argument;
	return *argument != '\0';
}

static bool take_admin_socket(void *arg, const char *argument)
{
	struct options *options = arg;

	options->admin_socket = argument;
	return *argument != '\0';
}

static bool take_json(void *arg, const char *argument)
{
	struct options *options = arg;

	(void)argument;
	options->json = true;
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

static bool take_color(void *arg, const char *argument)
{
	struct options *options = arg;
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

static bool take_client(void *arg, const char *argument)
{
	struct options *options = arg;

	return parse_pid(argument, &options->client);
}

static bool take_device(void *arg, const char *argument)
{
	struct options *options = arg;

	options->device = argument;
	return *argument != '\0';
}

static bool take_size(void *arg, const char *argument)
{
	struct options *options = arg;

	/* Half of it is addressed with a size_t in one process: the top bit is out of reach. */
	return parse_size(argument, &options->size) && options->size >= SELFTEST_SIZE_MIN &&
	       options->size <= SIZE_MAX / 2;
}

static bool take_for(void *arg, const char *argument)
{
	struct options *options = arg;

	return parse_size(argument, &options->fit) && options->fit > 0;
}

static bool take_nics(void *arg, const char *argument)
{
	struct options *options = arg;

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

static const struct option_table table = {
	.program = "kvregctl",
	.usage = CTL_USAGE,
	.help_width = 21,
	.rows = rows,
	.n_rows = N_ROWS,
};
_Static_assert(N_ROWS <= OPTIONS_MAX, "a bit for each");

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
	uint32_t given = 0;
	int r = optable_parse(&table, argc, argv, &options, &given);

	if (r)
		return r;
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
	optable_help(&table, out);
}
