/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_ANCESTOR_H
#define KVREG_CTL_ANCESTOR_H
/*
 * Whether the limit of locked memory was lowered on the way from the unit or container to this
 * process: an ancestor in the same cgroup may have more still. Then who made the cgroup is not to
 * blame. /proc/PID/limits, cgroup and status can be read of everybody's processes (hidepid aside);
 * the line of ancestors ends at the process that is the first of its PID namespace.
 */
#include <stdbool.h>
#include <stdint.h>

struct host;

struct ancestor {
	uint32_t pid; /* 0: none */
	char comm[64];
	uint64_t hard; /* its limit in bytes; RLIM_INFINITY */
};

/**
 * ancestor_find() - the nearest ancestor in this process's cgroup whose hard limit is higher than
 * this process's. Return: whether there is one.
 */
bool ancestor_find(const struct host *host, struct ancestor *ret_ancestor);

#endif
