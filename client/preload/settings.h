/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_PRELOAD_SETTINGS_H
#define KVREG_PRELOAD_SETTINGS_H
/*
 * What the environment says. Read once, when the library is loaded: later the program may change its
 * environment in another thread, which getenv(3) does not survive. Never in secure execution.
 */
#include <stdbool.h>

struct settings {
	bool off;           /* KVREG=off */
	bool verbose;       /* KVREG_VERBOSE=1: each lease and each failure is told */
	const char *socket; /* KVREG_SOCKET; NULL: the default */
};

/** settings() - the same for the life of the process. */
const struct settings *settings(void);

#endif
