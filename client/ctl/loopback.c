/* SPDX-License-Identifier: Apache-2.0 */
#include "loopback.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "format.h"

/* Bytes of one work request, if the port takes messages that long. */
#define CHUNK (1u << 20)

/* Sets the problem; if a call failed (@errnum), with its error. Returns -errno. */
__attribute__((format(printf, 3, 4))) static int problem(struct loopback *lb, int errnum,
							 const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(lb->problem, sizeof(lb->problem), format, args);
	va_end(args);
	if (errnum && n >= 0 && (size_t)n < sizeof(lb->problem))
		snprintf(lb->problem + n, sizeof(lb->problem) - (size_t)n, ": %s",
			 strerror(errnum));
	return errnum ? -errnum : -EIO;
}

/* The device is there but the kernel would not pin its rings: this is not the daemon's to mend. */
static int no_queue(struct loopback *lb, const char *what, int errnum)
{
	struct rlimit limit = { 0 };

	if (errnum != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit))
		return problem(lb, errnum, "cannot make %s", what);
	return problem(lb, errnum,
		       "cannot make %s, whose ring this driver may pin against the limit of this "
		       "process itself (ulimit -l, now %s)",
		       what,
		       limit.rlim_cur == RLIM_INFINITY ? "unlimited"
						       : format_size(limit.rlim_cur).text);
}

/* ---------------------------------------------------------------- device, port, GID */

static int find_device(struct loopback *lb, struct ibv_device **list, int n, const char *name,
		       struct ibv_device **ret_device)
{
	char names[160] = "";
	size_t used = 0;

	for (int i = 0; i < n; i++) {
		if (!name || !strcmp(name, ibv_get_device_name(list[i]))) {
			*ret_device = list[i];
			return 0;
		}
		used += (size_t)snprintf(names + used, sizeof(names) - used, " %s",
					 ibv_get_device_name(list[i]));
		if (used >= sizeof(names))
			break;
	}
	if (!n)
		return problem(lb, 0,
			       "no RDMA device is to be seen here: is its driver loaded, and are "
			       "/dev/infiniband and its network namespace in this container?");
	return problem(lb, 0, "there is no RDMA device %s; there are:%s", format_text(name).text,
		       names);
}

static int open_device(struct loopback *lb, const char *name)
{
	struct ibv_device *device = NULL;
	struct ibv_device **list;
	int n, rc;

	list = ibv_get_device_list(&n);
	if (!list)
		return problem(lb, errno, "cannot list the RDMA devices");
	rc = find_device(lb, list, n, name, &device);
	if (!rc) {
		lb->context = ibv_open_device(device);
		if (!lb->context)
			rc = problem(lb, errno, "cannot open %s", ibv_get_device_name(device));
	}
	ibv_free_device_list(list);
	return rc;
}

/* How well a GID serves a connection to oneself: routable IPv4 is what every RoCE NIC has. */
static int gid_rank(const struct ibv_gid_entry *entry)
{
	const struct in6_addr *address = (const struct in6_addr *)entry->gid.raw;

	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 1;
	if (IN6_IS_ADDR_V4MAPPED(address))
		return 4;
	return IN6_IS_ADDR_LINKLOCAL(address) ? 2 : 3;
}

static int choose_gid(struct loopback *lb)
{
	struct ibv_gid_entry entry;
	int best = 0;

	for (int i = 0; i < lb->port.gid_tbl_len; i++) {
		/* Unused places of the table answer ENODATA. */
		if (ibv_query_gid_ex(lb->context, LOOPBACK_PORT, (uint32_t)i, &entry, 0))
			continue;
		if (gid_rank(&entry) <= best)
			continue;
		best = gid_rank(&entry);
		lb->gid = entry;
	}
	if (!best)
		return problem(lb, 0,
			       "port %d of %s has no GID: give its network interface an address",
			       LOOPBACK_PORT, loopback_name(lb));
	return 0;
}

static bool needs_grh(const struct loopback *lb)
{
	return lb->port.link_layer == IBV_LINK_LAYER_ETHERNET ||
	       (lb->port.flags & IBV_QPF_GRH_REQUIRED);
}

int loopback_open(struct loopback *lb, const char *device)
{
	int rc;

	rc = open_device(lb, device);
	if (rc)
		return rc;
	rc = ibv_query_port(lb->context, LOOPBACK_PORT, &lb->port);
	if (rc)
		return problem(lb, rc, "cannot ask for port %d of %s", LOOPBACK_PORT,
			       loopback_name(lb));
	lb->pd = ibv_alloc_pd(lb->context);
	if (!lb->pd)
		return problem(lb, errno, "cannot make a protection domain on %s",
			       loopback_name(lb));
	return 0;
}

const char *loopback_name(const struct loopback *lb)
{
	return ibv_get_device_name(lb->context->device);
}

bool loopback_can_connect(const struct loopback *lb)
{
	return lb->context->device->transport_type == IBV_TRANSPORT_IB;
}

/* ---------------------------------------------------------------- queues */

static int make_queues(struct loopback *lb)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	lb->channel = ibv_create_comp_channel(lb->context);
	if (!lb->channel)
		return problem(lb, errno, "cannot make a completion channel");
	lb->cq = ibv_create_cq(lb->context, 4, /* cq_context */ NULL, lb->channel,
			       /* comp_vector */ 0);
	if (!lb->cq)
		return no_queue(lb, "a completion queue", errno);
	attr.send_cq = attr.recv_cq = lb->cq;
	for (size_t i = 0; i < 2; i++) {
		lb->qps[i] = ibv_create_qp(lb->pd, &attr);
		if (!lb->qps[i])
			return no_queue(lb, "a queue pair", errno);
	}
	return 0;
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = LOOPBACK_PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_ready_to_receive(const struct loopback *lb, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = lb->port.active_mtu,
		.dest_qp_num = peer,
		.rq_psn = 0,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .dlid = lb->port.lid, .port_num = LOOPBACK_PORT },
	};

	if (needs_grh(lb)) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = lb->gid.gid;
		attr.ah_attr.grh.sgid_index = (uint8_t)lb->gid.gid_index;
		attr.ah_attr.grh.hop_limit = 64;
	}
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int to_ready_to_send(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 0,
		.max_rd_atomic = 1,
		.timeout = 14, /* 4.096 us * 2^14: 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
				     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
}

static int connect_queue(struct loopback *lb, struct ibv_qp *qp, uint32_t peer)
{
	int rc;

	rc = to_init(qp);
	if (rc)
		return problem(lb, rc, "cannot move a queue pair to INIT");
	rc = to_ready_to_receive(lb, qp, peer);
	if (rc)
		return problem(lb, rc, "cannot move a queue pair to RTR");
	rc = to_ready_to_send(qp);
	if (rc)
		return problem(lb, rc, "cannot move a queue pair to RTS");
	return 0;
}

int loopback_connect(struct loopback *lb)
{
	int rc;

	if (lb->port.state != IBV_PORT_ACTIVE)
		return problem(lb, 0, "port %d of %s is %s, not active", LOOPBACK_PORT,
			       loopback_name(lb), ibv_port_state_str(lb->port.state));
	if (needs_grh(lb)) {
		rc = choose_gid(lb);
		if (rc)
			return rc;
	}
	rc = make_queues(lb);
	if (rc)
		return rc;
	for (size_t i = 0; i < 2; i++) {
		rc = connect_queue(lb, lb->qps[i], lb->qps[1 - i]->qp_num);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---------------------------------------------------------------- data */

static int wait_event(struct loopback *lb)
{
	struct pollfd waited = { .fd = lb->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *arg;
	int n;

	do
		n = poll(&waited, 1, LOOPBACK_WAIT_MS);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return problem(lb, errno, "cannot wait for a completion");
	if (!n)
		return problem(lb, ETIMEDOUT, "a work request did not complete within %d s",
			       LOOPBACK_WAIT_MS / 1000);
	if (ibv_get_cq_event(lb->channel, &cq, &arg))
		return problem(lb, errno, "cannot take the completion event");
	ibv_ack_cq_events(cq, 1);
	return 0;
}

static int wait_completion(struct loopback *lb)
{
	struct ibv_wc wc;
	int n, rc;

	rc = wait_event(lb);
	if (rc)
		return rc;
	n = ibv_poll_cq(lb->cq, 1, &wc);
	if (n < 0)
		return problem(lb, 0, "cannot poll the completion queue");
	if (!n)
		return problem(lb, 0, "the completion queue had an event but no completion");
	if (wc.status != IBV_WC_SUCCESS)
		return problem(lb, 0, "a work request ended with %s (vendor error 0x%" PRIx32 ")",
			       ibv_wc_status_str(wc.status), wc.vendor_err);
	return 0;
}

static int move_chunk(struct loopback *lb, enum ibv_wr_opcode opcode,
		      const struct transfer *transfer, size_t offset, uint32_t length)
{
	struct ibv_sge sge = {
		.addr = transfer->local + offset,
		.length = length,
		.lkey = transfer->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = transfer->remote + offset, .rkey = transfer->rkey },
	};
	struct ibv_send_wr *bad;
	int rc;

	/* Armed before the post, so that the completion cannot slip by in between. */
	rc = ibv_req_notify_cq(lb->cq, /* solicited_only */ 0);
	if (rc)
		return problem(lb, rc, "cannot arm the completion queue");
	rc = ibv_post_send(lb->qps[0], &wr, &bad);
	if (rc)
		return problem(lb, rc, "cannot post a work request");
	return wait_completion(lb);
}

int loopback_move(struct loopback *lb, enum ibv_wr_opcode opcode, const struct transfer *transfer)
{
	size_t most = lb->port.max_msg_sz < CHUNK ? lb->port.max_msg_sz : CHUNK;
	size_t length, offset;
	int rc;

	for (offset = 0; offset < transfer->length; offset += length) {
		length = transfer->length - offset < most ? transfer->length - offset : most;
		rc = move_chunk(lb, opcode, transfer, offset, (uint32_t)length);
		if (rc)
			return rc;
	}
	return 0;
}

void loopback_close(struct loopback *lb)
{
	for (size_t i = 2; i-- > 0;)
		if (lb->qps[i])
			ibv_destroy_qp(lb->qps[i]);
	if (lb->cq)
		ibv_destroy_cq(lb->cq);
	if (lb->channel)
		ibv_destroy_comp_channel(lb->channel);
	if (lb->pd)
		ibv_dealloc_pd(lb->pd);
	if (lb->context)
		ibv_close_device(lb->context);
	*lb = (struct loopback){ 0 };
}
