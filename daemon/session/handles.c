/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/handles.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static struct handle_slot *find(const struct handles *h, uint32_t number)
{
	size_t i = (number & 0xffffu) - 1u;

	if (i >= h->capacity || !h->slots[i].object || h->slots[i].generation != number >> 16)
		return NULL;
	return &h->slots[i];
}

int handles_init(struct handles *h, size_t capacity)
{
	assert(capacity < 0xffff);
	*h = (struct handles){ .capacity = capacity };
	h->slots = calloc(capacity, sizeof(*h->slots));
	return h->slots ? 0 : -ENOMEM;
}

void handles_fini(struct handles *h)
{
	assert(h->count == 0);
	free(h->slots);
	*h = (struct handles){ 0 };
}

uint32_t handles_add(struct handles *h, void *object)
{
	for (size_t n = 0; n < h->capacity; n++) {
		size_t i = (h->next + n) % h->capacity;

		if (h->slots[i].object)
			continue;
		h->slots[i].object = object;
		h->slots[i].generation++;
		h->count++;
		h->next = i + 1;
		return (uint32_t)h->slots[i].generation << 16 | (uint32_t)(i + 1);
	}
	return 0;
}

void *handles_get(const struct handles *h, uint32_t number)
{
	struct handle_slot *slot = find(h, number);

	return slot ? slot->object : NULL;
}

void *handles_remove(struct handles *h, uint32_t number)
{
	struct handle_slot *slot = find(h, number);
	void *object;

	if (!slot)
		return NULL;
	object = slot->object;
	slot->object = NULL;
	h->count--;
	/* The lowest freed slot is used next: an idle table's touched memory stays small. */
	if ((size_t)(slot - h->slots) < h->next)
		h->next = (size_t)(slot - h->slots);
	return object;
}

void *handles_each(const struct handles *h, size_t *at)
{
	while (*at < h->capacity) {
		struct handle_slot *slot = &h->slots[(*at)++];

		if (slot->object)
			return slot->object;
	}
	return NULL;
}
