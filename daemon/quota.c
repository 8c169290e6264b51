/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/quota.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

static const struct {
	const char *name;
	enum book book;
	bool is_size;
	bool is_share; /* a share of the host's memory makes sense */
} keys[] = {
	{ "bytes", BOOK_MEMORY, true, true },      { "charge", BOOK_CHARGE, true, true },
	{ "gpu", BOOK_GPU, true, false },          { "sessions", BOOK_SESSIONS, false, false },
	{ "domains", BOOK_DOMAINS, false, false }, { "buffers", BOOK_BUFFERS, false, false },
	{ "regions", BOOK_REGIONS, false, false },
};

int quota_size(const char *text, uint64_t whole, uint64_t *ret_bytes)
{
	static const char units[] = "KMGTP";
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || errno || !(value >= 0) || isinf(value))
		return -EINVAL;
	if (*end == '%') {
		value = value / 100 * (double)whole;
		end++;
	} else if (*end) {
		const char *unit = strchr(units, *end);

		if (!unit)
			return -EINVAL;
		value *= (double)(1ull << (10 * (unit - units + 1)));
		end++;
	}
	if (*end)
		return -EINVAL;
	if (value >= 0x1p63)
		return -ERANGE;
	*ret_bytes = (uint64_t)value;
	return 0;
}

int quota_number(const char *text, uint32_t *ret_number)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (end == text || *end || *text == '-' || errno || value > UINT32_MAX)
		return -EINVAL;
	*ret_number = (uint32_t)value;
	return 0;
}

struct limits limits_none(void)
{
	struct limits limits;

	for (size_t i = 0; i < BOOKS; i++)
		limits.most[i] = NO_LIMIT;
	return limits;
}

/* The key's name has @length bytes. */
static int set(struct limits *limits, const char *key, size_t length, const char *value,
	       uint64_t whole)
{
	uint32_t number;
	int r;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strlen(keys[i].name) != length || strncmp(keys[i].name, key, length) != 0)
			continue;
		if (keys[i].is_size && !keys[i].is_share && strchr(value, '%'))
			return -EINVAL;
		if (keys[i].is_size)
			return quota_size(value, whole, &limits->most[keys[i].book]);
		r = quota_number(value, &number);
		if (r == 0)
			limits->most[keys[i].book] = number;
		return r;
	}
	return -ENOENT;
}

int limits_set(struct limits *limits, const char *key, const char *value, uint64_t whole)
{
	return set(limits, key, strlen(key), value, whole);
}

void quotas_init(struct quotas *quotas, uint64_t whole)
{
	*quotas = (struct quotas){
		.host = limits_none(),
		.per_uid = limits_none(),
		.per_gid = limits_none(),
	};
	quotas->host.most[BOOK_MEMORY] = whole / 100 * DEFAULT_TOTAL_PERCENT;
	quotas->host.most[BOOK_SESSIONS] = DEFAULT_SESSIONS;
	quotas->host.most[BOOK_DOMAINS] = DEFAULT_DOMAINS;
	quotas->host.most[BOOK_BUFFERS] = DEFAULT_BUFFERS;
	quotas->host.most[BOOK_REGIONS] = DEFAULT_REGIONS;
	quotas->per_uid.most[BOOK_MEMORY] = whole / 100 * DEFAULT_UID_PERCENT;
	quotas->per_uid.most[BOOK_SESSIONS] = DEFAULT_SESSIONS_PER_UID;
	quotas->per_uid.most[BOOK_DOMAINS] = DEFAULT_DOMAINS_PER_UID;
	quotas->per_uid.most[BOOK_BUFFERS] = DEFAULT_BUFFERS_PER_UID;
	quotas->per_uid.most[BOOK_REGIONS] = DEFAULT_REGIONS_PER_UID;
}

void quotas_fini(struct quotas *quotas)
{
	free(quotas->rules);
	quotas->rules = NULL;
	quotas->n_rules = 0;
}

static bool ends_in(const char *key, const char *end, size_t *ret_stem)
{
	size_t n = strlen(key), m = strlen(end);

	if (n < m || strcmp(key + n - m, end) != 0)
		return false;
	*ret_stem = n - m;
	return true;
}

int quotas_set(struct quotas *quotas, const char *key, const char *value, uint64_t whole)
{
	size_t stem;

	if (strcmp(key, "total") == 0)
		return limits_set(&quotas->host, "bytes", value, whole);
	if (strcmp(key, "per_uid") == 0)
		return limits_set(&quotas->per_uid, "bytes", value, whole);
	if (strcmp(key, "per_gid") == 0)
		return limits_set(&quotas->per_gid, "bytes", value, whole);
	if (strncmp(key, "bytes", strlen("bytes")) == 0)
		return -ENOENT; /* one name for one thing */
	if (ends_in(key, "_per_uid", &stem))
		return set(&quotas->per_uid, key, stem, value, whole);
	if (ends_in(key, "_per_gid", &stem))
		return set(&quotas->per_gid, key, stem, value, whole);
	return limits_set(&quotas->host, key, value, whole);
}

static struct rule *find(const struct quotas *quotas, enum scope scope, uint32_t id)
{
	for (size_t i = 0; i < quotas->n_rules; i++)
		if (quotas->rules[i].scope == scope && quotas->rules[i].id == id)
			return &quotas->rules[i];
	return NULL;
}

struct rule *quotas_rule(struct quotas *quotas, enum scope scope, uint32_t id)
{
	struct rule *rule = find(quotas, scope, id), *rules;

	if (rule)
		return rule;
	rules = reallocarray(quotas->rules, quotas->n_rules + 1, sizeof(*rules));
	if (!rules)
		return NULL;
	quotas->rules = rules;
	rules[quotas->n_rules] = (struct rule){ scope, id, limits_none() };
	return &rules[quotas->n_rules++];
}

struct limits limits_derive(struct limits limits, unsigned int devices)
{
	uint64_t memory = limits.most[BOOK_MEMORY];

	if (limits.most[BOOK_CHARGE] != NO_LIMIT || memory == NO_LIMIT)
		return limits;
	if (__builtin_mul_overflow(memory, devices > 1 ? devices : 1u, &limits.most[BOOK_CHARGE]))
		limits.most[BOOK_CHARGE] = NO_LIMIT;
	return limits;
}

struct limits quotas_find(const struct quotas *quotas, enum scope scope, uint32_t id,
			  unsigned int devices)
{
	struct limits limits = scope == SCOPE_UID ? quotas->per_uid : quotas->per_gid;
	const struct rule *rule = find(quotas, scope, id);

	for (size_t i = 0; rule && i < BOOKS; i++)
		if (rule->limits.most[i] != NO_LIMIT)
			limits.most[i] = rule->limits.most[i];
	return limits_derive(limits, devices);
}
