/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_COMMAND_H
#define KVREG_CTL_COMMAND_H
/*
 * The commands. A command takes the parsed options, prints what it found to stdout and returns an
 * exit status (complain.h).
 */
#include <stdio.h>

#include "options.h"

struct command {
	const char *name;
	const char *arguments; /* as shown in the help */
	const char *help;
	int (*run)(const struct options *options);
};

/** command_find() - the command of that name, or NULL. */
const struct command *command_find(const char *name);

/** commands_help() - prints what --help says. */
void commands_help(FILE *out);

/** status_run() - what the daemon is and holds, and each user's share. */
int status_run(const struct options *options);

/** clients_run() - the connected clients. */
int clients_run(const struct options *options);

/** regions_run() - the registered regions, of all clients or of one. */
int regions_run(const struct options *options);

/** selftest_run() - registers memory and moves data through it, as an ordinary client. */
int selftest_run(const struct options *options);

/** doctor_run() - what lets this process register memory, and what keeps it from it. */
int doctor_run(const struct options *options);

#endif
