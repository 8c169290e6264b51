/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_CTL_H
#define KVREG_TEST_CTL_H
/* kvregctl as a person runs it: what it prints, and its exit status. */
#include <stdbool.h>
#include <sys/types.h>

struct ctl_run {
	const char *argv[8]; /* the first is set by ctl_run() */
	char out[16384], err[4096];
};

/** ctl_run() - runs the kvregctl at @path as @uid (0: as we are). Return: its exit status. */
int ctl_run(struct ctl_run *run, const char *path, uid_t uid);

/**
 * ctl_run_copy() - the same with a copy of kvregctl and its library that every user can run: the
 * build may lie below a home that no other user enters.
 */
int ctl_run_copy(struct ctl_run *run, uid_t uid);

/** ctl_path() - where it is; skips the test if it is not built. */
const char *ctl_path(void);

/** ctl_ask() - `kvregctl COMMAND [OPTION]` at the administrators' socket @admin. */
int ctl_ask(struct ctl_run *run, const char *admin, const char *command, const char *option);

/** is_json() - whether all brackets close, outside of strings; jq(1) is not everywhere. */
bool is_json(const char *text);

#endif
