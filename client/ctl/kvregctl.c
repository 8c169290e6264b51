/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvregctl: what the node's administrator asks kvregd, and the client that proves it works.
 *
 *	options    the command line, from one table
 *	command    the table of commands; one file for each
 *	admin      one question to the daemon, its answer record by record
 *	table      records -> a table for people or JSON for programs; format and json below it
 *	loopback   two connected queue pairs of this process: the self-test's data path
 *	exam       what the doctor looks at; check-* judge it and add findings; origin and
 *	           ancestor: who set limits
 *
 * It is ordinary unprivileged code: who may ask what is decided by the daemon and its sockets.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "format.h"

/* A full disk behind stdout must not look like a short listing. */
static int finish(int status)
{
	if (fflush(stdout) || ferror(stdout))
		return complain(CTL_FAILED, "cannot write the output: %s", strerror(errno));
	return status;
}

int main(int argc, char **argv)
{
	const struct command *command;
	struct options options;
	int status;

	status = options_parse(argc, argv, &options);
	if (status)
		return status;
	if (options.help) {
		commands_help(stdout);
		return finish(CTL_OK);
	}
	if (options.version) {
		puts("kvregctl " KVREG_VERSION);
		return finish(CTL_OK);
	}
	command = command_find(options.command);
	if (!command)
		return complain(CTL_USAGE, "there is no command \"%s\": kvregctl --help lists them",
				format_text(options.command).text);
	return finish(command->run(&options));
}
