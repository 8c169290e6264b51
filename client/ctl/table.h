/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_TABLE_H
#define KVREG_CTL_TABLE_H
/*
 * Records -> a table for people (libsmartcols) or an array of objects for programs (JSON).
 *
 * A column says where its field lies in the record, what kind of thing it is, its key in the JSON
 * and its header in the table; there is no other code per column. Rows copy what they show, so a
 * record need live only while it is added. An error on the way is kept and told when printing.
 */
#include <stdbool.h>
#include <stddef.h>

#include "json.h"
#include "options.h"

enum column_kind {
	COLUMN_NUMBER,
	COLUMN_SIZE,       /* bytes */
	COLUMN_LIMIT,      /* a number; 2^64-1 is none: "-", null in JSON */
	COLUMN_SIZE_LIMIT, /* the same in bytes */
	COLUMN_DURATION,   /* milliseconds */
	COLUMN_ADDRESS, /* hexadecimal, a string in JSON: many readers keep 53 bits of a number */
	COLUMN_ACCESS,  /* IBV_ACCESS_* bits: letters, in JSON the number */
	COLUMN_USER,    /* a uid, shown as the user's name; null in JSON if it has none */
	COLUMN_BOOL,
	COLUMN_NAME,  /* short text, never cut */
	COLUMN_TEXT,  /* text, cut where the terminal is narrow */
	COLUMN_PATH,  /* text of which the end is kept */
	COLUMN_STATE, /* a name, coloured */
};

struct column {
	const char *key;    /* NULL: in the table only */
	const char *header; /* NULL: in JSON only */
	enum column_kind kind;
	size_t offset, size; /* of the field */
	size_t valid; /* offset of the bool that says whether the field is; 0: it always is */
};

/* Text fields are char *, the others unsigned numbers or protobuf_c_boolean. */
#define FIELD(type, member) offsetof(type, member), sizeof(((type *)0)->member)

struct table;

/** table_new() - an empty table. @columns are borrowed for its life. NULL: no memory. */
struct table *table_new(const struct column *columns, size_t n_columns);
void table_free(struct table *table);
void table_freep(struct table **table);

/** table_add() - adds a row: what @record says now. */
void table_add(struct table *table, const void *record);

/** table_sort() - orders the rows by their numbers, the first column's first. */
void table_sort(struct table *table);

size_t table_rows(const struct table *table);

/** table_json() - writes the rows as an array. Return: 0, or CTL_FAILED, told. */
int table_json(const struct table *table, struct json *json, const char *key);

/** table_print() - prints the table to stdout. Return: 0, or CTL_FAILED, told. */
int table_print(const struct table *table, const struct options *options);

/** colors_wanted() - whether stdout gets colours: the option, else a terminal without NO_COLOR. */
bool colors_wanted(const struct options *options);

/** state_color() - the escape sequence of a state's colour, NULL for none. */
const char *state_color(const char *state);

#endif
