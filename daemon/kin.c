/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kin.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/procfs.h"

/* Records are written one by one, and one is far below PIPE_BUF: whole ones are read. */
#define KIN_STEP 64u

static int reserve(struct kin_list *kin)
{
	size_t room = kin->count + KIN_STEP;
	struct kin *list;

	if (room <= kin->room)
		return 0;
	list = reallocarray(kin->list, room, sizeof(*list));
	if (!list)
		return -ENOMEM;
	kin->list = list;
	kin->room = room;
	return 0;
}

int kin_read(struct kin_list *kin, int fd)
{
	ssize_t n;

	do {
		if (reserve(kin) < 0)
			return -ENOMEM;
		n = read(fd, &kin->list[kin->count], KIN_STEP * sizeof(kin->list[0]));
		if (n > 0)
			kin->count += (size_t)n / sizeof(kin->list[0]);
	} while (n > 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	return 0;
}

static uint64_t pinned_now(const struct kin *kin)
{
	struct proc_status status;
	uint64_t started;

	if (proc_status(kin->pid, &status) < 0 || proc_start_time(kin->pid, &started) < 0 ||
	    started != kin->started)
		return 0;
	return status.vm_pin + status.vm_lck;
}

void kin_look(struct kin_list *kin)
{
	size_t kept = 0;

	for (size_t i = 0; i < kin->count; i++) {
		kin->list[i].pinned = pinned_now(&kin->list[i]);
		if (kin->list[i].pinned > 0)
			kin->list[kept++] = kin->list[i];
	}
	kin->count = kept;
}

uint64_t kin_pinned(const struct kin_list *kin)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < kin->count; i++)
		bytes += kin->list[i].pinned;
	return bytes;
}

void kin_fini(struct kin_list *kin)
{
	free(kin->list);
	*kin = (struct kin_list){ 0 };
}
