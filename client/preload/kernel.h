/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_PRELOAD_KERNEL_H
#define KVREG_PRELOAD_KERNEL_H
/*
 * The two things that the preload asks the kernel for on its own: the verbs call that the program
 * made, and a copy of memory that may not be there. In a file of their own, so that a test can put
 * another kernel in their place.
 */
#include <stdbool.h>
#include <stddef.h>

/** kernel_verbs() - ioctl(@fd, RDMA_VERBS_IOCTL, @buffer), by number. Return: like ioctl(2). */
int kernel_verbs(int fd, void *buffer);

/**
 * kernel_copy() - copies @size bytes from @address of this process, where nothing may be mapped.
 *
 * Return: whether all of it was readable. errno is not kept.
 */
bool kernel_copy(void *ret_bytes, const void *address, size_t size);

#endif
