/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handlers: each checks what the client asked for, calls the noun that does it, and fills in
 * the answer. No system call happens here, but the word to the supervisor that a client is there.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>
#include <unistd.h>

#include "daemon/session/buffer.h"
#include "daemon/session/dispatch.h"
#include "daemon/session/domain.h"
#include "daemon/session/faults.h"
#include "daemon/session/region.h"

static int done(struct answer *answer)
{
	kvreg__done__init(&answer->done);
	answer->reply.body_case = KVREG__REPLY__BODY_DONE;
	answer->reply.done = &answer->done;
	return 0;
}

static int bad_handle(struct answer *answer, enum kvreg_stage stage, const char *noun,
		      uint32_t number)
{
	return failure_set(&answer->failure, KVREG_E_BAD_HANDLE, stage, "%s 0x%x", noun, number);
}

int handle_hello(struct client *c, const Kvreg__Request *request, struct fdset *fds,
		 struct answer *answer)
{
	const Kvreg__Hello *hello = request->hello;
	Kvreg__HelloReply *reply = &answer->hello;
	Kvreg__Ready ready = KVREG__READY__INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	int r;

	(void)fds;
	if (hello->major != PROTOCOL_MAJOR)
		return failure_set(&answer->failure, KVREG_E_VERSION, KVREG_STAGE_CONNECT,
				   "the client speaks version %u.%u, the daemon %u.%u",
				   hello->major, hello->minor, PROTOCOL_MAJOR, PROTOCOL_MINOR);
	(void)fault(FAULT_CONNECT); /* only ever a delay */
	if (c->confinement.wide && !(hello->features & FEATURE_CUDA)) {
		r = confine_narrow(&c->confinement);
		if (r < 0)
			return r;
	}
	text_clean(c->program, sizeof(c->program), hello->program);
	c->greeted = true;
	kvreg__hello_reply__init(reply);
	reply->major = PROTOCOL_MAJOR;
	reply->minor = PROTOCOL_MINOR;
	reply->features =
		hello->features & (FEATURE_MEMFD | (c->confinement.wide ? FEATURE_CUDA : 0));
	reply->device = (char *)c->device->name;
	reply->max_domains = DOMAINS_PER_SESSION;
	reply->max_buffers = BUFFERS_PER_SESSION;
	reply->max_regions = REGIONS_PER_SESSION;
	reply->max_items = ITEMS_PER_REGISTER;
	reply->access_allowed = c->access_allowed;
	answer->reply.body_case = KVREG__REPLY__BODY_HELLO;
	answer->reply.hello = reply;
	ready.program = c->program;
	up.body_case = KVREG__UP__BODY_READY;
	up.ready = &ready;
	(void)control_send(&c->control, &up);
	return 0;
}

int handle_attach_domain(struct client *c, const Kvreg__Request *request, struct fdset *fds,
			 struct answer *answer)
{
	Kvreg__AttachDomainReply *reply = &answer->attach;
	struct domain *domain = NULL;
	int r;

	r = domain_attach(c, fdset_take(fds, 0), request->attach_domain->pd_handle, &domain,
			  &answer->failure);
	if (r != 0)
		return r;
	kvreg__attach_domain_reply__init(reply);
	reply->domain = domain->number;
	reply->device = domain->pd.device;
	reply->driver = domain->pd.driver;
	reply->needs_same_address = domain->pd.needs_same_address;
	answer->reply.body_case = KVREG__REPLY__BODY_ATTACH_DOMAIN;
	answer->reply.attach_domain = reply;
	return 0;
}

int handle_detach_domain(struct client *c, const Kvreg__Request *request, struct fdset *fds,
			 struct answer *answer)
{
	struct domain *domain = handles_get(&c->domains, request->detach_domain->domain);

	(void)fds;
	if (!domain)
		return bad_handle(answer, KVREG_STAGE_ATTACH, "domain",
				  request->detach_domain->domain);
	if (domain->regions > 0)
		return failure_set(&answer->failure, KVREG_E_BUSY, KVREG_STAGE_ATTACH,
				   "the domain has %u regions", domain->regions);
	domain_detach(c, domain);
	return done(answer);
}

int handle_import_buffer(struct client *c, const Kvreg__Request *request, struct fdset *fds,
			 struct answer *answer)
{
	const Kvreg__ImportBuffer *import = request->import_buffer;
	Kvreg__ImportBufferReply *reply = &answer->import;
	struct failure *f = &answer->failure;
	struct buffer *buffer = NULL;
	int r;

	text_clean(f->label, sizeof(f->label), import->label);
	f->address = import->address;
	f->length = import->length;
	if (import->kind != KVREG__BUFFER_KIND__BUFFER_MEMFD)
		return failure_set(f, KVREG_E_UNSUPPORTED, KVREG_STAGE_IMPORT, "memory kind %d",
				   (int)import->kind);
	r = buffer_import(c, fdset_take(fds, 0), import, &buffer, f);
	if (r != 0)
		return r;
	kvreg__import_buffer_reply__init(reply);
	reply->buffer = buffer->number;
	answer->reply.body_case = KVREG__REPLY__BODY_IMPORT_BUFFER;
	answer->reply.import_buffer = reply;
	return 0;
}

int handle_release_buffer(struct client *c, const Kvreg__Request *request, struct fdset *fds,
			  struct answer *answer)
{
	struct buffer *buffer = handles_get(&c->buffers, request->release_buffer->buffer);

	(void)fds;
	if (!buffer)
		return bad_handle(answer, KVREG_STAGE_IMPORT, "buffer",
				  request->release_buffer->buffer);
	buffer_release(c, buffer);
	return done(answer);
}

static int check_access(const struct client *c, uint32_t access, struct failure *f)
{
	if (access & ~c->access_allowed)
		return failure_set(f, KVREG_E_BAD_ACCESS, KVREG_STAGE_REGISTER,
				   "access 0x%x has bits outside of 0x%x", access,
				   c->access_allowed);
	/* ib_check_mr_access() */
	if ((access & (IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IB_UVERBS_ACCESS_LOCAL_WRITE))
		return failure_set(f, KVREG_E_BAD_ACCESS, KVREG_STAGE_REGISTER,
				   "access 0x%x has remote write or atomic without local write",
				   access);
	return 0;
}

static int check_range(const struct buffer *buffer, const Kvreg__RegisterItem *item,
		       struct failure *f)
{
	if (item->length == 0)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_REGISTER, "length 0");
	if (item->offset > buffer->length || item->length > buffer->length - item->offset)
		return failure_set(f, KVREG_E_SHORT_HANDLE, KVREG_STAGE_REGISTER,
				   "offset %" PRIu64 " and length %" PRIu64
				   ", but the buffer has %" PRIu64 " bytes",
				   item->offset, item->length, buffer->length);
	if (item->iova + item->length < item->iova)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_REGISTER,
				   "iova 0x%" PRIx64 " and length %" PRIu64 " overflow", item->iova,
				   item->length);
	/* ib_uverbs_reg_mr: (start ^ hca_va) & ~PAGE_MASK must be 0; buffers start at a page. */
	if ((item->iova ^ item->offset) & ((uint64_t)sysconf(_SC_PAGESIZE) - 1))
		return failure_set(f, KVREG_E_ALIGNMENT, KVREG_STAGE_REGISTER,
				   "iova 0x%" PRIx64 ", memory at offset 0x%" PRIx64
				   " of its buffer",
				   item->iova, item->offset);
	return 0;
}

static int register_item(struct client *c, const Kvreg__RegisterItem *item, bool several,
			 struct region **ret_region, struct answer *answer)
{
	struct failure *f = &answer->failure;
	struct region_request request = {
		.domain = handles_get(&c->domains, item->domain),
		.buffer = handles_get(&c->buffers, item->buffer),
		.offset = item->offset,
		.length = item->length,
		.iova = item->iova,
		.access = item->access,
		.several = several,
	};
	int r;

	f->length = item->length;
	f->access = item->access;
	if (!request.domain)
		return bad_handle(answer, KVREG_STAGE_REGISTER, "domain", item->domain);
	if (!request.buffer)
		return bad_handle(answer, KVREG_STAGE_REGISTER, "buffer", item->buffer);
	memcpy(f->device, request.domain->pd.device, sizeof(f->device));
	memcpy(f->driver, request.domain->pd.driver, sizeof(f->driver));
	memcpy(f->label, request.buffer->label, sizeof(f->label));
	f->address = request.buffer->address ? request.buffer->address + item->offset : 0;
	r = check_access(c, item->access, f);
	if (r == 0)
		r = check_range(request.buffer, item, f);
	if (r == 0)
		r = region_register(c, &request, ret_region, f);
	return r;
}

static void unmap_all(struct client *c, const Kvreg__Register *request)
{
	for (size_t i = 0; i < request->n_items; i++) {
		struct buffer *buffer = handles_get(&c->buffers, request->items[i]->buffer);

		if (buffer)
			buffer_unmap(buffer);
	}
}

int handle_register(struct client *c, const Kvreg__Request *request, struct fdset *fds,
		    struct answer *answer)
{
	const Kvreg__Register *batch = request->register_;
	struct region *regions[ITEMS_PER_REGISTER] = { NULL };
	size_t n;
	int r = 0;

	(void)fds;
	if (batch->n_items == 0 || batch->n_items > ITEMS_PER_REGISTER)
		return failure_set(&answer->failure, KVREG_E_INVALID_ARG, KVREG_STAGE_REGISTER,
				   "%zu items, 1 to %u are possible", batch->n_items,
				   ITEMS_PER_REGISTER);
	for (n = 0; n < batch->n_items; n++) {
		answer->failure.index = (uint32_t)n;
		r = register_item(c, batch->items[n], batch->n_items > 1, &regions[n], answer);
		if (r != 0)
			break;
	}
	unmap_all(c, batch);
	if (r != 0) {
		while (n > 0)
			(void)region_discard(c, regions[--n]);
		return r;
	}
	kvreg__register_reply__init(&answer->registered);
	answer->registered.regions = answer->list;
	answer->registered.n_regions = n;
	for (size_t i = 0; i < n; i++) {
		assert(regions[i]);
		kvreg__region__init(&answer->regions[i]);
		answer->regions[i].region = regions[i]->number;
		answer->regions[i].handle = regions[i]->mr.handle;
		answer->regions[i].lkey = regions[i]->mr.lkey;
		answer->regions[i].rkey = regions[i]->mr.rkey;
		answer->regions[i].uses = regions[i]->uses;
		answer->list[i] = &answer->regions[i];
	}
	answer->reply.body_case = KVREG__REPLY__BODY_REGISTER;
	answer->reply.register_ = &answer->registered;
	return 0;
}

int handle_deregister(struct client *c, const Kvreg__Request *request, struct fdset *fds,
		      struct answer *answer)
{
	struct region *region = handles_get(&c->regions, request->deregister->region);
	int r;

	(void)fds;
	if (!region)
		return bad_handle(answer, KVREG_STAGE_DEREGISTER, "region",
				  request->deregister->region);
	answer->failure.address = region->address;
	answer->failure.length = region->mr.length;
	answer->failure.access = region->access;
	memcpy(answer->failure.label, region->label, sizeof(region->label));
	r = region_deregister(c, region, &answer->failure);
	return r == 0 ? done(answer) : r;
}

int handle_who_am_i(struct client *c, const Kvreg__Request *request, struct fdset *fds,
		    struct answer *answer)
{
	Kvreg__WhoAmIReply *who = &answer->who;

	(void)fds;
	(void)request;
	kvreg__who_am_ireply__init(who);
	who->pid = c->pid;
	who->uid = c->uid;
	who->gid = c->gid;
	who->class_ = c->klass;
	who->session_pid = (uint32_t)getpid();
	who->session_uid = getuid();
	who->granted = c->grant.granted.of[BOOK_CHARGE];
	if (client_charged(c, &who->charged) < 0)
		who->charged = c->grant.used.of[BOOK_CHARGE];
	who->memory = c->grant.used.of[BOOK_MEMORY];
	who->domains = (uint32_t)c->domains.count;
	who->buffers = (uint32_t)c->buffers.count;
	who->regions = (uint32_t)c->regions.count;
	answer->reply.body_case = KVREG__REPLY__BODY_WHO_AM_I;
	answer->reply.who_am_i = who;
	return 0;
}

int handle_lease_memlock(struct client *c, const Kvreg__Request *request, struct fdset *fds,
			 struct answer *answer)
{
	Kvreg__LeaseMemlockReply *reply = &answer->lease;
	int r;

	(void)fds;
	answer->failure.length = request->lease_memlock->bytes;
	r = lease_begin(c, request->lease_memlock, &answer->failure);
	if (r != 0)
		return r;
	kvreg__lease_memlock_reply__init(reply);
	reply->lease = c->lease_answer.lease;
	reply->limit = c->lease_answer.limit;
	reply->bytes = c->lease_answer.bytes;
	reply->booked = c->lease_answer.booked;
	answer->reply.body_case = KVREG__REPLY__BODY_LEASE_MEMLOCK;
	answer->reply.lease_memlock = reply;
	return 0;
}

int handle_end_lease(struct client *c, const Kvreg__Request *request, struct fdset *fds,
		     struct answer *answer)
{
	int r;

	(void)fds;
	r = lease_end(c, request->end_lease->lease, &answer->failure);
	return r == 0 ? done(answer) : r;
}
