/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON that kvregctl writes: its shape, and text that its clients chose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/json.h"

/* What json_text() makes of @text, without the quotes around it. */
static void assert_written(const char *text, const char *expected)
{
	char *written = NULL;
	size_t size = 0;
	struct json json = { .out = open_memstream(&written, &size) };

	assert_non_null(json.out);
	json_text(&json, NULL, text);
	fclose(json.out);
	assert_true(size >= 2 && written[0] == '"' && written[size - 1] == '"');
	written[size - 1] = '\0';
	assert_string_equal(written + 1, expected);
	free(written);
}

static void plain_text_stays(void **state)
{
	(void)state;
	assert_written("", "");
	assert_written("kv cache ~/!", "kv cache ~/!");
}

static void control_characters_are_escaped(void **state)
{
	(void)state;
	assert_written("a\"b\\c", "a\\\"b\\\\c");
	assert_written("\n\t\r\033[2J\x7f", "\\n\\t\\u000d\\u001b[2J\\u007f");
	/* C1: CSI in one character, which some terminals obey */
	assert_written("\xc2\x9b", "\\u009b");
}

static void other_scripts_are_escaped(void **state)
{
	(void)state;
	assert_written("\xc3\xa9", "\\u00e9");
	assert_written("\xe2\x82\xac", "\\u20ac");
	assert_written("\xe2\x80\xae", "\\u202e");
	assert_written("\xf0\x9f\x98\x80", "\\ud83d\\ude00");
	assert_written("\xf4\x8f\xbf\xbf", "\\udbff\\udfff");
}

static void no_utf8_becomes_the_replacement(void **state)
{
	(void)state;
	assert_written("\x80", "\\ufffd");
	assert_written("\xff"
		       "a",
		       "\\ufffda");
	assert_written("\xc3", "\\ufffd"); /* cut short by the end */
	assert_written("\xe2\x82", "\\ufffd\\ufffd");
	assert_written("\xc3(", "\\ufffd(");
	assert_written("\xc0\xaf", "\\ufffd\\ufffd"); /* overlong '/' */
	assert_written("\xe0\x80\xaf", "\\ufffd\\ufffd\\ufffd");
	assert_written("\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"); /* surrogate */
	assert_written("\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd");
	assert_written("\xf8\x88\x80\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd");
}

static void documents_nest(void **state)
{
	char *written = NULL;
	size_t size = 0;
	struct json json = { .out = open_memstream(&written, &size) };

	(void)state;
	assert_non_null(json.out);
	json_object(&json, NULL);
	json_number(&json, "bytes", UINT64_MAX);
	json_bool(&json, "privileged", false);
	json_text(&json, "config", NULL);
	json_array(&json, "missing");
	json_end(&json);
	json_array(&json, "users");
	json_object(&json, NULL);
	json_bool(&json, "root", true);
	json_end(&json);
	json_object(&json, NULL);
	json_end(&json);
	json_end(&json);
	json_end(&json);
	fclose(json.out);
	assert_string_equal(written, "{\n"
				     "  \"bytes\": 18446744073709551615,\n"
				     "  \"privileged\": false,\n"
				     "  \"config\": null,\n"
				     "  \"missing\": [],\n"
				     "  \"users\": [\n"
				     "    {\n"
				     "      \"root\": true\n"
				     "    },\n"
				     "    {}\n"
				     "  ]\n"
				     "}\n");
	free(written);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_stays),
		cmocka_unit_test(control_characters_are_escaped),
		cmocka_unit_test(other_scripts_are_escaped),
		cmocka_unit_test(no_utf8_becomes_the_replacement),
		cmocka_unit_test(documents_nest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
