/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_PRELOAD_VERBS_H
#define KVREG_PRELOAD_VERBS_H
/*
 * What a verbs call that failed had wanted: the program's own ioctl buffer, read again.
 *
 * The buffer is the program's and may be anything; the kernel may have refused it unread. Each part
 * is copied through the kernel (kernel_copy), which refuses what is not mapped, and nothing is
 * believed that the kernel would not have believed (ib_uverbs_ioctl): a length that fits the number
 * of attributes, at most a page.
 */
#include <stdbool.h>
#include <stdint.h>

enum verbs_kind {
	VERBS_OTHER,    /* nothing that pins memory, or not readable */
	VERBS_REGISTER, /* pins the caller's memory from start to start + length */
	VERBS_FOREIGN,  /* registers what is not the caller's memory: a dma-buf, device memory */
	VERBS_RING,     /* a driver may pin memory for it, which only the driver's part names */
};

struct verbs_call {
	enum verbs_kind kind;
	const char *name; /* as in the kernel's headers, without prefix: "REG_MR"; static */
	uint64_t start;   /* VERBS_REGISTER: an address; VERBS_FOREIGN: the offset in @fd */
	uint64_t length;
	uint64_t iova;
	uint32_t access; /* IBV_ACCESS_*; 0 where it has none */
	int fd;          /* VERBS_FOREIGN: the dma-buf, borrowed; -1: none */
	bool probe;      /* dma-buf -1: NCCL and UCX ask so whether the kernel can (EBADF) */
};

/** verbs_read() - reads @buffer, the argument of a RDMA_VERBS_IOCTL. errno is not kept. */
struct verbs_call verbs_read(const void *buffer);

/** verbs_pages() - the bytes that a call of VERBS_REGISTER pins: whole pages; at most 2^63. */
uint64_t verbs_pages(const struct verbs_call *call);

#endif
