/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <protobuf-c/protobuf-c.h>

#include "complain.h"
#include "format.h"

/* A container's cgroup ends in 64 digits and a suffix: this much of it tells pods apart. */
#define PATH_WIDTH 40u
/* Not less than this, so that something is to be seen on a narrow terminal too. */
#define PATH_WIDTH_MIN 16u

struct cell {
	bool absent;
	uint64_t number; /* of every kind but text */
	char *text;      /* owned; of the kinds of text */
};

struct table {
	const struct column *columns;
	size_t n_columns;
	struct cell *cells; /* row by row */
	size_t n_rows, room;
	bool failed; /* no memory: a row is missing */
};

static bool is_text(enum column_kind kind)
{
	return kind == COLUMN_NAME || kind == COLUMN_TEXT || kind == COLUMN_PATH ||
	       kind == COLUMN_STATE;
}

struct table *table_new(const struct column *columns, size_t n_columns)
{
	struct table *table = calloc(1, sizeof(*table));

	if (table) {
		table->columns = columns;
		table->n_columns = n_columns;
	}
	return table;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n_rows * table->n_columns; i++)
		free(table->cells[i].text);
	free(table->cells);
	free(table);
}

void table_freep(struct table **table)
{
	table_free(*table);
	*table = NULL;
}

size_t table_rows(const struct table *table)
{
	return table->n_rows;
}

static void read_field(const struct column *column, const void *record, struct cell *ret_cell,
		       bool *failed)
{
	const char *field = (const char *)record + column->offset;
	protobuf_c_boolean valid = 1;
	const char *text;
	uint32_t narrow;

	if (column->valid)
		memcpy(&valid, (const char *)record + column->valid, sizeof(valid));
	*ret_cell = (struct cell){ .absent = !valid };
	if (is_text(column->kind)) {
		memcpy(&text, field, sizeof(text));
		ret_cell->text = strdup(text ? text : "");
		*failed |= !ret_cell->text;
	} else if (column->size == sizeof(narrow)) {
		memcpy(&narrow, field, sizeof(narrow));
		ret_cell->number = narrow;
	} else {
		memcpy(&ret_cell->number, field, sizeof(ret_cell->number));
	}
	if (column->kind == COLUMN_LIMIT || column->kind == COLUMN_SIZE_LIMIT)
		ret_cell->absent |= ret_cell->number == UINT64_MAX;
}

void table_add(struct table *table, const void *record)
{
	if (table->n_rows == table->room) {
		size_t room = table->room ? 2 * table->room : 16;
		struct cell *cells =
			reallocarray(table->cells, room, table->n_columns * sizeof(*table->cells));

		if (!cells) {
			table->failed = true;
			return;
		}
		table->cells = cells;
		table->room = room;
	}
	for (size_t i = 0; i < table->n_columns; i++)
		read_field(&table->columns[i], record,
			   &table->cells[table->n_rows * table->n_columns + i], &table->failed);
	table->n_rows++;
}

/* Numbers in the order of their columns: those of a region are its client and then its own. */
static int compare_rows(const void *left, const void *right, void *arg)
{
	const struct cell *a = left, *b = right;
	const struct table *table = arg;

	for (size_t i = 0; i < table->n_columns; i++)
		if (table->columns[i].kind == COLUMN_NUMBER && a[i].number != b[i].number)
			return a[i].number < b[i].number ? -1 : 1;
	return 0;
}

void table_sort(struct table *table)
{
	if (table->n_rows)
		qsort_r(table->cells, table->n_rows, table->n_columns * sizeof(*table->cells),
			compare_rows, table);
}

static void write_cell(struct json *json, const struct column *column, const struct cell *cell)
{
	struct shown name;

	if (cell->absent) {
		json_text(json, column->key, NULL);
		return;
	}
	switch (column->kind) {
	case COLUMN_NUMBER:
	case COLUMN_LIMIT:
	case COLUMN_SIZE:
	case COLUMN_SIZE_LIMIT:
	case COLUMN_DURATION:
	case COLUMN_ACCESS:
		json_number(json, column->key, cell->number);
		break;
	case COLUMN_BOOL:
		json_bool(json, column->key, cell->number != 0);
		break;
	case COLUMN_ADDRESS:
		json_text(json, column->key, format_address(cell->number).text);
		break;
	case COLUMN_USER:
		name = user_name((uint32_t)cell->number);
		json_text(json, column->key, name.text[0] ? name.text : NULL);
		break;
	case COLUMN_NAME:
	case COLUMN_TEXT:
	case COLUMN_PATH:
	case COLUMN_STATE:
		json_text(json, column->key, cell->text);
		break;
	}
}

static int no_memory(void)
{
	return complain(CTL_FAILED, "out of memory");
}

int table_json(const struct table *table, struct json *json, const char *key)
{
	const struct cell *cell = table->cells;

	if (table->failed)
		return no_memory();
	json_array(json, key);
	for (size_t row = 0; row < table->n_rows; row++) {
		json_object(json, NULL);
		for (size_t i = 0; i < table->n_columns; i++, cell++)
			if (table->columns[i].key)
				write_cell(json, &table->columns[i], cell);
		json_end(json);
	}
	json_end(json);
	return 0;
}

static struct shown show_cell(const struct column *column, const struct cell *cell,
			      size_t path_width)
{
	struct shown number;

	if (cell->absent)
		return format_text("-");
	switch (column->kind) {
	case COLUMN_SIZE:
	case COLUMN_SIZE_LIMIT:
		return format_size(cell->number);
	case COLUMN_DURATION:
		return format_duration(cell->number);
	case COLUMN_ADDRESS:
		return format_address(cell->number);
	case COLUMN_ACCESS:
		return format_access((uint32_t)cell->number);
	case COLUMN_USER:
		return format_user((uint32_t)cell->number);
	case COLUMN_BOOL:
		return format_text(cell->number ? "yes" : "no");
	case COLUMN_PATH:
		return format_tail(cell->text, path_width);
	case COLUMN_NAME:
	case COLUMN_TEXT:
	case COLUMN_STATE:
		return format_text(cell->text);
	case COLUMN_NUMBER:
	case COLUMN_LIMIT:
		break;
	}
	snprintf(number.text, sizeof(number.text), "%llu", (unsigned long long)cell->number);
	return number;
}

/*
 * What the other columns leave of a line of @line characters. The library cuts columns at their end
 * only, which is the part of a path that tells most.
 */
static size_t path_width(const struct table *table, size_t line)
{
	const struct cell *cells = table->cells;
	size_t used = 0, widest, width;

	for (size_t i = 0; i < table->n_columns; i++) {
		const struct column *column = &table->columns[i];

		if (!column->header || column->kind == COLUMN_PATH)
			continue;
		widest = strlen(column->header);
		for (size_t row = 0; row < table->n_rows; row++) {
			width = strlen(
				show_cell(column, &cells[row * table->n_columns + i], PATH_WIDTH)
					.text);
			widest = width > widest ? width : widest;
		}
		used += widest + 1;
	}
	if (line >= used + PATH_WIDTH)
		return PATH_WIDTH;
	return line >= used + PATH_WIDTH_MIN ? line - used : PATH_WIDTH_MIN;
}

static int column_flags(enum column_kind kind)
{
	switch (kind) {
	case COLUMN_TEXT:
		return SCOLS_FL_TRUNC;
	case COLUMN_PATH: /* already cut to fit */
	case COLUMN_NAME:
	case COLUMN_STATE:
	case COLUMN_USER:
	case COLUMN_ACCESS:
	case COLUMN_BOOL:
		return 0;
	case COLUMN_NUMBER:
	case COLUMN_LIMIT:
	case COLUMN_SIZE:
	case COLUMN_SIZE_LIMIT:
	case COLUMN_DURATION:
	case COLUMN_ADDRESS:
		break;
	}
	return SCOLS_FL_RIGHT;
}

static int add_columns(const struct table *table, struct libscols_table *shown)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		const struct column *column = &table->columns[i];
		struct libscols_column *made;

		if (!column->header)
			continue;
		made = scols_table_new_column(shown, column->header, 0, column_flags(column->kind));
		if (!made || scols_cell_set_color(scols_column_get_header(made), "\033[1m"))
			return no_memory();
	}
	return 0;
}

static int add_row(const struct table *table, const struct cell *cells, size_t width,
		   struct libscols_table *shown)
{
	struct libscols_line *line = scols_table_new_line(shown, NULL);
	size_t at = 0;

	for (size_t i = 0; line && i < table->n_columns; i++) {
		const struct column *column = &table->columns[i];

		if (!column->header)
			continue;
		if (scols_line_set_data(line, at, show_cell(column, &cells[i], width).text))
			return no_memory();
		if (column->kind == COLUMN_STATE)
			scols_cell_set_color(scols_line_get_cell(line, at),
					     state_color(cells[i].text));
		at++;
	}
	return line ? 0 : no_memory();
}

static void unref_shown(struct libscols_table **shown)
{
	scols_unref_table(*shown);
}

int table_print(const struct table *table, const struct options *options)
{
	__attribute__((cleanup(unref_shown))) struct libscols_table *shown = NULL;
	size_t width = PATH_WIDTH;
	int status;

	if (!table->failed)
		shown = scols_new_table();
	if (!shown)
		return no_memory();
	if (isatty(STDOUT_FILENO))
		width = path_width(table, scols_table_get_termwidth(shown));
	scols_table_enable_colors(shown, colors_wanted(options));
	status = add_columns(table, shown);
	for (size_t row = 0; !status && row < table->n_rows; row++)
		status = add_row(table, &table->cells[row * table->n_columns], width, shown);
	if (!status && scols_print_table(shown))
		status = complain(CTL_FAILED, "cannot print the table");
	return status;
}

bool colors_wanted(const struct options *options)
{
	const char *no_color = secure_getenv("NO_COLOR");
	const char *terminal = secure_getenv("TERM");

	if (options->color != COLOR_AUTO)
		return options->color == COLOR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no_color && *no_color) && terminal &&
	       strcmp(terminal, "dumb") != 0;
}

const char *state_color(const char *state)
{
	if (!strcmp(state, "serving"))
		return "\033[32m";
	if (!strcmp(state, "draining"))
		return "\033[33m";
	if (!strcmp(state, "stuck"))
		return "\033[31m";
	return NULL;
}
