/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_BOOKS_H
#define KVREG_BOOKS_H
/*
 * What is counted, each with limits of its own.
 *
 * Memory is what clients keep from being swapped or freed: a page counts once, however many
 * regions a session has over it. Charge is what the kernel counts against RLIMIT_MEMLOCK: each
 * region's pages, again for each region, so a buffer on eight devices counts eight times. The
 * kernel enforces the charge; of memory it knows nothing, so that book is the session's word, and
 * bounded by the charge. GPU bytes take none of the host's memory.
 */
#include <stdint.h>

#include "control.pb-c.h"

enum book {
	BOOK_SESSIONS,
	BOOK_MEMORY, /* bytes */
	BOOK_CHARGE, /* bytes */
	BOOK_GPU,    /* bytes */
	BOOK_DOMAINS,
	BOOK_BUFFERS,
	BOOK_REGIONS,
	BOOKS,
};

/** One number a book. */
struct amounts {
	uint64_t of[BOOKS];
};

/** book_name() - "memory", as keys of the configuration and errors have it. */
const char *book_name(enum book book);

/** book_unit() - " bytes" or "", to stand behind a number. */
const char *book_unit(enum book book);

/**
 * book_room() - @amount and as much again, within bounds, so that a session asks seldom.
 * Not more: with a fixed 64 MiB, 32 small clients held all of 2 GiB of quota.
 */
uint64_t book_room(enum book book, uint64_t amount);

/** amounts_to_wire() - all but the sessions, which are not a session's to ask for. */
void amounts_to_wire(const struct amounts *amounts, Kvreg__Amounts *ret_wire);

/** amounts_from_wire() - the same back; NULL is nothing at all. */
struct amounts amounts_from_wire(const Kvreg__Amounts *wire);

#endif
