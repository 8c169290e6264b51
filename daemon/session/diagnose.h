/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_DIAGNOSE_H
#define KVREG_SESSION_DIAGNOSE_H
/*
 * From a device's errno and the evidence beside it to a code of the table. An errno has several
 * causes: where the evidence does not single one out, the code is UNKNOWN, with all of it.
 */
#include <stdint.h>

#include "proto/failure.h"

struct client;
struct device_pd;

/** diagnose_register() - REG_MR of @need bytes gave @errnum. Return: the code set in @f. */
int diagnose_register(struct client *c, const struct device_pd *pd, int errnum, uint64_t need,
		      struct failure *f);

/** diagnose_deregister() - destroying an MR gave @errnum. Return: the code set in @f. */
int diagnose_deregister(const struct device_pd *pd, int errnum, struct failure *f);

#endif
