/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that runs its attacker's code: what attacks.def lists. The linker puts it around
 * handle_import_buffer() (--wrap), so that the program is otherwise the real one, confined as the
 * real one. A buffer labelled "attack:NAME:NUMBER" runs that attack; the refusal tells what the
 * kernel said. Never installed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/session/dispatch.h"
#include "proto/session-fds.h"

handler_fn __real_handle_import_buffer, __wrap_handle_import_buffer;

static long open_file(long pid)
{
	(void)pid;
	return open("/etc/passwd", O_RDONLY);
}

static long open_fd_of(long pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/fd/%d", pid, SESSION_FD_UP);
	return open(path, O_WRONLY);
}

/* The first that opens, or that fails for any other reason than that it is not allowed. */
static long open_places(long pid)
{
	static const char *const places[] = { "/",    "/etc",     "/run",    "/home", "/tmp",
					      "/var", "/dev/shm", "/sys/fs", "/proc", "/dev/null" };

	(void)pid;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int fd = open(places[i], O_RDONLY);

		if (fd >= 0 || (errno != EPERM && errno != EACCES && errno != ENOENT))
			return fd;
	}
	return -1;
}

static long create_file(long pid)
{
	(void)pid;
	return open("/tmp/kvreg-attack", O_WRONLY | O_CREAT, 0600);
}

static long open_status_of(long pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/status", pid);
	return open(path, O_RDONLY);
}

static long open_library(long pid)
{
	(void)pid;
	return open("/etc/ld.so.cache", O_RDONLY);
}

static long open_device(long pid)
{
	(void)pid;
	return open("/dev/nvidia0", O_RDWR);
}

static long signal_it(long pid)
{
	return kill((pid_t)pid, SIGSTOP);
}

static long signal_all(long pid)
{
	(void)pid;
	return kill(-1, 0);
}

static long signal_thread(long pid)
{
	return syscall(SYS_tgkill, pid, pid, SIGSTOP);
}

static long trace_it(long pid)
{
	return ptrace(PTRACE_SEIZE, (pid_t)pid, NULL, NULL);
}

static long write_memory(long pid)
{
	char byte = 0;
	struct iovec here = { &byte, 1 }, there = { (void *)write_memory, 1 };

	return process_vm_writev((pid_t)pid, &here, 1, &there, 1, 0);
}

static long limit_it(long pid)
{
	const struct rlimit none = { 0, 0 };

	return prlimit((pid_t)pid, RLIMIT_NOFILE, &none, NULL);
}

static long raise_limit(long pid)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	(void)pid;
	return setrlimit(RLIMIT_MEMLOCK, &all);
}

static long run_program(long pid)
{
	char *argv[] = { "true", NULL };

	(void)pid;
	return execv("/bin/true", argv);
}

static long run_bytes(long pid)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)pid;
	return p == MAP_FAILED ? -1 : 0;
}

static long protect_bytes(long pid)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)pid;
	return mprotect(p, 4096, PROT_READ | PROT_EXEC);
}

static long make_socket(long pid)
{
	(void)pid;
	return socket(AF_UNIX, SOCK_SEQPACKET, 0);
}

static long make_process(long pid)
{
	(void)pid;
	return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}

static long make_process_anew(long pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	(void)pid;
	return syscall(SYS_clone3, &args, sizeof(args));
}

static long load_library(long pid)
{
	(void)pid;
	if (dlopen("libresolv.so.2", RTLD_NOW))
		return 0;
	errno = EPERM; /* dlopen() says what was wrong in words only */
	return -1;
}

static void *run_thread(void *end)
{
	char byte;

	(void)!read(*(int *)end, &byte, 1);
	return NULL;
}

/* Starts a thread, names it if there is a name, and waits for its end. */
static long with_thread(const char *name)
{
	int ends[2] = { -1, -1 }, r;
	pthread_t thread;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	r = pthread_create(&thread, NULL, run_thread, &ends[0]);
	if (r == 0) {
		if (name)
			r = pthread_setname_np(thread, name);
		close(ends[1]);
		pthread_join(thread, NULL);
	}
	errno = r;
	return r == 0 ? 0 : -1;
}

static long make_thread(long pid)
{
	(void)pid;
	return with_thread(NULL);
}

static long name_thread(long pid)
{
	(void)pid;
	return with_thread("cuda-attack");
}

static long become_root(long pid)
{
	(void)pid;
	return setresuid(0, 0, 0);
}

static long new_namespace(long pid)
{
	(void)pid;
	return unshare(CLONE_NEWUSER);
}

static long take_fd(long pid)
{
	long pidfd = syscall(SYS_pidfd_open, pid, 0);

	return pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, SESSION_FD_UP, 0);
}

static long slow_down(long pid)
{
	return setpriority(PRIO_PROCESS, (id_t)pid, 19);
}

static long move_it(long pid)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	return sched_setaffinity((pid_t)pid, sizeof(first), &first);
}

static long own_signals(long pid)
{
	return fcntl(SESSION_FD_CLIENT, F_SETOWN, (int)pid);
}

static long own_signals_by_ioctl(long pid)
{
	int to = (int)pid;

	return syscall(SYS_ioctl, SESSION_FD_CLIENT, FIOSETOWN, &to);
}

static long ask_for_signals(long pid)
{
	(void)pid;
	return fcntl(SESSION_FD_CLIENT, F_SETFL, O_RDWR | O_ASYNC);
}

static long other_personality(long pid)
{
	(void)pid;
	return personality(ADDR_NO_RANDOMIZE);
}

static long connect_socket(long pid)
{
	const struct sockaddr_un address = { AF_UNIX, "/run/systemd/private" };

	(void)pid;
	return connect(SESSION_FD_CLIENT, (const struct sockaddr *)&address, sizeof(address));
}

static long share_memory(long pid)
{
	(void)pid;
	return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
}

static long add_key(long pid)
{
	(void)pid;
	return syscall(SYS_add_key, "user", "kvreg", "x", 1, -3 /* the session's keyring */);
}

static long make_ring(long pid)
{
	char params[256] = { 0 };

	(void)pid;
	return syscall(SYS_io_uring_setup, 1, params);
}

static long take_faults(long pid)
{
	(void)pid;
	return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
}

static long be_dumpable(long pid)
{
	(void)pid;
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static long other_ioctl(long pid)
{
	(void)pid;
	return syscall(SYS_ioctl, SESSION_FD_CLIENT, 0x5412, "x"); /* TIOCSTI */
}

/* No fault holds it there. */
static long say_held(long stage)
{
	Kvreg__Held held = KVREG__HELD__INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	uint8_t record[16];

	held.stage = (uint32_t)stage;
	up.body_case = KVREG__UP__BODY_HELD;
	up.held = &held;
	return write(SESSION_FD_UP, record, codec_pack(&up.base, record, sizeof(record)));
}

static const struct {
	const char *name;
	long (*run)(long pid);
} attacks[] = {
#define ATTACK(name, function, wide) { #name, function },
#include "attacks.def"
#undef ATTACK
	/* No attack on the kernel: words to the supervisor that only some may say. */
	{ "held", say_held },
};

int __wrap_handle_import_buffer(struct client *c, const Kvreg__Request *request, struct fdset *fds,
				struct answer *answer)
{
	char label[LABEL_MAX + 1], *name, *pid;

	text_clean(label, sizeof(label), request->import_buffer->label);
	if (strncmp(label, "attack:", 7) != 0)
		return __real_handle_import_buffer(c, request, fds, answer);
	name = strtok(label + 7, ":");
	pid = strtok(NULL, ":");
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(attacks[i].name, name ? name : "") != 0)
			continue;
		errno = 0;
		long r = attacks[i].run(pid ? strtol(pid, NULL, 10) : 0);
		return failure_set(&answer->failure, KVREG_E_UNKNOWN, KVREG_STAGE_IMPORT,
				   "attack %s: %s", name,
				   r < 0 ? strerrorname_np(errno) : "SUCCESS");
	}
	return failure_set(&answer->failure, KVREG_E_UNKNOWN, KVREG_STAGE_IMPORT, "no attack");
}
