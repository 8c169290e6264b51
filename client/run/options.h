/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_RUN_OPTIONS_H
#define KVREG_RUN_OPTIONS_H
/*
 * The command line. One table names every option, its argument and its help; parsing and help both
 * come from it. Options end where the command begins, whose own options are not looked at.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What env(1), timeout(1) and nice(1) end with. */
enum run_status {
	RUN_FAILED = 125,    /* kvreg-run itself: usage, no lease, no library */
	RUN_NO_EXEC = 126,   /* the command was found, and cannot be run */
	RUN_NOT_FOUND = 127, /* it was not found */
};

/* Processes that one lease may be booked for: far above what runs on a host. */
#define PROCESSES_MAX 65536u

struct options {
	bool memlock;       /* --memlock was given */
	uint64_t bytes;     /* 0: auto */
	uint32_t processes; /* at least 1 */
	bool preload;       /* also where no lease is asked for */
	bool help;
	bool version;
	char **command; /* in the argument vector, ends with NULL */
};

/**
 * options_parse() - reads the command line.
 *
 * With help or version there may be no command.
 *
 * Return: 0, or RUN_FAILED when the user has been told what is wrong.
 */
int options_parse(int argc, char **argv, struct options *ret_options);

/** options_help() - prints the options for --help. */
void options_help(FILE *out);

/** complain() - prints "kvreg-run: ..." and a newline to stderr. Return: @status. */
int complain(enum run_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
