/* SPDX-License-Identifier: Apache-2.0 */
#include "client/region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/buffer.h"
#include "client/options.h"
#include "client/public.h"

/* The session says how often it has given this one; only then is it worth looking for. */
static struct made *find_made(const struct kvreg_domain *domain, const Kvreg__Region *reply,
			      const struct uverbs_mr *mr)
{
	struct kvreg_region *region;

	if (reply->uses < 2)
		return NULL;
	/* Believed only of one that is the same in all that the program knows of it. */
	LIST_FOREACH(region, &domain->k->regions, link)
		if (region->domain == domain && region->made->id == reply->region &&
		    region->made->mr.handle == mr->handle && uverbs_same_mr(&region->made->mr, mr))
			return region->made;
	return NULL;
}

static void made_unref(struct made *made)
{
	if (made && --made->uses == 0)
		free(made);
}

static int call_register(struct connection *c, Kvreg__RegisterItem *item, struct failure *f,
			 Kvreg__Region *ret_made)
{
	Kvreg__RegisterItem *items[] = { item };
	Kvreg__Register registration = KVREG__REGISTER__INIT;
	struct call call = CALL(REGISTER, REGISTER);
	Kvreg__Reply *reply;
	int code;

	registration.items = items;
	registration.n_items = 1;
	call.request.body_case = KVREG__REQUEST__BODY_REGISTER;
	call.request.register_ = &registration;
	code = connection_call(c, &call, f, &reply);
	if (code != KVREG_E_OK)
		return code;
	if (reply->register_->n_regions != 1)
		return failure_set(f, KVREG_E_PROTOCOL, KVREG_STAGE_REGISTER,
				   "%zu regions for one item", reply->register_->n_regions);
	*ret_made = *reply->register_->regions[0];
	return KVREG_E_OK;
}

static void region_set(struct kvreg_region *region, const Kvreg__Region *reply,
		       const Kvreg__RegisterItem *item)
{
	struct uverbs_mr mr = {
		.handle = reply->handle,
		.lkey = reply->lkey,
		.rkey = reply->rkey,
		.iova = item->iova,
		.length = item->length,
	};
	struct made *old = find_made(region->domain, reply, &mr);

	if (old) {
		old->uses++;
		made_unref(region->made);
		region->made = old;
		return;
	}
	region->made->id = reply->region;
	region->made->mr = mr;
}

/* What can fail here fails before the session is asked. */
static struct kvreg_region *region_new(struct kvreg_domain *domain)
{
	struct kvreg_region *region = calloc(1, sizeof(*region));

	if (!region)
		return NULL;
	region->domain = domain;
	region->made = calloc(1, sizeof(*region->made));
	if (!region->made) {
		free(region);
		return NULL;
	}
	region->made->uses = 1;
	return region;
}

static int register_item(struct kvreg_domain *domain, Kvreg__RegisterItem *item, struct failure *f,
			 struct kvreg_region **ret_region)
{
	_cleanup_leave_ struct connection *c = NULL;
	struct kvreg *k = domain->k;
	struct kvreg_region *region;
	Kvreg__Region reply = KVREG__REGION__INIT;
	int code;

	code = connection_enter(&k->connection, KVREG_STAGE_REGISTER, f, &c);
	if (code != KVREG_E_OK)
		return code;
	region = region_new(domain);
	if (!region)
		return failure_set(f, KVREG_E_LIMIT_MEMORY, KVREG_STAGE_REGISTER,
				   "%zu bytes in this process", sizeof(*region));
	code = call_register(c, item, f, &reply);
	if (code != KVREG_E_OK) {
		made_unref(region->made);
		free(region);
		return code;
	}
	region_set(region, &reply, item);
	domain->n_regions++;
	LIST_INSERT_HEAD(&k->regions, region, link);
	*ret_region = region;
	return KVREG_E_OK;
}

static int register_range(struct kvreg_domain *domain, const struct kvreg_buffer *buffer,
			  Kvreg__RegisterItem *item, const struct kvreg_register_options *given,
			  struct failure *f, struct kvreg_region **ret_region)
{
	struct kvreg_register_options options = { 0 };

	f->address = buffer->address ? buffer->address + item->offset : 0;
	f->length = item->length;
	f->access = item->access;
	text_clean(f->label, sizeof(f->label), buffer->label);
	text_clean(f->device, sizeof(f->device), domain->device);
	if (!options_copy(&options, sizeof(options), given))
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_REGISTER,
				   "options: a size or an option that this library does not know");
	if (domain->k != buffer->k)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_REGISTER,
				   "domain and buffer are of two connections");
	if (item->iova == 0 && buffer->address == 0)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_REGISTER,
				   "iova: 0 means the buffer's own address, and it has none");
	if (item->iova == 0)
		item->iova = buffer->address + item->offset;
	item->domain = domain->id;
	item->buffer = buffer->id;
	return register_item(domain, item, f, ret_region);
}

KVREG_PUBLIC int kvreg_register(struct kvreg_domain *domain, struct kvreg_buffer *buffer,
				uint64_t offset, uint64_t length, uint64_t iova, uint32_t access,
				const struct kvreg_register_options *options,
				struct kvreg_region **ret_region)
{
	Kvreg__RegisterItem item = KVREG__REGISTER_ITEM__INIT;
	struct failure f;

	failure_init(&f);
	item.offset = offset;
	item.length = length;
	item.iova = iova;
	item.access = access;
	return error_return(register_range(domain, buffer, &item, options, &f, ret_region), &f);
}

KVREG_PUBLIC uint32_t kvreg_lkey(const struct kvreg_region *region)
{
	return region->made->mr.lkey;
}

KVREG_PUBLIC uint32_t kvreg_rkey(const struct kvreg_region *region)
{
	return region->made->mr.rkey;
}

KVREG_PUBLIC uint32_t kvreg_handle(const struct kvreg_region *region)
{
	return region->made->mr.handle;
}

KVREG_PUBLIC uint64_t kvreg_iova(const struct kvreg_region *region)
{
	return region->made->mr.iova;
}

static int ask_session(struct connection *c, const struct kvreg_region *region, struct failure *f)
{
	Kvreg__Deregister deregister = KVREG__DEREGISTER__INIT;
	struct call call = CALL(DEREGISTER, DONE);
	Kvreg__Reply *reply;

	deregister.region = region->made->id;
	call.request.body_case = KVREG__REQUEST__BODY_DEREGISTER;
	call.request.deregister = &deregister;
	return connection_call(c, &call, f, &reply);
}

static enum kvreg_code destroy_code(int errnum)
{
	switch (errnum) {
	case ESTALE:
		return KVREG_E_MR_GONE;
	case EBUSY:
	case EINVAL: /* of a handle just seen to be ours: rxe's for bound memory windows */
		return KVREG_E_DEVICE_BUSY;
	case EIO:
	case ENODEV:
		return KVREG_E_DEVICE_GONE;
	case EBADF:
	case ENOTTY:
		return KVREG_E_BAD_UVERBS;
	default:
		return KVREG_E_UNKNOWN;
	}
}

static int destroy_here(const struct kvreg_region *region, struct failure *f)
{
	const struct kvreg_domain *domain = region->domain;
	int r;

	/* Another region is the same MR, and lives on. */
	if (region->made->uses > 1 || kvreg_is_mock(domain->k))
		return KVREG_E_OK;
	r = uverbs_destroy_same_mr(domain->cmd_fd, domain->driver_id, &region->made->mr);
	if (r == 0)
		return KVREG_E_OK;
	errno = -r;
	f->errnum = -r;
	return failure_set(f, destroy_code(-r), KVREG_STAGE_DEREGISTER,
			   "handle %u through the program's own fd %d: %m", region->made->mr.handle,
			   domain->cmd_fd);
}

/* A session that is lost while it is asked may have done it first: that it is gone is then no
 * news of the program's doing. */
static int destroy(struct connection *c, const struct kvreg_region *region, struct failure *f)
{
	bool asked = !c->lost;
	int code;

	if (asked) {
		code = ask_session(c, region, f);
		if (!c->lost)
			return code;
	}
	code = destroy_here(region, f);
	return asked && code == KVREG_E_MR_GONE ? KVREG_E_OK : code;
}

static void region_free(struct kvreg_region *region)
{
	LIST_REMOVE(region, link);
	region->domain->n_regions--;
	made_unref(region->made);
	free(region);
}

/* Uses are counted before and after a region is in the list: they are never too few. */
void region_free_copy(struct kvreg_region *region)
{
	made_unref(region->made);
	free(region);
}

void region_close(struct kvreg_region *region)
{
	struct connection *c = &region->domain->k->connection;
	struct failure f;

	failure_init(&f);
	(void)destroy(c, region, &f);
	region_free(region);
}

/* Whether nothing of the region is left in the kernel. Where that is not known, the program keeps
 * its handle: it can try again, and sees that its protection domain is not empty. */
static bool is_gone(int code)
{
	return code == KVREG_E_OK || code == KVREG_E_MR_GONE || code == KVREG_E_BAD_HANDLE ||
	       code == KVREG_E_DEVICE_GONE || code == KVREG_E_BAD_UVERBS;
}

static int deregister(struct kvreg_region *region, struct failure *f)
{
	_cleanup_leave_ struct connection *c = NULL;
	const struct kvreg_domain *domain = region->domain;
	int code;

	f->address = region->made->mr.iova;
	f->length = region->made->mr.length;
	text_clean(f->device, sizeof(f->device), domain->device);
	code = connection_enter(&domain->k->connection, KVREG_STAGE_DEREGISTER, f, &c);
	if (code != KVREG_E_OK)
		return code;
	code = destroy(c, region, f);
	if (is_gone(code))
		region_free(region);
	return code;
}

KVREG_PUBLIC int kvreg_deregister(struct kvreg_region *region)
{
	struct failure f;

	failure_init(&f);
	return error_return(deregister(region, &f), &f);
}
