/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_OPTIONS_H
#define KVREG_OPTIONS_H
/*
 * The public option structs begin with their size, so that a program built with an older or newer
 * header works: what an older one lacks counts as 0, what a newer one adds must be 0.
 */
#include <stdbool.h>
#include <stddef.h>

/**
 * options_copy() - copies @given over @own, which holds @size zero bytes. @given may be NULL.
 *
 * Return: false if @given has no sensible size or asks for something that this build lacks.
 */
bool options_copy(void *own, size_t size, const void *given);

#endif
