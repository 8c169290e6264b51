/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_FUZZ_SCRIPT_H
#define KVREG_FUZZ_SCRIPT_H
/*
 * An input of a fuzzer is a script: what the hostile side does, step by step, so that one input can
 * reach any state.
 *
 *	input = step*    step = op (1 byte), arg (1), length (2, little endian), bytes
 *
 * What op and arg mean is each fuzzer's own. Any bytes are a script: a length that goes beyond the
 * end means all that is left. script.c also has libFuzzer's mutators, which change one step or move
 * whole ones, and keep the lengths right.
 */
#include <stddef.h>
#include <stdint.h>

#define STEPS_MAX 64u

struct step {
	uint8_t op;
	uint8_t arg;
	size_t length;
	const uint8_t *bytes; /* in the input */
};

struct script {
	size_t count;
	struct step steps[STEPS_MAX];
};

/** script_read() - takes @data apart; what follows the last possible step is dropped. */
void script_read(struct script *ret_script, const uint8_t *data, size_t size);

/** script_write() - the opposite. Return: the size, or 0 if it does not fit. */
size_t script_write(const struct script *script, uint8_t *data, size_t size);

/** step_byte() - byte @i of the step, 0 beyond its end. */
uint8_t step_byte(const struct step *step, size_t i);

/* libFuzzer's */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size,
				 unsigned int seed);

#endif
