/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_ACCOUNT_H
#define KVREG_DAEMON_ACCOUNT_H
/*
 * The books: how many sessions there are and how many bytes they may pin: of a uid within a class,
 * of a class, and in all. The tightest of the three decides.
 *
 * A charge is embedded in its holder (a session) and given back by the holder's destructor, so a
 * booking cannot be forgotten. An account lives as long as a charge refers to it. books_fini()
 * asserts that all is zero: a leak is a crash in tests.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/config.h"
#include "proto/limits.h"

struct usage {
	uint32_t sessions;
	uint64_t granted; /* bytes */
};

struct account {
	LIST_ENTRY(account) link; /* books::accounts */
	size_t klass;             /* of config::classes */
	uid_t uid;
	struct usage used;
};

/* Log lines about some uids. It outlives their accounts: who connects anew has no more lines. */
struct log_budget {
	uint32_t lines; /* written in the window */
	double window;  /* when it began, seconds */
};

struct books {
	const struct config *config;
	LIST_HEAD(account_list, account) accounts;
	struct usage total;
	struct usage classes[1 + CLASSES_MAX];
	struct log_budget log_budgets[LOG_BUDGETS]; /* by uid modulo their number */
};

struct charge {
	struct books *books; /* NULL: charges nothing */
	struct account *account;
	uint64_t bytes;
};

void books_init(struct books *books, const struct config *config);
void books_fini(struct books *books);

/**
 * charge_init() - books one session for @uid, who came through the socket of class @klass.
 * Return: 0; KVREG_E_LIMIT_SESSIONS; or -ENOMEM.
 */
int charge_init(struct charge *charge, struct books *books, size_t klass, uid_t uid);

/** What bounded a grant, for the one who is refused. */
struct quota {
	uint64_t used;
	uint64_t limit;
	const char *scope; /* whose limit it is: "uid", "class" or "host" */
};

/**
 * charge_raise() - books @want bytes in all for this holder or, if the quota ends before that, as
 * much as it allows but at least @need.
 *
 * Return: 0; or KVREG_E_LIMIT_QUOTA and nothing is changed. @ret_quota is filled in both.
 */
int charge_raise(struct charge *charge, uint64_t need, uint64_t want, struct quota *ret_quota);

/** charge_lower() - books @bytes in all, which is not more than before. */
void charge_lower(struct charge *charge, uint64_t bytes);

/** charge_fini() - gives everything back. */
void charge_fini(struct charge *charge);

/** books_may_log() - whether one more line about @uid goes to the log at @now (seconds). */
bool books_may_log(struct books *books, uid_t uid, double now);

#endif
