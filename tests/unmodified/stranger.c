/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that was never told about kvreg, and finds libibverbs as NCCL does: dlopen(3) with
 * RTLD_LOCAL and dlvsym(3). It registers private memory in the ways of real programs:
 *
 *	stranger one BYTES       registers and deregisters
 *	stranger threads BYTES   64 threads at once, BYTES each, all registered at the same time
 *	stranger parts BYTES     8 threads register overlapping parts and deregister; then all of it
 *	stranger fork BYTES      registers around forks; every child opens the device and registers
 *	stranger again BYTES     once a line of standard input, until "end"; a line each says how
 *	stranger hole BYTES      memory that is not there
 *	stranger readonly BYTES  memory that is mapped for reading
 *
 * It prints "ok" or what failed with its errno. The status is 0 or 1.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS  64
#define PARTS    8
#define CHILDREN 4
#define PAGE     4096u

static struct {
	struct ibv_device **(*get_device_list)(int *n);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *address, size_t length, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
} verbs;

static struct ibv_pd *pd;

static int failed(const char *what)
{
	printf("%s: %s\n", what, strerrorname_np(errno));
	fflush(stdout);
	return 1;
}

static int find(void *library, const char *name, void *ret_function)
{
	void *function = dlvsym(library, name, "IBVERBS_1.1");

	memcpy(ret_function, &function, sizeof(function));
	return function ? 0 : failed(name);
}

static int find_all(void)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return failed("dlopen");
	return find(library, "ibv_get_device_list", &verbs.get_device_list) ||
	       find(library, "ibv_open_device", &verbs.open_device) ||
	       find(library, "ibv_alloc_pd", &verbs.alloc_pd) ||
	       find(library, "ibv_reg_mr", &verbs.reg_mr) ||
	       find(library, "ibv_dereg_mr", &verbs.dereg_mr);
}

static int open_first(void)
{
	struct ibv_device **devices = verbs.get_device_list(NULL);
	struct ibv_context *context;

	if (!devices || !devices[0])
		return failed("ibv_get_device_list");
	context = verbs.open_device(devices[0]);
	pd = context ? verbs.alloc_pd(context) : NULL;
	return pd ? 0 : failed("ibv_open_device");
}

static char *memory(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static struct ibv_mr *reg(char *address, size_t size)
{
	return verbs.reg_mr(pd, address, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static int reg_dereg(char *address, size_t size)
{
	struct ibv_mr *mr = reg(address, size);

	if (!mr)
		return failed("ibv_reg_mr");
	return verbs.dereg_mr(mr) ? failed("ibv_dereg_mr") : 0;
}

static int one(size_t size)
{
	return reg_dereg(memory(size), size);
}

struct job {
	pthread_t thread;
	pthread_barrier_t *barrier;
	char *address;
	size_t size;
	int failed;
};

/* Registers at the same time as the others, and keeps it until all have theirs. */
static void *together(void *arg)
{
	struct job *job = arg;
	struct ibv_mr *mr;

	pthread_barrier_wait(job->barrier);
	mr = reg(job->address, job->size);
	job->failed = mr ? 0 : failed("ibv_reg_mr");
	pthread_barrier_wait(job->barrier);
	if (mr && verbs.dereg_mr(mr))
		job->failed = failed("ibv_dereg_mr");
	return NULL;
}

static int run(struct job *jobs, unsigned int n)
{
	pthread_barrier_t barrier;
	int bad = 0;

	pthread_barrier_init(&barrier, NULL, n);
	for (unsigned int i = 0; i < n; i++) {
		jobs[i].barrier = &barrier;
		if (pthread_create(&jobs[i].thread, NULL, together, &jobs[i]))
			exit(failed("pthread_create"));
	}
	for (unsigned int i = 0; i < n; i++) {
		pthread_join(jobs[i].thread, NULL);
		bad += jobs[i].failed;
	}
	return bad > 0;
}

static int threads(size_t size)
{
	struct job jobs[THREADS];

	for (unsigned int i = 0; i < THREADS; i++)
		jobs[i] = (struct job){ .address = memory(size), .size = size };
	return run(jobs, THREADS);
}

/* The habit of touching a large buffer by registering it in parallel (Mooncake). */
static int parts(size_t size)
{
	char *whole = memory(size);
	size_t part = size / PARTS;
	struct job jobs[PARTS];

	for (unsigned int i = 0; i < PARTS; i++)
		jobs[i] = (struct job){
			.address = whole + i * part,
			.size = i + 1 < PARTS ? part + PAGE : part,
		};
	return run(jobs, PARTS) || reg_dereg(whole, size);
}

static int child(size_t size)
{
	return open_first() || one(size) || one(2 * size);
}

static int around_forks(size_t size)
{
	struct ibv_mr *mr = reg(memory(size), size);
	int status, bad = 0;

	if (!mr)
		return failed("ibv_reg_mr before fork");
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(child(size));
		bad += one(size);
	}
	while (wait(&status) > 0)
		bad += status != 0;
	bad += one(size);
	return verbs.dereg_mr(mr) ? failed("ibv_dereg_mr") : bad > 0;
}

static int again(size_t size)
{
	char line[16];

	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
		if (one(size) == 0)
			puts("ok");
		fflush(stdout);
	}
	return 0;
}

static int hole(size_t size)
{
	char *address = memory(size);

	munmap(address, size);
	return reg_dereg(address, size);
}

static int read_only(size_t size)
{
	char *address = memory(size);

	mprotect(address, size, PROT_READ);
	return reg_dereg(address, size);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(size_t size);
	} ways[] = {
		{ "one", one },
		{ "threads", threads },
		{ "parts", parts },
		{ "fork", around_forks },
		{ "again", again },
		{ "hole", hole },
		{ "readonly", read_only },
	};
	size_t size = argc == 3 ? strtoull(argv[2], NULL, 0) : 0;

	if (!size || find_all() || open_first())
		return 1;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, argv[1]) != 0)
			continue;
		if (ways[i].run(size))
			return 1;
		puts("ok");
		return 0;
	}
	return 1;
}
