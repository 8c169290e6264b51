/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvreg-run: a command with a larger limit of locked memory, or with libkvreg-preload.so, or both.
 *
 *	options    the command line, from one table
 *	preload    where the library is, and LD_PRELOAD
 *
 * The lease is held: it is this process's, and exec(2) keeps the process. So the command is not a
 * child, and nobody stands between it and its terminal, its signals, its exit status. The daemon ends
 * the lease when the process ends.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/kvreg-client.h"
#include "client/run/options.h"
#include "client/run/preload.h"

static int lease(const struct options *options)
{
	struct kvreg_lease_options held = {
		.size = sizeof(held),
		.held = 1,
		.processes = options->processes,
	};
	struct kvreg *k = NULL;
	char line[2048];
	int r;

	r = kvreg_open(/* options */ NULL, &k);
	if (r == 0)
		r = kvreg_lease_memlock(k, options->bytes, &held, /* ret_lease */ NULL);
	if (r < 0) {
		kvreg_error_text(kvreg_last_error(), line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
	kvreg_close(k);
	return r < 0 ? RUN_FAILED : 0;
}

static int preload(void)
{
	char self[PATH_MAX], path[PATH_MAX + 32] = "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int r;

	self[n < 0 ? 0 : n] = '\0';
	r = preload_find(dirname(self), path, sizeof(path));
	if (r == -ENOENT)
		return complain(RUN_FAILED, "libkvreg-preload.so is not here and not in %s",
				KVREG_LIBDIR);
	if (r < 0)
		return complain(RUN_FAILED, "%s cannot be preloaded: %s", path,
				r == -EINVAL ? "there is a blank or a colon in its path"
					     : strerror(-r));
	r = preload_set(path);
	return r < 0 ? complain(RUN_FAILED, "LD_PRELOAD: %s", strerror(-r)) : 0;
}

static int help(void)
{
	puts("usage: kvreg-run [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
	     "Runs COMMAND with locked memory of kvregd's quota.\n");
	options_help(stdout);
	return fflush(stdout) ? RUN_FAILED : 0;
}

int main(int argc, char **argv)
{
	struct options options;
	int status = options_parse(argc, argv, &options);

	if (status)
		return status;
	if (options.help)
		return help();
	if (options.version)
		return puts("kvreg-run " KVREG_VERSION) < 0 || fflush(stdout) ? RUN_FAILED : 0;
	if (options.preload)
		status = preload();
	if (status == 0 && options.memlock)
		status = lease(&options);
	if (status)
		return status;
	execvp(options.command[0], options.command);
	status = errno == ENOENT ? RUN_NOT_FOUND : RUN_NO_EXEC;
	return complain((enum run_status)status, "%s: %s", options.command[0], strerror(errno));
}
