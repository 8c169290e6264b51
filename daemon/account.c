/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/account.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "kvreg-errors.h"

/* Limits are the kernel's, in pages. */
#define PAGE 4096ull

void books_init(struct books *books, const struct config *config)
{
	*books = (struct books){ .config = config };
	LIST_INIT(&books->accounts);
}

static bool is_unused(const struct usage *usage)
{
	return usage->sessions == 0 && usage->granted == 0;
}

void books_fini(struct books *books)
{
	assert(LIST_EMPTY(&books->accounts));
	assert(is_unused(&books->total));
	for (size_t i = 0; i <= CLASSES_MAX; i++)
		assert(is_unused(&books->classes[i]));
}

static struct account *account_get(struct books *books, size_t klass, uid_t uid)
{
	struct account *account;

	LIST_FOREACH(account, &books->accounts, link)
		if (account->klass == klass && account->uid == uid)
			return account;
	account = calloc(1, sizeof(*account));
	if (!account)
		return NULL;
	account->klass = klass;
	account->uid = uid;
	LIST_INSERT_HEAD(&books->accounts, account, link);
	return account;
}

static void account_put(struct account *account)
{
	if (account->used.sessions > 0)
		return;
	assert(is_unused(&account->used));
	LIST_REMOVE(account, link);
	free(account);
}

/* What bounds an account, from the inside out. */
struct bound {
	const char *scope;
	struct usage *used;
	uint64_t bytes;
	uint32_t sessions;
};

#define BOUNDS 3

static void find_bounds(struct books *books, struct account *account, struct bound bounds[BOUNDS])
{
	const struct config *config = books->config;
	const struct class_rule *rule = &config->classes[account->klass];
	struct uid_rule uid = config_uid(config, account->uid);

	bounds[0] = (struct bound){ "uid", &account->used, uid.bytes, uid.sessions };
	bounds[1] = (struct bound){ "class", &books->classes[account->klass], rule->bytes,
				    rule->sessions };
	bounds[2] = (struct bound){ "host", &books->total, config->total_bytes, config->sessions };
}

int charge_init(struct charge *charge, struct books *books, size_t klass, uid_t uid)
{
	struct account *account = account_get(books, klass, uid);
	struct bound bounds[BOUNDS];

	if (!account)
		return -ENOMEM;
	find_bounds(books, account, bounds);
	for (size_t i = 0; i < BOUNDS; i++) {
		if (bounds[i].used->sessions < bounds[i].sessions)
			continue;
		account_put(account);
		return KVREG_E_LIMIT_SESSIONS;
	}
	for (size_t i = 0; i < BOUNDS; i++)
		bounds[i].used->sessions++;
	*charge = (struct charge){ .books = books, .account = account };
	return 0;
}

static uint64_t left(const struct bound *bound)
{
	uint64_t used = bound->used->granted;

	return bound->bytes > used ? (bound->bytes - used) / PAGE * PAGE : 0;
}

int charge_raise(struct charge *charge, uint64_t need, uint64_t want, struct quota *ret_quota)
{
	struct bound bounds[BOUNDS], *tight = &bounds[0];
	uint64_t most;

	find_bounds(charge->books, charge->account, bounds);
	for (size_t i = 1; i < BOUNDS; i++)
		if (left(&bounds[i]) < left(tight))
			tight = &bounds[i];
	*ret_quota = (struct quota){
		.used = tight->used->granted,
		.limit = tight->bytes,
		.scope = tight->scope,
	};
	most = charge->bytes + left(tight);
	if (need > most)
		return KVREG_E_LIMIT_QUOTA;
	if (want > most)
		want = most;
	if (want > charge->bytes) {
		for (size_t i = 0; i < BOUNDS; i++)
			bounds[i].used->granted += want - charge->bytes;
		charge->bytes = want;
	}
	return 0;
}

void charge_lower(struct charge *charge, uint64_t bytes)
{
	struct bound bounds[BOUNDS];

	assert(bytes <= charge->bytes);
	find_bounds(charge->books, charge->account, bounds);
	for (size_t i = 0; i < BOUNDS; i++)
		bounds[i].used->granted -= charge->bytes - bytes;
	charge->bytes = bytes;
}

void charge_fini(struct charge *charge)
{
	struct bound bounds[BOUNDS];

	if (!charge->books)
		return;
	charge_lower(charge, 0);
	find_bounds(charge->books, charge->account, bounds);
	for (size_t i = 0; i < BOUNDS; i++)
		bounds[i].used->sessions--;
	account_put(charge->account);
	*charge = (struct charge){ 0 };
}

bool books_may_log(struct books *books, uid_t uid, double now)
{
	struct log_budget *budget = &books->log_budgets[uid % LOG_BUDGETS];

	if (budget->lines == 0 || now - budget->window >= LOG_WINDOW_S)
		*budget = (struct log_budget){ .window = now };
	return budget->lines < LOG_BURST && ++budget->lines;
}
