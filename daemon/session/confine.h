/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_CONFINE_H
#define KVREG_SESSION_CONFINE_H
/*
 * What this process takes from itself before its first client byte, so that owning it owns nothing:
 *
 *  - capabilities: it comes here without any (the supervisor's doing), and makes sure of that;
 *  - no_new_privs, and not dumpable: no ptrace, no /proc/PID/mem by processes of the same user;
 *  - Landlock, where the kernel has it: which files can be opened (landlock.h);
 *  - seccomp: the calls that serving a client takes, with the arguments they may have (filter.h).
 *
 * There are two widths. Narrow: no file can be opened, no thread made, no code mapped. Wide: what
 * libcuda.so.1 needs, and only where the kernel has Landlock, for the filter cannot tell one path
 * from another. A filter can never be widened, so:
 *
 *	policy off, or no Landlock:  narrow before the first client byte
 *	policy on:                   wide before the first client byte; the client's Hello either
 *				     asks for GPU memory, or the session becomes narrow there
 *
 * The policy comes with the supervisor's Welcome, which is read first and is trusted.
 *
 * Whoever owns a wide session can open the GPUs' device files as the session user, and hand them to
 * its client; run code of its own in the process; and see names and attributes of files. It reads
 * libraries and /sys/devices, and no file of anybody's. Of other processes it reaches none.
 *
 * Sanitizers need calls of their own: their builds go without filter and Landlock (KVREG_NO_FILTER),
 * and wide is there what the policy says.
 */
#include <stdbool.h>

struct confinement {
	bool wide;
	int pin; /* see landlock_allow_cuda(); while it is wide */
};

/** confine_identity() - the first two. Return: 0; -EPERM a capability is left; or -errno. */
int confine_identity(void);

/** confine_calls() - the rest. @may_be_wide: the policy. Return: 0 or -errno. */
int confine_calls(bool may_be_wide, struct confinement *ret_confinement);

/** confine_narrow() - makes a wide process narrow. Return: 0, or -errno: it must end then. */
int confine_narrow(struct confinement *c);

#endif
