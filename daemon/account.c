/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/account.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "kvreg-errors.h"

/* Limits of bytes are the kernel's, in pages. */
#define PAGE 4096ull

static const char *const scope_names[SCOPES] = {
	[SCOPE_UID] = "uid",
	[SCOPE_GID] = "gid",
	[SCOPE_CLASS] = "class",
	[SCOPE_HOST] = "host",
};

const char *scope_name(enum scope scope)
{
	return scope_names[scope];
}

void books_init(struct books *books, const struct config *config)
{
	*books = (struct books){ .config = config, .devices = 1 };
	LIST_INIT(&books->accounts);
}

static bool is_unused(const struct amounts *used)
{
	for (size_t i = 0; i < BOOKS; i++)
		if (used->of[i])
			return false;
	return true;
}

void books_fini(struct books *books)
{
	assert(LIST_EMPTY(&books->accounts));
	assert(is_unused(&books->total));
	for (size_t i = 0; i <= CLASSES_MAX; i++)
		assert(is_unused(&books->classes[i]));
}

static struct account *account_get(struct books *books, size_t klass, enum scope scope, uint32_t id)
{
	struct account *account;

	LIST_FOREACH(account, &books->accounts, link)
		if (account->klass == klass && account->scope == scope && account->id == id) {
			account->refs++;
			return account;
		}
	account = calloc(1, sizeof(*account));
	if (!account)
		return NULL;
	account->refs = 1;
	account->klass = klass;
	account->scope = scope;
	account->id = id;
	LIST_INSERT_HEAD(&books->accounts, account, link);
	return account;
}

static void account_put(struct account *account)
{
	if (!account || --account->refs > 0)
		return;
	assert(is_unused(&account->used));
	LIST_REMOVE(account, link);
	free(account);
}

/* What bounds a charge: enum scope, from the inside out. */
struct bound {
	struct amounts *used;
	struct limits limits;
};

struct limits books_limits(const struct books *books, enum scope scope, size_t klass, uint32_t id)
{
	const struct config *config = books->config;

	switch (scope) {
	case SCOPE_HOST:
		return limits_derive(config->quotas.host, books->devices);
	case SCOPE_CLASS:
		return limits_derive(config->classes[klass].limits, books->devices);
	case SCOPE_UID:
	case SCOPE_GID:
	case SCOPES:
		break;
	}
	return quotas_find(&config->quotas, scope, id, books->devices);
}

static void find_bounds(const struct charge *charge, struct bound bounds[SCOPES])
{
	struct books *books = charge->books;
	size_t klass = charge->uid->klass;

	bounds[SCOPE_UID].used = &charge->uid->used;
	bounds[SCOPE_GID].used = &charge->gid->used;
	bounds[SCOPE_CLASS].used = &books->classes[klass];
	bounds[SCOPE_HOST].used = &books->total;
	bounds[SCOPE_UID].limits = books_limits(books, SCOPE_UID, klass, charge->uid->id);
	bounds[SCOPE_GID].limits = books_limits(books, SCOPE_GID, klass, charge->gid->id);
	bounds[SCOPE_CLASS].limits = books_limits(books, SCOPE_CLASS, klass, 0);
	bounds[SCOPE_HOST].limits = books_limits(books, SCOPE_HOST, klass, 0);
}

/* What is left of @book within one bound. */
static uint64_t left(const struct bound *bound, enum book book)
{
	uint64_t used = bound->used->of[book], limit = bound->limits.most[book];
	uint64_t unit = *book_unit(book) ? PAGE : 1;

	return limit > used ? (limit - used) / unit * unit : 0;
}

/* The tightest bound of @book. Return: what is left there. */
static uint64_t find_tight(const struct bound bounds[SCOPES], enum book book,
			   struct quota *ret_quota)
{
	enum scope tight = SCOPE_UID;

	for (size_t i = SCOPE_GID; i < SCOPES; i++)
		if (left(&bounds[i], book) < left(&bounds[tight], book))
			tight = (enum scope)i;
	*ret_quota = (struct quota){
		.scope = tight,
		.book = book,
		.used = bounds[tight].used->of[book],
		.limit = bounds[tight].limits.most[book],
	};
	return left(&bounds[tight], book);
}

static void book(struct charge *charge, struct bound bounds[SCOPES], enum book which,
		 uint64_t amount)
{
	/* The difference may be negative: unsigned numbers come round. */
	for (size_t i = 0; i < SCOPES; i++)
		bounds[i].used->of[which] += amount - charge->held.of[which];
	charge->held.of[which] = amount;
}

int charge_open(struct charge *charge, struct books *books, size_t klass, uid_t uid, gid_t gid)
{
	struct charge made = { .books = books };

	made.uid = account_get(books, klass, SCOPE_UID, uid);
	made.gid = account_get(books, klass, SCOPE_GID, gid);
	if (!made.uid || !made.gid) {
		account_put(made.uid);
		account_put(made.gid);
		return -ENOMEM;
	}
	*charge = made;
	return 0;
}

int charge_init(struct charge *charge, struct books *books, size_t klass, uid_t uid, gid_t gid,
		struct quota *ret_quota)
{
	struct bound bounds[SCOPES];
	struct charge made = { 0 };

	if (charge_open(&made, books, klass, uid, gid) < 0)
		return -ENOMEM;
	find_bounds(&made, bounds);
	if (find_tight(bounds, BOOK_SESSIONS, ret_quota) == 0) {
		charge_fini(&made);
		return KVREG_E_LIMIT_SESSIONS;
	}
	book(&made, bounds, BOOK_SESSIONS, 1);
	*charge = made;
	return 0;
}

/* What @charge may have of @which in all. */
static uint64_t most_of(const struct charge *charge, const struct bound bounds[SCOPES],
			enum book which, struct quota *ret_quota)
{
	uint64_t more = find_tight(bounds, which, ret_quota), most;

	if (__builtin_add_overflow(charge->held.of[which], more, &most))
		most = UINT64_MAX;
	return most;
}

int charge_raise(struct charge *charge, const struct amounts *need, const struct amounts *want,
		 struct quota *ret_quota)
{
	uint64_t most[BOOKS];
	struct bound bounds[SCOPES];
	struct quota quota;

	find_bounds(charge, bounds);
	*ret_quota = (struct quota){ .scope = SCOPE_UID, .book = BOOK_CHARGE };
	for (size_t i = BOOK_SESSIONS + 1; i < BOOKS; i++) {
		most[i] = most_of(charge, bounds, (enum book)i, &quota);
		if (need->of[i] > charge->held.of[i])
			*ret_quota = quota;
		/* What is held already is no new need, though a limit fell below it since. */
		if (need->of[i] > charge->held.of[i] && need->of[i] > most[i])
			return KVREG_E_LIMIT_QUOTA;
	}
	for (size_t i = BOOK_SESSIONS + 1; i < BOOKS; i++) {
		uint64_t amount = want->of[i] < most[i] ? want->of[i] : most[i];

		if (amount < need->of[i])
			amount = need->of[i];
		if (amount > charge->held.of[i])
			book(charge, bounds, (enum book)i, amount);
	}
	return 0;
}

void charge_lower(struct charge *charge, const struct amounts *keep)
{
	struct bound bounds[SCOPES];

	find_bounds(charge, bounds);
	for (size_t i = BOOK_SESSIONS + 1; i < BOOKS; i++)
		if (keep->of[i] < charge->held.of[i])
			book(charge, bounds, (enum book)i, keep->of[i]);
}

void charge_fini(struct charge *charge)
{
	struct bound bounds[SCOPES];

	if (!charge->books)
		return;
	find_bounds(charge, bounds);
	for (size_t i = 0; i < BOOKS; i++)
		book(charge, bounds, (enum book)i, 0);
	account_put(charge->uid);
	account_put(charge->gid);
	*charge = (struct charge){ 0 };
}

bool books_may_log(struct books *books, uid_t uid, double now)
{
	struct log_budget *budget = &books->log_budgets[uid % LOG_BUDGETS];

	if (budget->lines == 0 || now - budget->window >= LOG_WINDOW_S)
		*budget = (struct log_budget){ .window = now };
	return budget->lines < LOG_BURST && ++budget->lines;
}
