/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_FAULTS_H
#define KVREG_DAEMON_FAULTS_H
/*
 * Faults on purpose, for tests: the [test CLASS] sections of the configuration, which kvregd takes
 * only with --allow-faults.
 *
 *	[test team-a]				every session of that class:
 *	delay = register:20000, map:100		REG_MR takes 20 s longer, mmap 100 ms
 *	fail = register:ENOMEM:2, attach:EIO:1	the first two REG_MR answer ENOMEM
 *	max_mr = 64				regions that its device has room for
 *	max_mr_size = 1G			and of what size
 *
 * A section sets what a kernel or driver would answer, and never one of our codes, so that a test
 * sees what a client would see. Delays and failures are counted by session; only the failing start of
 * a session (fail = connect:...) is the supervisor's, and is counted by class.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.pb-c.h"
#include "proto/faults.h"
#include "proto/limits.h"

struct stage_fault {
	uint32_t delay_ms;
	int errnum;     /* of the first @count calls */
	uint32_t count; /* 0: none fails */
};

/* One section. */
struct fault_rule {
	char klass[CLASS_NAME_MAX + 1];
	int line; /* of the first key, for the reader of an error */
	struct stage_fault stages[FAULT_STAGES];
	uint32_t max_mr;      /* 0: no bound */
	uint64_t max_mr_size; /* bytes; 0: no bound */
};

struct faults {
	size_t count;
	struct fault_rule rules[1 + CLASSES_MAX];
};

/**
 * faults_set() - takes one key of [test @klass], which stands in @line.
 *
 * Return: 0; or -EINVAL, and *@ret_reason says why if it is not the value.
 */
int faults_set(struct faults *faults, const char *klass, const char *key, const char *value,
	       int line, const char **ret_reason);

/** faults_of() - the section of class @klass; NULL: it has none. */
const struct fault_rule *faults_of(const struct faults *faults, const char *klass);

/**
 * faults_connect() - a session of class @klass is to be started.
 * Return: 0; or the -errno that its start fails with, once less from now on.
 */
int faults_connect(struct faults *faults, const char *klass);

/** fault_stage_name() - "register"; NULL: there is no such stage. */
const char *fault_stage_name(uint32_t stage);

/** Room for the parts of a Faults message that must live until it is packed. */
struct faults_wire {
	Kvreg__Faults faults;
	Kvreg__StageFault stages[FAULT_STAGES], *list[FAULT_STAGES];
};

/** faults_to_wire() - what a session is told of @rule. */
void faults_to_wire(const struct fault_rule *rule, struct faults_wire *ret_wire);

#endif
