/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_FAILURE_H
#define KVREG_FAILURE_H
/*
 * A failure as a value: what went wrong, where, with which evidence. Made in the session (or in
 * the library, for what happens before there is one), carried as kvreg.Error, shown by the library.
 * Fixed size, so that making one cannot fail.
 *
 * code, stage and class come from proto/error.def; so do meaning and default hint.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kvreg-errors.h"
#include "kvreg.pb-c.h"
#include "limits.h"

#define FAILURE_ATTEMPTS 8u
#define FAILURE_TEXT     384u

struct failure_attempt {
	int errnum;
	uint64_t elapsed_us;
};

struct failure {
	enum kvreg_code code;
	enum kvreg_stage stage;
	int errnum;
	int cuda_result;
	uint32_t index;
	char label[LABEL_MAX + 1];
	uint64_t address;
	uint64_t length;
	uint32_t access;
	char device[DEVICE_NAME_MAX];
	char driver[DEVICE_NAME_MAX];
	struct failure_attempt attempts[FAILURE_ATTEMPTS];
	size_t n_attempts;
	uint64_t elapsed_us;
	char detail[FAILURE_TEXT];
	char hint[FAILURE_TEXT];
	Kvreg__Snapshot snapshot; /* no pointers in it: copied by value */
};

/** failure_init() - makes @f an empty failure: code OK, nothing looked at. */
void failure_init(struct failure *f);

/**
 * failure_set() - sets code, stage and the detail line, and the code's default hint.
 *
 * Return: @code, so that a handler can return it.
 */
int failure_set(struct failure *f, enum kvreg_code code, enum kvreg_stage stage, const char *format,
		...) __attribute__((format(printf, 4, 5)));

/** Room for the parts of a wire Error that must live until it is packed. */
struct failure_wire {
	Kvreg__Error error;
	Kvreg__Snapshot snapshot;
	Kvreg__Attempt attempts[FAILURE_ATTEMPTS];
	Kvreg__Attempt *attempt_list[FAILURE_ATTEMPTS];
};

/** failure_to_wire() - fills @ret_wire from @f; strings are borrowed from @f. */
void failure_to_wire(const struct failure *f, struct failure_wire *ret_wire);

/** failure_from_wire() - copies @error; texts are cut to size and cleaned for showing. */
void failure_from_wire(struct failure *f, const Kvreg__Error *error);

/** failure_errno() - the positive errno that a caller gets for @code. */
int failure_errno(enum kvreg_code code);

enum kvreg_class failure_class(enum kvreg_code code);
const char *failure_class_name(enum kvreg_class klass); /* "limit"; "?" if unknown */
const char *failure_stage_name(enum kvreg_stage stage); /* "register"; "?" if unknown */
const char *failure_code_name(enum kvreg_code code);    /* "LIMIT_QUOTA"; "?" if unknown */
const char *failure_meaning(enum kvreg_code code);
const char *failure_hint(enum kvreg_code code);

/**
 * failure_line() - "kvreg: register failed: LIMIT_QUOTA: meaning (detail): hint", one line.
 *
 * Return: the length that the whole line has, like snprintf(3).
 */
int failure_line(const struct failure *f, char *ret_text, size_t size);

#endif
