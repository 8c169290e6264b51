/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run/preload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libkvreg-preload.so"

static int in_directory(const char *directory, char *path, size_t size)
{
	if ((size_t)snprintf(path, size, "%s/%s", directory, LIBRARY) >= size)
		return -ENAMETOOLONG;
	if (access(path, R_OK) < 0)
		return -ENOENT;
	return strpbrk(path, ": \t\n") ? -EINVAL : 0;
}

int preload_find(const char *beside, char *ret_path, size_t size)
{
	int r = in_directory(beside, ret_path, size);

	return r == -ENOENT ? in_directory(KVREG_LIBDIR, ret_path, size) : r;
}

int preload_set(const char *path)
{
	const char *others = secure_getenv("LD_PRELOAD");
	char *list;
	int r;

	if (!others || !*others)
		return setenv("LD_PRELOAD", path, /* overwrite */ 1) < 0 ? -errno : 0;
	if (asprintf(&list, "%s:%s", path, others) < 0)
		return -ENOMEM;
	r = setenv("LD_PRELOAD", list, /* overwrite */ 1) < 0 ? -errno : 0;
	free(list);
	return r;
}
