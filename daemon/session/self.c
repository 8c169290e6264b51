/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/self.h"

#include <errno.h>
#include <fcntl.h>

int self_open(struct self *ret_self)
{
	ret_self->status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ret_self->meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	return ret_self->status < 0 || ret_self->meminfo < 0 ? -errno : 0;
}

int self_status(const struct self *self, struct proc_status *ret_status)
{
	return proc_status_fd(self->status, ret_status);
}

int self_available(const struct self *self, uint64_t *ret_bytes)
{
	return proc_meminfo_fd(self->meminfo, "MemAvailable", ret_bytes);
}
