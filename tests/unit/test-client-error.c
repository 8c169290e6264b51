/* SPDX-License-Identifier: Apache-2.0 */
/* The last error: accessors, one per thread, its line, and the words for every code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/error.h"
#include "client/kvreg-client.h"
#include "client/options.h"
#include "fake-session.h"

struct row {
	enum kvreg_code code;
	enum kvreg_class klass;
	int errnum;
	const char *name;
	const char *meaning;
};

#define CLASS(number, name)
#define STAGE(number, name, shown)
#define CODE(number, name, klass, errnum, meaning, hint)                                           \
	{ number, KVREG_CLASS_##klass, errnum, #name, meaning },
static const struct row rows[] = {
#include "proto/error.def"
};

static void no_error_at_first(void **state)
{
	const struct kvreg_error *e = kvreg_last_error();
	char text[64];

	(void)state;
	assert_int_equal(kvreg_error_code(e), KVREG_E_OK);
	assert_int_equal(kvreg_error_class(e), KVREG_CLASS_NONE);
	assert_int_equal(kvreg_error_errno(e), 0);
	assert_string_equal(kvreg_error_name(e), "OK");
	assert_string_equal(kvreg_error_detail(e), "");
	assert_string_equal(kvreg_error_hint(e), "nothing to do");
	kvreg_error_text(e, text, sizeof(text));
	assert_string_equal(text, "kvreg: no failure");
}

static void fill(struct failure *f)
{
	failure_init(f);
	failure_set(f, KVREG_E_LIMIT_QUOTA, KVREG_STAGE_REGISTER, "%d of %d", 3, 2);
	f->errnum = ENOMEM;
	f->address = 0x2000;
	f->length = 4096;
	strcpy(f->device, "mlx5_0");
	strcpy(f->label, "kv");
}

static void accessors_show_the_failure(void **state)
{
	const struct kvreg_error *e = kvreg_last_error();
	struct failure f;

	(void)state;
	fill(&f);
	assert_int_equal(error_return((int)f.code, &f), -EDQUOT);
	assert_int_equal(kvreg_error_code(e), KVREG_E_LIMIT_QUOTA);
	assert_int_equal(kvreg_error_class(e), KVREG_CLASS_LIMIT);
	assert_int_equal(kvreg_error_stage(e), KVREG_STAGE_REGISTER);
	assert_int_equal(kvreg_error_errno(e), ENOMEM);
	assert_string_equal(kvreg_error_name(e), "LIMIT_QUOTA");
	assert_string_equal(kvreg_error_detail(e), "3 of 2");
	assert_non_null(strstr(kvreg_error_hint(e), "/etc/kvregd.conf"));
	assert_string_equal(kvreg_error_device(e), "mlx5_0");
	assert_string_equal(kvreg_error_label(e), "kv");
	assert_int_equal(kvreg_error_address(e), 0x2000);
	assert_int_equal(kvreg_error_length(e), 4096);
}

static void success_leaves_it_alone(void **state)
{
	struct failure f;

	(void)state;
	fill(&f);
	error_return((int)f.code, &f);
	failure_init(&f);
	assert_int_equal(error_return(KVREG_E_OK, &f), 0);
	assert_int_equal(kvreg_error_code(kvreg_last_error()), KVREG_E_LIMIT_QUOTA);
}

static void the_library_adds_what_it_sees_of_itself(void **state)
{
	/* struct kvreg_error is a struct failure and nothing else. */
	const struct failure *seen = (const struct failure *)kvreg_last_error();
	struct failure f;

	(void)state;
	fill(&f);
	error_return((int)f.code, &f);
	assert_true(seen->snapshot.has_client_memlock);
	assert_true(seen->snapshot.has_client_vm_pin);
	assert_true(seen->snapshot.has_client_cap_eff);
	assert_false(seen->snapshot.has_session_memlock);
}

static void text_is_one_line_and_counts_like_snprintf(void **state)
{
	const struct kvreg_error *e = kvreg_last_error();
	struct failure f;
	char text[1024], cut[16];
	int length;

	(void)state;
	fill(&f);
	error_return((int)f.code, &f);
	length = kvreg_error_text(e, text, sizeof(text));
	assert_int_equal(length, strlen(text));
	assert_int_equal(kvreg_error_text(e, NULL, 0), length);
	assert_int_equal(kvreg_error_text(e, cut, sizeof(cut)), length);
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	assert_null(strchr(text, '\n'));
	assert_memory_equal(text, "kvreg: register failed: LIMIT_QUOTA: ", 37);
	assert_non_null(strstr(text, "(3 of 2)"));
	assert_non_null(strstr(text, kvreg_error_hint(e)));
}

static void *code_of_a_new_thread(void *arg)
{
	*(enum kvreg_code *)arg = kvreg_error_code(kvreg_last_error());
	return (void *)kvreg_last_error();
}

static void each_thread_has_its_own(void **state)
{
	enum kvreg_code theirs = KVREG_E_UNKNOWN;
	struct failure f;
	pthread_t thread;
	void *e;

	(void)state;
	fill(&f);
	error_return((int)f.code, &f);
	assert_int_equal(pthread_create(&thread, NULL, code_of_a_new_thread, &theirs), 0);
	pthread_join(thread, &e);
	assert_int_equal(theirs, KVREG_E_OK);
	assert_ptr_not_equal(e, kvreg_last_error());
	assert_int_equal(kvreg_error_code(kvreg_last_error()), KVREG_E_LIMIT_QUOTA);
}

static void every_code_has_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct failure f;

		assert_string_equal(kvreg_strerror(rows[i].code), rows[i].meaning);
		failure_init(&f);
		failure_set(&f, rows[i].code, KVREG_STAGE_NONE, "%s", "");
		assert_int_equal(error_return((int)rows[i].code, &f), -rows[i].errnum);
		if (rows[i].code == KVREG_E_OK)
			continue;
		assert_string_equal(kvreg_error_name(kvreg_last_error()), rows[i].name);
		assert_int_equal(kvreg_error_class(kvreg_last_error()), rows[i].klass);
	}
}

static void unknown_codes_have_words_too(void **state)
{
	static const int numbers[] = { -1, 6, 99, 1000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct failure f;

		assert_string_equal(kvreg_strerror((enum kvreg_code)numbers[i]),
				    "a failure that this version does not know");
		failure_init(&f);
		f.code = (enum kvreg_code)numbers[i];
		assert_int_equal(error_return(numbers[i], &f), -EIO);
		assert_true(kvreg_error_code(kvreg_last_error()) == (enum kvreg_code)numbers[i]);
	}
}

static void option_structs_may_be_older_or_newer(void **state)
{
	struct {
		size_t size;
		uint64_t first, second;
	} given = { sizeof(given), 1, 0 }, own = { 0 };
	const size_t known = offsetof(__typeof__(own), second);

	(void)state;
	assert_true(options_copy(&own, known, NULL));
	assert_int_equal(own.first, 0);
	assert_true(options_copy(&own, known, &given));
	assert_int_equal(own.first, 1);
	given.second = 2;
	assert_false(options_copy(&own, known, &given));
	given.size = known;
	own.second = 3;
	assert_true(options_copy(&own, sizeof(own), &given));
	assert_int_equal(own.second, 3);
	given.size = 0;
	assert_false(options_copy(&own, sizeof(own), &given));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_error_at_first),
		cmocka_unit_test(accessors_show_the_failure),
		cmocka_unit_test(success_leaves_it_alone),
		cmocka_unit_test(the_library_adds_what_it_sees_of_itself),
		cmocka_unit_test(text_is_one_line_and_counts_like_snprintf),
		cmocka_unit_test(each_thread_has_its_own),
		cmocka_unit_test(every_code_has_words),
		cmocka_unit_test(unknown_codes_have_words_too),
		cmocka_unit_test(option_structs_may_be_older_or_newer),
	};
	int fds = fake_count_fds(), failed = cmocka_run_group_tests(tests, NULL, NULL);

	return failed || fake_count_fds() != fds;
}
