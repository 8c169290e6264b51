/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_ADMIN_H
#define KVREG_TEST_ADMIN_H
/* An administrator without kvregctl: what the daemon under test says of itself. */
#include <stdbool.h>
#include <stdint.h>

#include "admin.pb-c.h"
#include "raw.h"

/** admin_send() - numbers @request, adds the version if it has none, and sends it. */
void admin_send(struct raw *admin, Kvreg__AdminRequest *request);

/** admin_reply() - the next record of the answer, in the arena; NULL: the connection ended. */
const Kvreg__AdminReply *admin_reply(struct raw *admin);

struct admin_status {
	uint32_t pid, sessions, users;
	uint64_t granted, memory, regions, accepted, refused, grants_refused;
	bool privileged;
};

/** admin_status() - one question on a connection of its own. Return: whether it was answered. */
bool admin_status(const char *path, struct admin_status *ret_status);

struct admin_client {
	uint32_t pid, uid, session_pid, regions;
	uint64_t granted, registered;
	char state[16];
	bool answered, unanswered; /* as its line says; as the end of the answer says */
};

/** admin_client() - what the daemon says of client @pid. Return: whether it lists it. */
bool admin_client(const char *path, uint32_t pid, struct admin_client *ret_client);

#endif
