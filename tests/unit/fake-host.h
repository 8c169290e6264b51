/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_FAKE_HOST_H
#define KVREG_TEST_FAKE_HOST_H
/*
 * A machine for the doctor: directories that stand for /proc, /sys and /dev, at first those of an
 * ordinary process of an ordinary user without devices, and an exam of it. No daemon answers.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/exam.h"

#define NOBODY 65534u

struct fake_host {
	struct host host;
	struct exam exam;
	char root[32], proc[48], sys[48], dev[48];
};

static inline int fake_open(const char *path, int flags)
{
	return open(path, flags);
}

/* Makes a file, with its directories. */
static inline void fake_file(const struct fake_host *f, const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->root, name);
	for (char *p = path + strlen(f->root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*p = '/';
	}
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* /proc/self/status: effective, permitted and bounding capabilities are IPC_LOCK (14) or none. */
static inline void fake_status(const struct fake_host *f, bool eff, bool prm, bool bnd,
			       unsigned vm_pin_kib)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "Name:\tengine\nPPid:\t41\nUid:\t1000\t1000\t1000\t1000\nVmPin:\t%u kB\n"
		 "CapPrm:\t%016x\nCapEff:\t%016x\nCapBnd:\t%016x\n",
		 vm_pin_kib, prm << 14, eff << 14, bnd << 14);
	fake_file(f, "proc/self/status", text);
}

static inline void fake_device(const struct fake_host *f, const char *name, const char *uverbs)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/class/infiniband/%s/node_type", name);
	fake_file(f, path, "1: CA\n");
	if (!uverbs)
		return;
	snprintf(path, sizeof(path), "sys/class/infiniband_verbs/%s/ibdev", uverbs);
	fake_file(f, path, name);
	snprintf(path, sizeof(path), "dev/infiniband/%s", uverbs);
	fake_file(f, path, "");
	snprintf(path, sizeof(path), "%s/dev/infiniband/%s", f->root, uverbs);
	assert_int_equal(chmod(path, 0666), 0);
}

static inline int fake_set_up(void **state)
{
	static struct fake_host f;

	f = (struct fake_host){ .root = "/tmp/kvreg-host-XXXXXX" };
	if (!mkdtemp(f.root) || chmod(f.root, 0755) < 0)
		return -1;
	snprintf(f.proc, sizeof(f.proc), "%s/proc", f.root);
	snprintf(f.sys, sizeof(f.sys), "%s/sys", f.root);
	snprintf(f.dev, sizeof(f.dev), "%s/dev", f.root);
	f.host = (struct host){
		.root = f.root,
		.proc = f.proc,
		.sys = f.sys,
		.dev = f.dev,
		.memlock = { 64 << 10, 64 << 10 },
		.socket = "/no/such/socket",
		.daemon_wait_ms = 200,
		.open_device = fake_open,
	};
	fake_status(&f, false, false, true, 0);
	fake_file(&f, "proc/self/uid_map", "         0          0 4294967295\n");
	fake_file(&f, "proc/self/cgroup", "0::/system.slice/engine.service\n");
	fake_file(&f, "proc/meminfo", "MemTotal:       2000000 kB\nMemAvailable:   1048576 kB\n");
	f.exam = (struct exam){ .host = &f.host, .nics = 1 };
	*state = &f;
	return 0;
}

static inline int fake_tear_down(void **state)
{
	struct fake_host *f = *state;
	char command[64];

	findings_fini(&f->exam.findings);
	snprintf(command, sizeof(command), "rm -r %s", f->root);
	return system(command);
}

/* Reads what is there now, and runs one check. Return: its first finding. */
static inline const struct finding *examine(struct fake_host *f, void (*check)(struct exam *))
{
	struct daemon_answer daemon = f->exam.daemon;

	findings_fini(&f->exam.findings);
	f->exam.findings.check = "memlock";
	exam_read(&f->exam);
	if (daemon.state == DAEMON_ANSWERED)
		f->exam.daemon = daemon;
	check(&f->exam);
	assert_true(f->exam.findings.count > 0 && !f->exam.findings.failed);
	return &f->exam.findings.all[0];
}

/* From now on a daemon answers, on that device. */
static inline void fake_daemon(struct fake_host *f, const char *device)
{
	f->exam.daemon = (struct daemon_answer){
		.state = DAEMON_ANSWERED,
		.identity = { .uid = 1000, .klass = "default" },
	};
	snprintf(f->exam.daemon.device, sizeof(f->exam.daemon.device), "%s", device);
}

static inline void is_finding(const struct finding *finding, enum verdict verdict,
			      const char *found, const char *change)
{
	if (finding->verdict != verdict || !strstr(finding->found, found) ||
	    !strstr(finding->change, change) || (!change[0] && finding->change[0]))
		fail_msg("%s: %s -> %s", verdict_name(finding->verdict), finding->found,
			 finding->change);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_set_up, fake_tear_down)

#endif
