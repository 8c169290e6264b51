/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd CLIENTS UIDS REGIONS KILLED: many clients of many uids at once, each with several regions;
 * some are killed at random; every survivor then moves bytes through each of its regions by RDMA
 * WRITE and READ and compares them. Prints one line; the status says whether all survivors did.
 */
#include <err.h>
#include <grp.h>
#include <infiniband/verbs.h>
#include <kvreg-client.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/ctl/loopback.h"

#define FIRST_UID 20000u
#define SIZE      32768u
#define ACCESS    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct member {
	struct loopback lb;
	struct kvreg *k;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region **regions;
	uint8_t *memory;
	size_t n;
};

static void need(int ok, const char *what)
{
	char text[1024];

	if (ok)
		return;
	kvreg_error_text(kvreg_last_error(), text, sizeof(text));
	errx(1, "%s: %s", what, text);
}

static void join(struct member *m)
{
	void *memory;

	need(loopback_open(&m->lb, NULL) == 0 && loopback_connect(&m->lb) == 0, m->lb.problem);
	need(kvreg_open(NULL, &m->k) == 0, "open");
	need(kvreg_attach_pd(m->k, m->lb.pd, &m->domain) == 0, "attach");
	need(kvreg_buffer_alloc(m->k, m->n * SIZE, 0, &memory, &m->buffer) == 0, "alloc");
	m->memory = memory;
	for (size_t i = 0; i < m->n; i++)
		need(kvreg_register(m->domain, m->buffer, i * SIZE, SIZE, 0, ACCESS, NULL,
				    &m->regions[i]) == 0,
		     "register");
}

static void move(struct member *m, size_t i)
{
	uint64_t at = kvreg_iova(m->regions[i]), half = SIZE / 2;
	uint8_t *a = m->memory + i * SIZE, *b = a + half;
	struct transfer t = { at, at + half, half, kvreg_lkey(m->regions[i]),
			      kvreg_rkey(m->regions[i]) };

	for (size_t n = 0; n < half; n++)
		a[n] = (uint8_t)(n * 7 + i + (size_t)getpid());
	memset(b, 0, half);
	need(loopback_move(&m->lb, IBV_WR_RDMA_WRITE, &t) == 0, m->lb.problem);
	need(memcmp(a, b, half) == 0, "the bytes of a WRITE");
	memset(a, 0, half);
	need(loopback_move(&m->lb, IBV_WR_RDMA_READ, &t) == 0, m->lb.problem);
	need(memcmp(a, b, half) == 0, "the bytes of a READ");
}

/* Says on @ready that it has its regions; the end of @go is the word to use them. */
static int be_a_member(uid_t uid, size_t n, int ready, int go)
{
	struct member m = { .n = n, .regions = calloc(n, sizeof(struct kvreg_region *)) };
	char byte;

	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		err(1, "uid");
	join(&m);
	if (write(ready, "r", 1) != 1 || read(go, &byte, 1) != 0)
		return 1;
	for (size_t i = 0; i < n; i++)
		move(&m, i);
	kvreg_close(m.k);
	loopback_close(&m.lb);
	return 0;
}

static size_t wait_ready(int ready, size_t n)
{
	struct pollfd fd = { .fd = ready, .events = POLLIN };
	size_t got = 0;
	char byte;

	while (got < n && poll(&fd, 1, 120000) > 0 && read(ready, &byte, 1) == 1)
		got++;
	return got;
}

static void kill_some(pid_t *pids, size_t n, size_t killed)
{
	while (killed > 0) {
		size_t i = (size_t)rand() % n;

		if (pids[i] == 0)
			continue;
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
		pids[i] = 0;
		killed--;
	}
}

int main(int argc, char **argv)
{
	size_t n = argc == 5 ? strtoul(argv[1], NULL, 10) : 0, good = 0, ready;
	pid_t *pids = calloc(n + 1, sizeof(*pids));
	int up[2], go[2], status;

	if (n == 0 || pipe(up) < 0 || pipe(go) < 0)
		errx(2, "usage: crowd CLIENTS UIDS REGIONS KILLED");
	srand(1);
	for (size_t i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] != 0)
			continue;
		close(go[1]);
		exit(be_a_member(FIRST_UID + (uid_t)(i % strtoul(argv[2], NULL, 10)),
				 strtoul(argv[3], NULL, 10), up[1], go[0]));
	}
	close(up[1]);
	ready = wait_ready(up[0], n);
	kill_some(pids, n, strtoul(argv[4], NULL, 10));
	close(go[1]);
	for (size_t i = 0; i < n; i++)
		if (pids[i] && waitpid(pids[i], &status, 0) > 0)
			good += status == 0;
	free(pids);
	printf("crowd: %zu of %zu registered, %s killed, %zu survivors moved all their bytes\n",
	       ready, n, argv[4], good);
	return ready != n || good != n - strtoul(argv[4], NULL, 10);
}
