/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_FINDINGS_H
#define KVREG_CTL_FINDINGS_H
/*
 * What the doctor found: one line each of what is, and of what to change where that is not well.
 * They stand in the order in which they were added. No memory for one is kept and told at the end,
 * so that whoever adds need not look.
 */
#include <stdbool.h>
#include <stddef.h>

enum verdict {
	VERDICT_PASS,
	VERDICT_SKIP, /* not looked at, and the line says why */
	VERDICT_WARN, /* it works, within limits that the line names */
	VERDICT_FAIL, /* registering memory fails because of it */
};

struct finding {
	const char *check; /* a literal: the name of the check that found it */
	enum verdict verdict;
	char subject[80]; /* the one of several things that it is about, "" if there is but one */
	char found[400];
	char change[600]; /* "": nothing */
};

struct findings {
	const char *check; /* the check that is running */
	struct finding *all;
	size_t count;
	bool failed; /* no memory: one is missing */
};

/** verdict_name() - "PASS", "SKIP", "WARN" or "FAIL". */
const char *verdict_name(enum verdict verdict);

/** found() - adds a finding of the running check. */
void found(struct findings *findings, enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** found_about() - the same of one thing among several, @subject. */
void found_about(struct findings *findings, enum verdict verdict, const char *subject,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/** change() - says what to change about the last finding. */
void change(struct findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** findings_worst() - the worst verdict; of none, PASS. */
enum verdict findings_worst(const struct findings *findings);

/** findings_count() - how many have that verdict. */
size_t findings_count(const struct findings *findings, enum verdict verdict);

void findings_fini(struct findings *findings);

#endif
