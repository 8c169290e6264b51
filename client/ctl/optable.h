/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_OPTABLE_H
#define KVREG_CTL_OPTABLE_H
/*
 * A command line from a table: each row names an option, its argument and its help, and takes it.
 * Parsing, help and what is said of a slip all come from the table. kvregctl and kvreg-run have one
 * each; what they make of it is a struct of their own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTIONS_MAX 32u

struct option_row {
	const char *name;
	char letter;          /* 0: it has none */
	const char *argument; /* as shown in the help, NULL: it takes none */
	const char *command;  /* the only command it belongs to, NULL: all */
	const char *help;     /* one line or two */
	bool (*take)(void *options, const char *argument); /* false: no such argument */
	const char *wanted;                                /* what the argument must be */
};

struct option_table {
	const char *program;
	int usage;         /* status after a slip */
	bool ends_at_word; /* the first word ends the options; else they may stand behind words */
	int help_width;    /* of the column of names */
	const struct option_row *rows;
	size_t n_rows; /* at most OPTIONS_MAX */
};

/**
 * optable_parse() - reads the options; words, if they may stand before options, are put last.
 * @ret_given: a bit for each row that was given. optind is the first word then.
 *
 * Return: 0; or the table's status when the user has been told what is wrong.
 */
int optable_parse(const struct option_table *table, int argc, char **argv, void *options,
		  uint32_t *ret_given);

/** optable_help() - prints the options for --help. */
void optable_help(const struct option_table *table, FILE *out);

#endif
