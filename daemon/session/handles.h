/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_HANDLES_H
#define KVREG_SESSION_HANDLES_H
/*
 * Numbers for a client to name our objects by. A number holds its slot (low 16 bits, from 1) and a
 * generation (high 16 bits) that changes each time the slot is used again, so that a number kept
 * too long is refused and does not hit another object.
 */
#include <stddef.h>
#include <stdint.h>

struct handle_slot {
	void *object; /* NULL: free */
	uint16_t generation;
};

struct handles {
	size_t capacity; /* at most 65535 */
	size_t count;
	size_t next; /* where the search for a free slot begins */
	struct handle_slot *slots;
};

/** handles_init() - room for @capacity objects; memory is touched as it is used. 0 or -ENOMEM. */
int handles_init(struct handles *h, size_t capacity);

/** handles_fini() - frees the table. Objects are the caller's: asserts that none is left. */
void handles_fini(struct handles *h);

/** handles_add() - gives @object a number. Return: the number, or 0 when the table is full. */
uint32_t handles_add(struct handles *h, void *object);

/** handles_get() - Return: the object, or NULL if @number names none. */
void *handles_get(const struct handles *h, uint32_t number);

/** handles_remove() - forgets @number. Return: its object, or NULL. */
void *handles_remove(struct handles *h, uint32_t number);

/** handles_each() - the first object at or after slot *@at, which moves behind it; NULL: none. */
void *handles_each(const struct handles *h, size_t *at);

#endif
