/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_CONFINE_H
#define KVREG_SESSION_CONFINE_H
/*
 * What this process takes from itself before its first client byte, so that owning it owns nothing:
 *
 *  - capabilities: it comes here without any (the supervisor's doing), and makes sure of that;
 *  - no_new_privs, and not dumpable: no ptrace, no /proc/PID/mem by processes of the same user;
 *  - Landlock, where the kernel has it: no file can be opened, whatever the filter below lets by,
 *    no TCP port used, and on newer kernels nobody outside signalled;
 *  - seccomp: the calls that serving a client takes, with the arguments that they may have. There
 * is no open, no socket, no exec, no fork, no kill, no ptrace, no change of limits or of ids.
 *
 * A call outside of the filter fails with EPERM and does not kill: a libc that one day needs one
 * more call then costs a feature, not every session of a cluster.
 *
 * Sanitizers need calls of their own: their builds go without the filter (KVREG_NO_FILTER).
 */

/** confine() - Return: 0; -EPERM a capability is left; or -errno. */
int confine(void);

#endif
