/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/procfs.h"

#ifdef KVREG_NO_FILTER

static int deny_files(void)
{
	return 0;
}

static int filter_calls(void)
{
	return 0;
}

#else

/* ---- Landlock (no libc wrappers; newer rights than Debian 12's headers know) ---- */

/* struct landlock_ruleset_attr of ABI 6; older kernels are told a smaller size. */
struct ruleset {
	uint64_t fs;     /* ABI 1 */
	uint64_t net;    /* ABI 4 */
	uint64_t scoped; /* ABI 6 */
};

#define LANDLOCK_VERSION 1u /* LANDLOCK_CREATE_RULESET_VERSION */

static size_t ruleset_for(long abi, struct ruleset *ret_rules)
{
	/* Bits 0-12 are ABI 1; then REFER (2), TRUNCATE (3), IOCTL_DEV (5, which we need). */
	*ret_rules = (struct ruleset){ .fs = 0x1fff };
	if (abi >= 2)
		ret_rules->fs |= 1u << 13;
	if (abi >= 3)
		ret_rules->fs |= 1u << 14;
	ret_rules->net = abi >= 4 ? 3 : 0;    /* bind and connect of TCP */
	ret_rules->scoped = abi >= 6 ? 3 : 0; /* abstract sockets and signals */
	if (abi >= 6)
		return sizeof(*ret_rules);
	return abi >= 4 ? offsetof(struct ruleset, scoped) : offsetof(struct ruleset, net);
}

/* No rule is added: everything that the ruleset handles is denied. */
static int deny_files(void)
{
	struct ruleset rules;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);
	int fd, r;

	if (abi < 1)
		return 0; /* not in this kernel, or switched off: the filter alone has to do */
	fd = (int)syscall(SYS_landlock_create_ruleset, &rules, ruleset_for(abi, &rules), 0);
	if (fd < 0)
		return -errno;
	r = syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* ---- seccomp ---- */

static const int plain[] = {
	/* its sockets and pipe; an fd that came with a record */
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendmsg),
	SCMP_SYS(write),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(close),
	SCMP_SYS(pread64),
	/* what a received fd is */
	SCMP_SYS(statx),
	SCMP_SYS(fstat),
	SCMP_SYS(fstatfs),
	/* mappings and memory of its own; mlock and mremap are the mock device's */
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(mlock),
	/* who and when */
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(getrlimit),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(getrandom),
	/* libc: waiting, signals to itself, the end */
	SCMP_SYS(futex),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* Calls whose first or another argument decides. */
static int add_conditional(scmp_filter_ctx filter)
{
	static const int fcntls[] = { F_GETFD, F_GETFL, F_GET_SEALS };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(fcntls) / sizeof(fcntls[0]); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
				     SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)fcntls[i]));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_EQ, RDMA_VERBS_IOCTL));
	/* Nothing that was written can be run. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	/* fstat() of newer libcs; statx() above takes a path too, but nothing can be opened by it.
	 */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
				     SCMP_A3(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH));
	/* getrlimit(): of this process, and nothing set. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2,
				     SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
				     SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
	/* abort() */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	return r;
}

static int filter_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < sizeof(plain) / sizeof(plain[0]); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, plain[i], 0);
	if (r == 0)
		r = add_conditional(filter);
	/* A binary tree instead of a list: the calls of a registration are not at its end. */
	if (r == 0)
		(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

#endif

/* The leak check of a sanitizer build reads /proc/self, which is then root's. */
#ifdef __SANITIZE_ADDRESS__
#define DUMPABLE 1
#else
#define DUMPABLE 0
#endif

int confine(void)
{
	struct proc_status status;
	int r;

	r = proc_status(0, &status);
	if (r < 0)
		return r;
	if (status.cap_eff | status.cap_prm | status.cap_inh | status.cap_amb)
		return -EPERM;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, DUMPABLE, 0, 0, 0) < 0)
		return -errno;
	r = deny_files();
	return r < 0 ? r : filter_calls();
}
