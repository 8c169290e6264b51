/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_BENCH_REPORT_H
#define KVREG_BENCH_REPORT_H
/*
 * What was measured: a table on standard output for people, and a file with one JSON object a line.
 * The first line of each tells the machine.
 */
#include "measure.h"

/** report_open() - starts the table and, unless @path is NULL, the file. @title: of the table. */
void report_open(const char *title, const char *path);

/**
 * report_contest() - runs a contest, and reports each of its ways.
 * Return: the figures of each way, until the next contest.
 */
const struct figures *report_contest(const struct contest *contest);

/** report_value() - numbers that are no contest. @goal: what it should not exceed; 0: no goal. */
void report_value(const char *name, const char *what, const char *unit, struct spread value,
		  double goal);

/** report_skip() - a case that cannot be run here. KVREG_MUST_WORK=1 makes it the program's end. */
void report_skip(const char *name, const char *reason);

/** report_note() - a line for people, about the case before it. */
void report_note(const char *words);

/** report_close() - ends both. Return: the program's exit status: 0, or 1 if not all was written.
 */
int report_close(void);

#endif
