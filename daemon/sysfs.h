/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_SYSFS_H
#define KVREG_DAEMON_SYSFS_H
/* What sysfs says of RDMA devices. Files are named by numbers only, never by text from a session.
 */
#include <stddef.h>

/**
 * sysfs_uverbs() - the RDMA device behind the character device @major:@minor.
 * Return: 0 and its name; -ENODEV it is not of class infiniband_verbs.
 */
int sysfs_uverbs(unsigned int major, unsigned int minor, char *ret_name, size_t size);

/** sysfs_devices() - how many RDMA devices the host has now; 1 if it has none. */
unsigned int sysfs_devices(void);

#endif
