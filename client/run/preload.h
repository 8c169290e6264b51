/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_RUN_PRELOAD_H
#define KVREG_RUN_PRELOAD_H
/* The library to preload: beside this program, as in the build tree and the bundle; else installed. */
#include <stddef.h>

/**
 * preload_find() - the path of libkvreg-preload.so.
 * @beside: a directory, looked at first
 *
 * Return: 0; -ENOENT it is in neither; -EINVAL ld.so(8) could not be told: its list is divided at
 * colons and blanks; -ENAMETOOLONG.
 */
int preload_find(const char *beside, char *ret_path, size_t size);

/** preload_set() - puts @path before what LD_PRELOAD has. Return: 0 or -errno. */
int preload_set(const char *path);

#endif
