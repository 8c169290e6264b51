/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CODEC_H
#define KVREG_CODEC_H
/*
 * One record <-> one protobuf message, within a budget.
 *
 * protobuf-c allocates what the sender's bytes ask for: 64 KiB can unpack to megabytes. Here every
 * unpack takes its memory from an arena of fixed size; a message that wants more does not unpack.
 * Nothing is freed singly: the next unpack starts the arena afresh, so a message lives until then.
 */
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"

struct arena {
	size_t used;
	_Alignas(16) uint8_t bytes[UNPACK_BUDGET];
};

/**
 * codec_unpack() - unpacks @length bytes as @type into @arena, which is emptied first.
 *
 * Return: the message, which lives in @arena and must not be freed; NULL if the bytes are no such
 * message or it does not fit the arena.
 */
ProtobufCMessage *codec_unpack(struct arena *arena, const ProtobufCMessageDescriptor *type,
			       const void *bytes, size_t length);

/**
 * codec_pack() - packs @message into @bytes.
 *
 * Return: the packed length, or 0 if it does not fit @size (nothing is written).
 */
size_t codec_pack(const ProtobufCMessage *message, void *bytes, size_t size);

/** text_clean() - copies at most @size - 1 bytes of @text, control and non-ASCII bytes as '?'. */
void text_clean(char *ret_text, size_t size, const char *text);

#endif
