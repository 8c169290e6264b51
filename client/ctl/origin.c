/* SPDX-License-Identifier: Apache-2.0 */
#include "origin.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exam.h"
#include "proto/codec.h"

/* docker, containerd and podman: 64 hexadecimal digits, of which people use the first twelve. */
#define ID_LENGTH 64u
#define ID_SHOWN  12

/* What a path of that origin contains. */
static const struct {
	const char *pattern;
	enum origin_kind kind;
} patterns[] = {
	{ "kubepods", ORIGIN_KUBERNETES },     { "/kubelet", ORIGIN_KUBERNETES },
	{ "/crio-", ORIGIN_KUBERNETES },       { "/cri-containerd-", ORIGIN_KUBERNETES },
	{ "/docker/", ORIGIN_DOCKER },         { "/docker-", ORIGIN_DOCKER },
	{ "/nerdctl-", ORIGIN_CONTAINERD },    { "/containerd-", ORIGIN_CONTAINERD },
	{ "/libpod-", ORIGIN_PODMAN },         { "/libpod_parent", ORIGIN_PODMAN },
	{ "/lxc.payload", ORIGIN_LXC },        { "/lxc/", ORIGIN_LXC },
	{ "/systemd-nspawn@", ORIGIN_NSPAWN }, { "/slurmstepd.scope", ORIGIN_SLURM },
	{ "/slurm/", ORIGIN_SLURM },           { "/user@", ORIGIN_USER },
};

static const struct {
	const char *title;
	const char *raise; /* a %s in it is the name */
} words[] = {
	[ORIGIN_UNKNOWN] = { "unknown", "ulimit -l unlimited, as root, before the program starts" },
	[ORIGIN_SERVICE] = { "system unit", "LimitMEMLOCK=infinity in [Service] of %s "
					    "(systemctl edit), and restart it" },
	[ORIGIN_USER] = { "unit of a user's manager",
			  "LimitMEMLOCK=infinity in [Service] of user@.service (systemctl edit), "
			  "and log in again; %s may set a lower one" },
	[ORIGIN_SESSION] = { "login", "\"* - memlock unlimited\" in a file of "
				      "/etc/security/limits.d, and log in again" },
	[ORIGIN_CONTAINER] = { "container", "the memlock ulimit where the container is started" },
	[ORIGIN_SLURM] = { "Slurm job", "LimitMEMLOCK=infinity in [Service] of slurmd.service, and "
					"PropagateResourceLimitsExcept=MEMLOCK in slurm.conf" },
	[ORIGIN_NSPAWN] = { "systemd-nspawn container",
			    "LimitMEMLOCK=infinity in [Exec] of the container's .nspawn file" },
	[ORIGIN_LXC] = { "LXC container",
			 "lxc.prlimit.memlock = unlimited in the container's configuration" },
	[ORIGIN_PODMAN] = { "podman container",
			    "--ulimit memlock=-1:-1 when the container is started; without root "
			    "up to the limit of the user who starts it" },
	[ORIGIN_CONTAINERD] = { "containerd container",
				"--ulimit memlock=-1:-1 when nerdctl starts the container, or "
				"LimitMEMLOCK=infinity in [Service] of containerd.service" },
	[ORIGIN_DOCKER] = { "docker container",
			    "--ulimit memlock=-1:-1 when the container is started, or "
			    "default-ulimits in /etc/docker/daemon.json" },
	[ORIGIN_KUBERNETES] = { "Kubernetes pod",
				"a pod cannot ask for it: on the node, LimitMEMLOCK=infinity in "
				"[Service] of the runtime's unit (containerd.service, "
				"crio.service), and restart runtime and pod" },
};

static bool ends_with(const char *text, size_t length, const char *end)
{
	size_t n = strlen(end);

	return length >= n && !memcmp(text + length - n, end, n);
}

static void set_name(struct origin *origin, const char *name, size_t length)
{
	char copy[sizeof(origin->name)];

	snprintf(copy, sizeof(copy), "%.*s", (int)length, name);
	text_clean(origin->name, sizeof(origin->name), copy);
}

/* The unit nearest to the process: the last component that is one. */
static void name_unit(struct origin *origin, const char *path)
{
	const char *end = path + strlen(path), *p = end;

	while (p > path) {
		const char *slash = p - 1;

		while (slash > path && *slash != '/')
			slash--;
		if (ends_with(slash, (size_t)(p - slash), ".service") ||
		    ends_with(slash, (size_t)(p - slash), ".scope")) {
			slash += *slash == '/';
			set_name(origin, slash, (size_t)(p - slash));
			return;
		}
		p = slash;
	}
}

/* The id of a container, wherever it stands in the path, or NULL. */
static const char *find_id(const char *path)
{
	while (*path) {
		size_t n = 0;

		while (isxdigit((unsigned char)path[n]))
			n++;
		if (n == ID_LENGTH)
			return path;
		path += n + (path[n] != '\0');
	}
	return NULL;
}

/* A unit may be called docker-registry.service: where an id must follow, there is one. */
static bool matches(const char *path, const char *pattern)
{
	return strstr(path, pattern) &&
	       (!ends_with(pattern, strlen(pattern), "-") || find_id(path));
}

static enum origin_kind kind_of_unit(const struct origin *origin)
{
	if (!strncmp(origin->name, "session-", strlen("session-")))
		return ORIGIN_SESSION;
	return ends_with(origin->name, strlen(origin->name), ".service") ? ORIGIN_SERVICE
									 : ORIGIN_UNKNOWN;
}

static void classify(const char *path, struct origin *ret_origin)
{
	struct origin origin = { .kind = ORIGIN_UNKNOWN };

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (patterns[i].kind > origin.kind && matches(path, patterns[i].pattern))
			origin.kind = patterns[i].kind;
	if (origin.kind >= ORIGIN_CONTAINER) {
		if (find_id(path))
			set_name(&origin, find_id(path), ID_SHOWN);
	} else {
		name_unit(&origin, path);
		if (origin.kind == ORIGIN_UNKNOWN)
			origin.kind = kind_of_unit(&origin);
	}
	*ret_origin = origin;
}

/* "NUMBER:CONTROLLERS:PATH"; with cgroup v1 there are many lines, and not all of them tell. */
static void read_cgroups(const struct host *host, struct origin *origin)
{
	char path[512], *line = NULL, *at;
	struct origin one;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/self/cgroup", host->proc);
	file = fopen(path, "re");
	while (file && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		at = strchr(line, ':');
		at = at ? strchr(at + 1, ':') : NULL;
		if (!at)
			continue;
		classify(at + 1, &one);
		if (one.kind > origin->kind)
			*origin = one;
	}
	free(line);
	if (file)
		fclose(file);
}

/* There no path is hidden: who is in its root was put nowhere. */
static bool in_first_cgroup_namespace(const struct host *host)
{
	static const char first[] = "cgroup:[4026531835]"; /* PROC_CGROUP_INIT_INO */
	char path[512], name[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/self/ns/cgroup", host->proc);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return false;
	name[n] = '\0';
	return !strcmp(name, first);
}

static bool has_mark(const struct host *host, const char *mark)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", host->root, mark);
	return access(path, F_OK) == 0;
}

static enum origin_kind kind_of_name(const char *container)
{
	static const struct {
		const char *name;
		enum origin_kind kind;
	} names[] = {
		{ "podman", ORIGIN_PODMAN },
		{ "docker", ORIGIN_DOCKER },
		{ "lxc", ORIGIN_LXC },
		{ "systemd-nspawn", ORIGIN_NSPAWN },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(container, names[i].name))
			return names[i].kind;
	return ORIGIN_CONTAINER;
}

static enum origin_kind read_marks(const struct host *host)
{
	if (host->kubernetes || has_mark(host, "/run/secrets/kubernetes.io"))
		return ORIGIN_KUBERNETES;
	if (has_mark(host, "/.dockerenv"))
		return ORIGIN_DOCKER;
	if (has_mark(host, "/run/.containerenv"))
		return ORIGIN_PODMAN;
	return host->container && *host->container ? kind_of_name(host->container) : ORIGIN_UNKNOWN;
}

void origin_read(const struct host *host, struct origin *ret_origin)
{
	struct origin origin = { .kind = ORIGIN_UNKNOWN };

	read_cgroups(host, &origin);
	if (origin.kind == ORIGIN_UNKNOWN && !in_first_cgroup_namespace(host))
		origin.kind = read_marks(host);
	*ret_origin = origin;
}

bool origin_is_container(const struct origin *origin)
{
	return origin->kind >= ORIGIN_CONTAINER && origin->kind != ORIGIN_SLURM;
}

const char *origin_title(const struct origin *origin)
{
	return words[origin->kind].title;
}

void origin_raise(const struct origin *origin, char *ret_text, size_t size)
{
	const char *raise = words[origin->kind].raise, *name = strstr(raise, "%s");

	if (name)
		snprintf(ret_text, size, "%.*s%s%s", (int)(name - raise), raise, origin->name,
			 name + 2);
	else
		snprintf(ret_text, size, "%s", raise);
}
