/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_EXAM_H
#define KVREG_CTL_EXAM_H
/*
 * The doctor's examination: what is read first, and the checks that judge it.
 *
 *	host      where to look: this machine, or directories of a test
 *	exam      what was read there, once, before any check
 *	check_*   look at the exam (check-devices.c at the devices too) and add findings
 *
 * A check never speaks of another one's trouble: one cause is one FAIL. What is small for direct
 * registration is a WARN, as the daemon's registrations do not need it; that there is no daemon
 * either is the daemon's FAIL.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "ancestor.h"
#include "client/kvreg-client.h"
#include "findings.h"
#include "origin.h"
#include "proto/procfs.h"

/* The daemon answers in milliseconds; a new session on a loaded host takes longer. */
#define DAEMON_WAIT_MS 5000

/* Strings are borrowed. */
struct host {
	const char *root; /* stands before /.dockerenv and the like */
	const char *proc, *sys, *dev;
	const char *container; /* $container, set by some runtimes; NULL */
	bool kubernetes;       /* $KUBERNETES_SERVICE_HOST is set, in every pod */
	struct rlimit memlock; /* of this process */
	const char *socket;    /* NULL: as the library finds it */
	int daemon_wait_ms;    /* a daemon that does not answer by then hangs */
	int (*open_device)(const char *path, int flags); /* open(2) */
};

enum daemon_state {
	DAEMON_UNASKED, /* this process could not ask: no child, no pipe */
	DAEMON_ANSWERED,
	DAEMON_REFUSED, /* the library says why */
	DAEMON_SILENT,
};

struct daemon_answer {
	enum daemon_state state;
	/* ANSWERED */
	struct kvreg_identity identity;
	char device[16]; /* "verbs" or "mock" */
	/* REFUSED */
	enum kvreg_code code;
	char meaning[128], detail[256], hint[400];
};

struct exam {
	const struct host *host;
	uint64_t bytes; /* would they fit? 0: not asked */
	uint32_t nics;
	struct proc_status self;
	bool own_user_namespace;
	struct origin origin;
	struct ancestor ancestor; /* has a higher limit, below the origin; pid 0: none */
	struct daemon_answer daemon;
	struct findings findings;
};

/** host_here() - this machine and this process. */
void host_here(struct host *ret_host);

/** exam_read() - reads what the checks judge. @exam has host, bytes and nics, and is else zeroed. */
void exam_read(struct exam *exam);

/** exam_may_pin() - whether the kernel applies no limit: none, or CAP_IPC_LOCK that counts. */
bool exam_may_pin(const struct exam *exam);

/**
 * exam_needed() - what @bytes registered with @nics devices come to, in the kernel's accounting:
 * whole pages, once for each device. UINT64_MAX if that overflows.
 */
uint64_t exam_needed(const struct exam *exam);

/** daemon_ask() - connects and asks who we are, for at most host->daemon_wait_ms. */
void daemon_ask(const struct host *host, struct daemon_answer *ret_answer);

void check_memlock(struct exam *exam);
void check_origin(struct exam *exam);
void check_capability(struct exam *exam);
void check_devices(struct exam *exam);
void check_daemon(struct exam *exam);
void check_quota(struct exam *exam);
void check_fits_direct(struct exam *exam);
void check_fits_brokered(struct exam *exam);

#endif
