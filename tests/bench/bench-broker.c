/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-broker [--json FILE] [CASE...]: what the broker costs, on this machine and the mock device.
 *
 * The mock device locks memory where a real one pins it, so the device's own time is missing here:
 * bench-verbs has the comparison with ibv_reg_mr.
 */
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "daemon.h"
#include "report.h"

static const struct {
	const char *name;
	case_fn *run;
} cases[] = {
	{ "halves", case_halves }, { "register", case_register }, { "large", case_large },
	{ "start", case_start },   { "memory", case_memory },     { "neighbour", case_neighbour },
	{ "idle", case_idle },
};

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 0;
}

int main(int argc, char **argv)
{
	static const struct daemon_options options = {
		.config = "[quota]\nsessions = 1100\nsessions_per_uid = 1100\n",
		.allow_faults = true,
	};
	struct daemon_under_test daemon;
	const char *path = NULL;

	argc--;
	argv++;
	if (argc > 1 && strcmp(argv[0], "--json") == 0) {
		path = argv[1];
		argc -= 2;
		argv += 2;
	}
	daemon_prepare(&daemon, &options);
	neighbour_prepare(&daemon);
	daemon_again(&daemon);
	report_open("broker", path);
	for (size_t i = 0; i < COUNT(cases); i++)
		if (wanted(cases[i].name, argc, argv))
			cases[i].run(&daemon);
	int status = report_close();
	daemon_end(&daemon);
	return status;
}
