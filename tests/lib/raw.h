/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_RAW_H
#define KVREG_TEST_RAW_H
/*
 * A client without the library: it can send what the library never would, and sees each answer as
 * it came. Nothing here decides whether an answer is right, except the functions that say so.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kvreg-errors.h"
#include "kvreg.pb-c.h"
#include "proto/codec.h"

struct raw {
	int sock;
	uint32_t seq;       /* of the last request */
	struct arena arena; /* of the last answer */
	uint8_t record[RECORD_MAX];
};

/** raw_open() - connects to @path. Freed by raw_close(). NULL: nobody listens there. */
struct raw *raw_open(const char *path);
void raw_close(struct raw *raw);

/** raw_send() - one record, with any number of fds (the kernel's most is 253). @fds: borrowed. */
void raw_send(struct raw *raw, const void *bytes, size_t length, const int *fds, size_t n_fds);

/** raw_receive() - the next record as @type, in the arena; NULL: the connection has ended. */
const ProtobufCMessage *raw_receive(struct raw *raw, const ProtobufCMessageDescriptor *type);

/** raw_send_request() - sends @request as it is, its seq too. */
void raw_send_request(struct raw *raw, const Kvreg__Request *request, const int *fds, size_t n_fds);

/** raw_reply() - the next reply; NULL: the connection has ended. */
const Kvreg__Reply *raw_reply(struct raw *raw);

/** raw_closed() - whether the other side ends the connection without another word. */
bool raw_closed(struct raw *raw);

/** raw_call() - numbers and sends @request, with @fd unless it is -1. Return: its reply. */
const Kvreg__Reply *raw_call(struct raw *raw, Kvreg__Request *request, int fd);

/** raw_greet() - connects and says Hello. */
struct raw *raw_greet(const char *path);

const Kvreg__Reply *raw_hello(struct raw *raw, uint32_t major);
const Kvreg__Reply *raw_attach(struct raw *raw, int fd, uint32_t pd_handle);
const Kvreg__Reply *raw_detach(struct raw *raw, uint32_t domain);
const Kvreg__Reply *raw_import(struct raw *raw, int fd, uint64_t length, uint64_t address);
const Kvreg__Reply *raw_release(struct raw *raw, uint32_t buffer);
const Kvreg__Reply *raw_register(struct raw *raw, Kvreg__RegisterItem *items, size_t n_items);
const Kvreg__Reply *raw_deregister(struct raw *raw, uint32_t region);
const Kvreg__Reply *raw_who_am_i(struct raw *raw);

/** raw_send_import() - asks to import @fd, and does not wait for the answer. */
void raw_send_import(struct raw *raw, int fd, uint64_t length);

/** raw_send_attach() - the same for PD 1 of @fd. */
void raw_send_attach(struct raw *raw, int fd);

/** raw_refused() - whether @reply is a refusal with @code; says what it is if not. */
bool raw_refused(const Kvreg__Reply *reply, enum kvreg_code code);

/** raw_item() - an item to register: all of a buffer, for local writing, at iova 0. */
Kvreg__RegisterItem raw_item(uint32_t domain, uint32_t buffer, uint64_t length);

/** memory_fd() - a memfd of @size bytes that are all there, with @seals. The caller closes it. */
int memory_fd(uint64_t size, int seals);

#endif
