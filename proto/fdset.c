/* SPDX-License-Identifier: Apache-2.0 */
#include "fdset.h"

#include <errno.h>
#include <unistd.h>

int fdset_take(struct fdset *set, size_t i)
{
	int fd;

	if (i >= set->count)
		return -1;
	fd = set->fds[i];
	set->fds[i] = -1;
	return fd;
}

void fdset_fini(struct fdset *set)
{
	for (size_t i = 0; i < set->count; i++)
		fd_close(&set->fds[i]);
	set->count = 0;
}

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}
