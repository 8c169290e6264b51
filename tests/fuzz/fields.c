/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fields.h"

#include <string.h>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/script.h"

#define FIELDS_MAX 64u
#define VARINT_MAX 10u
#define INNER_MAX  4096u

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* Offsets into the message. */
struct field {
	enum wire wire;
	size_t start, tag_end, value, end;
};

unsigned int next_random(unsigned int *state)
{
	*state = *state * 1103515245u + 12345u;
	return *state >> 16;
}

/* Return: how many bytes it takes; 0: there is none. */
static size_t varint_read(const uint8_t *bytes, size_t length, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (size_t i = 0; i < length && i < VARINT_MAX; i++) {
		value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
		if (bytes[i] < 0x80) {
			*ret_value = value;
			return i + 1;
		}
	}
	return 0;
}

static size_t varint_write(uint8_t *bytes, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[n++] = (uint8_t)(value | 0x80);
	bytes[n++] = (uint8_t)value;
	return n;
}

static bool field_read(const uint8_t *bytes, size_t length, size_t at, struct field *ret_field)
{
	struct field f = { .start = at };
	uint64_t tag, value;
	size_t n = varint_read(bytes + at, length - at, &tag);

	if (n == 0)
		return false;
	f.wire = tag & 7;
	f.tag_end = f.value = at + n;
	n = varint_read(bytes + f.value, length - f.value, &value);
	if (f.wire == VARINT && n > 0)
		f.end = f.value + n;
	else if (f.wire == BYTES && n > 0 && value <= length - f.value - n)
		f.end = (f.value += n) + value;
	else if (f.wire == FIXED64 && length - f.value >= 8)
		f.end = f.value + 8;
	else if (f.wire == FIXED32 && length - f.value >= 4)
		f.end = f.value + 4;
	else
		return false;
	*ret_field = f;
	return true;
}

static size_t parse(const uint8_t *bytes, size_t length, struct field *fields)
{
	size_t n = 0, at = 0;

	while (n < FIELDS_MAX && at < length && field_read(bytes, length, at, &fields[n]))
		at = fields[n++].end;
	return n;
}

/* Puts @with in the place of the bytes from @start to @end. */
static size_t replace(uint8_t *bytes, size_t length, size_t size, size_t start, size_t end,
		      const uint8_t *with, size_t n)
{
	if (length - (end - start) + n > size)
		return length;
	memmove(bytes + start + n, bytes + end, length - end);
	memcpy(bytes + start, with, n);
	return length - (end - start) + n;
}

static uint64_t number(unsigned int *random)
{
	static const uint64_t values[] = { 0,         1,          2,       7,         255,
					   4096,      0x10001,    0x10002, 1 << 20,   UINT32_MAX,
					   INT64_MAX, UINT64_MAX, 4095,    1ull << 32 };

	if (next_random(random) % 4 == 0)
		return next_random(random) >> next_random(random) % 16;
	return values[next_random(random) % COUNT(values)];
}

static size_t change_inner(uint8_t *bytes, size_t length, size_t size, const struct field *f,
			   unsigned int *random)
{
	uint8_t inner[VARINT_MAX + INNER_MAX], *content = inner + VARINT_MAX;
	uint8_t head[VARINT_MAX];
	size_t n = f->end - f->value, head_length;

	if (n > INNER_MAX)
		return length;
	memcpy(content, bytes + f->value, n);
	n = fields_mutate(content, n, INNER_MAX, random);
	head_length = varint_write(head, n);
	memmove(content - head_length, head, head_length);
	return replace(bytes, length, size, f->tag_end, f->end, content - head_length,
		       head_length + n);
}

size_t fields_mutate(uint8_t *bytes, size_t length, size_t size, unsigned int *random)
{
	struct field fields[FIELDS_MAX], *f;
	uint8_t value[VARINT_MAX];
	size_t n = parse(bytes, length, fields);
	unsigned int what = next_random(random) % 8;

	if (n == 0 || what == 0)
		return LLVMFuzzerMutate(bytes, length, size);
	f = &fields[next_random(random) % n];
	if (what == 1)
		return replace(bytes, length, size, f->start, f->end, value, 0);
	if (what == 2 && f->end - f->start <= size - length) {
		/* Behind itself: a list grows, and of another field the last counts. */
		memmove(bytes + f->end + (f->end - f->start), bytes + f->end, length - f->end);
		memcpy(bytes + f->end, bytes + f->start, f->end - f->start);
		return length + (f->end - f->start);
	}
	if (f->wire == BYTES)
		return change_inner(bytes, length, size, f, random);
	if (f->wire == VARINT)
		return replace(bytes, length, size, f->value, f->end, value,
			       varint_write(value, number(random)));
	return LLVMFuzzerMutate(bytes, length, size);
}
