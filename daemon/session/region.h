/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_REGION_H
#define KVREG_SESSION_REGION_H
/*
 * A registered range: an MR in the client's PD, on the client's fd, charged to this process.
 * It lives until the client gives it back as often as it asked for it, or ends; its buffer may go
 * before it.
 */
#include "daemon/session/again.h"
#include "daemon/session/device.h"
#include "proto/books.h"

struct client;
struct domain;
struct buffer;

/* registering -> live | dead; live -> releasing; releasing -> live (refused) | dead */
enum region_state {
	REGION_REGISTERING,
	REGION_LIVE,
	REGION_RELEASING,
	REGION_DEAD,
	REGION_STATES /* their number: each has its place in tests/integration/test-states.c */
};

/** What the client asked for, by numbers that are not used again. */
struct region_origin {
	uint32_t domain, buffer;
	uint64_t offset, length, iova;
	uint32_t access;
};

struct region {
	LIST_ENTRY(region) again; /* client::again, if is_offered */
	bool is_offered;
	uint32_t number;
	uint32_t uses; /* times that it was asked for and not given back */
	enum region_state state;
	struct domain *domain;
	struct backing *backing; /* a reference */
	struct uverbs_mr mr;
	struct region_origin origin;
	struct again_stamp stamp;
	uint64_t first, size; /* of the backing: whole pages, in its own unit */
	struct amounts taken; /* of the grant, but for memory, which others may share */
	uint64_t address;     /* the client's, 0 when it named none */
	uint32_t access;
	char label[LABEL_MAX + 1];
};

const char *region_state_name(enum region_state state);

/** What the client asks for; checked. */
struct region_request {
	struct domain *domain;
	struct buffer *buffer;
	uint64_t offset, length, iova;
	uint32_t access;
	bool several; /* the buffer has more than this one in the same request */
};

struct region_origin region_origin(const struct region_request *request);

/**
 * region_register() - the live region that is the same; or a new one: grant, map, REG_MR. Leaves the buffer mapped for the next one.
 * Return: 0; the code set in @f, and nothing is left; or -errno: the client has gone.
 */
int region_register(struct client *c, const struct region_request *request,
		    struct region **ret_region, struct failure *f);

/**
 * region_deregister() - one use less; the last destroys the MR, if the kernel agrees that it is the
 * one we made.
 * Return: 0; MR_GONE and the region is freed; or another code and it lives on.
 */
int region_deregister(struct client *c, struct region *region, struct failure *f);

/**
 * region_discard() - the same where nobody can be told: an undo, or the end of the client.
 *
 * The kernel can refuse it: a memory window is bound to the MR, or another thread of the client is
 * using its handle this moment. The region then stays live, and charged.
 *
 * Return: whether it is destroyed and freed.
 */
bool region_discard(struct client *c, struct region *region);

/** region_destroy() - region_discard() whatever its uses: at the end of the client. */
bool region_destroy(struct client *c, struct region *region);

/** region_abandon() - frees what region_destroy() left, at the end of the process. */
void region_abandon(struct client *c, struct region *region);

#endif
