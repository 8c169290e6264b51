/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libsmartcols, linked into the bundle's kvregctl in its place: the calls that
 * ctl/table makes, and the same output of them, byte for byte, but that columns are as wide as their
 * cells on a narrow terminal too. Cells are ASCII (ctl/format sees to that).
 */
#include <libsmartcols/libsmartcols.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS 32u
#define WIDTH   80u

struct libscols_cell {
	char *text;        /* owned; NULL: empty */
	const char *color; /* borrowed; NULL: none */
};

struct libscols_line {
	struct libscols_cell cells[COLUMNS];
};

struct libscols_column {
	struct libscols_cell header;
	int flags;
};

struct libscols_table {
	struct libscols_column columns[COLUMNS];
	size_t n_columns;
	struct libscols_line **lines; /* owned, as the lines are */
	size_t n_lines, room;
	bool colors;
};

struct libscols_table *scols_new_table(void)
{
	return calloc(1, sizeof(struct libscols_table));
}

void scols_unref_table(struct libscols_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n_columns; i++)
		free(table->columns[i].header.text);
	for (size_t line = 0; line < table->n_lines; line++) {
		for (size_t i = 0; i < COLUMNS; i++)
			free(table->lines[line]->cells[i].text);
		free(table->lines[line]);
	}
	free(table->lines);
	free(table);
}

int scols_table_enable_colors(struct libscols_table *table, int enable)
{
	table->colors = enable;
	return 0;
}

size_t scols_table_get_termwidth(const struct libscols_table *table)
{
	struct winsize size;

	(void)table;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH;
	return size.ws_col;
}

struct libscols_column *scols_table_new_column(struct libscols_table *table, const char *name,
					       double width, int flags)
{
	struct libscols_column *column = &table->columns[table->n_columns];

	(void)width;
	if (table->n_columns == COLUMNS)
		return NULL;
	column->header.text = strdup(name);
	if (!column->header.text)
		return NULL;
	column->flags = flags;
	table->n_columns++;
	return column;
}

struct libscols_cell *scols_column_get_header(struct libscols_column *column)
{
	return &column->header;
}

struct libscols_line *scols_table_new_line(struct libscols_table *table,
					   struct libscols_line *parent)
{
	struct libscols_line **lines = table->lines;

	(void)parent;
	if (table->n_lines == table->room) {
		table->room = table->room ? 2 * table->room : 16;
		lines = reallocarray(lines, table->room, sizeof(struct libscols_line *));
		if (!lines)
			return NULL;
		table->lines = lines;
	}
	lines[table->n_lines] = calloc(1, sizeof(struct libscols_line));
	return lines[table->n_lines] ? lines[table->n_lines++] : NULL;
}

struct libscols_cell *scols_line_get_cell(struct libscols_line *line, size_t n)
{
	return n < COLUMNS ? &line->cells[n] : NULL;
}

int scols_line_set_data(struct libscols_line *line, size_t n, const char *data)
{
	struct libscols_cell *cell = scols_line_get_cell(line, n);
	char *text = cell ? strdup(data) : NULL;

	if (!text)
		return -1;
	free(cell->text);
	cell->text = text;
	return 0;
}

int scols_cell_set_color(struct libscols_cell *cell, const char *color)
{
	cell->color = color;
	return 0;
}

static const char *text_of(const struct libscols_cell *cell)
{
	return cell->text ? cell->text : "";
}

static void print_cell(const struct libscols_table *table, const struct libscols_cell *cell,
		       size_t column, size_t width)
{
	const bool right = table->columns[column].flags & SCOLS_FL_RIGHT;
	const bool last = column + 1 == table->n_columns;
	const char *color = table->colors ? cell->color : NULL;
	const int padding = (int)(width - strlen(text_of(cell)));

	printf("%s%*s%s%*s%s", color ? color : "", right ? padding : 0, "", text_of(cell),
	       right || last ? 0 : padding, "", color ? "\033[0m" : "");
	putchar(last ? '\n' : ' ');
}

int scols_print_table(struct libscols_table *table)
{
	size_t widths[COLUMNS] = { 0 };

	if (table->n_lines == 0)
		return 0;
	for (size_t i = 0; i < table->n_columns; i++) {
		widths[i] = strlen(table->columns[i].header.text);
		for (size_t line = 0; line < table->n_lines; line++) {
			const size_t width = strlen(text_of(&table->lines[line]->cells[i]));

			widths[i] = width > widths[i] ? width : widths[i];
		}
	}
	for (size_t i = 0; i < table->n_columns; i++)
		print_cell(table, &table->columns[i].header, i, widths[i]);
	for (size_t line = 0; line < table->n_lines; line++)
		for (size_t i = 0; i < table->n_columns; i++)
			print_cell(table, &table->lines[line]->cells[i], i, widths[i]);
	return ferror(stdout) ? -1 : 0;
}
