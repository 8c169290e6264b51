/* SPDX-License-Identifier: Apache-2.0 */
/* The books: what is booked, what is refused, and that all of it comes back. */
#include "test.h"

#include <string.h>

#include "daemon/account.h"
#include "kvreg-errors.h"
#include "proto/limits.h"

#define PAGE 4096ull

/* uid 1 may have less than the host; uid 2 has a rule of its own. */
static struct uid_rule rules[] = { { 2, 20 * PAGE, 1 } };
static const struct config config = {
	.total_bytes = 30 * PAGE,
	.uid_bytes = 10 * PAGE,
	.sessions = 4,
	.uid_sessions = 2,
	.n_classes = 2,
	.classes = {
		{ .name = "default", .bytes = UINT64_MAX, .sessions = UINT32_MAX },
		{ .name = "small", .bytes = 5 * PAGE, .sessions = 2 },
	},
	.n_rules = 1,
	.rules = rules,
};

static struct books books;

static int set_up(void **state)
{
	(void)state;
	books_init(&books, &config);
	return 0;
}

/* books_fini() asserts that all is zero: each test that ends has given everything back. */
static int tear_down(void **state)
{
	(void)state;
	books_fini(&books);
	return 0;
}

static struct charge open_charge(uid_t uid)
{
	struct charge charge = { 0 };

	assert_int_equal(charge_init(&charge, &books, 0, uid), 0);
	return charge;
}

static void sessions_of_one_uid_are_bounded(void **state)
{
	struct charge a = open_charge(1), b = open_charge(1), c = { 0 }, d = open_charge(2);

	(void)state;
	assert_int_equal(charge_init(&c, &books, 0, 1), KVREG_E_LIMIT_SESSIONS);
	assert_null(c.books);
	assert_int_equal(charge_init(&c, &books, 0, 2), KVREG_E_LIMIT_SESSIONS);
	assert_int_equal(books.total.sessions, 3);
	charge_fini(&a);
	a = open_charge(1);
	charge_fini(&a);
	charge_fini(&b);
	charge_fini(&c); /* an empty one is allowed */
	charge_fini(&d);
}

static void sessions_of_the_host_are_bounded(void **state)
{
	struct charge charges[4], e = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(charges); i++)
		charges[i] = open_charge((uid_t)(10 + i));
	assert_int_equal(charge_init(&e, &books, 0, 99), KVREG_E_LIMIT_SESSIONS);
	for (size_t i = 0; i < COUNT(charges); i++)
		charge_fini(&charges[i]);
	assert_true(LIST_EMPTY(&books.accounts));
}

static void what_is_wanted_is_booked(void **state)
{
	struct charge a = open_charge(1);
	struct quota quota;

	(void)state;
	assert_int_equal(charge_raise(&a, PAGE, 4 * PAGE, &quota), 0);
	assert_int_equal(a.bytes, 4 * PAGE);
	assert_int_equal(books.total.granted, 4 * PAGE);
	assert_int_equal(a.account->used.granted, 4 * PAGE);
	assert_int_equal(quota.used, 0);
	assert_int_equal(quota.limit, 10 * PAGE);
	assert_string_equal(quota.scope, "uid");
	/* Less than there is changes nothing. */
	assert_int_equal(charge_raise(&a, PAGE, 2 * PAGE, &quota), 0);
	assert_int_equal(a.bytes, 4 * PAGE);
	charge_fini(&a);
	assert_int_equal(books.total.granted, 0);
}

static void a_slab_ends_where_the_quota_ends(void **state)
{
	struct charge a = open_charge(1), b = open_charge(1);
	struct quota quota;

	(void)state;
	assert_int_equal(charge_raise(&a, PAGE, 7 * PAGE, &quota), 0);
	assert_int_equal(charge_raise(&b, PAGE, 7 * PAGE, &quota), 0);
	assert_int_equal(b.bytes, 3 * PAGE);
	assert_int_equal(quota.used, 7 * PAGE);
	assert_int_equal(charge_raise(&a, 7 * PAGE, 99 * PAGE, &quota), 0);
	assert_int_equal(a.bytes, 7 * PAGE);
	charge_fini(&a);
	charge_fini(&b);
}

static void more_than_is_left_is_refused_and_nothing_changes(void **state)
{
	struct charge a = open_charge(1);
	struct quota quota;

	(void)state;
	assert_int_equal(charge_raise(&a, 4 * PAGE, 4 * PAGE, &quota), 0);
	assert_int_equal(charge_raise(&a, 11 * PAGE, 64 * PAGE, &quota), KVREG_E_LIMIT_QUOTA);
	assert_int_equal(a.bytes, 4 * PAGE);
	assert_int_equal(books.total.granted, 4 * PAGE);
	assert_int_equal(quota.used, 4 * PAGE);
	assert_int_equal(quota.limit, 10 * PAGE);
	assert_int_equal(charge_raise(&a, UINT64_MAX, UINT64_MAX, &quota), KVREG_E_LIMIT_QUOTA);
	assert_int_equal(charge_raise(&a, 10 * PAGE, 10 * PAGE, &quota), 0);
	charge_fini(&a);
}

static void the_host_bounds_all(void **state)
{
	struct charge a = open_charge(1), b = open_charge(2), c = open_charge(3);
	struct quota quota;

	(void)state;
	assert_int_equal(charge_raise(&a, 8 * PAGE, 8 * PAGE, &quota), 0);
	assert_int_equal(charge_raise(&b, 20 * PAGE, 20 * PAGE, &quota), 0);
	assert_int_equal(charge_raise(&c, 3 * PAGE, 3 * PAGE, &quota), KVREG_E_LIMIT_QUOTA);
	assert_string_equal(quota.scope, "host");
	assert_int_equal(quota.used, 28 * PAGE);
	assert_int_equal(quota.limit, 30 * PAGE);
	assert_int_equal(charge_raise(&c, PAGE, 3 * PAGE, &quota), 0);
	assert_int_equal(c.bytes, 2 * PAGE);
	charge_fini(&a);
	charge_fini(&b);
	charge_fini(&c);
}

static void a_grant_is_lowered(void **state)
{
	struct charge a = open_charge(1), b = open_charge(1);
	struct quota quota;

	(void)state;
	assert_int_equal(charge_raise(&a, 10 * PAGE, 10 * PAGE, &quota), 0);
	assert_int_equal(charge_raise(&b, PAGE, PAGE, &quota), KVREG_E_LIMIT_QUOTA);
	charge_lower(&a, 2 * PAGE);
	assert_int_equal(a.bytes, 2 * PAGE);
	assert_int_equal(books.total.granted, 2 * PAGE);
	assert_int_equal(charge_raise(&b, 8 * PAGE, 8 * PAGE, &quota), 0);
	charge_fini(&a);
	charge_fini(&b);
}

static void grants_are_whole_pages(void **state)
{
	struct config odd = config;
	struct charge a = { 0 };
	struct books own;
	struct quota quota;

	(void)state;
	odd.uid_bytes = 3 * PAGE + 100;
	books_init(&own, &odd);
	assert_int_equal(charge_init(&a, &own, 0, 1), 0);
	assert_int_equal(charge_raise(&a, PAGE, 64 * PAGE, &quota), 0);
	assert_int_equal(a.bytes, 3 * PAGE);
	charge_fini(&a);
	books_fini(&own);
}

static size_t lines(uid_t uid, double now, int tries)
{
	size_t n = 0;

	for (int i = 0; i < tries; i++)
		n += books_may_log(&books, uid, now);
	return n;
}

static void lines_about_one_uid_are_bounded(void **state)
{
	double start = 1000.;

	(void)state;
	assert_int_equal(lines(1, start, 100), LOG_BURST);
	assert_int_equal(lines(1, start + LOG_WINDOW_S - 1., 100), 0);
	assert_int_equal(lines(2, start, 100), LOG_BURST);
	assert_int_equal(lines(1, start + LOG_WINDOW_S, 100), LOG_BURST);
}

/* Who connects anew for each line has no more of them. */
static void the_bound_outlives_the_sessions(void **state)
{
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct charge a = open_charge(1);

		n += lines(1, 1000., 1);
		charge_fini(&a);
	}
	assert_int_equal(n, LOG_BURST);
}

/* The same uid in two classes has two accounts, and the class bounds all of its uids together. */
static void a_class_bounds_its_uids_together(void **state)
{
	struct charge a, b, c;
	struct quota quota;

	(void)state;
	assert_int_equal(charge_init(&a, &books, 1, 7), 0);
	assert_int_equal(charge_init(&b, &books, 1, 8), 0);
	assert_int_equal(charge_init(&c, &books, 1, 9), KVREG_E_LIMIT_SESSIONS);
	assert_int_equal(charge_init(&c, &books, 0, 7), 0);
	assert_int_equal(charge_raise(&a, 3 * PAGE, 3 * PAGE, &quota), 0);
	assert_int_equal(charge_raise(&b, 3 * PAGE, 3 * PAGE, &quota), KVREG_E_LIMIT_QUOTA);
	assert_string_equal(quota.scope, "class");
	assert_int_equal(quota.used, 3 * PAGE);
	assert_int_equal(quota.limit, 5 * PAGE);
	assert_int_equal(charge_raise(&b, 2 * PAGE, 8 * PAGE, &quota), 0);
	assert_int_equal(b.bytes, 2 * PAGE);
	assert_int_equal(charge_raise(&c, 3 * PAGE, 3 * PAGE, &quota), 0);
	charge_fini(&a);
	assert_int_equal(charge_raise(&b, 5 * PAGE, 5 * PAGE, &quota), 0);
	charge_fini(&b);
	charge_fini(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sessions_of_one_uid_are_bounded),
		TEST(sessions_of_the_host_are_bounded),
		TEST(what_is_wanted_is_booked),
		TEST(a_slab_ends_where_the_quota_ends),
		TEST(more_than_is_left_is_refused_and_nothing_changes),
		TEST(the_host_bounds_all),
		TEST(a_grant_is_lowered),
		TEST(grants_are_whole_pages),
		TEST(lines_about_one_uid_are_bounded),
		TEST(the_bound_outlives_the_sessions),
		TEST(a_class_bounds_its_uids_together),
	};

	return RUN_GROUP("daemon-account", tests);
}
