/* SPDX-License-Identifier: Apache-2.0 */
#include "client/kvreg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/buffer.h"
#include "client/domain.h"
#include "client/lease.h"
#include "client/options.h"
#include "client/public.h"
#include "client/region.h"

static void kvreg_closep(struct kvreg **k)
{
	kvreg_close(*k);
}

#define _cleanup_kvreg_ __attribute__((cleanup(kvreg_closep)))

static int hello(struct kvreg *k, const char *program, struct failure *f)
{
	char name[LABEL_MAX + 1];
	Kvreg__Hello hello = KVREG__HELLO__INIT;
	struct call call = CALL(CONNECT, HELLO);
	Kvreg__Reply *reply;
	int code;

	text_clean(name, sizeof(name), program);
	hello.major = PROTOCOL_MAJOR;
	hello.minor = PROTOCOL_MINOR;
	hello.features = FEATURE_MEMFD;
	hello.program = name;
	call.request.body_case = KVREG__REQUEST__BODY_HELLO;
	call.request.hello = &hello;
	code = connection_call(&k->connection, &call, f, &reply);
	if (code != KVREG_E_OK)
		return code;
	if (reply->hello->major != PROTOCOL_MAJOR)
		return failure_set(f, KVREG_E_VERSION, KVREG_STAGE_CONNECT,
				   "the library speaks version %u, the daemon %u", PROTOCOL_MAJOR,
				   reply->hello->major);
	text_clean(k->device_kind, sizeof(k->device_kind), reply->hello->device);
	return KVREG_E_OK;
}

static const char *socket_path(const struct kvreg_open_options *options)
{
	const char *path = options->socket ? options->socket : secure_getenv("KVREG_SOCKET");

	return path ? path : DEFAULT_SOCKET;
}

static int open_connection(const struct kvreg_open_options *given, struct failure *f,
			   struct kvreg **ret_k)
{
	_cleanup_kvreg_ struct kvreg *k = NULL;
	struct kvreg_open_options options = { 0 };
	int code;

	if (!options_copy(&options, sizeof(options), given))
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_CONNECT,
				   "options: a size or an option that this library does not know");
	if (options.program && strlen(options.program) > LABEL_MAX)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_CONNECT,
				   "program: longer than %u bytes", LABEL_MAX);
	k = calloc(1, sizeof(*k));
	if (!k)
		return failure_set(f, KVREG_E_LIMIT_MEMORY, KVREG_STAGE_CONNECT,
				   "%zu bytes in this process", sizeof(*k));
	connection_init(&k->connection);
	code = connection_open(&k->connection, socket_path(&options), f);
	if (code != KVREG_E_OK)
		return code;
	code = hello(k, options.program ? options.program : program_invocation_short_name, f);
	if (code != KVREG_E_OK)
		return code;
	/* Only now: a program must hear nothing of a connection that it does not have yet. */
	k->connection.on_event = options.on_event;
	k->connection.arg = options.arg;
	*ret_k = k;
	k = NULL;
	return KVREG_E_OK;
}

KVREG_PUBLIC int kvreg_open(const struct kvreg_open_options *options, struct kvreg **ret_k)
{
	struct failure f;

	failure_init(&f);
	return error_return(open_connection(options, &f, ret_k), &f);
}

/* In a child: another thread of the parent may have been changing a list during the fork. Followed
 * forwards it is whole at any time, backwards it is not: nothing is taken out of it. */
static void free_copy(struct kvreg *k)
{
	for (struct kvreg_region *at = LIST_FIRST(&k->regions), *next; at; at = next) {
		next = LIST_NEXT(at, link);
		region_free_copy(at);
	}
	for (struct kvreg_buffer *at = LIST_FIRST(&k->buffers), *next; at; at = next) {
		next = LIST_NEXT(at, link);
		memory_fini(&at->memory);
		free(at);
	}
	for (struct kvreg_lease *at = LIST_FIRST(&k->leases), *next; at; at = next) {
		next = LIST_NEXT(at, link);
		free(at);
	}
	for (struct kvreg_domain *at = LIST_FIRST(&k->domains), *next; at; at = next) {
		next = LIST_NEXT(at, link);
		free(at);
	}
}

static void destroy_all(struct kvreg *k)
{
	while (!LIST_EMPTY(&k->leases))
		lease_free(LIST_FIRST(&k->leases));
	while (!LIST_EMPTY(&k->regions))
		region_close(LIST_FIRST(&k->regions));
	while (!LIST_EMPTY(&k->buffers))
		buffer_free(LIST_FIRST(&k->buffers));
	while (!LIST_EMPTY(&k->domains))
		domain_free(LIST_FIRST(&k->domains));
}

KVREG_PUBLIC void kvreg_close(struct kvreg *k)
{
	if (!k)
		return;
	k->connection.on_event = NULL;
	if (connection_forked(&k->connection))
		free_copy(k);
	else
		destroy_all(k);
	connection_fini(&k->connection);
	free(k);
}

KVREG_PUBLIC int kvreg_fd(const struct kvreg *k)
{
	return k->connection.sock;
}

KVREG_PUBLIC int kvreg_dispatch(struct kvreg *k)
{
	struct failure f;

	failure_init(&f);
	return error_return(connection_dispatch(&k->connection, &f), &f);
}

static int who_am_i(struct kvreg *k, struct failure *f, struct kvreg_identity *ret_identity)
{
	_cleanup_leave_ struct connection *c = NULL;
	Kvreg__WhoAmI who_am_i = KVREG__WHO_AM_I__INIT;
	struct call call = CALL(CONNECT, WHO_AM_I);
	Kvreg__Reply *reply;
	int code;

	code = connection_enter(&k->connection, call.stage, f, &c);
	if (code != KVREG_E_OK)
		return code;
	call.request.body_case = KVREG__REQUEST__BODY_WHO_AM_I;
	call.request.who_am_i = &who_am_i;
	code = connection_call(c, &call, f, &reply);
	if (code != KVREG_E_OK)
		return code;
	const Kvreg__WhoAmIReply *who = reply->who_am_i;
	*ret_identity = (struct kvreg_identity){
		.pid = who->pid,
		.uid = who->uid,
		.gid = who->gid,
		.session_pid = who->session_pid,
		.session_uid = who->session_uid,
		.granted = who->granted,
		.memory = who->memory,
		.charged = who->charged,
		.domains = who->domains,
		.buffers = who->buffers,
		.regions = who->regions,
	};
	text_clean(ret_identity->klass, sizeof(ret_identity->klass), who->class_);
	return KVREG_E_OK;
}

KVREG_PUBLIC int kvreg_whoami(struct kvreg *k, struct kvreg_identity *ret_identity)
{
	struct failure f;

	failure_init(&f);
	return error_return(who_am_i(k, &f, ret_identity), &f);
}

KVREG_PUBLIC const char *kvreg_device_kind(const struct kvreg *k)
{
	return k->device_kind;
}

bool kvreg_is_mock(const struct kvreg *k)
{
	return strcmp(k->device_kind, "mock") == 0;
}
