/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_LEASEHOLDER_H
#define KVREG_DAEMON_LEASEHOLDER_H
/*
 * A process with leases: from its first to its end, and its kin. lease.h has the model, and
 * leaselimit.h the arithmetic.
 */
#include "daemon/lease.h"

/** leaseholder_get() - the one of @session's client, made if there is none, with a reference.
 *  NULL: the process is gone, or there is no memory. */
struct leaseholder *leaseholder_get(struct session *session);

/** leaseholder_put() - one reference less. It goes with the last, if nothing is booked for it. */
void leaseholder_put(struct leaseholder *holder);

/** leaseholder_most() - bytes that a held lease could book now. */
uint64_t leaseholder_most(struct leaseholder *holder);

/**
 * leaseholder_open() - @bytes more, for a moment.
 * Return: 0; KVREG_E_LIMIT_QUOTA and *@ret_quota; or -errno.
 */
int leaseholder_open(struct leaseholder *holder, uint64_t bytes, struct quota *ret_quota);

/** leaseholder_close() - what leaseholder_open() gave. With the last, kin are swept if need be. */
void leaseholder_close(struct leaseholder *holder, uint64_t bytes);

/** leaseholder_hold() - @limit for the life of the process, @total booked. Return: as _open(). */
int leaseholder_hold(struct leaseholder *holder, uint64_t limit, uint64_t total,
		     struct quota *ret_quota);

/** leaseholder_is_swept() - whether no sweep is under way. lease_swept() tells of its end. */
bool leaseholder_is_swept(const struct leaseholder *holder);

/** lease_swept() - a sweep of @holder's kin has ended: who waits for it is answered (lease.c). */
void lease_swept(struct leaseholder *holder);

#endif
