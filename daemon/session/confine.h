/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_CONFINE_H
#define KVREG_SESSION_CONFINE_H
/*
 * What this process takes from itself before its first client byte: no gain of privilege by exec,
 * no dump and no ptrace by processes of the same user. It comes here without any capability, and
 * makes sure of that.
 */

/** confine() - Return: 0; -EPERM a capability is left; or -errno. */
int confine(void);

#endif
