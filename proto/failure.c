/* SPDX-License-Identifier: Apache-2.0 */
#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"

struct code_row {
	enum kvreg_code code;
	enum kvreg_class klass;
	int errnum;
	const char *name;
	const char *meaning;
	const char *hint;
};

#define CLASS(number, name)
#define STAGE(number, name, shown)
#define CODE(number, name, klass, errnum, meaning, hint)                                           \
	{ KVREG_E_##name, KVREG_CLASS_##klass, errnum, #name, meaning, hint },
static const struct code_row codes[] = {
#include "error.def"
};
#undef CODE
#undef STAGE
#define CODE(number, name, klass, errnum, meaning, hint)
#define STAGE(number, name, shown) [number] = shown,
static const char *const stages[] = {
#include "error.def"
};
#undef CLASS
#undef STAGE
#define STAGE(number, name, shown)
#define CLASS(number, name) [number] = #name,
static const char *const classes[] = {
#include "error.def"
};

/* Of a code that this build does not know (a newer daemon's) nothing is claimed. */
static const struct code_row unknown_code = {
	.code = KVREG_E_UNKNOWN,
	.klass = KVREG_CLASS_INTERNAL,
	.errnum = EIO,
	.name = "?",
	.meaning = "a failure that this version does not know",
	.hint = "update the client library",
};

static const struct code_row *row(enum kvreg_code code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return &codes[i];
	return &unknown_code;
}

void failure_init(struct failure *f)
{
	*f = (struct failure){ .snapshot = KVREG__SNAPSHOT__INIT };
}

int failure_set(struct failure *f, enum kvreg_code code, enum kvreg_stage stage, const char *format,
		...)
{
	va_list args;

	f->code = code;
	f->stage = stage;
	va_start(args, format);
	vsnprintf(f->detail, sizeof(f->detail), format, args);
	va_end(args);
	snprintf(f->hint, sizeof(f->hint), "%s", failure_hint(code));
	return (int)code;
}

void failure_to_wire(const struct failure *f, struct failure_wire *ret_wire)
{
	ret_wire->snapshot = f->snapshot;
	ret_wire->error = (Kvreg__Error)KVREG__ERROR__INIT;
	Kvreg__Error *e = &ret_wire->error;
	e->code = (uint32_t)f->code;
	e->stage = (uint32_t)f->stage;
	e->errnum = f->errnum;
	e->cuda_result = f->cuda_result;
	e->index = f->index;
	e->label = (char *)f->label;
	e->address = f->address;
	e->length = f->length;
	e->access = f->access;
	e->device = (char *)f->device;
	e->driver = (char *)f->driver;
	e->elapsed_us = f->elapsed_us;
	e->detail = (char *)f->detail;
	e->hint = (char *)f->hint;
	e->snapshot = &ret_wire->snapshot;
	for (size_t i = 0; i < f->n_attempts; i++) {
		ret_wire->attempts[i] = (Kvreg__Attempt)KVREG__ATTEMPT__INIT;
		ret_wire->attempts[i].errnum = f->attempts[i].errnum;
		ret_wire->attempts[i].elapsed_us = f->attempts[i].elapsed_us;
		ret_wire->attempt_list[i] = &ret_wire->attempts[i];
	}
	e->attempts = ret_wire->attempt_list;
	e->n_attempts = f->n_attempts;
}

void failure_from_wire(struct failure *f, const Kvreg__Error *error)
{
	failure_init(f);
	f->code = (enum kvreg_code)error->code;
	f->stage = (enum kvreg_stage)error->stage;
	f->errnum = error->errnum;
	f->cuda_result = error->cuda_result;
	f->index = error->index;
	text_clean(f->label, sizeof(f->label), error->label);
	f->address = error->address;
	f->length = error->length;
	f->access = error->access;
	text_clean(f->device, sizeof(f->device), error->device);
	text_clean(f->driver, sizeof(f->driver), error->driver);
	for (size_t i = 0; i < error->n_attempts && i < FAILURE_ATTEMPTS; i++) {
		f->attempts[i].errnum = error->attempts[i]->errnum;
		f->attempts[i].elapsed_us = error->attempts[i]->elapsed_us;
		f->n_attempts = i + 1;
	}
	f->elapsed_us = error->elapsed_us;
	text_clean(f->detail, sizeof(f->detail), error->detail);
	text_clean(f->hint, sizeof(f->hint), error->hint);
	if (error->snapshot) {
		f->snapshot = *error->snapshot;
		/* Fields of a newer peer stay in the arena that @error lives in. */
		f->snapshot.base.n_unknown_fields = 0;
		f->snapshot.base.unknown_fields = NULL;
	}
}

int failure_errno(enum kvreg_code code)
{
	return row(code)->errnum;
}

enum kvreg_class failure_class(enum kvreg_code code)
{
	return row(code)->klass;
}

const char *failure_class_name(enum kvreg_class klass)
{
	return (size_t)klass < sizeof(classes) / sizeof(classes[0]) ? classes[klass] : "?";
}

const char *failure_stage_name(enum kvreg_stage stage)
{
	return (size_t)stage < sizeof(stages) / sizeof(stages[0]) ? stages[stage] : "?";
}

const char *failure_code_name(enum kvreg_code code)
{
	return row(code)->name;
}

const char *failure_meaning(enum kvreg_code code)
{
	return row(code)->meaning;
}

const char *failure_hint(enum kvreg_code code)
{
	return row(code)->hint;
}

int failure_line(const struct failure *f, char *ret_text, size_t size)
{
	return snprintf(ret_text, size, "kvreg: %s failed: %s: %s%s%s%s: %s",
			failure_stage_name(f->stage), failure_code_name(f->code),
			failure_meaning(f->code), f->detail[0] ? " (" : "", f->detail,
			f->detail[0] ? ")" : "", f->hint);
}
