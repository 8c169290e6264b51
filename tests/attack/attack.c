/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that runs its attacker's code: what whoever owns a session could try. The linker puts
 * it around handle_import_buffer() (--wrap), so that the program is otherwise the real one,
 * confined as the real one. A buffer labelled "attack:NAME:NUMBER" runs that attack; the refusal
 * tells what the kernel said. Never installed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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

static long signal_it(long pid)
{
	return kill((pid_t)pid, SIGSTOP);
}

static long signal_all(long pid)
{
	(void)pid;
	return kill(-1, 0);
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
	{ "open", open_file },     { "fd", open_fd_of },          { "kill", signal_it },
	{ "killall", signal_all }, { "ptrace", trace_it },        { "memory", write_memory },
	{ "prlimit", limit_it },   { "memlock", raise_limit },    { "exec", run_program },
	{ "mmap", run_bytes },     { "mprotect", protect_bytes }, { "socket", make_socket },
	{ "fork", make_process },  { "setuid", become_root },     { "userns", new_namespace },
	{ "getfd", take_fd },      { "nice", slow_down },         { "dumpable", be_dumpable },
	{ "ioctl", other_ioctl },  { "held", say_held },
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
