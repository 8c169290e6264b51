/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/channel.h"
#include "daemon/log.h"
#include "proto/fdset.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/steps.h"

struct host host;

pid_t __wrap_spawn_session(const struct spawner *s, int *client, int client_pidfd,
			   const struct leaf *leaf, struct spare *spare);
pid_t __wrap_spawn_killer(const struct spawner *s, int pidfd);
pid_t __wrap_spawn_heir(int *ret_go);
pid_t __wrap_spawn_sweep(const struct sweep *sweep, int *ret_swept);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *ret_info, int options);
int __wrap_leaf_objects(const struct leaf *leaf, uint64_t *ret_objects);
void __wrap_log_line(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int __real_channel_send(struct channel *channel, const Kvreg__Down *message);
int __wrap_channel_send(struct channel *channel, const Kvreg__Down *message);

pid_t __wrap_spawn_session(const struct spawner *s, int *client, int client_pidfd,
			   const struct leaf *leaf, struct spare *spare)
{
	(void)s;
	(void)client_pidfd;
	(void)leaf;
	fd_close(client);
	fd_close(&spare->go[0]);
	fd_close(&spare->go[1]);
	host.spawned = *spare;
	spare->down[1] = spare->up[1] = -1;
	return host.process;
}

pid_t __wrap_spawn_killer(const struct spawner *s, int pidfd)
{
	(void)s;
	must(pidfd >= 0);
	if (host.abilities & CANNOT_KILL)
		return -EAGAIN;
	return host.abilities & NEEDS_A_KILLER ? host.process : 0;
}

pid_t __wrap_spawn_heir(int *ret_go)
{
	(void)ret_go;
	return -EAGAIN;
}

/* It finds the one process that there is, which then has something pinned as far as we say. */
pid_t __wrap_spawn_sweep(const struct sweep *sweep, int *ret_swept)
{
	struct kin kin = { .pid = host.process };
	int ends[2];

	must(sweep->pid == host.process && sweep->n_spared == 0);
	if (host.abilities & CANNOT_KILL)
		return -EAGAIN;
	must(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	must(write(ends[1], &kin, sizeof(kin)) == sizeof(kin));
	close(ends[1]);
	*ret_swept = ends[0];
	return host.process;
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *ret_info, int options)
{
	(void)type;
	(void)id;
	(void)options;
	ret_info->si_pid = host.process;
	ret_info->si_code = host.exit_status < KILLED ? CLD_EXITED : CLD_KILLED;
	ret_info->si_status = host.exit_status % (int)KILLED;
	return 0;
}

int __wrap_leaf_objects(const struct leaf *leaf, uint64_t *ret_objects)
{
	(void)leaf;
	if (host.objects == NO_LEAF)
		return -ENOSYS;
	*ret_objects = host.objects;
	return 0;
}

int __wrap_channel_send(struct channel *channel, const Kvreg__Down *message)
{
	return host.abilities & QUEUES_ARE_FULL ? -ENOBUFS : __real_channel_send(channel, message);
}

/* Formatted, looked at, and thrown away. */
void __wrap_log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	va_list args;

	must(level <= LOG_LEVEL_DEBUG);
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (const char *c = line; *c; c++)
		must(*c >= 0x20 && *c < 0x7f);
	must(!strstr(format, "held in stage") || strstr(line, "held in stage register by"));
}
