/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_COMPLAIN_H
#define KVREG_CTL_COMPLAIN_H
/*
 * How kvregctl fails: one line on stderr where the trouble is understood, and an exit status that
 * goes up to main. A function that returns such a status has told the user already; 0 is fine.
 */
#include "kvreg-errors.h"

enum ctl_status {
	CTL_OK = 0,
	CTL_FAILED = 1,        /* the daemon refused or failed, or an answer is not whole */
	CTL_USAGE = 2,         /* the command line */
	CTL_NO_DAEMON = 3,     /* nobody listens on the socket */
	CTL_NO_PERMISSION = 4, /* the socket or the daemon does not admit this user */
	CTL_UNFIT = 5,         /* doctor found what makes registration fail */
};

/** complain() - prints "kvregctl: ..." and a newline to stderr. Return: @status. */
int complain(enum ctl_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** complain_line() - the same for a line of failure_line() or kvreg_error_text(). */
int complain_line(enum ctl_status status, const char *line);

/** status_of_code() - the exit status that a failure with @code, not OK, leads to. */
enum ctl_status status_of_code(enum kvreg_code code);

#endif
