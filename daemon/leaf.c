/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leaf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/fdset.h"
#include "proto/limits.h"

#define CGROUP_MOUNT "/sys/fs/cgroup"

static int write_at(int dir, const char *file, const char *text)
{
	_cleanup_fd_ int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

static int read_at(int dir, const char *file, char *text, size_t size)
{
	_cleanup_fd_ int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

/* The unit that systemd delegates for us; without systemd, a cgroup of our own below the root. */
static const char *default_path(void)
{
	return access("/run/systemd/system", F_OK) == 0 ? "/system.slice/kvregd-sessions.service"
							: "/kvregd-sessions";
}

static bool enable(const struct leaves *leaves, const char *controller)
{
	char word[32];

	snprintf(word, sizeof(word), "+%s", controller);
	return write_at(leaves->dir, "cgroup.subtree_control", word) == 0;
}

/* Sessions outlive their supervisor, and nobody removes their leaves then: a busy one stays. */
static void sweep(const struct leaves *leaves)
{
	int fd = openat(leaves->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		fd_close(&fd);
	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			(void)unlinkat(leaves->dir, entry->d_name, AT_REMOVEDIR);
	if (dir)
		closedir(dir);
}

int leaves_init(struct leaves *leaves, const char *path, char *ret_words, size_t size)
{
	char full[sizeof(leaves->path) + sizeof(CGROUP_MOUNT)];
	int r;

	*leaves = (struct leaves){ .dir = -1 };
	snprintf(leaves->path, sizeof(leaves->path), "%s", path ? path : default_path());
	if (access(CGROUP_MOUNT "/cgroup.controllers", F_OK) < 0) {
		snprintf(ret_words, size, "no cgroup leaves for sessions: needs cgroup v2 at %s",
			 CGROUP_MOUNT);
		return -ENOSYS;
	}
	snprintf(full, sizeof(full), CGROUP_MOUNT "%s", leaves->path);
	/* systemd makes its own cgroups; behind its back there is none of ours. */
	if (access("/run/systemd/system", F_OK) < 0 && mkdir(full, 0755) < 0 && errno != EEXIST) {
		r = -errno;
		snprintf(ret_words, size, "no cgroup leaves for sessions: %s: %s", full,
			 strerror(-r));
		return r;
	}
	leaves->dir = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (leaves->dir < 0) {
		r = -errno;
		snprintf(ret_words, size, "no cgroup leaves for sessions: %s: %s", full,
			 strerror(-r));
		return r;
	}
	sweep(leaves);
	leaves->rdma = enable(leaves, "rdma");
	leaves->memory = enable(leaves, "memory");
	leaves->pids = enable(leaves, "pids");
	if (!leaves->rdma)
		snprintf(ret_words, size,
			 "%s has no rdma controller: a session's grant is free when "
			 "its client ends, not when its regions do",
			 full);
	return 0;
}

void leaves_fini(struct leaves *leaves)
{
	fd_close(&leaves->dir);
}

/* Each device has a line of its own in rdma.max; a device that comes later has no limit. */
static void limit_objects(const struct leaf *leaf)
{
	DIR *devices = opendir("/sys/class/infiniband");
	struct dirent *entry;
	char line[512];

	while (devices && (entry = readdir(devices))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(line, sizeof(line), "%s hca_object=%u", entry->d_name,
			 REGIONS_PER_SESSION + 1);
		(void)write_at(leaf->dir, "rdma.max", line);
	}
	if (devices)
		closedir(devices);
}

int leaf_new(struct leaf *leaf, const struct leaves *leaves, uid_t uid, pid_t pid, uint64_t number)
{
	char text[32];
	int r;

	*leaf = LEAF_INIT;
	if (leaves->dir < 0)
		return 0;
	leaf->leaves = leaves;
	snprintf(leaf->name, sizeof(leaf->name), "%u-%d-%" PRIu64, uid, pid, number);
	if (mkdirat(leaves->dir, leaf->name, 0755) < 0)
		return -errno;
	leaf->dir = openat(leaves->dir, leaf->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (leaf->dir < 0) {
		r = -errno;
		unlinkat(leaves->dir, leaf->name, AT_REMOVEDIR);
		return r;
	}
	leaf_memory(leaf, 0);
	if (leaves->pids) {
		snprintf(text, sizeof(text), "%u", SESSION_PIDS_MAX);
		(void)write_at(leaf->dir, "pids.max", text);
	}
	if (leaves->rdma)
		limit_objects(leaf);
	return 0;
}

void leaf_memory(const struct leaf *leaf, uint64_t granted)
{
	char text[32];

	if (leaf->dir < 0 || !leaf->leaves->memory)
		return;
	snprintf(text, sizeof(text), "%" PRIu64,
		 (uint64_t)SESSION_MEMORY_BASE + granted / SESSION_MEMORY_SHARE);
	(void)write_at(leaf->dir, "memory.max", text);
}

int leaf_enter(const struct leaf *leaf)
{
	return leaf->dir < 0 ? 0 : write_at(leaf->dir, "cgroup.procs", "0");
}

int leaf_kill(const struct leaf *leaf)
{
	return leaf->dir < 0 ? -ENOSYS : write_at(leaf->dir, "cgroup.kill", "1");
}

int leaf_objects(const struct leaf *leaf, uint64_t *ret_objects)
{
	static const char key[] = "hca_object=";
	char text[4096], *p = text;
	uint64_t objects = 0;
	int r;

	if (leaf->dir < 0 || !leaf->leaves->rdma)
		return -ENOSYS;
	r = read_at(leaf->dir, "rdma.current", text, sizeof(text));
	if (r < 0)
		return r;
	while ((p = strstr(p, key))) {
		p += strlen(key);
		objects += strtoull(p, NULL, 10);
	}
	*ret_objects = objects;
	return 0;
}

int leaf_remove(struct leaf *leaf)
{
	if (leaf->dir < 0)
		return 0;
	if (unlinkat(leaf->leaves->dir, leaf->name, AT_REMOVEDIR) < 0)
		return -errno;
	fd_close(&leaf->dir);
	return 0;
}
