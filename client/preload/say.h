/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_PRELOAD_SAY_H
#define KVREG_PRELOAD_SAY_H
/*
 * What the program's user is told, on stderr, by one write(2) a line. A program may fail the same way
 * a thousand times: each cause is told once, and a process has only so many lines. With KVREG_VERBOSE
 * all of it is told.
 *
 * Nothing here keeps errno.
 */
#include "client/preload/decide.h"

/* Distinct causes that one process may have told: more is noise. */
#define CAUSES_MAX 16u

/** say_failed() - @call failed with @errnum; why, as diagnose() finds. */
void say_failed(const struct verbs_call *call, int errnum, const struct evidence *e);

/** say_refused() - it failed for the limit, and kvreg_last_error() says why no lease was had. */
void say_refused(const struct verbs_call *call, int errnum, const struct evidence *e);

/** say_leased() - with KVREG_VERBOSE only: @bytes were leased for @call, which gave @errnum then. */
void say_leased(const struct verbs_call *call, uint64_t bytes, int errnum);

#endif
