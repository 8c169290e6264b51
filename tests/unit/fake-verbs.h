/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H
/* Buffers of RDMA_VERBS_IOCTL as libibverbs makes them, for tests of the preload. */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>

#define ATTRIBUTES_MAX 254u /* a page */

union verbs_buffer {
	struct ib_uverbs_ioctl_hdr hdr;
	uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) +
		     ATTRIBUTES_MAX * sizeof(struct ib_uverbs_attr)];
};

static inline void verbs_begin(union verbs_buffer *b, uint16_t object, uint16_t method)
{
	memset(b, 0, sizeof(*b));
	b->hdr.object_id = object;
	b->hdr.method_id = method;
	b->hdr.driver_id = RDMA_DRIVER_RXE;
	b->hdr.length = sizeof(b->hdr);
}

/* An input; of 8 bytes or less it stands inline. */
static inline struct ib_uverbs_attr *verbs_input(union verbs_buffer *b, uint16_t id,
						 const void *data, uint16_t len)
{
	struct ib_uverbs_attr *a = &b->hdr.attrs[b->hdr.num_attrs++];

	a->attr_id = id;
	a->len = len;
	a->flags = UVERBS_ATTR_F_MANDATORY;
	if (len <= sizeof(a->data))
		memcpy(&a->data, data, len);
	else
		a->data = (uintptr_t)data;
	b->hdr.length = (uint16_t)(b->hdr.length + sizeof(*a));
	return a;
}

static inline void verbs_number(union verbs_buffer *b, uint16_t id, uint64_t number)
{
	verbs_input(b, id, &number, sizeof(number));
}

/* An fd or handle: inline, of length 0. */
static inline void verbs_fd(union verbs_buffer *b, uint16_t id, int64_t fd)
{
	verbs_input(b, id, "", 0)->data_s64 = fd;
}

static inline void verbs_command(union verbs_buffer *b, uint64_t command, const void *in,
				 uint16_t len)
{
	verbs_begin(b, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	verbs_input(b, UVERBS_ATTR_CORE_IN, in, len);
	verbs_number(b, UVERBS_ATTR_WRITE_CMD, command);
}

static inline void verbs_reg_mr(union verbs_buffer *b, struct ib_uverbs_reg_mr *in, uint64_t start,
				uint64_t length)
{
	*in = (struct ib_uverbs_reg_mr){
		.start = start,
		.length = length,
		.hca_va = start,
		.access_flags = IB_UVERBS_ACCESS_LOCAL_WRITE,
	};
	verbs_command(b, IB_USER_VERBS_CMD_REG_MR, in, sizeof(*in));
}

#endif
