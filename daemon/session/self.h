/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_SELF_H
#define KVREG_SESSION_SELF_H
/*
 * What the kernel says of this process and of the host, read from files that were opened before
 * the process confined itself: from then on it can open none. /proc makes their text anew at each
 * read from the start.
 */
#include <stdint.h>

#include "proto/procfs.h"

struct self {
	int status;  /* /proc/self/status */
	int meminfo; /* /proc/meminfo */
};

/** self_open() - opens both; they stay open as long as the process lives. Return: 0 or -errno. */
int self_open(struct self *ret_self);

/** self_status() - Return: 0 or -errno. */
int self_status(const struct self *self, struct proc_status *ret_status);

/** self_available() - MemAvailable of the host, bytes. Return: 0 or -errno. */
int self_available(const struct self *self, uint64_t *ret_bytes);

#endif
