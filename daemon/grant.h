/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_GRANT_H
#define KVREG_DAEMON_GRANT_H
/*
 * How much a session may have. A grant is booked first (account.h), with room to spare; its charge
 * is then made true by setting the session's RLIMIT_MEMLOCK to it: the kernel enforces that book,
 * and the session's VmPin is its truth. What a session gives back of it is believed only as far as
 * the kernel shows it.
 */
#include "control.pb-c.h"

struct session;

/** grant_request() - grants what @request asks for, or refuses it; answers either way. */
void grant_request(struct session *session, const Kvreg__GrantRequest *request);

/** grant_return() - takes back what is above @back, and not pinned. */
void grant_return(struct session *session, const Kvreg__GrantReturn *back);

#endif
