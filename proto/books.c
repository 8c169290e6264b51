/* SPDX-License-Identifier: Apache-2.0 */
#include "books.h"

#include "limits.h"

static const struct {
	const char *name;
	const char *unit;
	uint64_t room_min, room_max;
} books[BOOKS] = {
	[BOOK_SESSIONS] = { "sessions", "", 0, 0 },
	[BOOK_MEMORY] = { "memory", " bytes", GRANT_ROOM_MIN, GRANT_ROOM_MAX },
	[BOOK_CHARGE] = { "charge", " bytes", GRANT_ROOM_MIN, GRANT_ROOM_MAX },
	[BOOK_GPU] = { "gpu", " bytes", GRANT_ROOM_MIN, GRANT_ROOM_MAX },
	[BOOK_DOMAINS] = { "domains", "", GRANT_OBJECTS_MIN, GRANT_OBJECTS_MAX },
	[BOOK_BUFFERS] = { "buffers", "", GRANT_OBJECTS_MIN, GRANT_OBJECTS_MAX },
	[BOOK_REGIONS] = { "regions", "", GRANT_OBJECTS_MIN, GRANT_OBJECTS_MAX },
};

const char *book_name(enum book book)
{
	return books[book].name;
}

const char *book_unit(enum book book)
{
	return books[book].unit;
}

uint64_t book_room(enum book book, uint64_t amount)
{
	uint64_t room = amount;

	if (room < books[book].room_min)
		room = books[book].room_min;
	if (room > books[book].room_max)
		room = books[book].room_max;
	return amount > UINT64_MAX - room ? amount : amount + room;
}

void amounts_to_wire(const struct amounts *amounts, Kvreg__Amounts *ret_wire)
{
	*ret_wire = (Kvreg__Amounts)KVREG__AMOUNTS__INIT;
	ret_wire->memory = amounts->of[BOOK_MEMORY];
	ret_wire->charge = amounts->of[BOOK_CHARGE];
	ret_wire->gpu = amounts->of[BOOK_GPU];
	ret_wire->domains = amounts->of[BOOK_DOMAINS];
	ret_wire->buffers = amounts->of[BOOK_BUFFERS];
	ret_wire->regions = amounts->of[BOOK_REGIONS];
}

struct amounts amounts_from_wire(const Kvreg__Amounts *wire)
{
	struct amounts amounts = { { 0 } };

	if (!wire)
		return amounts;
	amounts.of[BOOK_MEMORY] = wire->memory;
	amounts.of[BOOK_CHARGE] = wire->charge;
	amounts.of[BOOK_GPU] = wire->gpu;
	amounts.of[BOOK_DOMAINS] = wire->domains;
	amounts.of[BOOK_BUFFERS] = wire->buffers;
	amounts.of[BOOK_REGIONS] = wire->regions;
	return amounts;
}
