/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/privilege.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "proto/procfs.h"

static bool have(cap_value_t cap)
{
	cap_t caps = cap_get_proc();
	cap_flag_value_t value = CAP_CLEAR;

	if (caps)
		cap_get_flag(caps, cap, CAP_PERMITTED, &value);
	cap_free(caps);
	return value == CAP_SET;
}

static bool full_identity(void)
{
	char line[64];
	unsigned int inside, outside, count;

	return proc_read("/proc/self/uid_map", line, sizeof(line)) == 0 &&
	       sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
	       outside == 0 && count == UINT32_MAX;
}

static int find_user(struct privilege *p, const char *name, char *ret_words, size_t size)
{
	struct passwd *pw;
	unsigned int uid, gid;

	if (sscanf(name, "%u:%u", &uid, &gid) == 2) {
		p->uid = uid;
		p->gid = gid;
	} else {
		pw = getpwnam(name);
		if (!pw) {
			snprintf(ret_words, size,
				 "there is no user %s for sessions to run as: make it with "
				 "systemd-sysusers, or name another one ([daemon] session_user)",
				 name);
			return -ENOENT;
		}
		p->uid = pw->pw_uid;
		p->gid = pw->pw_gid;
	}
	if (p->uid == 0 || p->gid == 0) {
		snprintf(ret_words, size, "sessions must not run as root ([daemon] session_user)");
		return -EINVAL;
	}
	return 0;
}

void privilege_lacks(struct privilege *p, const char *words)
{
	if (p->n_missing < PRIVILEGE_MISSING_MAX)
		p->missing[p->n_missing++] = words;
}

int privilege_init(struct privilege *p, const char *session_user, char *ret_words, size_t size)
{
	*p = (struct privilege){ .uid = getuid(), .gid = getgid() };
	if (geteuid() == 0 && !full_identity()) {
		snprintf(ret_words, size,
			 "this is root of a user namespace: run kvregd on the host, or as an "
			 "ordinary user");
		return -EPERM;
	}
	p->switch_user = geteuid() == 0 && have(CAP_SETUID) && have(CAP_SETGID);
	p->raise_limit = have(CAP_SYS_RESOURCE);
	if (geteuid() == 0 && !p->switch_user) {
		snprintf(
			ret_words, size,
			"root without CAP_SETUID and CAP_SETGID could only start sessions as root");
		return -EPERM;
	}
	if (!p->switch_user)
		privilege_lacks(
			p,
			"sessions run as the daemon's own user: needs CAP_SETUID and CAP_SETGID");
	if (!p->raise_limit)
		privilege_lacks(
			p, "sessions keep the daemon's RLIMIT_MEMLOCK: needs CAP_SYS_RESOURCE");
	if (p->switch_user && !have(CAP_SETPCAP))
		privilege_lacks(
			p,
			"the bounding set of sessions stays as it is: needs CAP_SETPCAP at start");
	return p->switch_user ? find_user(p, session_user, ret_words, size) : 0;
}

static int drop_bounding(void)
{
	for (cap_value_t cap = 0; cap_get_bound(cap) >= 0; cap++)
		if (cap_get_bound(cap) == CAP_SET && cap_drop_bound(cap) < 0)
			return -errno;
	return 0;
}

int privilege_drop(const struct privilege *p)
{
	static const cap_value_t kept[] = { CAP_SYS_RESOURCE, CAP_SETUID, CAP_SETGID };
	cap_t caps = cap_init();
	int r = 0;

	if (!caps)
		return -ENOMEM;
	if (have(CAP_SETPCAP))
		r = drop_bounding();
	for (size_t i = 0; r == 0 && i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (!have(kept[i]))
			continue;
		if (cap_set_flag(caps, CAP_PERMITTED, 1, &kept[i], CAP_SET) < 0 ||
		    cap_set_flag(caps, CAP_EFFECTIVE, 1, &kept[i], CAP_SET) < 0)
			r = -errno;
	}
	if (r == 0 && p->switch_user && setgroups(0, NULL) < 0)
		r = -errno;
	if (r == 0 && cap_set_proc(caps) < 0)
		r = -errno;
	cap_free(caps);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r;
}
