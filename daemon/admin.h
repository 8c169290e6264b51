/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_ADMIN_H
#define KVREG_DAEMON_ADMIN_H
/*
 * What administrators may ask, as a table from request to handler. Who may ask is decided by who
 * may connect: the directory of the administrators' socket.
 *
 * Numbers that matter come from the kernel (VmPin of session and client) or from the books; counts
 * of objects are the sessions' own words.
 */
#include "control.pb-c.h"

struct supervisor;
struct session;

/** admin_request() - answers @request of @admin's administrator, now or record by record. */
void admin_request(struct supervisor *supervisor, struct session *admin,
		   const Kvreg__AdminRequest *request);

/** admin_reply() - sends one record of an answer. */
void admin_reply(struct session *admin, Kvreg__AdminReply *reply);

/** admin_tell_client() - one client's line, more to come. @report: NULL if it did not answer. */
void admin_tell_client(struct session *admin, uint32_t seq, struct session *session,
		       const Kvreg__Report *report);

/** admin_tell_regions() - the regions in @report, with the client as the supervisor knows it. */
void admin_tell_regions(struct session *admin, uint32_t seq, struct session *session,
			const Kvreg__Report *report);

#endif
