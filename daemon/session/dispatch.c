/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/dispatch.h"

#include <errno.h>
#include <time.h>

#include "daemon/session/grant.h"

struct row {
	Kvreg__Request__BodyCase body;
	bool before_hello;
	size_t n_fds;
	handler_fn *handler;
};

static const struct row rows[] = {
	{ KVREG__REQUEST__BODY_HELLO, true, 0, handle_hello },
	{ KVREG__REQUEST__BODY_ATTACH_DOMAIN, false, 1, handle_attach_domain },
	{ KVREG__REQUEST__BODY_DETACH_DOMAIN, false, 0, handle_detach_domain },
	{ KVREG__REQUEST__BODY_IMPORT_BUFFER, false, 1, handle_import_buffer },
	{ KVREG__REQUEST__BODY_RELEASE_BUFFER, false, 0, handle_release_buffer },
	{ KVREG__REQUEST__BODY_REGISTER, false, 0, handle_register },
	{ KVREG__REQUEST__BODY_DEREGISTER, false, 0, handle_deregister },
	{ KVREG__REQUEST__BODY_WHO_AM_I, false, 0, handle_who_am_i },
	{ KVREG__REQUEST__BODY_LEASE_MEMLOCK, false, 0, handle_lease_memlock },
	{ KVREG__REQUEST__BODY_END_LEASE, false, 0, handle_end_lease },
};

static const struct row *find(Kvreg__Request__BodyCase body)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].body == body)
			return &rows[i];
	return NULL;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

/* Whatever the handler had put into the answer is dropped: a refusal has no body. */
static void refuse(struct client *c, struct answer *answer, uint64_t started)
{
	struct failure *f = &answer->failure;

	f->elapsed_us = now_us() - started;
	if (f->errnum && f->n_attempts == 0)
		f->attempts[f->n_attempts++] = (struct failure_attempt){ f->errnum, f->elapsed_us };
	grant_evidence(c, f);
	failure_to_wire(f, &answer->wire);
	answer->reply.body_case = KVREG__REPLY__BODY__NOT_SET;
	answer->reply.error = &answer->wire.error;
}

int dispatch(struct client *c, const Kvreg__Request *request, struct fdset *fds,
	     struct answer *ret_answer, const char **ret_words)
{
	const struct row *row = find(request->body_case);
	uint64_t started = now_us();
	int r;

	kvreg__reply__init(&ret_answer->reply);
	failure_init(&ret_answer->failure);
	ret_answer->reply.seq = request->seq;
	*ret_words = NULL;
	if (request->seq == 0)
		*ret_words = "a request without a number";
	else if (!c->greeted && !(row && row->before_hello))
		*ret_words = "a request before Hello";
	else if (c->greeted && row && row->before_hello)
		*ret_words = "a second Hello";
	else if (row && fds->count != row->n_fds)
		*ret_words = "a wrong number of file descriptors";
	if (*ret_words)
		return -EPROTO;
	if (row)
		r = row->handler(c, request, fds, ret_answer);
	else
		r = failure_set(&ret_answer->failure, KVREG_E_UNSUPPORTED, KVREG_STAGE_NONE,
				"the request's body is not known");
	if (r > 0)
		refuse(c, ret_answer, started);
	return r < 0 ? r : 0;
}
