/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_FUZZ_FIELDS_H
#define KVREG_FUZZ_FIELDS_H
/*
 * Changes a protobuf message and leaves it one, mostly: drops, doubles or changes a field, however
 * deep, and sets the lengths around it right. Changes of single bytes alone hardly ever get past
 * the decoder.
 */
#include <stddef.h>
#include <stdint.h>

/** next_random() - the next of a row of numbers, below 65536. */
unsigned int next_random(unsigned int *state);

/** fields_mutate() - changes @bytes in place. Return: the new length, at most @size. */
size_t fields_mutate(uint8_t *bytes, size_t length, size_t size, unsigned int *random);

#endif
