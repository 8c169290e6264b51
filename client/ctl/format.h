/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_FORMAT_H
#define KVREG_CTL_FORMAT_H
/*
 * Numbers and names as people read and write them. What is made here is a value, so that
 * format_size(n).text can stand where the text is wanted; it lives until the end of the statement.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shown {
	char text[256];
};

/** format_size() - bytes with one decimal at most: "0", "512B", "4K", "1.5G". */
struct shown format_size(uint64_t bytes);

/** format_duration() - milliseconds in the two units that matter: "45s", "5m20s", "3h12m", "2d4h".
 */
struct shown format_duration(uint64_t ms);

/** format_address() - "0x7f0000000000". */
struct shown format_address(uint64_t address);

/**
 * format_access() - IBV_ACCESS_* bits as letters: L local write, W remote write, R remote read,
 * A remote atomic, M window bind, O relaxed ordering; other bits in hexadecimal, "-" for none.
 */
struct shown format_access(uint32_t access);

/** format_text() - @text (may be NULL) as far as it fits, made safe for a terminal; "-" if empty.
 */
struct shown format_text(const char *text);

/** format_tail() - the same, but of a text longer than @width only its end: "...0123.scope". */
struct shown format_tail(const char *text, size_t width);

/** format_user() - the user's name, or the number of a user without one. */
struct shown format_user(uint32_t uid);

/** user_name() - the name of @uid, "" if it has none or it cannot be looked up. */
struct shown user_name(uint32_t uid);

/**
 * parse_size() - reads a number of bytes, which K, M, G or T may follow (of 1024).
 *
 * Return: false if @text is no such number or too large.
 */
bool parse_size(const char *text, uint64_t *ret_bytes);

/** parse_count() - reads a number from 1 to @most. Return: false if @text is none. */
bool parse_count(const char *text, uint32_t most, uint32_t *ret_count);

/** parse_pid() - reads a process id, greater than 0. Return: false if @text is none. */
bool parse_pid(const char *text, uint32_t *ret_pid);

#endif
