/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/script.h"

#include <string.h>

#include "tests/fuzz/fields.h"

#define HEAD 4u

void script_read(struct script *ret_script, const uint8_t *data, size_t size)
{
	size_t at = 0;

	ret_script->count = 0;
	while (size - at >= HEAD && ret_script->count < STEPS_MAX) {
		struct step *step = &ret_script->steps[ret_script->count++];

		step->op = data[at];
		step->arg = data[at + 1];
		step->length = data[at + 2] | (size_t)data[at + 3] << 8;
		at += HEAD;
		if (step->length > size - at)
			step->length = size - at;
		step->bytes = data + at;
		at += step->length;
	}
}

size_t script_write(const struct script *script, uint8_t *data, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < script->count; i++) {
		const struct step *step = &script->steps[i];

		if (step->length > UINT16_MAX || HEAD + step->length > size - at)
			return 0;
		data[at] = step->op;
		data[at + 1] = step->arg;
		data[at + 2] = (uint8_t)step->length;
		data[at + 3] = (uint8_t)(step->length >> 8);
		memcpy(data + at + HEAD, step->bytes, step->length);
		at += HEAD + step->length;
	}
	return at;
}

uint8_t step_byte(const struct step *step, size_t i)
{
	return i < step->length ? step->bytes[i] : 0;
}

/* ---- mutation ---- */

static void insert(struct script *script, size_t at, const struct step *step)
{
	struct step copy = *step;

	if (script->count == STEPS_MAX)
		return;
	memmove(&script->steps[at + 1], &script->steps[at],
		(script->count - at) * sizeof(script->steps[0]));
	script->steps[at] = copy;
	script->count++;
}

static void drop(struct script *script, size_t at)
{
	script->count--;
	memmove(&script->steps[at], &script->steps[at + 1],
		(script->count - at) * sizeof(script->steps[0]));
}

/* Changes the bytes of one step. @room: where they lie from then on. */
static void change_bytes(struct step *step, uint8_t *room, size_t size, unsigned int *random)
{
	if (step->length > size)
		step->length = size;
	memcpy(room, step->bytes, step->length);
	if (next_random(random) % 4 == 0)
		step->length = LLVMFuzzerMutate(room, step->length, size);
	else
		step->length = fields_mutate(room, step->length, size, random);
	step->bytes = room;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static uint8_t room[12288], out[1u << 16];
	struct script script;
	size_t at, to, length;

	script_read(&script, data, size);
	if (script.count == 0 || next_random(&seed) % 16 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	at = next_random(&seed) % script.count;
	to = next_random(&seed) % script.count;
	switch (next_random(&seed) % 12) {
	case 0:
		script.steps[at].op = (uint8_t)next_random(&seed);
		break;
	case 1:
	case 2:
		script.steps[at].arg = (uint8_t)next_random(&seed);
		break;
	case 3:
		drop(&script, at);
		break;
	case 4:
	case 5:
		insert(&script, to, &script.steps[at]);
		break;
	case 6: {
		struct step step = script.steps[at];

		script.steps[at] = script.steps[to];
		script.steps[to] = step;
		break;
	}
	default:
		change_bytes(&script.steps[at], room, sizeof(room), &seed);
	}
	length = script_write(&script, out, max_size < sizeof(out) ? max_size : sizeof(out));
	if (length == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(data, out, length);
	return length;
}

/* The beginning of one script and the end of another. Asked for as often as a mutation, which
 * would tear most runs apart: 0 lets libFuzzer choose again. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size, unsigned int seed)
{
	struct script a, b;
	size_t from;

	script_read(&a, data1, size1);
	script_read(&b, data2, size2);
	if (a.count == 0 || b.count == 0 || next_random(&seed) % 16 != 0)
		return 0;
	a.count = 1 + next_random(&seed) % a.count;
	for (from = next_random(&seed) % b.count; from < b.count; from++)
		insert(&a, a.count, &b.steps[from]);
	return script_write(&a, out, max_out_size);
}
