/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/procfs.h"

int sysfs_uverbs(unsigned int major, unsigned int minor, char *ret_name, size_t size)
{
	char path[64], target[256];
	const char *slash;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/subsystem", major, minor);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return -ENODEV;
	target[n] = '\0';
	slash = strrchr(target, '/');
	if (!slash || strcmp(slash + 1, "infiniband_verbs") != 0)
		return -ENODEV;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/ibdev", major, minor);
	return proc_read(path, ret_name, size) < 0 ? -ENODEV : 0;
}

unsigned int sysfs_devices(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *entry;
	unsigned int n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n ? n : 1;
}
