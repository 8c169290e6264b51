/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_GRANT_H
#define KVREG_SESSION_GRANT_H
/*
 * What this process may have, a number for each book. The supervisor grants more than is asked for
 * and sets RLIMIT_MEMLOCK to the charge, so that the kernel refuses what our own arithmetic might
 * miss. Most requests stay inside the grant at hand and need no word with the supervisor.
 *
 * What is used is the sum of our objects. The kernel's count of the charge can only be lower (a
 * client may destroy a brokered MR itself), and is read when the sum alone would make us ask for
 * more.
 */
#include <stdbool.h>
#include <stdint.h>

#include "kvreg-errors.h"
#include "proto/books.h"

struct client;
struct failure;
struct grant;

/** grant_init() - nothing granted yet. @fixed: the limit of this process is all there will be. */
void grant_init(struct grant *g, bool fixed);

/**
 * grant_take() - books @more, asking the supervisor if the grant at hand is too small.
 * @stage: of the failure
 * Return: 0; the code set in @f (LIMIT_QUOTA, LIMIT_MEMLOCK); or -errno: the client has gone.
 */
int grant_take(struct client *c, const struct amounts *more, enum kvreg_stage stage,
	       struct failure *f);

/** grant_give() - books @less less, and gives back to the supervisor what is far too much. */
void grant_give(struct client *c, const struct amounts *less);

/** grant_evidence() - fills in what the limits of this process were. */
void grant_evidence(struct client *c, struct failure *f);

#endif
