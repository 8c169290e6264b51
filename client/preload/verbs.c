/* SPDX-License-Identifier: Apache-2.0 */
#include "client/preload/verbs.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "client/preload/kernel.h"

/* The kernel takes a header and attributes up to a page of 4 KiB (ib_uverbs_ioctl). */
#define BUFFER_MAX 4096u

/* Linux 6.17, younger than the headers that this may be built with. */
#define METHOD_REG_MR 5
enum {
	REG_MR_IOVA = 3,
	REG_MR_ADDR,
	REG_MR_LENGTH,
	REG_MR_ACCESS_FLAGS,
	REG_MR_FD,
	REG_MR_FD_OFFSET
};

/* IB_MR_REREG_TRANS: the region gets another range. */
#define REREG_TRANSLATION 1u

union buffer {
	struct ib_uverbs_ioctl_hdr hdr;
	uint8_t bytes[BUFFER_MAX];
};

struct row {
	uint16_t object, method;
	enum verbs_kind kind;
	const char *name;
	bool (*read)(const union buffer *b, struct verbs_call *call); /* NULL: nothing to read */
};

struct command {
	uint32_t number;
	enum verbs_kind kind;
	const char *name;
	bool (*read)(const union buffer *b, struct verbs_call *call);
};

static const struct ib_uverbs_attr *find(const union buffer *b, uint16_t id)
{
	for (uint16_t i = 0; i < b->hdr.num_attrs; i++)
		if (b->hdr.attrs[i].attr_id == id)
			return &b->hdr.attrs[i];
	return NULL;
}

/* The first @size bytes of an input, which stands in the attribute if it has 8 bytes or less. */
static bool input(const union buffer *b, uint16_t id, void *ret_bytes, size_t size)
{
	const struct ib_uverbs_attr *a = find(b, id);

	if (!a || a->len < size)
		return false;
	if (a->len > sizeof(a->data))
		return kernel_copy(ret_bytes, (const void *)(uintptr_t)a->data, size);
	memcpy(ret_bytes, &a->data, size);
	return true;
}

static bool number(const union buffer *b, uint16_t id, uint64_t *ret_number)
{
	return input(b, id, ret_number, sizeof(*ret_number));
}

/* A set of flags is sent in 4 or in 8 bytes (uverbs_get_flags64). */
static void flags(const union buffer *b, uint16_t id, uint32_t *ret_flags)
{
	(void)input(b, id, ret_flags, sizeof(*ret_flags));
}

/* An fd stands inline, with length 0. */
static int descriptor(const union buffer *b, uint16_t id)
{
	const struct ib_uverbs_attr *a = find(b, id);

	return a && a->data_s64 >= 0 && a->data_s64 <= INT32_MAX ? (int)a->data_s64 : -1;
}

static bool read_reg_mr(const union buffer *b, struct verbs_call *call)
{
	struct ib_uverbs_reg_mr in = { 0 };

	if (!input(b, UVERBS_ATTR_CORE_IN, &in, sizeof(in)))
		return false;
	call->start = in.start;
	call->length = in.length;
	call->iova = in.hca_va;
	call->access = in.access_flags;
	return true;
}

static bool read_rereg_mr(const union buffer *b, struct verbs_call *call)
{
	struct ib_uverbs_rereg_mr in = { 0 };

	if (!input(b, UVERBS_ATTR_CORE_IN, &in, sizeof(in)) || !(in.flags & REREG_TRANSLATION))
		return false;
	call->start = in.start;
	call->length = in.length;
	call->iova = in.hca_va;
	call->access = in.access_flags;
	return true;
}

static bool read_new_reg_mr(const union buffer *b, struct verbs_call *call)
{
	if (!number(b, REG_MR_LENGTH, &call->length) || !number(b, REG_MR_IOVA, &call->iova))
		return false;
	flags(b, REG_MR_ACCESS_FLAGS, &call->access);
	if (number(b, REG_MR_ADDR, &call->start))
		return true;
	call->kind = VERBS_FOREIGN;
	call->fd = descriptor(b, REG_MR_FD);
	call->probe = call->fd < 0;
	return number(b, REG_MR_FD_OFFSET, &call->start);
}

static bool read_dmabuf(const union buffer *b, struct verbs_call *call)
{
	call->fd = descriptor(b, UVERBS_ATTR_REG_DMABUF_MR_FD);
	call->probe = call->fd < 0;
	flags(b, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, &call->access);
	return number(b, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, &call->start) &&
	       number(b, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, &call->length) &&
	       number(b, UVERBS_ATTR_REG_DMABUF_MR_IOVA, &call->iova);
}

static bool read_umem(const union buffer *b, struct verbs_call *call)
{
	if (!number(b, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, &call->start) ||
	    !number(b, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, &call->length))
		return false;
	call->iova = call->start;
	flags(b, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, &call->access);
	return true;
}

/* Write commands, also the extended ones, which have the same numbers where both exist. */
static const struct command commands[] = {
	{ IB_USER_VERBS_CMD_REG_MR, VERBS_REGISTER, "REG_MR", read_reg_mr },
	{ IB_USER_VERBS_CMD_REREG_MR, VERBS_REGISTER, "REREG_MR", read_rereg_mr },
	{ IB_USER_VERBS_CMD_CREATE_CQ, VERBS_RING, "CREATE_CQ", NULL },
	{ IB_USER_VERBS_CMD_RESIZE_CQ, VERBS_RING, "RESIZE_CQ", NULL },
	{ IB_USER_VERBS_CMD_CREATE_QP, VERBS_RING, "CREATE_QP", NULL },
	{ IB_USER_VERBS_CMD_CREATE_SRQ, VERBS_RING, "CREATE_SRQ", NULL },
	{ IB_USER_VERBS_CMD_CREATE_XSRQ, VERBS_RING, "CREATE_XSRQ", NULL },
	{ IB_USER_VERBS_EX_CMD_CREATE_WQ, VERBS_RING, "CREATE_WQ", NULL },
};

static const struct row rows[] = {
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, VERBS_RING, "CQ_CREATE", NULL },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, VERBS_RING, "QP_CREATE", NULL },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, VERBS_RING, "SRQ_CREATE", NULL },
	{ UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, VERBS_RING, "WQ_CREATE", NULL },
	{ UVERBS_OBJECT_MR, METHOD_REG_MR, VERBS_REGISTER, "REG_MR", read_new_reg_mr },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, VERBS_FOREIGN, "REG_DMABUF_MR",
	  read_dmabuf },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, VERBS_FOREIGN, "DM_MR_REG", NULL },
};

/* Firmware commands: they pin nothing, and are not for us to repeat. */
static bool is_firmware(const struct ib_uverbs_ioctl_hdr *hdr)
{
	return hdr->driver_id == RDMA_DRIVER_MLX5 &&
	       (hdr->object_id == MLX5_IB_OBJECT_DEVX || hdr->object_id == MLX5_IB_OBJECT_DEVX_OBJ);
}

static struct verbs_call call_of(enum verbs_kind kind, const char *name)
{
	return (struct verbs_call){ .kind = kind, .name = name, .fd = -1 };
}

static struct verbs_call other(void)
{
	return call_of(VERBS_OTHER, "verbs call");
}

static struct verbs_call read_command(const union buffer *b)
{
	struct verbs_call call;
	uint64_t value;

	if (!number(b, UVERBS_ATTR_WRITE_CMD, &value))
		return other();
	value = (uint32_t)value & ~IB_USER_VERBS_CMD_FLAG_EXTENDED;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].number != value)
			continue;
		call = call_of(commands[i].kind, commands[i].name);
		return !commands[i].read || commands[i].read(b, &call) ? call : other();
	}
	return other();
}

/* Objects and methods of drivers have numbers of a name space of their own. */
static struct verbs_call read_driver(const union buffer *b)
{
	struct verbs_call call = call_of(VERBS_REGISTER, "DEVX_UMEM_REG");

	if (is_firmware(&b->hdr))
		return other();
	if (b->hdr.driver_id == RDMA_DRIVER_MLX5 && b->hdr.object_id == MLX5_IB_OBJECT_DEVX_UMEM)
		return read_umem(b, &call) ? call : other();
	return call_of(VERBS_RING, "driver object");
}

static struct verbs_call read_method(const union buffer *b)
{
	struct verbs_call call;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].object != b->hdr.object_id || rows[i].method != b->hdr.method_id)
			continue;
		call = call_of(rows[i].kind, rows[i].name);
		return !rows[i].read || rows[i].read(b, &call) ? call : other();
	}
	return other();
}

struct verbs_call verbs_read(const void *buffer)
{
	union buffer b;

	if (!kernel_copy(&b.hdr, buffer, sizeof(b.hdr)))
		return other();
	if (b.hdr.length > sizeof(b) ||
	    b.hdr.length != sizeof(b.hdr) + b.hdr.num_attrs * sizeof(b.hdr.attrs[0]))
		return other();
	if (!kernel_copy(b.hdr.attrs, (const uint8_t *)buffer + sizeof(b.hdr),
			 b.hdr.length - sizeof(b.hdr)))
		return other();
	if ((b.hdr.object_id | b.hdr.method_id) & UVERBS_ID_NS_MASK)
		return read_driver(&b);
	if (b.hdr.object_id == UVERBS_OBJECT_DEVICE)
		return b.hdr.method_id == UVERBS_METHOD_INVOKE_WRITE ? read_command(&b) : other();
	return read_method(&b);
}

uint64_t verbs_pages(const struct verbs_call *call)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), into = call->start & (page - 1), bytes;

	if (__builtin_add_overflow(call->length, into + page - 1, &bytes) || bytes >> 63)
		return 1ull << 63;
	return bytes & ~(page - 1);
}
