/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_OPTIONS_H
#define KVREG_CTL_OPTIONS_H
/*
 * The command line. One table names every option, its argument, the command it belongs to and its
 * help; parsing and help both come from it. Options may stand before or after the command.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SELFTEST_SIZE_MIN     4096u
#define SELFTEST_SIZE_DEFAULT (1u << 20)
/* More devices than any machine has: a slip must not look like an answer. */
#define DOCTOR_NICS_MAX 1024u

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Strings are borrowed from the argument vector; NULL: not given. */
struct options {
	const char *command;
	const char *socket;
	const char *admin_socket;
	bool json;
	bool help;
	bool version;
	enum color_mode color;
	uint32_t client; /* 0: all */
	const char *device;
	uint64_t size;
	uint64_t fit;  /* doctor: would so many bytes fit? 0: not asked */
	uint32_t nics; /* with so many devices; 0: not said, 1 */
};

/**
 * options_parse() - reads the command line, whose elements getopt_long(3) may put in order.
 *
 * The command's name is not looked up here. With help or version there may be none.
 *
 * Return: 0, or CTL_USAGE when the user has been told what is wrong.
 */
int options_parse(int argc, char **argv, struct options *ret_options);

/** options_help() - prints the options for --help. */
void options_help(FILE *out);

#endif
