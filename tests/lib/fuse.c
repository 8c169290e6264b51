/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define FILE_NODE 2u
#define CUSE_NAME "kvreg-test"

/* ---- the server (its protocol is <linux/fuse.h>) ---- */

static void answer(int device, uint64_t unique, const void *body, size_t length)
{
	struct {
		struct fuse_out_header head;
		uint8_t body[sizeof(struct fuse_entry_out) + sizeof(struct fuse_init_out)];
	} out = { .head = { .len = (uint32_t)(sizeof(out.head) + length), .unique = unique } };

	if (length > 0)
		memcpy(out.body, body, length);
	(void)!write(device, &out, out.head.len);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .mode = node == FILE_NODE ? S_IFREG | 0666 : S_IFDIR | 0777,
				   .nlink = 1,
				   .size = 1 << 20,
				   .blksize = 4096 };
}

static bool is_kvreg(uint32_t pid)
{
	char path[32], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file = fopen(path, "re");
	if (file) {
		(void)!fgets(name, sizeof(name), file);
		fclose(file);
	}
	return strncmp(name, "kvregd", 6) == 0 || strncmp(name, "kvreg:", 6) == 0;
}

static void serve_one(int device, const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = FUSE_KERNEL_MINOR_VERSION,
				      .max_write = 4096 };
	struct fuse_entry_out entry = { .nodeid = FILE_NODE, .attr = attributes(FILE_NODE) };
	struct fuse_attr_out attr = { .attr = attributes(FUSE_ROOT_ID) };
	struct fuse_open_out opened = { .fh = 1 };

	static const struct {
		struct cuse_init_out init;
		char name[sizeof("DEVNAME=" CUSE_NAME)];
	} cuse = { { .major = FUSE_KERNEL_VERSION,
		     .minor = FUSE_KERNEL_MINOR_VERSION,
		     .max_read = 4096,
		     .max_write = 4096 },
		   "DEVNAME=" CUSE_NAME };

	if (in->opcode == CUSE_INIT)
		answer(device, in->unique, &cuse, offsetof(typeof(cuse), name) + sizeof(cuse.name));
	else if (in->opcode == FUSE_INIT)
		answer(device, in->unique, &init, sizeof(init));
	else if (in->opcode == FUSE_LOOKUP)
		answer(device, in->unique, &entry, sizeof(entry));
	else if (in->opcode == FUSE_OPEN)
		answer(device, in->unique, &opened, sizeof(opened));
	else if (in->opcode == FUSE_GETATTR && in->nodeid == FUSE_ROOT_ID)
		answer(device, in->unique, &attr, sizeof(attr));
	else if (in->opcode == FUSE_FLUSH && !is_kvreg(in->pid))
		answer(device, in->unique, NULL, 0);
}

static void serve(int device)
{
	static union {
		struct fuse_in_header in;
		uint8_t bytes[65536];
	} request;

	for (;;) {
		ssize_t n = read(device, &request, sizeof(request));

		if (n < 0 && errno != EINTR && errno != ENOENT)
			_exit(0);
		if (n >= (ssize_t)sizeof(request.in))
			serve_one(device, &request.in);
	}
}

/* ---- the mount ---- */

static void mount_at(struct fuse *f, int channel)
{
	char options[128];

	strcpy(f->dir, "/tmp/kvreg-fuse-XXXXXX");
	require(mkdtemp(f->dir));
	snprintf(f->file, sizeof(f->file), "%s/file", f->dir);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 channel);
	if (mount("kvreg-test", f->dir, "fuse", MS_NOSUID | MS_NODEV, options) == 0)
		return;
	close(channel);
	rmdir(f->dir);
	f->dir[0] = '\0';
	skip_test("a FUSE file system cannot be mounted here");
}

static bool is_there(void *arg)
{
	return access(arg, R_OK | W_OK) == 0;
}

void fuse_start(struct fuse *f, bool device)
{
	int channel = open(device ? "/dev/cuse" : "/dev/fuse", O_RDWR | O_CLOEXEC);

	*f = (struct fuse){ .server = 0 };
	if (channel < 0)
		skip_test(device ? "there is no /dev/cuse for us" : "there is no /dev/fuse");
	if (device)
		strcpy(f->file, "/dev/" CUSE_NAME);
	else
		mount_at(f, channel);
	fflush(NULL);
	f->server = fork();
	require(f->server >= 0);
	if (f->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		serve(channel);
	}
	close(channel);
	require(!device || wait_until(is_there, f->file));
}

int fuse_open(const struct fuse *f)
{
	int fd = open(f->file, O_RDWR | O_CLOEXEC);

	require(fd >= 0);
	return fd;
}

void fuse_kill(struct fuse *f)
{
	if (f->server > 0) {
		kill(f->server, SIGKILL);
		require(waitpid(f->server, NULL, 0) == f->server);
	}
	f->server = 0;
}

void fuse_stop(struct fuse *f)
{
	fuse_kill(f);
	if (!f->dir[0])
		return;
	(void)umount2(f->dir, MNT_DETACH);
	rmdir(f->dir);
	f->dir[0] = '\0';
}
