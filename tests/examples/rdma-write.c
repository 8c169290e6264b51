/* SPDX-License-Identifier: Apache-2.0 */
/* rdma-write DEVICE GID-INDEX: RDMA WRITEs one half of a registered buffer over the other half. */
#include <err.h>
#include <infiniband/verbs.h>
#include <kvreg-client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { HALF = 8 << 20 };
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define INIT   (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define READY  (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define SEND   (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
		IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define NEED(what) ((what) ? (void)0 : errx(1, "failed: %s", #what))

static void ok(int result) /* of a kvreg call: on failure the library knows the whole story */
{
	char text[1024];
	if (result < 0 && kvreg_error_text(kvreg_last_error(), text, sizeof(text)))
		errx(1, "%s", text);
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	while (argc == 3 && *list && strcmp(ibv_get_device_name(*list), argv[1]) != 0)
		list++;
	struct ibv_context *device = argc == 3 && *list ? ibv_open_device(*list) : NULL;
	struct ibv_qp_init_attr make = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_pd *pd = (NEED(device), ibv_alloc_pd(device));
	make.send_cq = make.recv_cq = ibv_create_cq(device, 1, NULL, NULL, 0);
	struct ibv_qp *qp = ibv_create_qp(pd, &make); /* connected to itself: both ends are ours */
	struct ibv_qp_attr at = { .qp_state = IBV_QPS_INIT, .port_num = 1, .timeout = 14,
				  .retry_cnt = 7, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num,
				  .ah_attr = { .is_global = 1, .port_num = 1 }, .qp_access_flags = ACCESS };
	at.ah_attr.grh.sgid_index = (uint8_t)atoi(argv[2]);
	NEED(ibv_query_gid(device, 1, atoi(argv[2]), &at.ah_attr.grh.dgid) == 0);
	NEED(ibv_modify_qp(qp, &at, INIT) == 0);
	NEED((at.qp_state = IBV_QPS_RTR, ibv_modify_qp(qp, &at, READY)) == 0);
	NEED((at.qp_state = IBV_QPS_RTS, ibv_modify_qp(qp, &at, SEND)) == 0);
	struct kvreg *k; struct kvreg_domain *domain; struct kvreg_buffer *buffer;
	struct kvreg_region *region; void *memory;
	ok(kvreg_open(NULL, &k));
	ok(kvreg_attach_pd(k, pd, &domain));
	ok(kvreg_buffer_alloc(k, 2 * HALF, 0, &memory, &buffer));
	ok(kvreg_register(domain, buffer, 0, 2 * HALF, 0, ACCESS, NULL, &region));
	char *to = memset((char *)memory + HALF, 0, HALF), *from = memset(memory, 'k', HALF);
	struct ibv_sge part = { (uintptr_t)from, HALF, kvreg_lkey(region) };
	struct ibv_send_wr *bad, write = { .sg_list = &part, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { (uintptr_t)to, kvreg_rkey(region) } };
	struct ibv_wc done = { .status = IBV_WC_GENERAL_ERR };
	NEED(ibv_post_send(qp, &write, &bad) == 0);
	while (ibv_poll_cq(make.send_cq, 1, &done) == 0) {}
	NEED(done.status == IBV_WC_SUCCESS && memcmp(from, to, HALF) == 0);
	ok(kvreg_deregister(region));
	kvreg_close(k);
	return printf("rdma-write: %d bytes by RDMA through %s\n", HALF, argv[1]) < 0;
}
