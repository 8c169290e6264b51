/* SPDX-License-Identifier: Apache-2.0 */
/* rdma-write DEVICE [GID-INDEX]: RDMA WRITEs one half of a registered buffer to the other. */
#include <err.h>
#include <kvreg-client.h>
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"

#define HALF ((size_t)8 << 20)

static void need(int ok, const char *what)
{
	char text[1024];

	kvreg_error_text(kvreg_last_error(), text, sizeof(text));
	if (!ok)
		errx(1, "cannot %s; %s", what, text);
}

int main(int argc, char **argv)
{
	struct ibv_context *context = argc > 1 ? open_device(argv[1]) : NULL;
	need(context != NULL, "open the device");
	int gid = argc > 2 ? atoi(argv[2]) : find_gid(context);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 2, NULL, NULL, 0);
	struct ibv_qp *left = make_qp(pd, cq), *right = make_qp(pd, cq);
	need(left && right, "make two queue pairs");
	need(connect_qp(left, right, gid) == 0 && connect_qp(right, left, gid) == 0, "connect");

	uint32_t access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct kvreg *k;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	void *memory;
	need(kvreg_open(NULL, &k) == 0, "reach kvregd");
	need(kvreg_attach_pd(k, pd, &domain) == 0, "attach the protection domain");
	need(kvreg_buffer_alloc(k, 2 * HALF, 0, &memory, &buffer) == 0, "allocate");
	need(kvreg_register(domain, buffer, 0, 2 * HALF, 0, access, NULL, &region) == 0,
	     "register");

	char *from = memory, *to = from + HALF;
	memset(from, 'k', HALF);
	struct ibv_sge source = { (uintptr_t)from, HALF, kvreg_lkey(region) };
	struct ibv_send_wr *bad, write = { .sg_list = &source, .num_sge = 1 };
	write.opcode = IBV_WR_RDMA_WRITE;
	write.send_flags = IBV_SEND_SIGNALED;
	write.wr.rdma.remote_addr = (uintptr_t)to;
	write.wr.rdma.rkey = kvreg_rkey(region);
	need(ibv_post_send(left, &write, &bad) == 0, "post the write");
	struct ibv_wc done;
	while (ibv_poll_cq(cq, 1, &done) == 0)
		;
	need(done.status == IBV_WC_SUCCESS && memcmp(from, to, HALF) == 0, "write");
	printf("rdma-write: %zu bytes through %s\n", HALF, kvreg_domain_device(domain));
	kvreg_close(k);
	return 0;
}
