/* SPDX-License-Identifier: Apache-2.0 */
#include "format.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "proto/codec.h"

struct shown format_size(uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	struct shown shown;
	uint64_t tenths;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(shown.text, sizeof(shown.text), bytes ? "%" PRIu64 "B" : "0", bytes);
		return shown;
	}
	while (unit + 1 < strlen(units) && bytes >> (10 * (unit + 1)))
		unit++;
	/* The last unit below this one first, so that no product overflows. */
	bytes >>= 10 * (unit - 1);
	tenths = (bytes * 10 + 512) / 1024;
	if (tenths >= 10240 && unit + 1 < strlen(units)) {
		tenths = 10;
		unit++;
	}
	if (tenths % 10)
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 ".%" PRIu64 "%c", tenths / 10,
			 tenths % 10, units[unit]);
	else
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 "%c", tenths / 10, units[unit]);
	return shown;
}

struct shown format_duration(uint64_t ms)
{
	uint64_t s = ms / 1000;
	struct shown shown;

	if (s < 60)
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 "s", s);
	else if (s < 3600)
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 "m%" PRIu64 "s", s / 60,
			 s % 60);
	else if (s < 86400)
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 "h%" PRIu64 "m", s / 3600,
			 s / 60 % 60);
	else
		snprintf(shown.text, sizeof(shown.text), "%" PRIu64 "d%" PRIu64 "h", s / 86400,
			 s / 3600 % 24);
	return shown;
}

struct shown format_address(uint64_t address)
{
	struct shown shown;

	snprintf(shown.text, sizeof(shown.text), "0x%" PRIx64, address);
	return shown;
}

struct shown format_access(uint32_t access)
{
	static const struct {
		uint32_t bit;
		char letter;
	} letters[] = {
		{ IBV_ACCESS_LOCAL_WRITE, 'L' }, { IBV_ACCESS_REMOTE_WRITE, 'W' },
		{ IBV_ACCESS_REMOTE_READ, 'R' }, { IBV_ACCESS_REMOTE_ATOMIC, 'A' },
		{ IBV_ACCESS_MW_BIND, 'M' },     { IBV_ACCESS_RELAXED_ORDERING, 'O' },
	};
	struct shown shown = { .text = "" };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		if (access & letters[i].bit)
			shown.text[n++] = letters[i].letter;
		access &= ~letters[i].bit;
	}
	if (access)
		snprintf(shown.text + n, sizeof(shown.text) - n, "+0x%" PRIx32, access);
	else if (!n)
		shown.text[0] = '-';
	return shown;
}

struct shown format_text(const char *text)
{
	struct shown shown = { .text = "" };

	text_clean(shown.text, sizeof(shown.text), text && *text ? text : "-");
	return shown;
}

struct shown format_tail(const char *text, size_t width)
{
	struct shown shown = { .text = "" }, tail;
	size_t length = text ? strlen(text) : 0;

	if (width >= sizeof(shown.text))
		width = sizeof(shown.text) - 1;
	if (length <= width || width <= 3)
		return format_text(text);
	tail = format_text(text + length - (width - 3));
	snprintf(shown.text, sizeof(shown.text), "...%.*s", (int)(width - 3), tail.text);
	return shown;
}

struct shown user_name(uint32_t uid)
{
	struct shown shown = { .text = "" };
	struct passwd entry, *found = NULL;
	char buffer[4096];

	if (!getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) && found)
		text_clean(shown.text, sizeof(shown.text), found->pw_name);
	return shown;
}

struct shown format_user(uint32_t uid)
{
	struct shown shown = user_name(uid);

	if (!shown.text[0])
		snprintf(shown.text, sizeof(shown.text), "%" PRIu32, uid);
	return shown;
}

bool parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	unsigned long long number;
	const char *unit;
	unsigned shift = 0;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return false;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (number > UINT64_MAX >> shift)
		return false;
	*ret_bytes = (uint64_t)number << shift;
	return true;
}

bool parse_count(const char *text, uint32_t most, uint32_t *ret_count)
{
	unsigned long number;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || *end || !number || number > most)
		return false;
	*ret_count = (uint32_t)number;
	return true;
}

bool parse_pid(const char *text, uint32_t *ret_pid)
{
	return parse_count(text, INT_MAX, ret_pid);
}
