/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges under regions: each byte counts once, whatever comes and goes in whatever order. */
#include "test.h"

#include <stdlib.h>

#include "daemon/session/coverage.h"

static struct coverage coverage;

static int tear_down(void **state)
{
	(void)state;
	coverage_fini(&coverage);
	return 0;
}

static uint64_t add(uint64_t first, uint64_t size)
{
	uint64_t bytes = 12345;

	assert_int_equal(coverage_add(&coverage, first, size, &bytes), 0);
	return bytes;
}

static uint64_t take(uint64_t first, uint64_t size)
{
	return coverage_remove(&coverage, first, size);
}

static void the_same_range_counts_once(void **state)
{
	(void)state;
	assert_int_equal(add(0, 4096), 4096);
	assert_int_equal(add(0, 4096), 0);
	assert_int_equal(take(0, 4096), 0);
	assert_int_equal(take(0, 4096), 4096);
	assert_int_equal(coverage.count, 0);
}

static void ranges_overlap(void **state)
{
	(void)state;
	assert_int_equal(add(10, 10), 10);
	assert_int_equal(add(30, 10), 10);
	assert_int_equal(add(0, 100), 80);
	assert_int_equal(add(15, 20), 0);
	assert_int_equal(take(0, 100), 70); /* 10..40 stays: the last one fills the gap */
	assert_int_equal(take(15, 20), 10);
	assert_int_equal(take(30, 10), 10);
	assert_int_equal(take(10, 10), 10);
	assert_int_equal(coverage.count, 0);
}

/* A buffer registered piece by piece is one range, and can be given back from anywhere. */
static void neighbours_are_one(void **state)
{
	enum { N = 1000 };

	(void)state;
	for (uint64_t i = 0; i < N; i++)
		assert_int_equal(add(i * 4096, 4096), 4096);
	assert_int_equal(coverage.count, 1);
	for (uint64_t i = 0; i < N; i += 2)
		assert_int_equal(take(i * 4096, 4096), 4096);
	assert_int_equal(coverage.count, N / 2);
	for (uint64_t i = 1; i < N; i += 2)
		assert_int_equal(take(i * 4096, 4096), 4096);
	assert_int_equal(coverage.count, 0);
}

static void the_ends_of_the_numbers(void **state)
{
	(void)state;
	assert_int_equal(add(UINT64_MAX - 1, 1), 1);
	assert_int_equal(add(0, UINT64_MAX), UINT64_MAX - 1);
	assert_int_equal(take(0, UINT64_MAX), UINT64_MAX - 1);
	assert_int_equal(take(UINT64_MAX - 1, 1), 1);
}

/* The same by counting each byte, over many ranges at random. */
static void it_is_what_counting_gives(void **state)
{
	enum { SPACE = 64, LIVE = 24, STEPS = 20000 };
	struct {
		uint64_t first, size;
	} live[LIVE];
	unsigned int counts[SPACE] = { 0 };
	size_t n = 0;

	(void)state;
	srandom(1);
	for (int step = 0; step < STEPS; step++) {
		uint64_t bytes = 0;

		if (n < LIVE && (n == 0 || random() % 2)) {
			uint64_t first = (uint64_t)random() % SPACE;
			uint64_t size = 1 + (uint64_t)random() % (SPACE - first);

			for (uint64_t i = first; i < first + size; i++)
				bytes += counts[i]++ == 0;
			assert_int_equal(add(first, size), bytes);
			live[n].first = first;
			live[n++].size = size;
		} else {
			size_t which = (size_t)random() % n;
			uint64_t first = live[which].first, size = live[which].size;

			for (uint64_t i = first; i < first + size; i++)
				bytes += --counts[i] == 0;
			assert_int_equal(take(first, size), bytes);
			live[which] = live[--n];
		}
		for (size_t i = 1; i < coverage.count; i++)
			assert_true(coverage.ranges[i - 1].end <= coverage.ranges[i].first);
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_same_range_counts_once), TEST(ranges_overlap),
		TEST(neighbours_are_one),         TEST(the_ends_of_the_numbers),
		TEST(it_is_what_counting_gives),
	};

	return RUN_GROUP("session-coverage", tests);
}
