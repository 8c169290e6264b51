/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_ADMIN_H
#define KVREG_CTL_ADMIN_H
/*
 * One question on the administrators' socket. The answer comes in records; each is handed to the
 * caller while it lives in the arena, until the one that says that no more follow.
 */
#include <stdbool.h>

#include "admin.pb-c.h"
#include "options.h"

/* Longer than the daemon itself waits for sessions (QUERY_WAIT_S): silence means it hangs. */
#define ADMIN_WAIT_MS 10000

/**
 * admin_ask() - connects, asks, and hands every record of the answer to @take.
 * @options: names the socket, or not
 * @request: with its body; seq and major are set here
 * @take: called with @arg; @reply is valid during the call. Returns 0 to go on, or an exit status,
 *	told, which ends the call
 *
 * Return: 0 once the last record was taken; an exit status, told: CTL_NO_DAEMON,
 * CTL_NO_PERMISSION, CTL_FAILED, or what @take returned.
 */
int admin_ask(const struct options *options, Kvreg__AdminRequest *request,
	      int (*take)(void *arg, const Kvreg__AdminReply *reply), void *arg);

/** admin_tell_unanswered() - names the clients whose session is silent. Return: were there any. */
bool admin_tell_unanswered(const Kvreg__AdminReply *reply);

#endif
