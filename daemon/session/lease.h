/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_LEASE_H
#define KVREG_SESSION_LEASE_H
/*
 * Memlock leases: the supervisor's work, since only it can raise a limit. The session carries the
 * client's wish there and the answer back; whose limit is raised is not in the message.
 */
#include <stdbool.h>
#include <stdint.h>

#include "control.pb-c.h"
#include "proto/failure.h"

struct client;

/** The supervisor's answer, as events.c notes it. */
struct lease_answer {
	uint32_t seq; /* of the request under way */
	bool answered;
	uint32_t code;
	int errnum;
	uint32_t lease;
	uint64_t limit, bytes, booked;
	uint32_t book;
	uint64_t quota_used, quota_limit, need;
	char scope[16];
	char holders[HOLDERS_TEXT];
};

/** lease_take() - notes @reply in @answer, if it is the one waited for. */
void lease_take(struct lease_answer *answer, const Kvreg__LeaseReply *reply);

/**
 * lease_begin() - asks for what @request says.
 * Return: 0 and c->lease_answer has it; the code set in @f; or -errno: the client has gone.
 */
int lease_begin(struct client *c, const Kvreg__LeaseMemlock *request, struct failure *f);

/** lease_end() - ends lease @number of this connection. Return: as lease_begin(). */
int lease_end(struct client *c, uint32_t number, struct failure *f);

#endif
