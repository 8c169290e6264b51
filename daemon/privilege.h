/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_PRIVILEGE_H
#define KVREG_DAEMON_PRIVILEGE_H
/*
 * What the supervisor may do, found out once, and everything else given up.
 *
 * As root it keeps CAP_SYS_RESOURCE (raise a session's RLIMIT_MEMLOCK), CAP_SETUID and CAP_SETGID
 * (start sessions as their own user). The bounding set is emptied: no process started from here
 * can ever gain a capability. CAP_IPC_LOCK, which would switch the limit off, is in no set of any
 * of our processes.
 *
 * Not as root, sessions run as the caller, within the limit that it has.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PRIVILEGE_MISSING_MAX 6u

struct privilege {
	bool switch_user; /* sessions get uid and gid */
	bool raise_limit; /* RLIMIT_MEMLOCK of sessions can be set to their grant */
	uid_t uid;
	gid_t gid;
	size_t n_missing;
	const char *missing[PRIVILEGE_MISSING_MAX]; /* for people: what does not work, and what it
						       would need */
};

/**
 * privilege_init() - finds out, and looks the session user up (never again later).
 * @session_user: a name, or "uid:gid" in numbers
 * @ret_words: on failure one line for people
 *
 * Return: 0; -ENOENT no such user; -EINVAL it is root; -EPERM root of a user namespace, whose
 * capabilities do not count where limits are raised; or -errno.
 */
int privilege_init(struct privilege *p, const char *session_user, char *ret_words, size_t size);

/** privilege_lacks() - adds a line about what does not work; @words must stay. */
void privilege_lacks(struct privilege *p, const char *words);

/** privilege_drop() - keeps what the header says and nothing else. Return: 0 or -errno. */
int privilege_drop(const struct privilege *p);

#endif
