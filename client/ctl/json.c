/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

#define REPLACEMENT 0xfffdu

/*
 * Decodes the UTF-8 character at *@text and moves past it; one byte, as U+FFFD, if none starts
 * there. Overlong forms, surrogates and numbers past U+10FFFF are no characters (RFC 3629).
 */
static uint32_t next_character(const unsigned char **text)
{
	static const uint32_t smallest[] = { 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = *text;
	uint32_t c = *p++;
	unsigned more = 0;

	*text = p;
	if (c < 0x80)
		return c;
	if (c >= 0xc0 && c < 0xf8)
		more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	else
		return REPLACEMENT;
	c &= 0x3fu >> more;
	for (unsigned i = 0; i < more; i++) {
		if ((*p & 0xc0) != 0x80)
			return REPLACEMENT;
		c = c << 6 | (*p++ & 0x3f);
	}
	if (c < smallest[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return REPLACEMENT;
	*text = p;
	return c;
}

static void put_character(FILE *out, uint32_t c)
{
	if (c == '"' || c == '\\')
		fprintf(out, "\\%c", (char)c);
	else if (c == '\n')
		fputs("\\n", out);
	else if (c == '\t')
		fputs("\\t", out);
	else if (c >= 0x20 && c < 0x7f)
		fputc((int)c, out);
	else if (c < 0x10000)
		fprintf(out, "\\u%04" PRIx32, c);
	else
		fprintf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((c - 0x10000) >> 10),
			0xdc00 + ((c - 0x10000) & 0x3ff));
}

static void put_text(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	fputc('"', out);
	while (*p)
		put_character(out, next_character(&p));
	fputc('"', out);
}

static void new_line(struct json *json)
{
	fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
}

/* What stands before a value: the comma after the one before, and the key. */
static void begin_value(struct json *json, const char *key)
{
	if (json->depth) {
		bool *filled = &json->filled[json->depth - 1];

		if (*filled)
			fputc(',', json->out);
		*filled = true;
		new_line(json);
	}
	if (key)
		fprintf(json->out, "\"%s\": ", key);
}

static void begin(struct json *json, const char *key, const char *brackets)
{
	assert(json->depth < JSON_DEPTH);
	begin_value(json, key);
	fputc(brackets[0], json->out);
	json->close[json->depth] = brackets[1];
	json->filled[json->depth] = false;
	json->depth++;
}

void json_object(struct json *json, const char *key)
{
	begin(json, key, "{}");
}

void json_array(struct json *json, const char *key)
{
	begin(json, key, "[]");
}

void json_end(struct json *json)
{
	assert(json->depth);
	json->depth--;
	if (json->filled[json->depth])
		new_line(json);
	fputc(json->close[json->depth], json->out);
	if (!json->depth)
		fputc('\n', json->out);
}

void json_number(struct json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_value(json, key);
	fputs(value ? "true" : "false", json->out);
}

void json_text(struct json *json, const char *key, const char *text)
{
	begin_value(json, key);
	if (text)
		put_text(json->out, text);
	else
		fputs("null", json->out);
}
