/* SPDX-License-Identifier: Apache-2.0 */
#include "codec.h"

static void *arena_alloc(void *data, size_t size)
{
	struct arena *arena = data;
	size_t rounded = (size + 15u) & ~(size_t)15u;
	void *p;

	if (rounded < size || rounded > sizeof(arena->bytes) - arena->used)
		return NULL;
	p = arena->bytes + arena->used;
	arena->used += rounded;
	return p;
}

static void arena_free(void *data, void *p)
{
	(void)data;
	(void)p;
}

ProtobufCMessage *codec_unpack(struct arena *arena, const ProtobufCMessageDescriptor *type,
			       const void *bytes, size_t length)
{
	ProtobufCAllocator allocator = {
		.alloc = arena_alloc,
		.free = arena_free,
		.allocator_data = arena,
	};

	arena->used = 0;
	return protobuf_c_message_unpack(type, &allocator, length, bytes);
}

size_t codec_pack(const ProtobufCMessage *message, void *bytes, size_t size)
{
	if (protobuf_c_message_get_packed_size(message) > size)
		return 0;
	return protobuf_c_message_pack(message, bytes);
}

void text_clean(char *ret_text, size_t size, const char *text)
{
	size_t i = 0;

	for (; text && text[i] && i + 1 < size; i++)
		ret_text[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	ret_text[i] = '\0';
}
