/* SPDX-License-Identifier: Apache-2.0 */
/* The books: what is booked, what is refused, and that all of it comes back. */
#include "test.h"

#include <string.h>

#include "daemon/account.h"
#include "kvreg-errors.h"
#include "proto/limits.h"

#define PAGE 4096ull

#define LIMITS(memory, sessions_)                                                                  \
	{                                                                                          \
		.most = {                                                                          \
			[BOOK_SESSIONS] = (sessions_),                                             \
			[BOOK_MEMORY] = (memory),                                                  \
			[BOOK_CHARGE] = NO_LIMIT,                                                  \
			[BOOK_GPU] = NO_LIMIT,                                                     \
			[BOOK_DOMAINS] = NO_LIMIT,                                                 \
			[BOOK_BUFFERS] = NO_LIMIT,                                                 \
			[BOOK_REGIONS] = 100                                                       \
		}                                                                                  \
	}

/* uid 1 may have less than the host; uid 2 and gid 5 have rules of their own. */
static struct rule rules[] = { { SCOPE_UID, 2, LIMITS(20 * PAGE, 1) },
			       { SCOPE_GID, 5, LIMITS(6 * PAGE, 2) } };
static const struct config config = {
	.quotas = {
		.host = LIMITS(30 * PAGE, 4),
		.per_uid = LIMITS(10 * PAGE, 2),
		.per_gid = LIMITS(NO_LIMIT, NO_LIMIT),
		.n_rules = 2,
		.rules = rules,
	},
	.n_classes = 2,
	.classes = {
		{ .name = "default", .limits = LIMITS(NO_LIMIT, NO_LIMIT) },
		{ .name = "small", .limits = LIMITS(5 * PAGE, 2) },
	},
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

static int try_charge(struct charge *charge, size_t klass, uid_t uid)
{
	struct quota quota;

	return charge_init(charge, &books, klass, uid, /* gid */ 100, &quota);
}

static struct charge open_charge(uid_t uid)
{
	struct charge charge = { 0 };

	assert_int_equal(try_charge(&charge, 0, uid), 0);
	return charge;
}

/* Memory, charged once. */
static struct amounts bytes(uint64_t n)
{
	return (struct amounts){ .of = { [BOOK_MEMORY] = n, [BOOK_CHARGE] = n } };
}

static int raise_charge(struct charge *charge, uint64_t need, uint64_t want, struct quota *quota)
{
	struct amounts least = bytes(need), most = bytes(want);

	return charge_raise(charge, &least, &most, quota);
}

static uint64_t held(const struct charge *charge)
{
	assert_int_equal(charge->held.of[BOOK_MEMORY], charge->held.of[BOOK_CHARGE]);
	return charge->held.of[BOOK_CHARGE];
}

static void sessions_of_one_uid_are_bounded(void **state)
{
	struct charge a = open_charge(1), b = open_charge(1), c = { 0 }, d = open_charge(2);

	(void)state;
	assert_int_equal(try_charge(&c, 0, 1), KVREG_E_LIMIT_SESSIONS);
	assert_null(c.books);
	assert_int_equal(try_charge(&c, 0, 2), KVREG_E_LIMIT_SESSIONS);
	assert_int_equal(books.total.of[BOOK_SESSIONS], 3);
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
	assert_int_equal(try_charge(&e, 0, 99), KVREG_E_LIMIT_SESSIONS);
	for (size_t i = 0; i < COUNT(charges); i++)
		charge_fini(&charges[i]);
	assert_true(LIST_EMPTY(&books.accounts));
}

static void what_is_wanted_is_booked(void **state)
{
	struct charge a = open_charge(1);
	struct quota quota;

	(void)state;
	assert_int_equal(raise_charge(&a, PAGE, 4 * PAGE, &quota), 0);
	assert_int_equal(held(&a), 4 * PAGE);
	assert_int_equal(books.total.of[BOOK_CHARGE], 4 * PAGE);
	assert_int_equal(a.uid->used.of[BOOK_CHARGE], 4 * PAGE);
	assert_int_equal(quota.used, 0);
	assert_int_equal(quota.limit, 10 * PAGE);
	assert_string_equal(scope_name(quota.scope), "uid");
	/* Less than there is changes nothing. */
	assert_int_equal(raise_charge(&a, PAGE, 2 * PAGE, &quota), 0);
	assert_int_equal(held(&a), 4 * PAGE);
	charge_fini(&a);
	assert_int_equal(books.total.of[BOOK_CHARGE], 0);
}

static void a_slab_ends_where_the_quota_ends(void **state)
{
	struct charge a = open_charge(1), b = open_charge(1);
	struct quota quota;

	(void)state;
	assert_int_equal(raise_charge(&a, PAGE, 7 * PAGE, &quota), 0);
	assert_int_equal(raise_charge(&b, PAGE, 7 * PAGE, &quota), 0);
	assert_int_equal(held(&b), 3 * PAGE);
	assert_int_equal(quota.used, 7 * PAGE);
	assert_int_equal(raise_charge(&a, 7 * PAGE, 99 * PAGE, &quota), 0);
	assert_int_equal(held(&a), 7 * PAGE);
	charge_fini(&a);
	charge_fini(&b);
}

static void more_than_is_left_is_refused_and_nothing_changes(void **state)
{
	struct charge a = open_charge(1);
	struct quota quota;

	(void)state;
	assert_int_equal(raise_charge(&a, 4 * PAGE, 4 * PAGE, &quota), 0);
	assert_int_equal(raise_charge(&a, 11 * PAGE, 64 * PAGE, &quota), KVREG_E_LIMIT_QUOTA);
	assert_int_equal(held(&a), 4 * PAGE);
	assert_int_equal(books.total.of[BOOK_CHARGE], 4 * PAGE);
	assert_int_equal(quota.used, 4 * PAGE);
	assert_int_equal(quota.limit, 10 * PAGE);
	assert_int_equal(raise_charge(&a, UINT64_MAX, UINT64_MAX, &quota), KVREG_E_LIMIT_QUOTA);
	assert_int_equal(raise_charge(&a, 10 * PAGE, 10 * PAGE, &quota), 0);
	charge_fini(&a);
}

static void the_host_bounds_all(void **state)
{
	struct charge a = open_charge(1), b = open_charge(2), c = open_charge(3);
	struct quota quota;

	(void)state;
	assert_int_equal(raise_charge(&a, 8 * PAGE, 8 * PAGE, &quota), 0);
	assert_int_equal(raise_charge(&b, 20 * PAGE, 20 * PAGE, &quota), 0);
	assert_int_equal(raise_charge(&c, 3 * PAGE, 3 * PAGE, &quota), KVREG_E_LIMIT_QUOTA);
	assert_string_equal(scope_name(quota.scope), "host");
	assert_int_equal(quota.used, 28 * PAGE);
	assert_int_equal(quota.limit, 30 * PAGE);
	assert_int_equal(raise_charge(&c, PAGE, 3 * PAGE, &quota), 0);
	assert_int_equal(held(&c), 2 * PAGE);
	charge_fini(&a);
	charge_fini(&b);
	charge_fini(&c);
}

static void a_grant_is_lowered(void **state)
{
	struct charge a = open_charge(1), b = open_charge(1);
	struct quota quota;

	(void)state;
	assert_int_equal(raise_charge(&a, 10 * PAGE, 10 * PAGE, &quota), 0);
	assert_int_equal(raise_charge(&b, PAGE, PAGE, &quota), KVREG_E_LIMIT_QUOTA);
	struct amounts keep = bytes(2 * PAGE);
	charge_lower(&a, &keep);
	assert_int_equal(held(&a), 2 * PAGE);
	assert_int_equal(books.total.of[BOOK_CHARGE], 2 * PAGE);
	assert_int_equal(raise_charge(&b, 8 * PAGE, 8 * PAGE, &quota), 0);
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
	odd.quotas.per_uid.most[BOOK_MEMORY] = 3 * PAGE + 100;
	books_init(&own, &odd);
	assert_int_equal(charge_init(&a, &own, 0, 1, 1, &quota), 0);
	assert_int_equal(raise_charge(&a, PAGE, 64 * PAGE, &quota), 0);
	assert_int_equal(held(&a), 3 * PAGE);
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
	assert_int_equal(try_charge(&a, 1, 7), 0);
	assert_int_equal(try_charge(&b, 1, 8), 0);
	assert_int_equal(try_charge(&c, 1, 9), KVREG_E_LIMIT_SESSIONS);
	assert_int_equal(try_charge(&c, 0, 7), 0);
	assert_int_equal(raise_charge(&a, 3 * PAGE, 3 * PAGE, &quota), 0);
	assert_int_equal(raise_charge(&b, 3 * PAGE, 3 * PAGE, &quota), KVREG_E_LIMIT_QUOTA);
	assert_string_equal(scope_name(quota.scope), "class");
	assert_int_equal(quota.used, 3 * PAGE);
	assert_int_equal(quota.limit, 5 * PAGE);
	assert_int_equal(raise_charge(&b, 2 * PAGE, 8 * PAGE, &quota), 0);
	assert_int_equal(held(&b), 2 * PAGE);
	assert_int_equal(raise_charge(&c, 3 * PAGE, 3 * PAGE, &quota), 0);
	charge_fini(&a);
	assert_int_equal(raise_charge(&b, 5 * PAGE, 5 * PAGE, &quota), 0);
	charge_fini(&b);
	charge_fini(&c);
}

/* A gid bounds its uids together, and only where it has a limit. */
static void a_gid_bounds_its_uids_together(void **state)
{
	struct charge a, b, c;
	struct quota quota;

	(void)state;
	assert_int_equal(charge_init(&a, &books, 0, 7, 5, &quota), 0);
	assert_int_equal(charge_init(&b, &books, 0, 8, 5, &quota), 0);
	assert_int_equal(charge_init(&c, &books, 0, 9, 5, &quota), KVREG_E_LIMIT_SESSIONS);
	assert_int_equal(quota.scope, SCOPE_GID);
	assert_int_equal(quota.book, BOOK_SESSIONS);
	assert_int_equal(quota.used, 2);
	assert_int_equal(quota.limit, 2);
	assert_int_equal(raise_charge(&a, 4 * PAGE, 4 * PAGE, &quota), 0);
	assert_int_equal(raise_charge(&b, 3 * PAGE, 3 * PAGE, &quota), KVREG_E_LIMIT_QUOTA);
	assert_string_equal(scope_name(quota.scope), "gid");
	assert_int_equal(quota.used, 4 * PAGE);
	assert_int_equal(quota.limit, 6 * PAGE);
	charge_fini(&a);
	charge_fini(&b);
}

/* Registered with each of two devices, memory is charged twice and counts once. */
static void charge_follows_memory_times_devices(void **state)
{
	struct amounts once = bytes(10 * PAGE), twice = once;
	struct charge a = open_charge(1);
	struct quota quota;

	(void)state;
	twice.of[BOOK_CHARGE] = 20 * PAGE;
	assert_int_equal(charge_raise(&a, &twice, &twice, &quota), KVREG_E_LIMIT_QUOTA);
	assert_int_equal(quota.book, BOOK_CHARGE);
	assert_int_equal(quota.limit, 10 * PAGE);
	books.devices = 2;
	assert_int_equal(charge_raise(&a, &twice, &twice, &quota), 0);
	assert_int_equal(a.held.of[BOOK_MEMORY], 10 * PAGE);
	assert_int_equal(a.held.of[BOOK_CHARGE], 20 * PAGE);
	/* A device goes: what is held stays, and more is refused. */
	books.devices = 1;
	assert_int_equal(charge_raise(&a, &twice, &twice, &quota), 0);
	twice.of[BOOK_CHARGE] += PAGE;
	assert_int_equal(charge_raise(&a, &twice, &twice, &quota), KVREG_E_LIMIT_QUOTA);
	assert_int_equal(a.held.of[BOOK_CHARGE], 20 * PAGE);
	charge_fini(&a);
}

/* One book refuses, and none is changed. */
static void every_book_has_a_limit_of_its_own(void **state)
{
	struct amounts need = bytes(PAGE);
	struct charge a = open_charge(1), b = open_charge(3);
	struct quota quota;

	(void)state;
	need.of[BOOK_GPU] = 1ull << 50;
	need.of[BOOK_REGIONS] = 101;
	assert_int_equal(charge_raise(&a, &need, &need, &quota), KVREG_E_LIMIT_QUOTA);
	assert_int_equal(quota.book, BOOK_REGIONS);
	assert_int_equal(quota.limit, 100);
	assert_int_equal(a.held.of[BOOK_GPU], 0);
	assert_int_equal(a.held.of[BOOK_CHARGE], 0);
	need.of[BOOK_REGIONS] = 60;
	assert_int_equal(charge_raise(&a, &need, &need, &quota), 0);
	assert_int_equal(a.held.of[BOOK_GPU], 1ull << 50);
	assert_int_equal(charge_raise(&b, &need, &need, &quota), KVREG_E_LIMIT_QUOTA);
	assert_int_equal(quota.scope, SCOPE_GID); /* theirs is the same */
	assert_int_equal(quota.used, 60);
	charge_fini(&a);
	charge_fini(&b);
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
		TEST(a_gid_bounds_its_uids_together),
		TEST(charge_follows_memory_times_devices),
		TEST(every_book_has_a_limit_of_its_own),
	};

	return RUN_GROUP("daemon-account", tests);
}
