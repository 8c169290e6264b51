/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fdset.h"

/* /proc files are made when they are read: one read(2) of a large enough buffer is consistent. */
static int read_fd(int fd, char *text, size_t size)
{
	size_t used = 0;
	ssize_t n = 1;

	while (n > 0 && used + 1 < size) {
		n = pread(fd, text + used, size - 1 - used, (off_t)used);
		if (n < 0)
			return -errno;
		used += (size_t)n;
	}
	text[used] = '\0';
	return 0;
}

static int read_whole(const char *path, char *text, size_t size)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_fd(fd, text, size);
}

static uint64_t field(const char *text, const char *key, int base)
{
	const char *p = strstr(text, key);

	return p ? strtoull(p + strlen(key), NULL, base) : 0;
}

static void proc_path(char *path, size_t size, pid_t pid, const char *file)
{
	if (pid)
		snprintf(path, size, "/proc/%d/%s", pid, file);
	else
		snprintf(path, size, "/proc/self/%s", file);
}

int proc_status_fd(int fd, struct proc_status *ret_status)
{
	char text[16384];
	uint32_t real = 0, effective = 0;
	const char *uid;
	int r = read_fd(fd, text, sizeof(text));

	if (r < 0)
		return r;
	uid = strstr(text, "\nUid:");
	if (uid)
		sscanf(uid, "\nUid: %" SCNu32 " %" SCNu32, &real, &effective);
	*ret_status = (struct proc_status){
		.has_mm = strstr(text, "\nVmPin:") != NULL,
		.vm_pin = field(text, "\nVmPin:", 10) * 1024,
		.vm_lck = field(text, "\nVmLck:", 10) * 1024,
		.cap_inh = field(text, "\nCapInh:", 16),
		.cap_prm = field(text, "\nCapPrm:", 16),
		.cap_eff = field(text, "\nCapEff:", 16),
		.cap_bnd = field(text, "\nCapBnd:", 16),
		.cap_amb = field(text, "\nCapAmb:", 16),
		.uid = real,
		.euid = effective,
	};
	return 0;
}

int proc_status(pid_t pid, struct proc_status *ret_status)
{
	_cleanup_fd_ int fd = -1;
	char path[64];

	proc_path(path, sizeof(path), pid, "status");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : proc_status_fd(fd, ret_status);
}

/* Field @number of /proc/PID/stat, from the fourth on. The comm, field 2, may hold spaces and
 * brackets: they are counted from its last ')'. */
static int stat_field(pid_t pid, int number, uint64_t *ret_value)
{
	char path[64], text[1024], *p;
	int r;

	proc_path(path, sizeof(path), pid, "stat");
	r = read_whole(path, text, sizeof(text));
	if (r < 0)
		return r;
	p = strrchr(text, ')');
	for (int i = 2; p && i < number; i++)
		p = strchr(p + 1, ' ');
	if (!p)
		return -EINVAL;
	*ret_value = strtoull(p + 1, NULL, 10);
	return 0;
}

int proc_start_time(pid_t pid, uint64_t *ret_ticks)
{
	return stat_field(pid, 22, ret_ticks);
}

int proc_parent(pid_t pid, pid_t *ret_parent)
{
	uint64_t parent;
	int r = stat_field(pid, 4, &parent);

	if (r == 0)
		*ret_parent = (pid_t)parent;
	return r;
}

int proc_read(const char *path, char *ret_text, size_t size)
{
	char text[512];
	int r = read_whole(path, text, sizeof(text));

	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	snprintf(ret_text, size, "%s", text);
	return 0;
}

int proc_meminfo_fd(int fd, const char *key, uint64_t *ret_bytes)
{
	char text[8192], line[64];
	int r = read_fd(fd, text + 1, sizeof(text) - 1);

	if (r < 0)
		return r;
	text[0] = '\n';
	snprintf(line, sizeof(line), "\n%s:", key);
	if (!strstr(text, line))
		return -ENOENT;
	*ret_bytes = field(text, line, 10) * 1024;
	return 0;
}

int proc_meminfo(const char *key, uint64_t *ret_bytes)
{
	_cleanup_fd_ int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : proc_meminfo_fd(fd, key, ret_bytes);
}
