/* SPDX-License-Identifier: Apache-2.0 */
#include "client/buffer.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/options.h"
#include "client/public.h"
#include "proto/fdset.h"

/* What a buffer is made of. */
struct source {
	int fd; /* borrowed */
	uint64_t address;
	uint64_t length;
	const char *label;
};

/* Before long work: a call that could only fail at its end fails at its start. */
static int check_usable(struct kvreg *k, struct failure *f)
{
	_cleanup_leave_ struct connection *c = NULL;
	int code = connection_enter(&k->connection, KVREG_STAGE_IMPORT, f, &c);

	if (code == KVREG_E_OK && c->lost)
		code = failure_set(f, KVREG_E_SESSION_LOST, KVREG_STAGE_IMPORT, "it ended earlier");
	return code;
}

static int call_import(struct connection *c, const struct source *source, struct failure *f,
		       uint32_t *ret_id)
{
	Kvreg__ImportBuffer import = KVREG__IMPORT_BUFFER__INIT;
	struct call call = CALL(IMPORT, IMPORT_BUFFER);
	Kvreg__Reply *reply;
	int code;

	import.kind = KVREG__BUFFER_KIND__BUFFER_MEMFD;
	import.length = source->length;
	import.address = source->address;
	import.label = (char *)source->label;
	call.request.body_case = KVREG__REQUEST__BODY_IMPORT_BUFFER;
	call.request.import_buffer = &import;
	call.fd = source->fd;
	code = connection_call(c, &call, f, &reply);
	if (code != KVREG_E_OK)
		return code;
	*ret_id = reply->import_buffer->buffer;
	return KVREG_E_OK;
}

static int import_buffer(struct kvreg *k, const struct source *source, struct failure *f,
			 struct kvreg_buffer **ret_buffer)
{
	_cleanup_leave_ struct connection *c = NULL;
	struct kvreg_buffer *buffer = NULL;
	int code;

	code = connection_enter(&k->connection, KVREG_STAGE_IMPORT, f, &c);
	if (code != KVREG_E_OK)
		return code;
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		return failure_set(f, KVREG_E_LIMIT_MEMORY, KVREG_STAGE_IMPORT,
				   "%zu bytes in this process", sizeof(*buffer));
	buffer->k = k;
	buffer->address = source->address;
	buffer->length = source->length;
	buffer->memory = MEMORY_INIT;
	text_clean(buffer->label, sizeof(buffer->label), source->label);
	code = call_import(c, source, f, &buffer->id);
	if (code != KVREG_E_OK) {
		free(buffer);
		return code;
	}
	LIST_INSERT_HEAD(&k->buffers, buffer, link);
	*ret_buffer = buffer;
	return KVREG_E_OK;
}

static int alloc_buffer(struct kvreg *k, size_t size, uint32_t flags, struct failure *f,
			struct kvreg_buffer **ret_buffer)
{
	_cleanup_memory_ struct memory memory = MEMORY_INIT;
	struct kvreg_buffer *buffer = NULL;
	int code;

	code = check_usable(k, f);
	if (code != KVREG_E_OK)
		return code;
	code = memory_make(size, flags, f, &memory);
	if (code != KVREG_E_OK)
		return code;
	struct source source = {
		.fd = memory.fd,
		.address = (uintptr_t)memory.address,
		.length = memory.size,
		.label = "",
	};
	code = import_buffer(k, &source, f, &buffer);
	if (code != KVREG_E_OK)
		return code;
	/* The session has an fd of its own by now, and the mapping keeps the memory. */
	fd_close(&memory.fd);
	assert(buffer);
	buffer->memory = memory;
	memory = MEMORY_INIT;
	*ret_buffer = buffer;
	return KVREG_E_OK;
}

KVREG_PUBLIC int kvreg_buffer_alloc(struct kvreg *k, size_t size, uint32_t flags,
				    void **ret_address, struct kvreg_buffer **ret_buffer)
{
	struct kvreg_buffer *buffer = NULL;
	struct failure f;
	int code;

	failure_init(&f);
	code = alloc_buffer(k, size, flags, &f, &buffer);
	if (code != KVREG_E_OK)
		return error_return(code, &f);
	*ret_address = buffer->memory.address;
	*ret_buffer = buffer;
	return 0;
}

static int check_source(const struct source *source, struct failure *f)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (strlen(source->label) > LABEL_MAX)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_IMPORT,
				   "label: longer than %u bytes", LABEL_MAX);
	if (source->length == 0)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_IMPORT, "length: 0 bytes");
	if (source->address % page != 0)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_IMPORT,
				   "address: %#" PRIx64 " is not page aligned", source->address);
	return KVREG_E_OK;
}

static int share_memfd(struct kvreg *k, struct source *source,
		       const struct kvreg_buffer_options *given, struct failure *f,
		       struct kvreg_buffer **ret_buffer)
{
	struct kvreg_buffer_options options = { 0 };
	int code;

	f->address = source->address;
	f->length = source->length;
	code = check_usable(k, f);
	if (code != KVREG_E_OK)
		return code;
	if (!options_copy(&options, sizeof(options), given))
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_IMPORT,
				   "options: a size or an option that this library does not know");
	source->label = options.label ? options.label : "";
	text_clean(f->label, sizeof(f->label), source->label);
	code = check_source(source, f);
	if (code != KVREG_E_OK)
		return code;
	code = memory_seal(source->fd, source->length, f);
	if (code != KVREG_E_OK)
		return code;
	code = memory_populate(source->fd, (void *)(uintptr_t)source->address, source->length, f);
	if (code != KVREG_E_OK)
		return code;
	return import_buffer(k, source, f, ret_buffer);
}

KVREG_PUBLIC int kvreg_buffer_memfd(struct kvreg *k, int fd, void *address, uint64_t length,
				    const struct kvreg_buffer_options *options,
				    struct kvreg_buffer **ret_buffer)
{
	struct source source = { .fd = fd, .address = (uintptr_t)address, .length = length };
	struct failure f;

	failure_init(&f);
	return error_return(share_memfd(k, &source, options, &f, ret_buffer), &f);
}

void buffer_free(struct kvreg_buffer *buffer)
{
	LIST_REMOVE(buffer, link);
	memory_fini(&buffer->memory);
	free(buffer);
}

static int release_buffer(struct kvreg_buffer *buffer, struct failure *f)
{
	_cleanup_leave_ struct connection *c = NULL;
	Kvreg__ReleaseBuffer release = KVREG__RELEASE_BUFFER__INIT;
	struct call call = CALL(IMPORT, DONE);
	Kvreg__Reply *reply;
	int code;

	code = connection_enter(&buffer->k->connection, KVREG_STAGE_IMPORT, f, &c);
	if (code != KVREG_E_OK)
		return code;
	release.buffer = buffer->id;
	call.request.body_case = KVREG__REQUEST__BODY_RELEASE_BUFFER;
	call.request.release_buffer = &release;
	code = connection_call(c, &call, f, &reply);
	/* The errno alone must say whether it is freed, whatever code a session answers with. */
	if (failure_errno(code) == EINVAL)
		return code;
	buffer_free(buffer);
	return c->lost ? KVREG_E_OK : code;
}

KVREG_PUBLIC int kvreg_buffer_release(struct kvreg_buffer *buffer)
{
	struct failure f;

	failure_init(&f);
	return error_return(release_buffer(buffer, &f), &f);
}
