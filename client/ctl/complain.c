/* SPDX-License-Identifier: Apache-2.0 */
#include "complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int complain(enum ctl_status status, const char *format, ...)
{
	va_list args;

	fputs("kvregctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return (int)status;
}

int complain_line(enum ctl_status status, const char *line)
{
	static const char library[] = "kvreg: ";

	/* Such a line names the library; here the program's own name stands in that place. */
	if (!strncmp(line, library, strlen(library)))
		line += strlen(library);
	return complain(status, "%s", line);
}

enum ctl_status status_of_code(enum kvreg_code code)
{
	if (code == KVREG_E_NO_DAEMON)
		return CTL_NO_DAEMON;
	if (code == KVREG_E_NO_PERMISSION)
		return CTL_NO_PERMISSION;
	return CTL_FAILED;
}
