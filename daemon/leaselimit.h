/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_LEASELIMIT_H
#define KVREG_DAEMON_LEASELIMIT_H
/*
 * What a leaseholder's limit is and what is booked for it (the sums stand in lease.h), and making
 * both so. The process is reached by its number, which its pidfd proves to be its own before and
 * after.
 */
#include "daemon/lease.h"

/** leaselimit_is_alive() - whether the process is there, and its number therefore its own. */
bool leaselimit_is_alive(const struct leaseholder *holder);

/**
 * leaselimit_booking() - what leases take of the quota, with @open bytes open and @held booked for a
 * held one. What is kept is within the held one as far as that goes.
 */
uint64_t leaselimit_booking(const struct leaseholder *holder, uint64_t open, uint64_t held);

/** leaselimit_book() - Return: 0; or KVREG_E_LIMIT_QUOTA: then what was booked stays. */
int leaselimit_book(struct leaseholder *holder, uint64_t bytes, struct quota *ret_quota);

/** leaselimit_now() - RLIMIT_MEMLOCK (soft) as it should be. */
uint64_t leaselimit_now(const struct leaseholder *holder);

/** leaselimit_is_raised() - whether it is above what the process had before. */
bool leaselimit_is_raised(const struct leaseholder *holder);

/**
 * leaselimit_read() - notes what the process has before a lease: it may have lowered it, or somebody
 * else have set it, since the last. Return: 0; or -ESRCH it is gone.
 */
int leaselimit_read(struct leaseholder *holder);

/** leaselimit_sweep() - what its kin are found by; spares nobody, and borrows from @holder. */
struct sweep leaselimit_sweep(const struct leaseholder *holder);

/** leaselimit_set() - makes the limit what it should be. Return: 0; -ESRCH; or another -errno. */
int leaselimit_set(struct leaseholder *holder);

/** leaselimit_look() - sees what is pinned still, after leases of @ended bytes have ended. */
void leaselimit_look(struct leaseholder *holder, uint64_t ended);

/** leaselimit_settle() - the same, and books and limits accordingly. */
void leaselimit_settle(struct leaseholder *holder, uint64_t ended);

#endif
