/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_LOOPBACK_H
#define KVREG_CTL_LOOPBACK_H
/*
 * An RDMA device used by one process for both ends: two reliable queue pairs of port 1 that are
 * connected to each other. One work request is under way at a time; its completion is waited for
 * through the completion channel.
 *
 * The memory is registered elsewhere. Of its own memory the device pins here only what the rings of
 * the queues take, against this process's limit (drivers such as mlx5), so they are made as small
 * as can be.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define LOOPBACK_PORT 1
/* How long one work request may take: far above what retries need before they give up. */
#define LOOPBACK_WAIT_MS 20000

/* Half built is fine for all but the call that comes next: pointers are NULL until made. */
struct loopback {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qps[2]; /* work is posted to the first */
	struct ibv_port_attr port;
	struct ibv_gid_entry gid; /* of RoCE ports */
	char problem[256];        /* why the last call failed: one sentence */
};

/* What to move: both ends lie in the memory region of these keys. */
struct transfer {
	uint64_t local, remote; /* addresses as the region knows them */
	size_t length;
	uint32_t lkey, rkey;
};

/**
 * loopback_open() - opens a device and makes a protection domain.
 * @lb: zeroed; to be ended with loopback_close(), also after a failure
 * @device: its name, NULL for the first one
 *
 * Return: 0 or -errno, with the problem set.
 */
int loopback_open(struct loopback *lb, const char *device);

/** loopback_name() - the name of the open device. */
const char *loopback_name(const struct loopback *lb);

/** loopback_can_connect() - whether the device has queue pairs that connect without rdma_cm. */
bool loopback_can_connect(const struct loopback *lb);

/**
 * loopback_connect() - makes the queue pairs and connects them to each other.
 *
 * Return: 0 or -errno, with the problem set.
 */
int loopback_connect(struct loopback *lb);

/**
 * loopback_move() - moves bytes and waits until they are there.
 * @opcode: IBV_WR_RDMA_WRITE, from local to remote, or IBV_WR_RDMA_READ, the other way
 *
 * Return: 0 or -errno, with the problem set.
 */
int loopback_move(struct loopback *lb, enum ibv_wr_opcode opcode, const struct transfer *transfer);

/** loopback_close() - undoes all of it. Regions of the protection domain must be gone before. */
void loopback_close(struct loopback *lb);

#endif
