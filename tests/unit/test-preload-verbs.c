/* SPDX-License-Identifier: Apache-2.0 */
/* What the preload reads out of a verbs call, and that it reads nothing that is not there. */
#include "test.h"

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/preload/verbs.h"
#include "fake-verbs.h"

static union verbs_buffer buffer;

static void a_registration_is_read(void **state)
{
	struct ib_uverbs_reg_mr in;
	struct verbs_call call;

	(void)state;
	verbs_reg_mr(&buffer, &in, 0x10000800, 5000);
	call = verbs_read(&buffer);
	assert_int_equal(call.kind, VERBS_REGISTER);
	assert_string_equal(call.name, "REG_MR");
	assert_int_equal(call.start, 0x10000800);
	assert_int_equal(call.length, 5000);
	assert_int_equal(call.iova, 0x10000800);
	assert_int_equal(call.access, IB_UVERBS_ACCESS_LOCAL_WRITE);
	assert_int_equal(verbs_pages(&call), 2 * 4096);
}

static void pages_are_whole_and_do_not_wrap(void **state)
{
	struct verbs_call call = { .start = 4095, .length = 2 };

	(void)state;
	assert_int_equal(verbs_pages(&call), 8192);
	call = (struct verbs_call){ .start = 4096, .length = 4096 };
	assert_int_equal(verbs_pages(&call), 4096);
	call = (struct verbs_call){ .start = 4096, .length = 0 };
	assert_int_equal(verbs_pages(&call), 0);
	call = (struct verbs_call){ .start = 1, .length = UINT64_MAX };
	assert_true(verbs_pages(&call) == 1ull << 63);
	call = (struct verbs_call){ .start = UINT64_MAX, .length = 1ull << 63 };
	assert_true(verbs_pages(&call) == 1ull << 63);
}

static void a_reregistration_counts_only_with_a_new_range(void **state)
{
	struct ib_uverbs_rereg_mr in = { .flags = 1, .start = 4096, .length = 8192 };

	(void)state;
	verbs_command(&buffer, IB_USER_VERBS_CMD_REREG_MR, &in, sizeof(in));
	assert_int_equal(verbs_read(&buffer).kind, VERBS_REGISTER);
	assert_int_equal(verbs_read(&buffer).length, 8192);
	in.flags = 4; /* access alone */
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
}

static void rings_are_known_by_command_and_by_method(void **state)
{
	static const struct {
		uint16_t object, method;
	} methods[] = {
		{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE },
		{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE },
		{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE },
		{ UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE },
	};
	static const uint32_t commands[] = {
		IB_USER_VERBS_CMD_CREATE_CQ,
		IB_USER_VERBS_CMD_RESIZE_CQ,
		IB_USER_VERBS_CMD_CREATE_QP,
		IB_USER_VERBS_CMD_CREATE_SRQ,
		IB_USER_VERBS_CMD_CREATE_XSRQ,
		IB_USER_VERBS_EX_CMD_CREATE_CQ | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		IB_USER_VERBS_EX_CMD_CREATE_WQ | IB_USER_VERBS_CMD_FLAG_EXTENDED,
	};
	uint8_t in[64] = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(methods); i++) {
		verbs_begin(&buffer, methods[i].object, methods[i].method);
		assert_int_equal(verbs_read(&buffer).kind, VERBS_RING);
		buffer.hdr.method_id++; /* destroy */
		assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
	}
	for (size_t i = 0; i < COUNT(commands); i++) {
		verbs_command(&buffer, commands[i], in, sizeof(in));
		assert_int_equal(verbs_read(&buffer).kind, VERBS_RING);
	}
	verbs_command(&buffer, IB_USER_VERBS_CMD_ALLOC_PD, in, sizeof(in));
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
}

static void a_dma_buf_is_read_and_a_probe_is_known(void **state)
{
	struct verbs_call call;

	(void)state;
	for (int fd = -1; fd < 2; fd++) {
		verbs_begin(&buffer, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
		verbs_fd(&buffer, UVERBS_ATTR_REG_DMABUF_MR_FD, fd);
		verbs_number(&buffer, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 4096);
		verbs_number(&buffer, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8192);
		verbs_number(&buffer, UVERBS_ATTR_REG_DMABUF_MR_IOVA, 0);
		call = verbs_read(&buffer);
		assert_int_equal(call.kind, VERBS_FOREIGN);
		assert_int_equal(call.fd, fd);
		assert_int_equal(call.start, 4096);
		assert_int_equal(call.length, 8192);
		assert_int_equal(call.probe, fd < 0);
	}
}

/* UVERBS_METHOD_REG_MR of Linux 6.17: with an address, or with a dma-buf. */
static void the_new_registration_is_read(void **state)
{
	struct verbs_call call;

	(void)state;
	verbs_begin(&buffer, UVERBS_OBJECT_MR, 5);
	verbs_number(&buffer, 3, 0x20000000);
	verbs_number(&buffer, 4, 0x10000000);
	verbs_number(&buffer, 5, 12288);
	call = verbs_read(&buffer);
	assert_int_equal(call.kind, VERBS_REGISTER);
	assert_int_equal(call.start, 0x10000000);
	assert_int_equal(call.iova, 0x20000000);
	assert_int_equal(call.length, 12288);
	verbs_begin(&buffer, UVERBS_OBJECT_MR, 5);
	verbs_number(&buffer, 3, 0x20000000);
	verbs_number(&buffer, 5, 12288);
	verbs_fd(&buffer, 7, 9);
	verbs_number(&buffer, 8, 4096);
	call = verbs_read(&buffer);
	assert_int_equal(call.kind, VERBS_FOREIGN);
	assert_int_equal(call.fd, 9);
	assert_int_equal(call.start, 4096);
}

static void driver_objects_count_but_firmware_does_not(void **state)
{
	struct verbs_call call;

	(void)state;
	verbs_begin(&buffer, 0x1003, 0x1000);
	assert_int_equal(verbs_read(&buffer).kind, VERBS_RING);
	verbs_begin(&buffer, UVERBS_OBJECT_PD, 0x1000);
	assert_int_equal(verbs_read(&buffer).kind, VERBS_RING);
	verbs_begin(&buffer, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
	buffer.hdr.driver_id = RDMA_DRIVER_MLX5;
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
	verbs_begin(&buffer, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
	buffer.hdr.driver_id = RDMA_DRIVER_MLX5;
	verbs_number(&buffer, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 0x7000);
	verbs_number(&buffer, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 9000);
	call = verbs_read(&buffer);
	assert_int_equal(call.kind, VERBS_REGISTER);
	assert_int_equal(call.start, 0x7000);
	assert_int_equal(call.length, 9000);
	verbs_begin(&buffer, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG);
	buffer.hdr.driver_id = RDMA_DRIVER_MLX5;
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
}

static void what_the_kernel_would_not_believe_is_not_believed(void **state)
{
	struct ib_uverbs_reg_mr in;

	(void)state;
	verbs_reg_mr(&buffer, &in, 4096, 4096);
	buffer.hdr.num_attrs++;
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
	verbs_reg_mr(&buffer, &in, 4096, 4096);
	buffer.hdr.length += 16; /* one more than is counted */
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
	verbs_reg_mr(&buffer, &in, 4096, 4096);
	buffer.hdr.num_attrs = 0xffff;
	buffer.hdr.length = 0xffff;
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
	/* More than a page, though it fits: 24 + 16 x 255. */
	buffer.hdr.num_attrs = 255;
	buffer.hdr.length = 24 + 16 * 255;
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
	verbs_reg_mr(&buffer, &in, 4096, 4096);
	buffer.hdr.attrs[0].len = sizeof(in) - 1;
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
	verbs_reg_mr(&buffer, &in, 4096, 4096);
	buffer.hdr.attrs[0].len = 8; /* inline: less than the command has */
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
	verbs_reg_mr(&buffer, &in, 4096, 4096);
	buffer.hdr.attrs[1].len = 4; /* the command's number must have 8 bytes */
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
	verbs_begin(&buffer, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	assert_int_equal(verbs_read(&buffer).kind, VERBS_OTHER);
}

/* Each part in turn lies before, on and behind the end of what is mapped. */
static void nothing_is_read_that_is_not_mapped(void **state)
{
	uint8_t *page =
		mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ib_uverbs_reg_mr in;

	(void)state;
	assert_true(page != MAP_FAILED);
	assert_int_equal(munmap(page + 4096, 4096), 0);
	verbs_reg_mr(&buffer, &in, 4096, 4096);
	for (size_t whole = 0; whole <= buffer.hdr.length; whole++) {
		uint8_t *at = page + 4096 - whole;

		memcpy(at, &buffer, whole);
		assert_int_equal(verbs_read(at).kind,
				 whole == buffer.hdr.length ? VERBS_REGISTER : VERBS_OTHER);
	}
	for (size_t whole = 0; whole <= sizeof(in); whole++) {
		memcpy(page + 4096 - whole, &in, whole);
		buffer.hdr.attrs[0].data = (uintptr_t)page + 4096 - whole;
		assert_int_equal(verbs_read(&buffer).kind,
				 whole == sizeof(in) ? VERBS_REGISTER : VERBS_OTHER);
	}
	assert_int_equal(verbs_read(NULL).kind, VERBS_OTHER);
	assert_int_equal(verbs_read((void *)UINTPTR_MAX).kind, VERBS_OTHER);
	munmap(page, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_registration_is_read),
		cmocka_unit_test(pages_are_whole_and_do_not_wrap),
		cmocka_unit_test(a_reregistration_counts_only_with_a_new_range),
		cmocka_unit_test(rings_are_known_by_command_and_by_method),
		cmocka_unit_test(a_dma_buf_is_read_and_a_probe_is_known),
		cmocka_unit_test(the_new_registration_is_read),
		cmocka_unit_test(driver_objects_count_but_firmware_does_not),
		cmocka_unit_test(what_the_kernel_would_not_believe_is_not_believed),
		cmocka_unit_test(nothing_is_read_that_is_not_mapped),
	};

	return RUN_GROUP("preload-verbs", tests);
}
