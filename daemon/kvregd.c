/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvregd: registers memory with RDMA devices on behalf of unprivileged processes.
 *
 * This process is the supervisor. The order of its start matters: sockets are bound and the
 * session user is looked up with what privilege there is, then all of it but three capabilities
 * goes, and only then is the first client accepted.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/privilege.h"
#include "daemon/supervisor.h"

int main(int argc, char **argv)
{
	static struct supervisor supervisor;
	struct options options;
	char words[512] = "";
	int r;

	r = options_parse(argc, argv, &options);
	if (r != 0)
		return r < 0 ? 2 : 0;
	log_open(options.log_level, false);
	r = supervisor_init(&supervisor, &options, words, sizeof(words));
	if (r < 0) {
		log_error("%s", words);
		supervisor_fini(&supervisor);
		return 1;
	}
	/* The sockets listen already, so who started us may connect when this returns to it. */
	if (!options.foreground && daemon(0, 0) == 0)
		log_open(options.log_level, true);
	r = privilege_drop(&supervisor.privilege);
	if (r < 0)
		log_error("cannot give up privilege: %s", strerror(-r));
	if (r == 0)
		r = supervisor_run(&supervisor);
	supervisor_fini(&supervisor);
	return r < 0 ? 1 : 0;
}
