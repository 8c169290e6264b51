/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_PRELOAD_LENDER_H
#define KVREG_PRELOAD_LENDER_H
/*
 * Momentary leases for the threads of this process, on one connection that is opened when the first
 * of them is needed.
 *
 * Links. Threads share the connection, and one that finds it lost must not close it under another
 * that has a lease on it: a link counts its users, and a lost one is closed by the last of them. The
 * next lease opens a new one, once for each lease, so that a restarted daemon is found and a missing
 * one holds nobody up.
 *
 * Fork. A child never touches what it inherited, not even the lock, which a thread of the parent may
 * have held: it makes a lender of its own when it needs one, and closes its copy of the socket. There
 * are no handlers of pthread_atfork(): clone(2) does not run them.
 *
 * Quota. While a call runs under its lease, both what it has pinned and what it has leased are booked.
 * So threads that register at once can meet a quota that each in its turn would not: who is refused
 * for it asks again when another thread's loan has ended, until there is none that could.
 *
 * The limit is the process's: while any lease begins or ends, no thread can know which limit its own
 * call met. lender_mark() and lender_moved() say whether that may have been so.
 */
#include <stdbool.h>
#include <stdint.h>

struct kvreg_lease;
struct link;
struct lender;

struct loan {
	struct lender *lender;
	struct link *link;
	struct kvreg_lease *lease;
};

/** lender_mark() - to be taken before a call; one atomic load. */
unsigned int lender_mark(void);

/** lender_moved() - whether the limit of this process may have changed since @mark. */
bool lender_moved(unsigned int mark);

/**
 * lender_take() - raises the limit by @bytes, for one call.
 * @ret_loan: to be given back with lender_give_back(), by the same thread
 *
 * Waits while as many threads have a loan as a connection can have leases, and for other threads'
 * loans when the quota is exhausted.
 *
 * Return: 0; or -errno, and kvreg_last_error() says why (not of -ENOMEM with code OK).
 */
int lender_take(uint64_t bytes, struct loan *ret_loan);

/** lender_give_back() - ends the lease. The limit has fallen when it returns, if the daemon lives. */
void lender_give_back(struct loan *loan);

#endif
