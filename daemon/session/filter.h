/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_FILTER_H
#define KVREG_SESSION_FILTER_H
/*
 * The system calls that are left to this process, and with which arguments: two tables.
 *
 *  - narrow: what serving a client takes. Nothing is opened, run, forked, signalled or connected.
 *  - wide: that, and what libcuda.so.1 takes. Files are opened (which ones, Landlock decides),
 *    code is mapped, threads are made; still nothing is run or forked, and no other process is
 *    touched.
 *
 * The wide set is built from both tables, so a narrow filter on top of a wide one leaves exactly
 * the narrow set. A call outside fails with EPERM and does not kill: a libc that one day needs one
 * more call then costs a feature, not every session of a cluster.
 */
#include <seccomp.h>

enum filter { FILTER_NARROW, FILTER_WIDE };

/** filter_new() - made but not in force; freed by seccomp_release(). NULL: no memory. */
scmp_filter_ctx filter_new(enum filter which);

/** filter_load() - in force from here on, beside any that was before. Return: 0 or -errno. */
int filter_load(enum filter which);

#endif
