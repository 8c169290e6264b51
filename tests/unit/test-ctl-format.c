/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and names as kvregctl shows and reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "client/ctl/format.h"

static void sizes_have_one_decimal_at_most(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 1, "1B" },
		{ 1023, "1023B" },
		{ 1024, "1K" },
		{ 1025, "1K" },
		{ 1536, "1.5K" },
		{ 10 * 1024 + 51, "10K" },
		{ 10 * 1024 + 52, "10.1K" },
		{ (1ull << 20) - 1, "1M" },
		{ 8ull << 20, "8M" },
		{ (3ull << 30) / 2, "1.5G" },
		{ (1ull << 40) - 1, "1T" },
		{ 1ull << 50, "1P" },
		{ 1ull << 60, "1E" },
		{ UINT64_MAX, "16E" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(format_size(cases[i].bytes).text, cases[i].text);
}

static void durations_have_two_units(void **state)
{
	(void)state;
	assert_string_equal(format_duration(0).text, "0s");
	assert_string_equal(format_duration(59999).text, "59s");
	assert_string_equal(format_duration(60000).text, "1m0s");
	assert_string_equal(format_duration(3599999).text, "59m59s");
	assert_string_equal(format_duration(3600000ull * 3 + 60000 * 12).text, "3h12m");
	assert_string_equal(format_duration(86400000ull * 2 + 3600000ull * 4).text, "2d4h");
}

static void access_is_letters(void **state)
{
	(void)state;
	assert_string_equal(format_access(0).text, "-");
	assert_string_equal(format_access(1).text, "L");
	assert_string_equal(format_access(7).text, "LWR");
	assert_string_equal(format_access(0x1f | 1u << 20).text, "LWRAMO");
	assert_string_equal(format_access(1 | 1u << 30).text, "L+0x40000000");
}

static void text_is_safe_to_show(void **state)
{
	char longest[600];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_string_equal(format_text(NULL).text, "-");
	assert_string_equal(format_text("").text, "-");
	assert_string_equal(format_text("\033[2Jab\n").text, "?[2Jab?");
	assert_int_equal(strlen(format_text(longest).text), sizeof(struct shown) - 1);
}

static void tail_keeps_the_end(void **state)
{
	(void)state;
	assert_string_equal(format_tail("/a/b", 10).text, "/a/b");
	assert_string_equal(format_tail("0123456789", 10).text, "0123456789");
	assert_string_equal(format_tail("/kubepods/0123456", 10).text, "...0123456");
	assert_string_equal(format_tail("", 10).text, "-");
	assert_string_equal(format_tail(NULL, 10).text, "-");
	assert_string_equal(format_tail("/kubepods/01\033456", 9).text, "...01?456");
}

static void users_have_names_or_numbers(void **state)
{
	(void)state;
	assert_string_equal(format_user(0).text, "root");
	assert_string_equal(format_user(4123456789u).text, "4123456789");
	assert_string_equal(user_name(4123456789u).text, "");
}

static void sizes_are_read(void **state)
{
	static const char *const bad[] = { "",
					   " 1",
					   "-1",
					   "+1",
					   "K",
					   "1KB",
					   "1.5G",
					   "1X",
					   "0x10",
					   "16777216T",
					   "18446744073709551616" };
	uint64_t bytes = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse_size(bad[i], &bytes));
	assert_int_equal(bytes, 7);
	assert_true(parse_size("0", &bytes));
	assert_int_equal(bytes, 0);
	assert_true(parse_size("18446744073709551615", &bytes));
	assert_true(bytes == UINT64_MAX);
	assert_true(parse_size("64k", &bytes));
	assert_int_equal(bytes, 65536);
	assert_true(parse_size("2G", &bytes));
	assert_true(bytes == 2ull << 30);
	assert_true(parse_size("16777215T", &bytes));
	assert_true(bytes == 16777215ull << 40);
}

static void pids_are_read(void **state)
{
	static const char *const bad[] = { "", "0", "-1", " 1", "1x", "2147483648", "99999999999" };
	uint32_t pid = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse_pid(bad[i], &pid));
	assert_int_equal(pid, 7);
	assert_true(parse_pid("4242", &pid));
	assert_int_equal(pid, 4242);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_have_one_decimal_at_most),
		cmocka_unit_test(durations_have_two_units),
		cmocka_unit_test(access_is_letters),
		cmocka_unit_test(text_is_safe_to_show),
		cmocka_unit_test(tail_keeps_the_end),
		cmocka_unit_test(users_have_names_or_numbers),
		cmocka_unit_test(sizes_are_read),
		cmocka_unit_test(pids_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
