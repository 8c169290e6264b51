/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_JSON_H
#define KVREG_CTL_JSON_H
/*
 * Writes one JSON document (RFC 8259) as it goes. The output is pure ASCII: every other character
 * is written as \uXXXX, so that text chosen by a client can neither break the document nor speak
 * to the terminal it is shown on. Bytes that are no UTF-8 become U+FFFD.
 *
 * A key is given for members of an object and NULL for elements of an array and for the document
 * itself; keys are literals of this program. Write errors stay in the stream (ferror).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH 8u

struct json {
	FILE *out;               /* borrowed */
	unsigned depth;          /* how many objects and arrays are open */
	char close[JSON_DEPTH];  /* the bracket that ends each of them */
	bool filled[JSON_DEPTH]; /* it has a member already */
};

void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
/** json_end() - ends the innermost object or array; the outermost with a newline. */
void json_end(struct json *json);

void json_number(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
/** json_text() - @text is any bytes up to its NUL, or NULL: null. */
void json_text(struct json *json, const char *key, const char *text);

#endif
