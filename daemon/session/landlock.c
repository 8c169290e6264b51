/* SPDX-License-Identifier: Apache-2.0 */
/* There are no libc wrappers, and Debian 12's header knows the rights of ABI 2 only. */
#include "daemon/session/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/fdset.h"

/* struct landlock_ruleset_attr of ABI 6; older kernels are told a smaller size. */
struct ruleset {
	uint64_t fs;     /* ABI 1 */
	uint64_t net;    /* ABI 4 */
	uint64_t scoped; /* ABI 6 */
};

/* struct landlock_path_beneath_attr */
struct beneath {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH      1

/* LANDLOCK_ACCESS_FS_*. Its EXECUTE is about execve() alone: a library needs READ_FILE to be mapped. */
#define WRITE_FILE (1u << 1)
#define READ_FILE  (1u << 2)
#define READ_DIR   (1u << 3)
#define REFER      (1u << 13) /* ABI 2 */
#define TRUNCATE   (1u << 14) /* ABI 3 */
#define FS_ABI_1   0x1fffu    /* bits 0-12; IOCTL_DEV (ABI 5) is left alone: we need ioctl */

#define OF_FILES (WRITE_FILE | READ_FILE | TRUNCATE) /* a rule on a file may have no other */
#define READ     (READ_FILE | READ_DIR)
#define WRITE    (WRITE_FILE | TRUNCATE)

struct place {
	const char *pattern; /* glob(7); links are followed */
	uint64_t rights;
};

static const struct place places[] = {
	/* the libraries, wherever a distribution puts them, and the driver's application profiles */
	{ "/usr", READ },
	{ "/lib*", READ },
	{ "/etc/ld.so.cache", READ },
	{ "/etc/nvidia", READ },
	/* the driver's parameters, GPUs and MIG capabilities */
	{ "/proc/driver/nvidia", READ },
	{ "/proc/driver/nvidia-uvm", READ },
	/* whether the modules are loaded, and their device numbers */
	{ "/proc/modules", READ },
	{ "/proc/devices", READ },
	{ "/sys/module/nvidia*", READ },
	/* its own maps, status and memory; the host's processors, memory and nodes; where GPUs are */
	{ "/proc/self", READ },
	{ "/proc/cpuinfo", READ },
	{ "/proc/meminfo", READ },
	{ "/proc/sys/vm", READ },
	{ "/sys/devices", READ },
	{ "/sys/bus/pci", READ },
	/* not nvidia-modeset (displays), nor nvidia-caps-imex-channels (memory of other hosts) */
	{ "/dev/nvidia[0-9]*", READ | WRITE },
	{ "/dev/nvidiactl", READ | WRITE },
	{ "/dev/nvidia-uvm", READ | WRITE },
	{ "/dev/nvidia-uvm-tools", READ | WRITE }, /* since driver 570 */
	{ "/dev/nvidia-caps", READ },
};

/*
 * task/TID/comm: a thread is named by another that writes there, and cuInit() of driver 570 gives
 * up if it cannot. As the process is not dumpable the other files there are root's, but for those
 * that anybody may write of himself (attr/).
 */
#define TASKS "/proc/self/task"

static long landlock_abi(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
}

bool landlock_works(void)
{
	return landlock_abi() >= 1;
}

static size_t ruleset_for(long abi, struct ruleset *ret_rules)
{
	*ret_rules = (struct ruleset){ .fs = FS_ABI_1 };
	if (abi >= 2)
		ret_rules->fs |= REFER;
	if (abi >= 3)
		ret_rules->fs |= TRUNCATE;
	ret_rules->net = abi >= 4 ? 3 : 0;    /* bind and connect of TCP */
	ret_rules->scoped = abi >= 6 ? 3 : 0; /* abstract sockets and signals */
	if (abi >= 6)
		return sizeof(*ret_rules);
	return abi >= 4 ? offsetof(struct ruleset, scoped) : offsetof(struct ruleset, net);
}

/* Everything that the ruleset handles is denied where no rule allows it. Return: an fd or -errno. */
static int ruleset_new(struct ruleset *ret_rules)
{
	long abi = landlock_abi();
	int fd;

	if (abi < 0)
		return -errno;
	fd = (int)syscall(SYS_landlock_create_ruleset, ret_rules, ruleset_for(abi, ret_rules), 0);
	return fd < 0 ? -errno : fd;
}

static int restrict_self(int fd)
{
	return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}

static int allow_fd(int ruleset, const struct ruleset *rules, int fd, uint64_t rights)
{
	struct beneath rule = { rights & rules->fs, fd };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.allowed &= OF_FILES;
	return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno
											: 0;
}

static int allow_place(int ruleset, const struct ruleset *rules, const struct place *place)
{
	glob_t found;
	int r = 0;

	if (glob(place->pattern, GLOB_NOSORT, NULL, &found) != 0)
		return 0; /* nothing there; also when memory was short: then it is not allowed */
	for (size_t i = 0; r == 0 && i < found.gl_pathc; i++) {
		_cleanup_fd_ int fd = open(found.gl_pathv[i], O_PATH | O_CLOEXEC);

		if (fd >= 0)
			r = allow_fd(ruleset, rules, fd, place->rights);
	}
	globfree(&found);
	return r;
}

int landlock_deny(void)
{
	struct ruleset rules = { 0 };
	_cleanup_fd_ int fd = ruleset_new(&rules);

	return fd < 0 ? fd : restrict_self(fd);
}

/* A rule holds for an inode, and /proc makes another if it forgets the entry: an open fd keeps it. */
static int allow_names(int ruleset, const struct ruleset *rules, int *ret_pin)
{
	_cleanup_fd_ int fd = open(TASKS, O_PATH | O_CLOEXEC);
	int r = fd < 0 ? -errno : allow_fd(ruleset, rules, fd, WRITE);

	if (r == 0) {
		*ret_pin = fd;
		fd = -1;
	}
	return r;
}

int landlock_allow_cuda(int *ret_pin)
{
	struct ruleset rules = { 0 };
	_cleanup_fd_ int fd = ruleset_new(&rules);
	_cleanup_fd_ int pin = -1;
	int r = fd < 0 ? fd : 0;

	for (size_t i = 0; r == 0 && i < sizeof(places) / sizeof(places[0]); i++)
		r = allow_place(fd, &rules, &places[i]);
	if (r == 0)
		r = allow_names(fd, &rules, &pin);
	if (r == 0)
		r = restrict_self(fd);
	if (r == 0) {
		*ret_pin = pin;
		pin = -1;
	}
	return r;
}
