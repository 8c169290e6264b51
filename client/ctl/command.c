/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <string.h>

static const struct command commands[] = {
	{ "status", "", "what the daemon is and holds, and each user's share", status_run },
	{ "clients", "", "the clients: what each registered and who is charged", clients_run },
	{ "regions", "[--client PID]", "the registered memory regions", regions_run },
	{ "selftest", "[--device NAME] [--size BYTES]",
	  "register memory as a client and move data through it", selftest_run },
	{ "doctor", "[--for BYTES [--nics N]]",
	  "what keeps this process from registering memory, and the remedy", doctor_run },
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

void commands_help(FILE *out)
{
	fputs("usage: kvregctl [OPTIONS] COMMAND\n\n"
	      "Shows and checks kvregd, the node's daemon for RDMA memory registration.\n\n"
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %s%s%s\n      %s\n", commands[i].name,
			commands[i].arguments[0] ? " " : "", commands[i].arguments,
			commands[i].help);
	fputs("\nOptions:\n", out);
	options_help(out);
	fputs("\nkvregctl(8) explains the columns and the exit status.\n", out);
}
