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

void books_fini(struct books *books)
{
	assert(LIST_EMPTY(&books->accounts));
	assert(books->sessions == 0 && books->granted == 0);
}

static struct account *account_get(struct books *books, uid_t uid)
{
	struct account *account;

	LIST_FOREACH(account, &books->accounts, link)
		if (account->uid == uid)
			return account;
	account = calloc(1, sizeof(*account));
	if (!account)
		return NULL;
	account->uid = uid;
	LIST_INSERT_HEAD(&books->accounts, account, link);
	return account;
}

static void account_put(struct account *account)
{
	if (account->sessions > 0)
		return;
	assert(account->granted == 0);
	LIST_REMOVE(account, link);
	free(account);
}

int charge_init(struct charge *charge, struct books *books, uid_t uid)
{
	struct account *account = account_get(books, uid);

	if (!account)
		return -ENOMEM;
	if (account->sessions >= config_uid(books->config, uid).sessions ||
	    books->sessions >= books->config->sessions) {
		account_put(account);
		return KVREG_E_LIMIT_SESSIONS;
	}
	account->sessions++;
	books->sessions++;
	*charge = (struct charge){ .books = books, .account = account };
	return 0;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
	return limit > used ? (limit - used) / PAGE * PAGE : 0;
}

int charge_raise(struct charge *charge, uint64_t need, uint64_t want, struct quota *ret_quota)
{
	struct books *books = charge->books;
	struct account *account = charge->account;
	uint64_t uid_limit = config_uid(books->config, account->uid).bytes;
	uint64_t total_limit = books->config->total_bytes;
	uint64_t of_uid = charge->bytes + left(uid_limit, account->granted);
	uint64_t of_total = charge->bytes + left(total_limit, books->granted);
	bool total = of_total < of_uid;
	uint64_t most = total ? of_total : of_uid;

	*ret_quota = (struct quota){
		.used = total ? books->granted : account->granted,
		.limit = total ? total_limit : uid_limit,
		.total = total,
	};
	if (need > most)
		return KVREG_E_LIMIT_QUOTA;
	if (want > most)
		want = most;
	if (want > charge->bytes) {
		account->granted += want - charge->bytes;
		books->granted += want - charge->bytes;
		charge->bytes = want;
	}
	return 0;
}

void charge_lower(struct charge *charge, uint64_t bytes)
{
	uint64_t back;

	assert(bytes <= charge->bytes);
	back = charge->bytes - bytes;
	charge->account->granted -= back;
	charge->books->granted -= back;
	charge->bytes = bytes;
}

void charge_fini(struct charge *charge)
{
	if (!charge->books)
		return;
	charge_lower(charge, 0);
	charge->account->sessions--;
	charge->books->sessions--;
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
