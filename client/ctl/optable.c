/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/optable.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "client/ctl/format.h"

/* getopt_long's value of row i: above every letter. */
#define ROW_BASE 256

static int __attribute__((format(printf, 2, 3)))
slip(const struct option_table *table, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", table->program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return table->usage;
}

static int find_row(const struct option_table *table, int value)
{
	for (size_t i = 0; i < table->n_rows; i++)
		if (value == ROW_BASE + (int)i ||
		    (table->rows[i].letter && value == table->rows[i].letter))
			return (int)i;
	return -1;
}

static int bad_option(const struct option_table *table, char **argv, int value)
{
	int row = find_row(table, optopt);

	if (value == ':')
		return slip(table, "--%s wants %s", row < 0 ? "?" : table->rows[row].name,
			    row < 0 ? "an argument" : table->rows[row].wanted);
	if (optopt > 0 && optopt < ROW_BASE)
		return slip(table, "there is no option -%c: %s --help lists them", optopt,
			    table->program);
	if (row >= 0)
		return slip(table, "--%s takes no argument", table->rows[row].name);
	return slip(table, "there is no option %s: %s --help lists them",
		    format_text(argv[optind - 1]).text, table->program);
}

static int bad_argument(const struct option_table *table, const struct option_row *row,
			const char *argument)
{
	if (!*argument)
		return slip(table, "--%s wants %s", row->name, row->wanted);
	return slip(table, "--%s wants %s, not \"%s\"", row->name, row->wanted,
		    format_text(argument).text);
}

/* Makes what getopt_long wants out of the table. */
static void make_long(const struct option_table *table, struct option *ret_long, char *ret_short)
{
	if (table->ends_at_word)
		*ret_short++ = '+';
	*ret_short++ = ':'; /* report a missing argument as such */
	for (size_t i = 0; i < table->n_rows; i++) {
		ret_long[i] = (struct option){
			.name = table->rows[i].name,
			.has_arg = table->rows[i].argument ? required_argument : no_argument,
			.val = ROW_BASE + (int)i,
		};
		if (table->rows[i].letter)
			*ret_short++ = table->rows[i].letter;
	}
	ret_long[table->n_rows] = (struct option){ 0 };
	*ret_short = '\0';
}

int optable_parse(const struct option_table *table, int argc, char **argv, void *options,
		  uint32_t *ret_given)
{
	struct option long_options[OPTIONS_MAX + 1];
	char short_options[OPTIONS_MAX + 3];
	uint32_t given = 0;
	int value, row;

	make_long(table, long_options, short_options);
	opterr = 0;
	optind = 0;
	while ((value = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		row = find_row(table, value);
		if (row < 0)
			return bad_option(table, argv, value);
		if (!table->rows[row].take(options, optarg))
			return bad_argument(table, &table->rows[row], optarg);
		given |= 1u << row;
	}
	*ret_given = given;
	return 0;
}

void optable_help(const struct option_table *table, FILE *out)
{
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct option_row *row = &table->rows[i];
		const char *end = strchr(row->help, '\n');
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", row->name, row->argument ? " " : "",
			 row->argument ? row->argument : "");
		fprintf(out, "  %-*s %.*s\n", table->help_width, left,
			end ? (int)(end - row->help) : (int)strlen(row->help), row->help);
		if (end)
			fprintf(out, "  %-*s %s\n", table->help_width, "", end + 1);
	}
}
