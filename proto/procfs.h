/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_PROCFS_H
#define KVREG_PROCFS_H
/*
 * What /proc says of a process and of the host. /proc/PID/status and PID/stat are readable by
 * everybody unless hidepid hides them; ns, fd and maps are not (so they are not used here).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_status {
	bool has_mm;     /* false of a zombie: what it had pinned may live on, and does not show */
	uint64_t vm_pin; /* bytes: pages pinned by drivers (mm->pinned_vm) */
	uint64_t vm_lck; /* bytes: mlock(2) (mm->locked_vm), a counter of its own */
	uint64_t cap_inh, cap_prm, cap_eff, cap_bnd, cap_amb;
	uint32_t uid;  /* real */
	uint32_t euid; /* effective */
};

/** proc_status() - reads /proc/@pid/status; @pid 0 is the caller. Return: 0 or -errno. */
int proc_status(pid_t pid, struct proc_status *ret_status);

/** proc_status_fd() - the same from an open status file, read from its start. 0 or -errno. */
int proc_status_fd(int fd, struct proc_status *ret_status);

/** proc_start_time() - field 22 of /proc/@pid/stat, clock ticks since boot. Return: 0 or -errno. */
int proc_start_time(pid_t pid, uint64_t *ret_ticks);

/** proc_parent() - field 4 of /proc/@pid/stat. Return: 0 or -errno. */
int proc_parent(pid_t pid, pid_t *ret_parent);

/** proc_read() - the first line of a small file, without its newline. Return: 0 or -errno. */
int proc_read(const char *path, char *ret_text, size_t size);

/** proc_meminfo() - the bytes behind @key ("MemTotal") in /proc/meminfo. Return: 0 or -errno. */
int proc_meminfo(const char *key, uint64_t *ret_bytes);

/** proc_meminfo_fd() - the same from the open file, read from its start. */
int proc_meminfo_fd(int fd, const char *key, uint64_t *ret_bytes);

#endif
