/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_QUOTA_H
#define KVREG_DAEMON_QUOTA_H
/*
 * Limits: how much of each book one scope may have, and where the configuration says so.
 *
 * A limit that was not set is NO_LIMIT. Only that of charge then follows another: memory may be
 * registered once with every RDMA device of the host, so it is that many times the limit of memory.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/books.h"

#define NO_LIMIT UINT64_MAX

enum scope { SCOPE_UID, SCOPE_GID, SCOPE_CLASS, SCOPE_HOST, SCOPES };

struct limits {
	uint64_t most[BOOKS];
};

/** A [uid N] or [gid N] section: what it sets. */
struct rule {
	enum scope scope;
	uint32_t id;
	struct limits limits;
};

/** What the configuration says of quota; classes have theirs beside their names. */
struct quotas {
	struct limits host, per_uid, per_gid;
	size_t n_rules;
	struct rule *rules;
};

/** limits_none() - nothing is limited. */
struct limits limits_none(void);

/**
 * limits_set() - sets the limit that @key names: "bytes" (of memory), "charge", "gpu", "sessions",
 * "domains", "buffers" or "regions".
 * @whole: what a share such as "25%" is of, bytes
 * Return: 0; -ENOENT no such key; -EINVAL or -ERANGE no such value.
 */
int limits_set(struct limits *limits, const char *key, const char *value, uint64_t whole);

/** quotas_init() - the defaults, where the host has @whole bytes of memory. */
void quotas_init(struct quotas *quotas, uint64_t whole);
void quotas_fini(struct quotas *quotas);

/**
 * quotas_set() - a key of [quota]: "total", "per_uid" and "per_gid" are of memory; those of the
 * other books are named as in limits_set(), with _per_uid or _per_gid behind. Return: the same.
 */
int quotas_set(struct quotas *quotas, const char *key, const char *value, uint64_t whole);

/** quotas_rule() - the rule of @scope (uid or gid) and @id, made if there is none. NULL: no memory.
 */
struct rule *quotas_rule(struct quotas *quotas, enum scope scope, uint32_t id);

/**
 * quotas_find() - what holds for a uid or gid: its own section, where that is silent the defaults.
 * @devices: RDMA devices of the host, see above
 */
struct limits quotas_find(const struct quotas *quotas, enum scope scope, uint32_t id,
			  unsigned int devices);

/** limits_derive() - @limits with the one of charge filled in, if it was not set. */
struct limits limits_derive(struct limits limits, unsigned int devices);

/**
 * quota_size() - "4096", "512K", "16G", "1.5T" (powers of 1024) or "25%" of @whole.
 * Return: 0, -EINVAL or -ERANGE.
 */
int quota_size(const char *text, uint64_t whole, uint64_t *ret_bytes);

/** quota_number() - a plain number. Return: 0 or -EINVAL. */
int quota_number(const char *text, uint32_t *ret_number);

#endif
