/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two filters, as the kernel would run them: their programs are exported and interpreted here,
 * for every number of a system call and for arguments that a rule is about, in every pair of places.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/session/filter.h"

#ifdef __aarch64__
#define NATIVE AUDIT_ARCH_AARCH64
#else
#define NATIVE AUDIT_ARCH_X86_64
#endif

#define CALLS  600 /* above the last number that any kernel has given out */
#define PLACES 4   /* arguments that are varied */

/* What glibc's pthread_create() passes. */
#define PTHREAD_FLAGS                                                                              \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD |        \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

struct program {
	size_t n;
	struct sock_filter code[4096];
};

static struct program narrow, wide;

static void export(enum filter which, struct program *ret_program)
{
	scmp_filter_ctx filter = filter_new(which);
	int fd = memfd_create("program", MFD_CLOEXEC);
	ssize_t n;

	assert_non_null(filter);
	assert_int_equal(seccomp_export_bpf(filter, fd), 0);
	n = pread(fd, ret_program->code, sizeof(ret_program->code), 0);
	assert_true(n > 0 && (size_t)n < sizeof(ret_program->code));
	ret_program->n = (size_t)n / sizeof(ret_program->code[0]);
	close(fd);
	seccomp_release(filter);
}

static int set_up(void **state)
{
	(void)state;
	export(FILTER_NARROW, &narrow);
	export(FILTER_WIDE, &wide);
	return 0;
}

static bool holds(const struct sock_filter *op, uint32_t a)
{
	switch (BPF_OP(op->code)) {
	case BPF_JA:
		return true;
	case BPF_JEQ:
		return a == op->k;
	case BPF_JGT:
		return a > op->k;
	case BPF_JGE:
		return a >= op->k;
	default:
		assert_int_equal(BPF_OP(op->code), BPF_JSET);
		return (a & op->k) != 0;
	}
}

/* Return: the action, SECCOMP_RET_*. */
static uint32_t run(const struct program *p, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < p->n; pc++) {
		const struct sock_filter *op = &p->code[pc];

		switch (BPF_CLASS(op->code)) {
		case BPF_LD:
			assert_int_equal(op->code, BPF_LD | BPF_W | BPF_ABS);
			assert_true(op->k + sizeof(a) <= sizeof(*data));
			memcpy(&a, (const char *)data + op->k, sizeof(a));
			break;
		case BPF_ALU:
			assert_int_equal(op->code, BPF_ALU | BPF_AND | BPF_K);
			a &= op->k;
			break;
		case BPF_JMP:
			if (BPF_OP(op->code) == BPF_JA)
				pc += op->k;
			else
				pc += holds(op, a) ? op->jt : op->jf;
			break;
		default:
			assert_int_equal(BPF_CLASS(op->code), BPF_RET);
			return op->k;
		}
	}
	fail_msg("the program has no end");
	return SECCOMP_RET_KILL_PROCESS;
}

static uint32_t answer(const struct program *p, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const struct seccomp_data data = { .nr = nr, .arch = NATIVE, .args = { a0, a1, a2 } };

	return run(p, &data);
}

static bool allows(const struct program *p, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return answer(p, nr, a0, a1, a2) == SECCOMP_RET_ALLOW;
}

/* ---- all calls, all arguments of interest ---- */

/* clang-format off */
static const uint64_t values[] = {
	0, 1, 2, 3, 4, 5, 6, 8, F_SETSIG, F_SETOWN_EX, F_DUPFD_CLOEXEC, F_GET_SEALS, F_ADD_SEALS,
	O_ASYNC, O_NONBLOCK, AT_EMPTY_PATH, PROT_READ | PROT_EXEC, PR_SET_NAME, PR_SET_DUMPABLE,
	RDMA_VERBS_IOCTL, 0x4600, 0xc020462a, 0x25, 0x30000001, FIOSETOWN, FIOASYNC, SIGCHLD,
	PTHREAD_FLAGS, PTHREAD_FLAGS | CLONE_NEWUSER, UINT32_MAX, UINT64_MAX,
};
/* clang-format on */

/* Calls @visit with each. Return: how many it said true of. */
static size_t each(int nr, bool (*visit)(const struct seccomp_data *data))
{
	size_t n = 0;

	for (size_t i = 0; i < PLACES; i++)
		for (size_t j = i + 1; j < PLACES; j++)
			for (size_t k = 0; k < COUNT(values) * COUNT(values); k++) {
				struct seccomp_data data = { .nr = nr, .arch = NATIVE };

				data.args[i] = values[k / COUNT(values)];
				data.args[j] = values[k % COUNT(values)];
				n += visit(&data);
			}
	return n;
}

static bool narrow_allows(const struct seccomp_data *data)
{
	return run(&narrow, data) == SECCOMP_RET_ALLOW;
}

static bool wide_allows(const struct seccomp_data *data)
{
	return run(&wide, data) == SECCOMP_RET_ALLOW;
}

static bool only_narrow_allows(const struct seccomp_data *data)
{
	return narrow_allows(data) && !wide_allows(data);
}

static void what_narrow_allows_wide_allows_too(void **state)
{
	size_t some = 0;

	(void)state;
	for (int nr = 0; nr < CALLS; nr++) {
		some += each(nr, narrow_allows) > 0;
		if (each(nr, only_narrow_allows) > 0)
			fail_msg("system call %d", nr);
	}
	assert_true(some > 30);
}

/* Whatever the arguments. */
static void wide_is_closed(void **state)
{
	/* clang-format off */
	static const int never[] = {
		/* other programs and processes */
		SYS_execve, SYS_execveat, SYS_clone3, SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo,
		SYS_rt_tgsigqueueinfo, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
		SYS_process_madvise, SYS_kcmp, SYS_pidfd_open, SYS_pidfd_getfd,
		SYS_pidfd_send_signal, SYS_setrlimit, SYS_setpriority, SYS_ioprio_set,
		SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr, SYS_migrate_pages,
		SYS_move_pages, SYS_wait4, SYS_waitid,
		/* sockets, and what outlives a process */
		SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept,
		SYS_accept4, SYS_setsockopt, SYS_shmget, SYS_shmat, SYS_msgget, SYS_semget,
		SYS_mq_open, SYS_add_key, SYS_request_key, SYS_keyctl,
		/* who it is */
		SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid,
		SYS_setgroups, SYS_setfsuid, SYS_setfsgid, SYS_capset, SYS_setsid, SYS_setpgid,
		SYS_personality, SYS_unshare, SYS_setns,
		/* the file system, beside opening */
		SYS_openat2, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_truncate,
		SYS_unlinkat, SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_mkdirat, SYS_mknodat,
		SYS_fchmodat, SYS_fchmod, SYS_fchownat, SYS_fchown, SYS_utimensat, SYS_setxattr,
		SYS_chroot, SYS_pivot_root, SYS_mount, SYS_umount2, SYS_move_mount, SYS_open_tree,
		SYS_fsopen, SYS_fanotify_init, SYS_flock, SYS_chdir, SYS_fchdir,
		/* the kernel */
		SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup,
		SYS_io_uring_enter, SYS_io_uring_register, SYS_init_module, SYS_finit_module,
		SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_acct, SYS_syslog,
		SYS_quotactl, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_sethostname,
		SYS_vhangup,
#ifdef __x86_64__
		SYS_fork, SYS_vfork, SYS_unlink, SYS_rename, SYS_mkdir, SYS_mknod, SYS_chmod,
		SYS_chown, SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_creat,
		SYS_arch_prctl,
#endif
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < COUNT(never); i++)
		if (each(never[i], wide_allows) > 0)
			fail_msg("system call %d", never[i]);
	/* Added since: none is let by because nobody thought of it. */
	for (int nr = SYS_landlock_restrict_self + 1; nr < CALLS; nr++)
		assert_int_equal(each(nr, wide_allows), 0);
}

static void other_abis_are_not_served(void **state)
{
	struct seccomp_data data = { .nr = SYS_getpid, .arch = NATIVE };

	(void)state;
	assert_int_equal(run(&wide, &data), SECCOMP_RET_ALLOW);
	data.arch = AUDIT_ARCH_I386;
	assert_int_not_equal(run(&wide, &data), SECCOMP_RET_ALLOW);
	assert_int_not_equal(run(&narrow, &data), SECCOMP_RET_ALLOW);
#ifdef __x86_64__
	data.arch = NATIVE;
	data.nr = 0x40000000 | SYS_getpid; /* x32 */
	assert_int_not_equal(run(&wide, &data), SECCOMP_RET_ALLOW);
	assert_int_not_equal(run(&narrow, &data), SECCOMP_RET_ALLOW);
#endif
}

/* ---- single rules ---- */

static void narrow_opens_runs_and_forks_nothing(void **state)
{
	static const int calls[] = {
		SYS_openat, SYS_read,  SYS_mprotect, SYS_memfd_create,
		SYS_clone,  SYS_pipe2, SYS_seccomp,  SYS_landlock_restrict_self
	};

	(void)state;
	for (size_t i = 0; i < COUNT(calls); i++) {
		assert_int_equal(each(calls[i], narrow_allows), 0);
		assert_true(each(calls[i], wide_allows) > 0);
	}
	assert_true(allows(&narrow, SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE));
	assert_false(allows(&narrow, SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC));
	assert_true(allows(&wide, SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC));
	assert_int_equal(answer(&narrow, SYS_openat, 0, 0, 0), SECCOMP_RET_ERRNO | EPERM);
}

static void wide_makes_threads_and_no_process(void **state)
{
	static const uint64_t more[] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID,
					 CLONE_PTRACE,  CLONE_PIDFD, CLONE_PARENT };

	(void)state;
	assert_true(allows(&wide, SYS_clone, PTHREAD_FLAGS, 0, 0));
	assert_false(allows(&wide, SYS_clone, SIGCHLD, 0, 0));
	assert_false(allows(&wide, SYS_clone, PTHREAD_FLAGS & ~CLONE_THREAD, 0, 0));
	for (size_t i = 0; i < COUNT(more); i++)
		assert_false(allows(&wide, SYS_clone, PTHREAD_FLAGS | more[i], 0, 0));
	assert_int_equal(answer(&wide, SYS_clone3, 0, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
}

static void wide_sends_no_signal_by_a_socket(void **state)
{
	static const int asks[] = { F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE, F_NOTIFY };

	(void)state;
	for (size_t i = 0; i < COUNT(asks); i++)
		assert_false(allows(&wide, SYS_fcntl, 3, (uint64_t)asks[i], 1));
	assert_false(allows(&wide, SYS_fcntl, 3, F_SETFL, O_RDWR | O_ASYNC));
	assert_true(allows(&wide, SYS_fcntl, 3, F_SETFL, O_RDWR | O_NONBLOCK));
	assert_false(allows(&wide, SYS_ioctl, 3, FIOSETOWN, 1));
	assert_false(allows(&wide, SYS_ioctl, 3, SIOCSPGRP, 1));
	assert_false(allows(&wide, SYS_ioctl, 3, FIOASYNC, 1));
}

/* NV_ESC_RM_CONTROL and others of nvidiactl and nvidia0; UVM_REGISTER_GPU, ..., UVM_INITIALIZE. */
static void ioctls_are_those_of_rdma_and_of_gpus(void **state)
{
	static const uint64_t gpu[] = {
		0xc020462a, 0xc030462b, 0xc00446c9, 0x25, 0x4b, 0x30000001
	};

	(void)state;
	for (size_t i = 0; i < COUNT(gpu); i++) {
		assert_true(allows(&wide, SYS_ioctl, 3, gpu[i], 0));
		assert_false(allows(&narrow, SYS_ioctl, 3, gpu[i], 0));
	}
	assert_true(allows(&narrow, SYS_ioctl, 3, RDMA_VERBS_IOCTL, 0));
	assert_false(allows(&wide, SYS_ioctl, 3, TIOCSTI, 0));
	assert_false(allows(&wide, SYS_ioctl, 3, 0x40004601 | 0x100, 0));
}

static void only_this_process_is_touched(void **state)
{
	uint64_t self = (uint64_t)getpid(), other = self + 1;

	(void)state;
	assert_true(allows(&narrow, SYS_tgkill, self, self, SIGABRT));
	assert_false(allows(&narrow, SYS_tgkill, other, other, SIGABRT));
	assert_false(allows(&wide, SYS_tgkill, other, other, SIGABRT));
	assert_true(allows(&wide, SYS_sched_getaffinity, self, 0, 0));
	assert_false(allows(&wide, SYS_sched_getaffinity, other, 0, 0));
	assert_true(allows(&wide, SYS_sched_setaffinity, 0, 0, 0));
	assert_false(allows(&wide, SYS_sched_setaffinity, other, 0, 0));
	assert_true(allows(&wide, SYS_prlimit64, 0, 7, 0));
	assert_false(allows(&wide, SYS_prlimit64, 0, 7, 1));
	assert_false(allows(&wide, SYS_prlimit64, other, 7, 0));
	assert_false(allows(&wide, SYS_prctl, PR_SET_DUMPABLE, 1, 0));
	assert_false(allows(&wide, SYS_prctl, PR_SET_PTRACER, other, 0));
}

/* A wide session can only add filters, and ask for no listener that would answer in its place. */
static void wide_can_become_narrow(void **state)
{
	(void)state;
	assert_true(allows(&wide, SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 1));
	assert_false(allows(&wide, SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, 1));
	assert_false(allows(&wide, SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0));
	assert_true(allows(&wide, SYS_landlock_restrict_self, 3, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_narrow_allows_wide_allows_too),
		cmocka_unit_test(wide_is_closed),
		cmocka_unit_test(other_abis_are_not_served),
		cmocka_unit_test(narrow_opens_runs_and_forks_nothing),
		cmocka_unit_test(wide_makes_threads_and_no_process),
		cmocka_unit_test(wide_sends_no_signal_by_a_socket),
		cmocka_unit_test(ioctls_are_those_of_rdma_and_of_gpus),
		cmocka_unit_test(only_this_process_is_touched),
		cmocka_unit_test(wide_can_become_narrow),
	};
	int fds = open_fds(), failed = cmocka_run_group_tests(tests, set_up, NULL);

	return failed || open_fds() != fds;
}
