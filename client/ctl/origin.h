/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CTL_ORIGIN_H
#define KVREG_CTL_ORIGIN_H
/*
 * Who started this process, as far as its cgroup tells: a unit of systemd, a login, a container
 * runtime. Limits are inherited, so that is who usually set them; a shell in between may have
 * lowered them (ulimit), which leaves no trace.
 *
 * With a cgroup namespace, the default of all runtimes on cgroup v2, a container's own path is just
 * "/". Then the marks count that runtimes leave in a container. Otherwise they do not: a disk image
 * made from a container has them too, and a unit of a systemd inside a container is nearer.
 */
#include <stdbool.h>
#include <stddef.h>

/* In rising order of how much they say: where signs differ, the last one is right. */
enum origin_kind {
	ORIGIN_UNKNOWN,
	ORIGIN_SERVICE,   /* a unit of the system's */
	ORIGIN_USER,      /* started by a user's own manager, user@UID.service */
	ORIGIN_SESSION,   /* a login: console, ssh */
	ORIGIN_CONTAINER, /* from here on containers; this: of an unknown runtime */
	ORIGIN_SLURM,
	ORIGIN_NSPAWN,
	ORIGIN_LXC,
	ORIGIN_PODMAN,
	ORIGIN_CONTAINERD,
	ORIGIN_DOCKER,
	ORIGIN_KUBERNETES,
};

struct origin {
	enum origin_kind kind;
	char name[128]; /* the unit, the start of the container's id; may be empty */
};

struct host;

/** origin_read() - finds it. */
void origin_read(const struct host *host, struct origin *ret_origin);

/** origin_is_container() - whether devices and sockets must be handed into it. */
bool origin_is_container(const struct origin *origin);

/** origin_title() - what it is, in words: "docker container"; the name may follow. */
const char *origin_title(const struct origin *origin);

/** origin_raise() - writes where its limit of locked memory is raised: one clause. */
void origin_raise(const struct origin *origin, char *ret_text, size_t size);

#endif
