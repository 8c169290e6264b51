/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"

static const struct {
	const char *name;
	int letter;
	const char *argument;
	const char *help;
} table[] = {
	{ "config", 'c', "FILE", "configuration (" DEFAULT_CONFIG ", if it is there)" },
	{ "socket", 's', "PATH", "clients' socket (" DEFAULT_SOCKET ")" },
	{ "admin-socket", 'a', "PATH", "administrators' socket (" DEFAULT_ADMIN_SOCKET ")" },
	{ "device", 'd', "verbs|mock", "what registers: RDMA devices, or a stand-in (verbs)" },
	{ "foreground", 'f', NULL, "do not detach; log to standard error" },
	{ "log-level", 'l', "LEVEL", "error, warning, info or debug (info)" },
	{ "allow-faults", 'A', NULL, "accept [test ...] sections: faults on purpose, for tests" },
	{ "version", 'V', NULL, "print the version" },
	{ "help", 'h', NULL, "print this" },
};

#define N_OPTIONS (sizeof(table) / sizeof(table[0]))

static void print_help(void)
{
	printf("Usage: kvregd [OPTIONS]\n\n"
	       "Registers memory with RDMA devices on behalf of unprivileged processes.\n\n");
	for (size_t i = 0; i < N_OPTIONS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", table[i].name,
			 table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
		printf("  -%c, %-28s %s\n", table[i].letter, left, table[i].help);
	}
}

static int set_level(struct options *options, const char *name)
{
	int level = log_level_find(name);

	if (level < 0) {
		fprintf(stderr, "kvregd: there is no log level '%s'\n", name);
		return -EINVAL;
	}
	options->log_level = (enum log_level)level;
	return 0;
}

static int set_device(struct options *options, const char *name)
{
	if (strcmp(name, "verbs") != 0 && strcmp(name, "mock") != 0) {
		fprintf(stderr, "kvregd: there is no device '%s': verbs or mock\n", name);
		return -EINVAL;
	}
	options->device = name;
	return 0;
}

static int apply(struct options *options, int letter)
{
	switch (letter) {
	case 'c':
		options->config = optarg;
		return 0;
	case 's':
		options->socket = optarg;
		return 0;
	case 'a':
		options->admin_socket = optarg;
		return 0;
	case 'd':
		return set_device(options, optarg);
	case 'f':
		options->foreground = true;
		return 0;
	case 'l':
		return set_level(options, optarg);
	case 'A':
		options->allow_faults = true;
		return 0;
	case 'V':
		printf("kvregd %s\n", KVREG_VERSION);
		return 1;
	case 'h':
		print_help();
		return 1;
	default:
		fprintf(stderr, "kvregd: try --help\n");
		return -EINVAL;
	}
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	struct option longs[N_OPTIONS + 1] = { 0 };
	char shorts[2 * N_OPTIONS + 1] = "";
	struct options options = {
		.socket = DEFAULT_SOCKET,
		.admin_socket = DEFAULT_ADMIN_SOCKET,
		.device = "verbs",
		.log_level = LOG_LEVEL_INFO,
	};
	int letter, r = 0;
	char *p = shorts;

	for (size_t i = 0; i < N_OPTIONS; i++) {
		longs[i] = (struct option){ .name = table[i].name, .val = table[i].letter };
		longs[i].has_arg = table[i].argument ? required_argument : no_argument;
		*p++ = (char)table[i].letter;
		if (table[i].argument)
			*p++ = ':';
	}
	while (r == 0 && (letter = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		r = apply(&options, letter);
	if (r == 0 && optind < argc) {
		fprintf(stderr, "kvregd: takes no argument '%s'\n", argv[optind]);
		r = -EINVAL;
	}
	if (r != 0)
		return r;
	/* A configuration that was named must be there; the default one need not. */
	if (!options.config && access(DEFAULT_CONFIG, F_OK) == 0)
		options.config = DEFAULT_CONFIG;
	*ret_options = options;
	return 0;
}
