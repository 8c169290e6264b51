/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client with memlock leases, driven like worker.c: a line a command, a line an answer. It
 * registers private memory itself, and makes children that try to keep what is not theirs.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <kvreg-client.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/ctl/loopback.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct leaser {
	struct loopback lb;
	struct kvreg *k;
	struct kvreg_lease *lease;
	struct ibv_mr *kept;
	void *locked;
	size_t lock_size;
};

static int done(int r)
{
	char text[2048];

	if (r == 0) {
		printf("ok\n");
		return 0;
	}
	kvreg_error_text(kvreg_last_error(), text, sizeof(text));
	printf("error errno=%s code=%s %s\n", strerrorname_np(-r),
	       kvreg_error_name(kvreg_last_error()), text);
	return 0;
}

static int failed(int r)
{
	return done(r);
}

static int failed_errno(int r)
{
	printf("error errno=%s %s\n", strerrorname_np(-r), strerror(-r));
	return 0;
}

static int do_open(struct leaser *w, char **args)
{
	(void)args;
	return done(kvreg_open(NULL, &w->k));
}

static int do_close(struct leaser *w, char **args)
{
	(void)args;
	kvreg_close(w->k);
	return done(0);
}

static int do_device(struct leaser *w, char **args)
{
	int r = loopback_open(&w->lb, NULL);

	(void)args;
	return r < 0 ? failed_errno(r) : done(0);
}

/* keep BYTES: private memory, registered by ibv_reg_mr, stays so. */
static int do_keep(struct leaser *w, char **args)
{
	size_t size = strtoull(args[0], NULL, 0);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	if (memory == MAP_FAILED)
		return failed_errno(-errno);
	errno = 0;
	mr = ibv_reg_mr(w->lb.pd, memory, size, ACCESS);
	if (mr) {
		w->kept = mr;
		return done(0);
	}
	printf("error errno=%s ibv_reg_mr\n", strerrorname_np(errno));
	munmap(memory, size);
	return 0;
}

static int do_unkeep(struct leaser *w, char **args)
{
	void *memory = w->kept->addr;
	size_t size = w->kept->length;

	(void)args;
	ibv_dereg_mr(w->kept);
	munmap(memory, size);
	return done(0);
}

/* lock BYTES, unlock: mlock(2), which has a counter of its own. */
static int do_lock(struct leaser *w, char **args)
{
	w->lock_size = strtoull(args[0], NULL, 0);
	w->locked = mmap(NULL, w->lock_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	return mlock(w->locked, w->lock_size) < 0 ? failed_errno(-errno) : done(0);
}

static int do_unlock(struct leaser *w, char **args)
{
	(void)args;
	munmap(w->locked, w->lock_size);
	return done(0);
}

/* lease BYTES */
static int do_lease(struct leaser *w, char **args)
{
	int r = kvreg_lease_memlock(w->k, strtoull(args[0], NULL, 0), NULL, &w->lease);

	if (r < 0)
		return failed(r);
	printf("ok limit=%" PRIu64 " bytes=%" PRIu64 "\n", kvreg_lease_limit(w->lease),
	       kvreg_lease_bytes(w->lease));
	return 0;
}

static int do_endlease(struct leaser *w, char **args)
{
	(void)args;
	return done(kvreg_lease_end(w->lease));
}

/* held BYTES [PROCESSES] */
static int do_held(struct leaser *w, char **args)
{
	struct kvreg_lease_options options = { .size = sizeof(options), .held = 1 };
	struct kvreg_lease *lease;
	int r;

	options.processes = (uint32_t)strtoul(args[1], NULL, 0);
	r = kvreg_lease_memlock(w->k, strtoull(args[0], NULL, 0), &options, &lease);
	if (r < 0)
		return failed(r);
	printf("ok limit=%" PRIu64 " bytes=%" PRIu64 "\n", kvreg_lease_limit(lease),
	       kvreg_lease_bytes(lease));
	return 0;
}

static int do_limit(struct leaser *w, char **args)
{
	struct rlimit limit;

	(void)w;
	(void)args;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	printf("ok soft=%" PRIu64 " hard=%" PRIu64 "\n", (uint64_t)limit.rlim_cur,
	       (uint64_t)limit.rlim_max);
	return 0;
}

/* evade [leases]: a child of a child, whose parent is gone, and which has lowered its limit by two
 * pages. */
static void evade(int out, bool leases)
{
	struct kvreg_lease *lease;
	struct rlimit limit;
	struct kvreg *k;
	pid_t pid;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	limit.rlim_cur = limit.rlim_max = limit.rlim_max / 4096 * 4096 - 8192;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	setsid();
	/* Who has a lease of his own is left alone by others' sweeps. */
	if (leases && (kvreg_open(NULL, &k) < 0 || kvreg_lease_memlock(k, 4096, NULL, &lease) < 0 ||
		       kvreg_lease_end(lease) < 0))
		_exit(1);
	pid = getpid();
	if (write(out, &pid, sizeof(pid)) < 0)
		_exit(1);
	close(0);
	close(1);
	for (;;)
		pause();
}

static int do_evade(struct leaser *w, char **args)
{
	int ends[2];
	pid_t pid;

	(void)w;
	if (pipe(ends) < 0)
		return failed_errno(-errno);
	pid = fork();
	if (pid == 0) {
		if (fork() == 0)
			evade(ends[1], args[0][0]);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	if (read(ends[0], &pid, sizeof(pid)) != sizeof(pid))
		return failed_errno(-EIO);
	printf("ok pid=%d\n", pid);
	return 0;
}

/* lockchild BYTES: a child that has locked so much, and does nothing. */
static int do_lockchild(struct leaser *w, char **args)
{
	size_t size = strtoull(args[0], NULL, 0);
	int ends[2], r = 0;
	pid_t pid;

	(void)w;
	if (pipe(ends) < 0)
		return failed_errno(-errno);
	pid = fork();
	if (pid == 0) {
		void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);

		r = mlock(memory, size) < 0 ? -errno : 0;
		if (write(ends[1], &r, sizeof(r)) < 0)
			_exit(1);
		close(0);
		close(1);
		for (;;)
			pause();
	}
	if (read(ends[0], &r, sizeof(r)) != sizeof(r) || r < 0)
		return failed_errno(r < 0 ? r : -EIO);
	printf("ok pid=%d\n", pid);
	return 0;
}

static int do_fork(struct leaser *w, char **args)
{
	pid_t pid = fork();

	(void)w;
	(void)args;
	if (pid == 0) {
		close(0);
		close(1);
		for (;;)
			pause();
	}
	printf("ok pid=%d\n", pid);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct leaser *w, char **args);
} commands[] = {
	{ "open", do_open },         { "close", do_close },         { "device", do_device },
	{ "keep", do_keep },         { "unkeep", do_unkeep },       { "lease", do_lease },
	{ "endlease", do_endlease }, { "held", do_held },           { "limit", do_limit },
	{ "lock", do_lock },         { "unlock", do_unlock },       { "evade", do_evade },
	{ "fork", do_fork },         { "lockchild", do_lockchild },
};

static int run(struct leaser *w, char *line)
{
	char *words[4] = { "", "", "", "" }, *word = strtok(line, " \n");

	for (size_t i = 0; word && i < 4; i++, word = strtok(NULL, " \n"))
		words[i] = word;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, words[0]) == 0)
			return commands[i].run(w, words + 1);
	printf("error no such command: %s\n", words[0]);
	return 0;
}

int main(void)
{
	static struct leaser w;
	char line[256];

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin))
		run(&w, line);
	return 0;
}
