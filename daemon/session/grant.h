/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_GRANT_H
#define KVREG_SESSION_GRANT_H
/*
 * What this process may have pinned. The supervisor grants more than is asked for and sets
 * RLIMIT_MEMLOCK to the grant, so that the kernel refuses what our own arithmetic might miss. Most
 * registrations stay inside the grant at hand and need no word with the supervisor.
 *
 * charged is the sum of our live regions. The kernel's count can only be lower (a client may
 * destroy a brokered MR itself), and is read when the sum alone would make us ask for more.
 */
#include <stdbool.h>
#include <stdint.h>

struct client;
struct failure;
struct grant;

/** grant_init() - nothing granted yet. @fixed: the limit of this process is all there will be. */
void grant_init(struct grant *g, bool fixed);

/**
 * grant_take() - books @bytes more, asking the supervisor if the slab at hand is too small.
 * Return: 0; the code set in @f (LIMIT_QUOTA, LIMIT_MEMLOCK); or -errno: the client has gone.
 */
int grant_take(struct client *c, uint64_t bytes, struct failure *f);

/** grant_give() - books @bytes less, and gives back to the supervisor what is far too much. */
void grant_give(struct client *c, uint64_t bytes);

/** grant_evidence() - fills in what the limits of this process were. */
void grant_evidence(struct client *c, struct failure *f);

#endif
