/* SPDX-License-Identifier: Apache-2.0 */
#include "client/preload/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any path of a socket: what does not fit is refused where it is used. */
static char socket_path[256];
static struct settings once;

__attribute__((constructor)) static void read_environment(void)
{
	const char *kvreg = secure_getenv("KVREG"), *verbose = secure_getenv("KVREG_VERBOSE");
	const char *path = secure_getenv("KVREG_SOCKET");

	once.off = kvreg && strcmp(kvreg, "off") == 0;
	once.verbose = verbose && strcmp(verbose, "1") == 0;
	if (!path)
		return;
	snprintf(socket_path, sizeof(socket_path), "%s", path);
	once.socket = socket_path;
}

const struct settings *settings(void)
{
	return &once;
}
