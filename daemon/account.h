/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_ACCOUNT_H
#define KVREG_DAEMON_ACCOUNT_H
/*
 * The books: how much of each thing (proto/books.h) is granted to the sessions of a uid within a
 * class, of a primary gid within a class, of a class, and in all. The tightest of the four decides.
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
#include "proto/books.h"
#include "proto/limits.h"

/** scope_name() - "uid", "gid", "class" or "host". */
const char *scope_name(enum scope scope);

struct account {
	LIST_ENTRY(account) link; /* books::accounts */
	size_t klass;             /* of config::classes */
	enum scope scope;         /* SCOPE_UID or SCOPE_GID */
	uint32_t id;
	uint32_t refs; /* charges */
	struct amounts used;
};

/* Log lines about some uids. It outlives their accounts: who connects anew has no more lines. */
struct log_budget {
	uint32_t lines; /* written in the window */
	double window;  /* when it began, seconds */
};

struct books {
	const struct config *config;
	LIST_HEAD(account_list, account) accounts;
	unsigned int devices; /* RDMA devices of the host: see daemon/quota.h */
	struct amounts total;
	struct amounts classes[1 + CLASSES_MAX];
	struct log_budget log_budgets[LOG_BUDGETS]; /* by uid modulo their number */
};

struct charge {
	struct books *books; /* NULL: charges nothing */
	struct account *uid, *gid;
	struct amounts held;
};

void books_init(struct books *books, const struct config *config);
void books_fini(struct books *books);

/** books_limits() - what bounds @scope. @klass: not of the host; @id: of a uid or gid. */
struct limits books_limits(const struct books *books, enum scope scope, size_t klass, uint32_t id);

/** What bounded a request, for the one who is refused. */
struct quota {
	enum scope scope; /* whose limit it is */
	enum book book;
	uint64_t used;
	uint64_t limit;
};

/**
 * charge_init() - books one session for @uid and @gid, who came through the socket of class @klass.
 * Return: 0; KVREG_E_LIMIT_SESSIONS and *@ret_quota; or -ENOMEM.
 */
int charge_init(struct charge *charge, struct books *books, size_t klass, uid_t uid, gid_t gid,
		struct quota *ret_quota);

/** charge_open() - the same for what is no session: nothing is booked yet. Return: 0 or -ENOMEM. */
int charge_open(struct charge *charge, struct books *books, size_t klass, uid_t uid, gid_t gid);

/**
 * charge_raise() - books @want in all for this holder or, where the quota ends before that, as much
 * as it allows but at least @need. What is held already stays, if more.
 *
 * Return: 0; or KVREG_E_LIMIT_QUOTA and nothing is changed. @ret_quota: the book that refused, or
 * the last that was asked for more.
 */
int charge_raise(struct charge *charge, const struct amounts *need, const struct amounts *want,
		 struct quota *ret_quota);

/** charge_lower() - books what @keep has less, in each book; its session stays. */
void charge_lower(struct charge *charge, const struct amounts *keep);

/** charge_fini() - gives everything back. */
void charge_fini(struct charge *charge);

/** books_may_log() - whether one more line about @uid goes to the log at @now (seconds). */
bool books_may_log(struct books *books, uid_t uid, double now);

#endif
