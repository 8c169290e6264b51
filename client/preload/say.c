/* SPDX-License-Identifier: Apache-2.0 */
#include "client/preload/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/kvreg-client.h"
#include "client/preload/settings.h"

#define LINE_MAX_BYTES 2048

static void put(char *line, size_t size, int length)
{
	size_t n = length < 0 ? 0 : (size_t)length;

	/* A program that has closed its stderr does not want to know. */
	if (n >= size)
		n = size - 1;
	line[n++] = '\n';
	(void)!write(STDERR_FILENO, line, n);
}

static void say(const struct failure *f)
{
	char line[LINE_MAX_BYTES];

	put(line, sizeof(line), failure_line(f, line, sizeof(line)));
}

/* Lock-free, so that a child forked meanwhile can go on. */
static bool is_news(unsigned int kind, int errnum, enum kvreg_code code)
{
	static _Atomic uint64_t told[CAUSES_MAX];
	uint64_t cause = (uint64_t)code << 32 | (uint64_t)(kind & 0xff) << 24 |
			 (uint64_t)(errnum & 0xffff) << 8 | 1;

	if (settings()->verbose)
		return true;
	for (size_t i = 0; i < CAUSES_MAX; i++) {
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&told[i], &there, cause))
			return true;
		if (there == cause)
			return false;
	}
	return false;
}

void say_failed(const struct verbs_call *call, int errnum, const struct evidence *e)
{
	struct failure f;
	int code = diagnose(call, errnum, e, &f);

	if (is_news(call->kind, errnum, (enum kvreg_code)code))
		say(&f);
}

/* No session to lease from: what failed is the limit, and the daemon is the remedy. */
static void without_daemon(const struct verbs_call *call, int errnum, const struct evidence *e,
			   const struct kvreg_error *error)
{
	struct failure why, f;
	enum kvreg_code code = kvreg_error_code(error);

	diagnose(call, errnum, e, &why);
	failure_init(&f);
	failure_set(&f, KVREG_E_LIMIT_MEMLOCK, KVREG_STAGE_REGISTER, "%.200s; %s: %.120s",
		    why.detail, kvreg_error_name(error), kvreg_error_detail(error));
	snprintf(f.hint, sizeof(f.hint), "%.280s; or raise the limit (ulimit -l, LimitMEMLOCK)",
		 kvreg_error_hint(error));
	/* Once, whatever had failed. */
	if (is_news(0, 0, code))
		say(&f);
}

void say_refused(const struct verbs_call *call, int errnum, const struct evidence *e)
{
	const struct kvreg_error *error = kvreg_last_error();
	enum kvreg_code code = kvreg_error_code(error);
	struct failure f;

	if (code == KVREG_E_OK) {
		say_failed(call, errnum, e);
		return;
	}
	if (kvreg_error_stage(error) == KVREG_STAGE_CONNECT || code == KVREG_E_SESSION_LOST) {
		without_daemon(call, errnum, e, error);
		return;
	}
	failure_init(&f);
	failure_set(&f, code, kvreg_error_stage(error), "%.250s; for %s of %" PRIu64 " bytes",
		    kvreg_error_detail(error), call->name, call->length);
	snprintf(f.hint, sizeof(f.hint), "%s", kvreg_error_hint(error));
	if (is_news(call->kind, errnum, code))
		say(&f);
}

void say_leased(const struct verbs_call *call, uint64_t bytes, int errnum)
{
	char line[LINE_MAX_BYTES];

	if (!settings()->verbose)
		return;
	errno = errnum;
	put(line, sizeof(line),
	    snprintf(line, sizeof(line),
		     "kvreg: %" PRIu64 " bytes leased for %s of %" PRIu64 " bytes: %m", bytes,
		     call->name, call->length));
}
