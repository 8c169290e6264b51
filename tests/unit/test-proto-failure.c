/* SPDX-License-Identifier: Apache-2.0 */
/* The table of failures, and a failure on its way over the wire and to a person. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/failure.h"

struct row {
	unsigned int number;
	enum kvreg_code code;
	enum kvreg_class klass;
	int errnum;
	const char *name, *meaning, *hint;
};

#define CLASS(number, name)
#define STAGE(number, name, shown)
#define CODE(number, name, klass, errnum, meaning, hint)                                           \
	{ number, KVREG_E_##name, KVREG_CLASS_##klass, errnum, #name, meaning, hint },
static const struct row rows[] = {
#include "proto/error.def"
};
#undef CODE
#undef STAGE
#define CODE(number, name, klass, errnum, meaning, hint)
#define STAGE(number, name, shown) { number, KVREG_STAGE_##name, shown },
static const struct {
	unsigned int number;
	enum kvreg_stage stage;
	const char *shown;
} stages[] = {
#include "proto/error.def"
};

static void every_code_has_its_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *row = &rows[i];

		assert_int_equal(row->code, row->number);
		assert_int_equal(failure_class(row->code), row->klass);
		assert_int_equal(failure_errno(row->code), row->errnum);
		assert_string_equal(failure_code_name(row->code), row->name);
		assert_string_equal(failure_meaning(row->code), row->meaning);
		assert_string_equal(failure_hint(row->code), row->hint);
		assert_true(row->meaning[0] && row->hint[0]);
		/* A hint that is cut helps nobody. */
		assert_true(strlen(row->hint) < FAILURE_TEXT);
		assert_true((row->code == KVREG_E_OK) == (row->errnum == 0));
		assert_true((row->code == KVREG_E_OK) == (row->klass == KVREG_CLASS_NONE));
		assert_string_not_equal(failure_class_name(row->klass), "?");
	}
}

static void no_number_is_used_twice(void **state)
{
	(void)state;
	for (size_t i = 1; i < COUNT(rows); i++)
		assert_true(rows[i].number > rows[i - 1].number);
	for (size_t i = 1; i < COUNT(stages); i++)
		assert_true(stages[i].number > stages[i - 1].number);
}

static void every_stage_has_its_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(stages); i++) {
		assert_int_equal(stages[i].stage, stages[i].number);
		assert_string_equal(failure_stage_name(stages[i].stage), stages[i].shown);
	}
	assert_string_equal(failure_stage_name((enum kvreg_stage)99), "?");
	assert_string_equal(failure_class_name((enum kvreg_class)99), "?");
}

static void of_an_unknown_code_nothing_is_claimed(void **state)
{
	enum kvreg_code code = (enum kvreg_code)4711;

	(void)state;
	assert_string_equal(failure_code_name(code), "?");
	assert_int_equal(failure_class(code), KVREG_CLASS_INTERNAL);
	assert_int_equal(failure_errno(code), EIO);
	assert_true(failure_meaning(code)[0] && failure_hint(code)[0]);
}

static void setting_it_gives_code_and_default_hint(void **state)
{
	struct failure f;

	(void)state;
	failure_init(&f);
	assert_int_equal(f.code, KVREG_E_OK);
	assert_int_equal(failure_set(&f, KVREG_E_BUSY, KVREG_STAGE_ATTACH, "%d regions", 3),
			 KVREG_E_BUSY);
	assert_int_equal(f.stage, KVREG_STAGE_ATTACH);
	assert_string_equal(f.detail, "3 regions");
	assert_string_equal(f.hint, failure_hint(KVREG_E_BUSY));
}

static void fill(struct failure *f, size_t n_attempts)
{
	failure_init(f);
	failure_set(f, KVREG_E_LIMIT_MEMLOCK, KVREG_STAGE_PIN, "short by %d", 5);
	f->errnum = ENOMEM;
	f->cuda_result = -3;
	f->index = 7;
	strcpy(f->label, "layer 0");
	f->address = UINT64_MAX - 1;
	f->length = 1ull << 40;
	f->access = 0xf;
	strcpy(f->device, "mlx5_0");
	strcpy(f->driver, "mlx5");
	f->n_attempts = n_attempts;
	for (size_t i = 0; i < n_attempts; i++)
		f->attempts[i] = (struct failure_attempt){ EAGAIN, 10 * (i + 1) };
	f->elapsed_us = 99;
	f->snapshot.has_session_memlock = true;
	f->snapshot.session_memlock = 0; /* looked at and 0 is not the same as not looked at */
	f->snapshot.has_need = true;
	f->snapshot.need = 4096;
}

static void assert_same(const struct failure *a, const struct failure *b)
{
	assert_int_equal(a->code, b->code);
	assert_int_equal(a->stage, b->stage);
	assert_int_equal(a->errnum, b->errnum);
	assert_int_equal(a->cuda_result, b->cuda_result);
	assert_int_equal(a->index, b->index);
	assert_string_equal(a->label, b->label);
	assert_true(a->address == b->address && a->length == b->length);
	assert_int_equal(a->access, b->access);
	assert_string_equal(a->device, b->device);
	assert_string_equal(a->driver, b->driver);
	assert_int_equal(a->n_attempts, b->n_attempts);
	assert_memory_equal(a->attempts, b->attempts, sizeof(a->attempts));
	assert_int_equal(a->elapsed_us, b->elapsed_us);
	assert_string_equal(a->detail, b->detail);
	assert_string_equal(a->hint, b->hint);
	assert_memory_equal(&a->snapshot, &b->snapshot, sizeof(a->snapshot));
}

static void it_comes_back_over_the_wire(void **state)
{
	static struct arena arena;
	struct failure sent, got;
	struct failure_wire wire;
	uint8_t bytes[4096];

	(void)state;
	fill(&sent, FAILURE_ATTEMPTS);
	failure_to_wire(&sent, &wire);
	size_t length = codec_pack(&wire.error.base, bytes, sizeof(bytes));
	assert_true(length > 0);
	const ProtobufCMessage *message =
		codec_unpack(&arena, &kvreg__error__descriptor, bytes, length);
	assert_non_null(message);
	failure_from_wire(&got, (const Kvreg__Error *)message);
	assert_same(&got, &sent);
	assert_true(got.snapshot.has_session_memlock && !got.snapshot.has_client_memlock);
}

static void a_hostile_error_is_cut_and_cleaned(void **state)
{
	Kvreg__Attempt attempts[FAILURE_ATTEMPTS + 5], *list[FAILURE_ATTEMPTS + 5];
	Kvreg__Error error = KVREG__ERROR__INIT;
	Kvreg__Snapshot snapshot = KVREG__SNAPSHOT__INIT;
	char text[2 * FAILURE_TEXT];
	struct failure f;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[0] = '\n';
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < COUNT(list); i++) {
		kvreg__attempt__init(&attempts[i]);
		attempts[i].errnum = (int)i + 1;
		list[i] = &attempts[i];
	}
	error.attempts = list;
	error.n_attempts = COUNT(list);
	error.label = error.device = error.driver = error.detail = error.hint = text;
	snapshot.base.n_unknown_fields = 3; /* of a newer peer, in an arena that will be gone */
	error.snapshot = &snapshot;
	failure_from_wire(&f, &error);
	assert_int_equal(f.n_attempts, FAILURE_ATTEMPTS);
	assert_int_equal(f.attempts[FAILURE_ATTEMPTS - 1].errnum, FAILURE_ATTEMPTS);
	assert_int_equal(strlen(f.label), LABEL_MAX);
	assert_int_equal(strlen(f.device), DEVICE_NAME_MAX - 1);
	assert_int_equal(strlen(f.driver), DEVICE_NAME_MAX - 1);
	assert_int_equal(strlen(f.detail), FAILURE_TEXT - 1);
	assert_int_equal(strlen(f.hint), FAILURE_TEXT - 1);
	assert_int_equal(f.detail[0], '?');
	assert_int_equal(f.snapshot.base.n_unknown_fields, 0);
	assert_null(f.snapshot.base.unknown_fields);
}

static void it_is_one_line(void **state)
{
	char line[1024], cut[10];
	struct failure f;

	(void)state;
	failure_init(&f);
	failure_set(&f, KVREG_E_BUSY, KVREG_STAGE_DEREGISTER, "2 windows");
	int length = failure_line(&f, line, sizeof(line));
	assert_string_equal(line, "kvreg: deregister failed: BUSY: it is still in use (2 windows): "
				  "deregister the regions first");
	assert_int_equal(length, strlen(line));
	assert_int_equal(failure_line(&f, cut, sizeof(cut)), length);
	assert_string_equal(cut, "kvreg: de");
	f.detail[0] = '\0';
	failure_line(&f, line, sizeof(line));
	assert_non_null(strstr(line, "BUSY: it is still in use: deregister"));
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_null(strchr(rows[i].hint, '\n'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_its_row),
		cmocka_unit_test(no_number_is_used_twice),
		cmocka_unit_test(every_stage_has_its_name),
		cmocka_unit_test(of_an_unknown_code_nothing_is_claimed),
		cmocka_unit_test(setting_it_gives_code_and_default_hint),
		cmocka_unit_test(it_comes_back_over_the_wire),
		cmocka_unit_test(a_hostile_error_is_cut_and_cleaned),
		cmocka_unit_test(it_is_one_line),
	};

	return RUN_GROUP("proto-failure", tests);
}
