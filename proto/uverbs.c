/* SPDX-License-Identifier: Apache-2.0 */
#include "uverbs.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include <sys/ioctl.h>

/* The widest call is REG_DMABUF_MR. */
#define ATTRS_MAX 9
/* enum rdma_driver_id stands at 21 after fifteen years. */
#define DRIVER_IDS 64u
/* No object has this id: the probe fails after the driver id was compared and before anything is
 * done. */
#define NO_OBJECT 0xfff

/* The header ends in a flexible array of attributes: this is the room behind it. */
union call {
	struct ib_uverbs_ioctl_hdr hdr;
	uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) +
		     ATTRS_MAX * sizeof(struct ib_uverbs_attr)];
};

static union call call_init(uint32_t driver_id, uint16_t object, uint16_t method)
{
	return (union call){
		.hdr = { .object_id = object, .method_id = method, .driver_id = driver_id },
	};
}

static struct ib_uverbs_attr *call_add(union call *c, uint16_t id, size_t len)
{
	struct ib_uverbs_attr *a = &c->hdr.attrs[c->hdr.num_attrs++];

	a->attr_id = id;
	a->len = (uint16_t)len;
	a->flags = UVERBS_ATTR_F_MANDATORY;
	return a;
}

/* The kernel takes an input of 8 bytes or less inline and would misread a pointer to it. */
static void call_in(union call *c, uint16_t id, const void *data, size_t len)
{
	struct ib_uverbs_attr *a = call_add(c, id, len);

	if (len <= sizeof(a->data))
		memcpy(&a->data, data, len);
	else
		a->data = (uintptr_t)data;
}

static void call_out(union call *c, uint16_t id, void *data, size_t len)
{
	call_add(c, id, len)->data = (uintptr_t)data;
}

/* An object handle has length 0 and stands inline. */
static void call_handle(union call *c, uint16_t id, uint32_t handle)
{
	call_add(c, id, 0)->data = handle;
}

static int call_run(int fd, union call *c)
{
	c->hdr.length = (uint16_t)(sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->hdr.attrs[0]));
	if (ioctl(fd, RDMA_VERBS_IOCTL, &c->hdr) < 0)
		return -errno;
	return 0;
}

int uverbs_driver(int fd, uint32_t *ret_driver_id)
{
	for (uint32_t id = 1; id < DRIVER_IDS; id++) {
		union call c = call_init(id, NO_OBJECT, 0);
		int r = call_run(fd, &c);

		if (r == -EPROTONOSUPPORT) {
			*ret_driver_id = id;
			return 0;
		}
		if (r != -EINVAL)
			return r < 0 ? r : -EPROTO;
	}
	return -ENODEV;
}

int uverbs_reg_mr(int fd, const struct uverbs_reg *reg, struct uverbs_mr *ret_mr)
{
	union call c = call_init(reg->driver_id, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	struct ib_uverbs_reg_mr in = {
		.start = reg->start,
		.length = reg->length,
		.hca_va = reg->iova,
		.pd_handle = reg->pd_handle,
		.access_flags = reg->access,
	};
	struct ib_uverbs_reg_mr_resp out = { 0 };
	/* WRITE_CMD is an enum attribute: 8 bytes inline; 0 or 4 are refused with EINVAL. */
	uint64_t command = IB_USER_VERBS_CMD_REG_MR, driver_in = 0, driver_out = 0;
	int r;

	call_in(&c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	call_out(&c, UVERBS_ATTR_CORE_OUT, &out, sizeof(out));
	call_in(&c, UVERBS_ATTR_WRITE_CMD, &command, sizeof(command));
	if (reg->driver_in)
		call_in(&c, UVERBS_ATTR_UHW_IN, &driver_in, sizeof(driver_in));
	if (reg->driver_out)
		call_out(&c, UVERBS_ATTR_UHW_OUT, &driver_out, sizeof(driver_out));
	r = call_run(fd, &c);
	if (r < 0)
		return r;
	*ret_mr = (struct uverbs_mr){
		.handle = out.mr_handle,
		.lkey = out.lkey,
		.rkey = out.rkey,
		.iova = reg->iova,
		.length = reg->length,
	};
	return 0;
}

int uverbs_check_pd(int fd, uint32_t driver_id, uint32_t pd_handle)
{
	union call c = call_init(driver_id, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	uint64_t offset = 0, iova = 1, length = 1;
	uint32_t access = 0, lkey, rkey;
	int r;

	call_handle(&c, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd_handle);
	call_handle(&c, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	call_in(&c, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, &offset, sizeof(offset));
	call_in(&c, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, &length, sizeof(length));
	call_in(&c, UVERBS_ATTR_REG_DMABUF_MR_IOVA, &iova, sizeof(iova));
	call_handle(&c, UVERBS_ATTR_REG_DMABUF_MR_FD, 0);
	call_in(&c, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, &access, sizeof(access));
	call_out(&c, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &lkey, sizeof(lkey));
	call_out(&c, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &rkey, sizeof(rkey));
	r = call_run(fd, &c);
	return r == -ENOENT || r == -EBUSY || r == -EIO ? r : 0;
}

int uverbs_query_mr(int fd, uint32_t driver_id, uint32_t handle, struct uverbs_mr *ret_mr)
{
	union call c = call_init(driver_id, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
	struct uverbs_mr mr = { .handle = handle };
	int r;

	call_handle(&c, UVERBS_ATTR_QUERY_MR_HANDLE, handle);
	call_out(&c, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &mr.lkey, sizeof(mr.lkey));
	call_out(&c, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &mr.rkey, sizeof(mr.rkey));
	call_out(&c, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &mr.length, sizeof(mr.length));
	call_out(&c, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr.iova, sizeof(mr.iova));
	r = call_run(fd, &c);
	if (r < 0)
		return r;
	*ret_mr = mr;
	return 0;
}

int uverbs_destroy_mr(int fd, uint32_t driver_id, uint32_t handle)
{
	union call c = call_init(driver_id, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY);

	call_handle(&c, UVERBS_ATTR_DESTROY_MR_HANDLE, handle);
	return call_run(fd, &c);
}

bool uverbs_same_mr(const struct uverbs_mr *a, const struct uverbs_mr *b)
{
	return a->lkey == b->lkey && a->rkey == b->rkey && a->iova == b->iova &&
	       a->length == b->length;
}

int uverbs_check_mr(int fd, uint32_t driver_id, const struct uverbs_mr *mr)
{
	struct uverbs_mr now;
	int r = uverbs_query_mr(fd, driver_id, mr->handle, &now);

	if (r == -ENOENT || (r == 0 && !uverbs_same_mr(mr, &now)))
		return -ESTALE;
	return r;
}

int uverbs_destroy_same_mr(int fd, uint32_t driver_id, const struct uverbs_mr *mr)
{
	int r = uverbs_check_mr(fd, driver_id, mr);

	return r < 0 ? r : uverbs_destroy_mr(fd, driver_id, mr->handle);
}
