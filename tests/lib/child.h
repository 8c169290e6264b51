/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_CHILD_H
#define KVREG_TEST_CHILD_H
/*
 * A process of the test's own: another client, perhaps another user. Both sides step through it
 * together: say() on one side lets hear() on the other return.
 *
 * It starts with no descriptor but 0, 1, 2 and its own end, so it holds up nothing of the parent's.
 */
#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid; /* 0 in the child itself, and once it was waited for */
	int sock;  /* this side's end */
};

/**
 * child_start() - runs @fn in a new process, whose exit status is what it returns.
 * @uid: to run as, with the same number as its group, and no other group; 0: as we are
 */
void child_start(struct child *c, uid_t uid, int (*fn)(struct child *me, void *arg), void *arg);

/** child_say() - one step is done. The other side may be gone: that shows elsewhere. */
void child_say(struct child *c);

/** child_hear() - waits for the other side. Return: whether it spoke; false: it is gone. */
bool child_hear(struct child *c);

/** child_end() - waits for its end. Return: its exit status, or 128 and the signal. */
int child_end(struct child *c);

/** child_kill() - SIGKILL, and waits. */
void child_kill(struct child *c);

/** run_as() - start and end in one. Return: as child_end(). */
int run_as(uid_t uid, int (*fn)(struct child *me, void *arg), void *arg);

#endif
