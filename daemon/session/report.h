/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_REPORT_H
#define KVREG_SESSION_REPORT_H
/* What this session tells an administrator of what it holds, through the supervisor. */
#include "control.pb-c.h"

struct client;

/** report_send() - answers @query in as many records as it takes; keys are never told. */
void report_send(struct client *c, const Kvreg__Query *query);

#endif
