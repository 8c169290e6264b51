/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for objects: each names one object, once. */
#include "test.h"

#include "daemon/session/handles.h"

#define CAPACITY 5

static struct handles handles;
static int objects[CAPACITY + 1];

static int set_up(void **state)
{
	(void)state;
	return handles_init(&handles, CAPACITY);
}

/* handles_fini() asserts that nothing is left in it. */
static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < handles.capacity; i++)
		if (handles.slots[i].object)
			handles_remove(&handles, (uint32_t)handles.slots[i].generation << 16 |
							 (uint32_t)(i + 1));
	handles_fini(&handles);
	return 0;
}

static void a_number_names_its_object(void **state)
{
	uint32_t a = handles_add(&handles, &objects[0]), b = handles_add(&handles, &objects[1]);

	(void)state;
	assert_true(a != 0 && b != 0 && a != b);
	assert_ptr_equal(handles_get(&handles, a), &objects[0]);
	assert_ptr_equal(handles_get(&handles, b), &objects[1]);
	assert_int_equal(handles.count, 2);
	assert_ptr_equal(handles_remove(&handles, a), &objects[0]);
	assert_null(handles_get(&handles, a));
	assert_null(handles_remove(&handles, a));
	assert_ptr_equal(handles_get(&handles, b), &objects[1]);
	assert_int_equal(handles.count, 1);
}

static void other_numbers_name_nothing(void **state)
{
	uint32_t a = handles_add(&handles, &objects[0]);

	(void)state;
	assert_null(handles_get(&handles, 0));
	assert_null(handles_get(&handles, a + 1));
	assert_null(handles_get(&handles, a & 0xffff));
	assert_null(handles_get(&handles, a + 0x10000));
	assert_null(handles_get(&handles, a & 0xffff0000));
	assert_null(handles_get(&handles, CAPACITY + 1));
	assert_null(handles_get(&handles, UINT32_MAX));
}

static void an_old_number_does_not_name_the_next_object(void **state)
{
	uint32_t seen[300];

	(void)state;
	for (size_t n = 0; n < COUNT(seen); n++) {
		seen[n] = handles_add(&handles, &objects[n % CAPACITY]);
		assert_true(seen[n] != 0);
		for (size_t i = 0; i < n; i++)
			assert_null(handles_get(&handles, seen[i]));
		handles_remove(&handles, seen[n]);
	}
}

static void a_full_table_gives_no_number(void **state)
{
	uint32_t numbers[CAPACITY];

	(void)state;
	for (size_t i = 0; i < CAPACITY; i++)
		numbers[i] = handles_add(&handles, &objects[i]);
	assert_int_equal(handles_add(&handles, &objects[CAPACITY]), 0);
	assert_int_equal(handles.count, CAPACITY);
	for (size_t i = 0; i < CAPACITY; i++)
		assert_ptr_equal(handles_get(&handles, numbers[i]), &objects[i]);
	handles_remove(&handles, numbers[2]);
	assert_true(handles_add(&handles, &objects[CAPACITY]) != 0);
	assert_int_equal(handles_add(&handles, &objects[2]), 0);
}

static void the_lowest_free_slot_is_next(void **state)
{
	uint32_t numbers[CAPACITY];

	(void)state;
	for (size_t i = 0; i < CAPACITY - 1; i++)
		numbers[i] = handles_add(&handles, &objects[i]);
	/* The last slot was never used, and stays so. */
	handles_remove(&handles, numbers[2]);
	handles_remove(&handles, numbers[1]);
	assert_int_equal(handles_add(&handles, &objects[1]) & 0xffff, 2);
	assert_int_equal(handles_add(&handles, &objects[2]) & 0xffff, 3);
	assert_int_equal(handles_add(&handles, &objects[4]) & 0xffff, CAPACITY);
}

static void each_is_found_once(void **state)
{
	size_t at = 0, n = 0;

	(void)state;
	assert_null(handles_each(&handles, &at));
	uint32_t a = handles_add(&handles, &objects[0]);
	handles_add(&handles, &objects[1]);
	handles_add(&handles, &objects[2]);
	handles_remove(&handles, a);
	/* The one that was just given may be removed on the way. */
	at = 0;
	for (int *object; (object = handles_each(&handles, &at)); n++)
		assert_ptr_equal(object, &objects[n + 1]);
	assert_int_equal(n, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_number_names_its_object),
		TEST(other_numbers_name_nothing),
		TEST(an_old_number_does_not_name_the_next_object),
		TEST(a_full_table_gives_no_number),
		TEST(the_lowest_free_slot_is_next),
		TEST(each_is_found_once),
	};

	return RUN_GROUP("session-handles", tests);
}
