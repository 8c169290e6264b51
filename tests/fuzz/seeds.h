/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_FUZZ_SEEDS_H
#define KVREG_FUZZ_SEEDS_H
/* The script that is being written (one at a time), and who writes which. */
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "kvreg-errors.h"
#include "proto/limits.h"

/* The first object of a kind in a session: slot 1, generation 1. */
#define FIRST 0x10001u

/** seed_raw() - adds a step with these bytes, which are copied. */
void seed_raw(unsigned int op, unsigned int arg, const void *bytes, size_t length);
/** seed_step() - adds one without bytes. */
void seed_step(unsigned int op, unsigned int arg);
/** seed_message() - adds one with @m as its bytes. */
void seed_message(unsigned int op, unsigned int arg, const ProtobufCMessage *m);
/** seed_count() - steps so far. */
size_t seed_count(void);
/** seed_save() - writes the script as DIRECTORY/@fuzzer/seed-@name and starts a new one. */
void seed_save(const char *fuzzer, const char *name);

void seed_session(void);
void seed_control(void);
void seed_client(void);

#endif
