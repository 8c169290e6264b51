/* SPDX-License-Identifier: Apache-2.0 */
/* Records and messages: what unpacks, what does not, and what it may cost. */
#include "test.h"

#include <string.h>

#include "kvreg.pb-c.h"
#include "proto/codec.h"

static struct arena arena;

static const Kvreg__Request *unpack(const void *bytes, size_t length)
{
	return (const Kvreg__Request *)codec_unpack(&arena, &kvreg__request__descriptor, bytes,
						    length);
}

static size_t pack_hello(uint8_t *bytes, size_t size)
{
	Kvreg__Hello hello = KVREG__HELLO__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;

	hello.major = 7;
	hello.program = "vllm";
	request.seq = 1;
	request.body_case = KVREG__REQUEST__BODY_HELLO;
	request.hello = &hello;
	return codec_pack(&request.base, bytes, size);
}

static void a_message_comes_back(void **state)
{
	uint8_t bytes[64];
	size_t length = pack_hello(bytes, sizeof(bytes));
	const Kvreg__Request *request = unpack(bytes, length);

	(void)state;
	assert_true(length > 0);
	assert_non_null(request);
	assert_int_equal(request->seq, 1);
	assert_int_equal(request->body_case, KVREG__REQUEST__BODY_HELLO);
	assert_int_equal(request->hello->major, 7);
	assert_string_equal(request->hello->program, "vllm");
}

static void a_full_batch_fits_record_and_budget(void **state)
{
	static Kvreg__RegisterItem items[ITEMS_PER_REGISTER];
	static uint8_t bytes[RECORD_MAX];
	Kvreg__RegisterItem *list[ITEMS_PER_REGISTER];
	Kvreg__Register batch = KVREG__REGISTER__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;

	(void)state;
	for (size_t i = 0; i < ITEMS_PER_REGISTER; i++) {
		kvreg__register_item__init(&items[i]);
		items[i].domain = items[i].buffer = items[i].access = UINT32_MAX;
		items[i].offset = items[i].length = items[i].iova = UINT64_MAX;
		list[i] = &items[i];
	}
	batch.items = list;
	batch.n_items = ITEMS_PER_REGISTER;
	request.seq = UINT32_MAX;
	request.body_case = KVREG__REQUEST__BODY_REGISTER;
	request.register_ = &batch;
	size_t length = codec_pack(&request.base, bytes, sizeof(bytes));
	assert_true(length > 0);
	const Kvreg__Request *back = unpack(bytes, length);
	assert_non_null(back);
	assert_int_equal(back->register_->n_items, ITEMS_PER_REGISTER);
	assert_true(back->register_->items[ITEMS_PER_REGISTER - 1]->iova == UINT64_MAX);
}

/* Request.register (field 7) of @n empty items. Return: its length. */
static size_t make_bomb(uint8_t *bytes, size_t n)
{
	uint8_t *p = bytes;

	*p++ = 7 << 3 | 2;
	*p++ = (uint8_t)(2 * n | 0x80);
	*p++ = (uint8_t)(2 * n >> 7 | 0x80);
	*p++ = (uint8_t)(2 * n >> 14);
	for (size_t i = 0; i < n; i++) {
		*p++ = 1 << 3 | 2;
		*p++ = 0;
	}
	return (size_t)(p - bytes);
}

static void a_bomb_does_not_unpack(void **state)
{
	static uint8_t bytes[RECORD_MAX];
	size_t few = UNPACK_BUDGET / 4 / sizeof(Kvreg__RegisterItem);
	size_t many = UNPACK_BUDGET / sizeof(Kvreg__RegisterItem) + 1;

	(void)state;
	assert_non_null(unpack(bytes, make_bomb(bytes, few)));
	assert_null(unpack(bytes, make_bomb(bytes, many)));
	assert_null(unpack(bytes, make_bomb(bytes, (RECORD_MAX - 4) / 2)));
	assert_true(arena.used <= UNPACK_BUDGET);
}

/* A message of many fields that are not known costs memory too. */
static void a_bomb_of_unknown_fields_does_not_unpack(void **state)
{
	static uint8_t bytes[RECORD_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i += 2) {
		bytes[i] = 14 << 3;
		bytes[i + 1] = 1;
	}
	assert_null(unpack(bytes, sizeof(bytes)));
}

static void the_arena_starts_afresh(void **state)
{
	uint8_t bytes[64];
	size_t length = pack_hello(bytes, sizeof(bytes)), used;

	(void)state;
	assert_non_null(unpack(bytes, length));
	used = arena.used;
	for (int i = 0; i < 100000; i++)
		assert_non_null(unpack(bytes, length));
	assert_int_equal(arena.used, used);
}

static void every_truncation_is_refused_or_whole(void **state)
{
	uint8_t bytes[64];
	size_t length = pack_hello(bytes, sizeof(bytes));

	(void)state;
	/* After seq alone (2 bytes) the message is whole, and so is none at all. */
	for (size_t n = 1; n < length; n++)
		assert_true((unpack(bytes, n) != NULL) == (n == 2));
	assert_non_null(unpack(bytes, 0));
}

static void garbage_is_refused(void **state)
{
	static const uint8_t no_tag[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t length_beyond[] = { 2 << 3 | 2, 0x7f, 0 };
	static const uint8_t wrong_type[] = { 2 << 3 | 2, 1, 0x0b };
	static const uint8_t no_text[] = "GET / HTTP/1.1\r\n\r\n";

	(void)state;
	assert_null(unpack(no_tag, sizeof(no_tag)));
	assert_null(unpack(length_beyond, sizeof(length_beyond)));
	assert_null(unpack(wrong_type, sizeof(wrong_type)));
	assert_null(unpack(no_text, sizeof(no_text)));
}

static void unknown_fields_are_passed_over(void **state)
{
	static const uint8_t newer[] = { 1 << 3, 5, 15 << 3 | 2, 2, 'h', 'i', 14 << 3, 9 };
	const Kvreg__Request *request = unpack(newer, sizeof(newer));

	(void)state;
	assert_non_null(request);
	assert_int_equal(request->seq, 5);
	assert_int_equal(request->body_case, KVREG__REQUEST__BODY__NOT_SET);
}

static void what_does_not_fit_is_not_packed(void **state)
{
	uint8_t bytes[64];
	size_t length = pack_hello(bytes, sizeof(bytes));

	(void)state;
	memset(bytes, 0xaa, sizeof(bytes));
	assert_int_equal(pack_hello(bytes, length - 1), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0xaa);
	assert_int_equal(pack_hello(bytes, length), length);
}

static void text_is_cleaned_and_cut(void **state)
{
	char text[6];

	(void)state;
	text_clean(text, sizeof(text), "a\n\x1b\x7f\xc3");
	assert_string_equal(text, "a????");
	text_clean(text, sizeof(text), "abcdefgh");
	assert_string_equal(text, "abcde");
	text_clean(text, sizeof(text), " ~");
	assert_string_equal(text, " ~");
	text_clean(text, sizeof(text), NULL);
	assert_string_equal(text, "");
	text_clean(text, 1, "abc");
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_comes_back),
		cmocka_unit_test(a_full_batch_fits_record_and_budget),
		cmocka_unit_test(a_bomb_does_not_unpack),
		cmocka_unit_test(a_bomb_of_unknown_fields_does_not_unpack),
		cmocka_unit_test(the_arena_starts_afresh),
		cmocka_unit_test(every_truncation_is_refused_or_whole),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(unknown_fields_are_passed_over),
		cmocka_unit_test(what_does_not_fit_is_not_packed),
		cmocka_unit_test(text_is_cleaned_and_cut),
	};

	return RUN_GROUP("proto-codec", tests);
}
