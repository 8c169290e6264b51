/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_FUSE_H
#define KVREG_TEST_FUSE_H
/*
 * A file whose server never answers kvregd and its sessions. Every close(2) of it waits for an
 * answer to FLUSH, and no signal ends that wait: until the server is dead, who has it as a descriptor
 * and closes it, or ends, hangs. Others (it goes by the name of the process) are answered.
 *
 * A character device (CUSE) makes who drops the last reference wait as well, for an answer to
 * RELEASE: also when it was in a message that nobody read. Its server answers that to nobody.
 */
#include <stdbool.h>
#include <sys/types.h>

struct fuse {
	pid_t server;
	char dir[32]; /* empty: nothing is mounted */
	char file[48];
};

/** fuse_start() - mounts it, or skips the test where nobody may. @device: a character device */
void fuse_start(struct fuse *f, bool device);

/** fuse_open() - the file, for read and write. */
int fuse_open(const struct fuse *f);

/** fuse_kill() - ends the server: every wait for it fails, at once. */
void fuse_kill(struct fuse *f);

/** fuse_stop() - ends the server if it still runs, and unmounts. */
void fuse_stop(struct fuse *f);

#endif
