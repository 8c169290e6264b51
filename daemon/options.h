/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_OPTIONS_H
#define KVREG_DAEMON_OPTIONS_H
/* The command line of kvregd: one table feeds parser and help. */
#include <stdbool.h>

#include "daemon/log.h"

struct options {
	const char *config; /* NULL: defaults only */
	const char *socket;
	const char *admin_socket;
	const char *device;
	bool foreground;
	bool allow_faults;
	enum log_level log_level;
};

/**
 * options_parse() - Return: 0 go on; 1 all was said (help, version); -EINVAL and a line on
 * standard error.
 */
int options_parse(int argc, char **argv, struct options *ret_options);

#endif
