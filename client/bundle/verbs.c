/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins for the calls of libibverbs that kvregctl makes (ctl/loopback), linked in its place:
 * each finds the real one when it is called. A container that has no libibverbs.so.1 then has every
 * command but the self-test, which says "Can not access a needed shared library".
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>

#undef ibv_get_device_list
#undef ibv_query_port

/* The library stays loaded, as a linked one would. */
static void *find(const char *name)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	void *real = library ? dlsym(library, name) : NULL;

	if (!real)
		errno = ELIBACC;
	return real;
}

#define CALL(type, name, failure, parameters, arguments)                                           \
	type name parameters                                                                       \
	{                                                                                          \
		type(*real) parameters = find(#name);                                              \
                                                                                                   \
		return real ? real arguments : (failure);                                          \
	}
#define CALL_VOID(name, parameters, arguments)                                                     \
	void name parameters                                                                       \
	{                                                                                          \
		void(*real) parameters = find(#name);                                              \
                                                                                                   \
		if (real)                                                                          \
			real arguments;                                                            \
	}

CALL(struct ibv_device **, ibv_get_device_list, NULL, (int *n), (n))
CALL_VOID(ibv_free_device_list, (struct ibv_device * *list), (list))
CALL(const char *, ibv_get_device_name, "?", (struct ibv_device * device), (device))
CALL(struct ibv_context *, ibv_open_device, NULL, (struct ibv_device * device), (device))
CALL(int, ibv_close_device, -1, (struct ibv_context * context), (context))
CALL(int, ibv_query_port, ELIBACC,
     (struct ibv_context * context, uint8_t port, struct _compat_ibv_port_attr *attributes),
     (context, port, attributes))
CALL(int, _ibv_query_gid_ex, ELIBACC,
     (struct ibv_context * context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
      uint32_t flags, size_t size),
     (context, port, index, entry, flags, size))
CALL(struct ibv_pd *, ibv_alloc_pd, NULL, (struct ibv_context * context), (context))
CALL(int, ibv_dealloc_pd, ELIBACC, (struct ibv_pd * pd), (pd))
CALL(struct ibv_comp_channel *, ibv_create_comp_channel, NULL, (struct ibv_context * context),
     (context))
CALL(int, ibv_destroy_comp_channel, ELIBACC, (struct ibv_comp_channel * channel), (channel))
CALL(struct ibv_cq *, ibv_create_cq, NULL,
     (struct ibv_context * context, int n, void *arg, struct ibv_comp_channel *channel, int vector),
     (context, n, arg, channel, vector))
CALL(int, ibv_destroy_cq, ELIBACC, (struct ibv_cq * cq), (cq))
CALL(int, ibv_get_cq_event, -1,
     (struct ibv_comp_channel * channel, struct ibv_cq **ret_cq, void **ret_arg),
     (channel, ret_cq, ret_arg))
CALL_VOID(ibv_ack_cq_events, (struct ibv_cq * cq, unsigned int n), (cq, n))
CALL(struct ibv_qp *, ibv_create_qp, NULL,
     (struct ibv_pd * pd, struct ibv_qp_init_attr *attributes), (pd, attributes))
CALL(int, ibv_modify_qp, ELIBACC, (struct ibv_qp * qp, struct ibv_qp_attr *attributes, int mask),
     (qp, attributes, mask))
CALL(int, ibv_destroy_qp, ELIBACC, (struct ibv_qp * qp), (qp))
CALL(const char *, ibv_port_state_str, "?", (enum ibv_port_state state), (state))
CALL(const char *, ibv_wc_status_str, "?", (enum ibv_wc_status status), (status))
