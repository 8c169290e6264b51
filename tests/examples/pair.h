/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PAIR_H
#define PAIR_H
/*
 * Two RC queue pairs of one RoCE port, connected to each other: what any verbs program does, with
 * nothing of kvreg in it. Functions return NULL or -1 on failure.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>

#define PAIR_PORT 1

/* What libibverbs wants to be told on the way to each state (ibv_modify_qp(3), RC). */
static const int pair_masks[] = {
	[IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	[IBV_QPS_RTR] = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	[IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
};

static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_device **all = ibv_get_device_list(NULL);

	for (int i = 0; all && all[i]; i++)
		if (strcmp(ibv_get_device_name(all[i]), name) == 0)
			return ibv_open_device(all[i]);
	return NULL;
}

/* The first RoCE v2 GID that holds an IPv4 address. */
static inline int find_gid(struct ibv_context *context)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry e;

	for (uint32_t i = 0; ibv_query_gid_ex(context, PAIR_PORT, i, &e, 0) == 0; i++)
		if (e.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(e.gid.raw, mapped, sizeof(mapped)) == 0)
			return (int)i;
	return -1;
}

static inline struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ibv_create_qp(pd, &attr);
}

static inline int connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer, int gid)
{
	struct ibv_qp_attr attr = {
		.port_num = PAIR_PORT,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.ah_attr = { .is_global = 1, .port_num = PAIR_PORT },
		.timeout = 14,
		.retry_cnt = 7,
	};

	attr.ah_attr.grh.sgid_index = (uint8_t)gid;
	attr.ah_attr.grh.hop_limit = 1;
	if (ibv_query_gid(qp->context, PAIR_PORT, gid, &attr.ah_attr.grh.dgid))
		return -1;
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		attr.qp_state = (enum ibv_qp_state)state;
		if (ibv_modify_qp(qp, &attr, pair_masks[state]))
			return -1;
	}
	return 0;
}

#endif
