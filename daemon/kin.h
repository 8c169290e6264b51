/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_KIN_H
#define KVREG_DAEMON_KIN_H
/*
 * Processes that a sweep has lowered (sweep.h), with what they pinned and locked while they could:
 * that stays with them, and is booked as long as it does.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kin {
	pid_t pid;
	uint64_t started; /* clock ticks since boot, with its pid its name */
	uint64_t pinned;  /* bytes, as last seen; 0 of one that was just found */
};

struct kin_list {
	struct kin *list;
	size_t count, room;
};

/**
 * kin_read() - takes up those that wait in @fd, a pipe that does not block.
 * Return: 1 more may come; 0 that was all; -ENOMEM or another -errno.
 */
int kin_read(struct kin_list *kin, int fd);

/** kin_look() - what each has pinned and locked now; who has nothing is forgotten. */
void kin_look(struct kin_list *kin);

/** kin_pinned() - what all of them have, bytes, as last seen. */
uint64_t kin_pinned(const struct kin_list *kin);

void kin_fini(struct kin_list *kin);

#endif
