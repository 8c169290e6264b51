/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A call that is let by if its arguments are as the comparisons say. Several of one call: or. */
struct rule {
	int call;
	unsigned int n;
	struct scmp_arg_cmp when[2];
};

/* clang-format off */
#define ANY(name)                 { SCMP_SYS(name), 0, { { 0 } } }
#define IF(name, ...)             { SCMP_SYS(name), 1, { __VA_ARGS__ } }
#define IF_BOTH(name, ...)        { SCMP_SYS(name), 2, { __VA_ARGS__ } }
#define IS(arg, value)            { arg, SCMP_CMP_EQ, value, 0 }
#define MASKED(arg, mask, value)  { arg, SCMP_CMP_MASKED_EQ, mask, value }
/* clang-format on */

/* In place of a value: this process's own number. */
#define SELF UINT64_MAX

static const struct rule narrow[] = {
	/* its sockets and pipe; an fd that came with a record */
	ANY(recvmsg),
	ANY(sendmsg),
	ANY(write),
	ANY(poll),
	ANY(ppoll),
	ANY(close),
	ANY(pread64),
	/* what a received fd is; statx takes a path too, but nothing can be opened by it */
	ANY(statx),
	ANY(fstat),
	ANY(fstatfs),
	IF(newfstatat, MASKED(3, AT_EMPTY_PATH, AT_EMPTY_PATH)), /* fstat() of newer libcs */
	IF(fcntl, IS(1, F_GETFD)),
	IF(fcntl, IS(1, F_GETFL)),
	IF(fcntl, IS(1, F_GET_SEALS)),
	IF(ioctl, IS(1, RDMA_VERBS_IOCTL)),
	/* mappings and memory of its own; mlock and mremap are the mock device's */
	IF(mmap, MASKED(2, PROT_EXEC, 0)), /* nothing that was written can be run */
	ANY(munmap),
	ANY(mremap),
	ANY(madvise),
	ANY(brk),
	ANY(mlock),
	/* who and when */
	ANY(getpid),
	ANY(gettid),
	ANY(getuid),
	ANY(getrlimit),
	IF_BOTH(prlimit64, IS(0, 0), IS(2, 0)), /* getrlimit(): of this process, nothing set */
	ANY(clock_gettime),
	ANY(getrandom),
	IF(prctl, IS(0, PR_SET_NAME)),
	/* libc: waiting, signals to itself, the end */
	ANY(futex),
	ANY(restart_syscall),
	ANY(rt_sigreturn),
	ANY(rt_sigprocmask),
	ANY(rt_sigaction),
	IF(tgkill, IS(0, SELF)), /* abort() */
	ANY(exit),
	ANY(exit_group),
};

/* Of clone(): a thread, in no namespace of its own, traced by nobody. */
#define THREAD_FLAGS                                                                               \
	((uint32_t)(CLONE_THREAD | CLONE_PTRACE | CLONE_UNTRACED | CLONE_PARENT | CLONE_PIDFD |    \
		    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |  \
		    CLONE_NEWPID | CLONE_NEWNET))

/*
 * What libcuda.so.1 is known to call: from traces of cuInit() that others published and from what
 * stopped it in their sandboxes (a refused memfd_create, thread name or /dev/nvidia-uvm-tools ends
 * in CUDA error 304). It has not been run on a GPU yet. What its traces show and is not here, it
 * does without: it tries to make device files and links in /dev, and to connect to an MPS daemon.
 */
static const struct rule cuda[] = {
	/* dlopen, and files: which ones is Landlock's to say; neither hides names and attributes */
	ANY(open),
	ANY(openat),
	ANY(read),
	ANY(lseek),
	ANY(getdents64), /* /sys/devices/system/node, /proc/driver/nvidia/gpus */
	ANY(stat),
	ANY(lstat),
	ANY(newfstatat),
	ANY(access),
	ANY(faccessat),
	ANY(faccessat2),
	ANY(readlink), /* /proc/self/exe, /sys/bus/pci/devices */
	ANY(readlinkat),
	/* code: of libraries, which the dynamic loader maps and relocates */
	ANY(mmap),
	ANY(mprotect),
	/*
	 * The devices' own: 'F' is the magic of /dev/nvidia[0-9] and nvidiactl; nvidia-uvm numbers
	 * its calls from 0 and from 0x30000000. Not any number: FIOSETOWN and FIOASYNC on a socket
	 * would send SIGIO, which kills, to another session of the same user.
	 */
	IF(ioctl, MASKED(1, 0xff00, 0x4600)),
	IF(ioctl, MASKED(1, 0xffffff00, 0)),
	IF(ioctl, MASKED(1, 0xffffff00, 0x30000000)),
	/* F_SETOWN and O_ASYNC are not among these for the same reason */
	IF(fcntl, IS(1, F_SETFD)),
	IF(fcntl, IS(1, F_DUPFD)),
	IF(fcntl, IS(1, F_DUPFD_CLOEXEC)),
	IF(fcntl, IS(1, F_ADD_SEALS)),
	IF_BOTH(fcntl, IS(1, F_SETFL), MASKED(2, O_ASYNC, 0)),
	/* memory and events that its threads share; memfd_create is fatal to cuInit if refused */
	ANY(memfd_create),
	ANY(ftruncate),
	ANY(eventfd2),
	ANY(pipe),
	ANY(pipe2),
	ANY(dup),
	/* its threads; clone3's flags are in memory, out of sight: see filter_new() */
	IF(clone, MASKED(0, THREAD_FLAGS, CLONE_THREAD)),
	ANY(set_robust_list),
	ANY(rseq),
	ANY(sigaltstack),
	ANY(sched_yield),
	IF(sched_getaffinity, IS(0, 0)),
	IF(sched_getaffinity, IS(0, SELF)),
	IF(sched_setaffinity, IS(0, 0)), /* the calling thread; of others it cannot be told whose */
	/* what it asks of the host and the clock */
	ANY(uname),
	ANY(sysinfo),
	ANY(geteuid),
	ANY(getgid),
	ANY(getegid),
	ANY(gettimeofday),
	ANY(time),
	ANY(clock_getres),
	ANY(nanosleep),
	ANY(clock_nanosleep),
	/* ours, to become narrow: they take, and never give */
	ANY(landlock_create_ruleset),
	ANY(landlock_restrict_self),
	IF_BOTH(seccomp, IS(0, SECCOMP_SET_MODE_FILTER), IS(1, 0)),
};

static int add(scmp_filter_ctx filter, const struct rule *rules, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct scmp_arg_cmp when[2];

		memcpy(when, rules[i].when, sizeof(when));
		for (unsigned int j = 0; j < rules[i].n; j++)
			if (when[j].datum_a == SELF)
				when[j].datum_a = (scmp_datum_t)getpid();
		r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, rules[i].n, when);
	}
	return r;
}

scmp_filter_ctx filter_new(enum filter which)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = filter ? 0 : -ENOMEM;

	/* The process has set no_new_privs itself; a wide filter would refuse it to the next. */
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	if (r == 0)
		r = add(filter, narrow, sizeof(narrow) / sizeof(narrow[0]));
	if (r == 0 && which == FILTER_WIDE)
		r = add(filter, cuda, sizeof(cuda) / sizeof(cuda[0]));
	/* libc then makes its threads by clone(). */
	if (r == 0 && which == FILTER_WIDE)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* A binary tree instead of a list: the calls of a registration are not at its end. */
	if (r == 0)
		(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		return filter;
	seccomp_release(filter);
	return NULL;
}

int filter_load(enum filter which)
{
	scmp_filter_ctx filter = filter_new(which);
	int r = filter ? seccomp_load(filter) : -ENOMEM;

	seccomp_release(filter);
	return r;
}
