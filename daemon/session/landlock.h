/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_LANDLOCK_H
#define KVREG_SESSION_LANDLOCK_H
/*
 * Which files this process can open, by the kernel's Landlock: none, or those below a short list of
 * places that libcuda.so.1 needs. Either way no TCP port is used and, on newer kernels, nobody
 * outside is signalled. Domains stack: a file must be allowed by each.
 *
 * Landlock decides on opening. It hides no names and no attributes (stat, readlink), and what is
 * open already stays so.
 */
#include <stdbool.h>

/** landlock_works() - whether this kernel has it, switched on. */
bool landlock_works(void);

/** landlock_deny() - from here on nothing can be opened. Return: 0, or -errno (ENOSYS ...). */
int landlock_deny(void);

/**
 * landlock_allow_cuda() - from here on only what libcuda.so.1 needs can be opened. What does not
 * exist yet is not in the list: a driver that is loaded later serves later sessions.
 * @ret_pin: an fd that must stay open as long as threads are to be named
 *
 * Return: 0 or -errno.
 */
int landlock_allow_cuda(int *ret_pin);

#endif
