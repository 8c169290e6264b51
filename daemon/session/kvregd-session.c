/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvregd-session: one process for one connection, started by kvregd and by nobody else.
 *
 * It inherits four descriptors (proto/session-fds.h), runs as a system user that is neither root
 * nor the client, without capabilities, with RLIMIT_MEMLOCK as granted, and confines itself before
 * it reads a client byte. First it reads the supervisor's Welcome, which says how far it may be
 * confined less for a client of GPU memory (confine.h). What it says when it cannot start is its
 * exit status.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/session/client.h"
#include "daemon/session/confine.h"
#include "daemon/session/relay.h"
#include "daemon/session/serve.h"
#include "proto/session-fds.h"

/* Zero pages until they are used. */
static struct client client;

/* What administrators see beside an MR in "rdma resource show mr" is our comm. */
static void take_name(const Kvreg__Welcome *welcome)
{
	char name[16];

	snprintf(name, sizeof(name), "kvreg:%u", welcome->client_pid);
	prctl(PR_SET_NAME, welcome->role == KVREG__ROLE__ROLE_ADMIN ? "kvreg:admin" : name, 0, 0,
	      0);
}

int main(int argc, char **argv)
{
	const Kvreg__Down *down;
	const Kvreg__Welcome *welcome;
	int pidfd;

	if (argc != 2 || strcmp(argv[1], KVREG_VERSION) != 0)
		return EXIT_WRONG_VERSION;
	signal(SIGPIPE, SIG_IGN);
	if (self_open(&client.self) < 0 || confine_identity() < 0)
		return EXIT_NOT_CONFINED;
	client.control.down = SESSION_FD_DOWN;
	client.control.up = SESSION_FD_UP;
	down = control_recv(&client.control);
	if (!down || down->body_case != KVREG__DOWN__BODY_WELCOME ||
	    down->welcome->version != CONTROL_VERSION)
		return EXIT_WRONG_VERSION;
	welcome = down->welcome;
	if (confine_calls(welcome->cuda, &client.confinement) < 0)
		return EXIT_NOT_CONFINED;
	take_name(welcome);
	if (welcome->role == KVREG__ROLE__ROLE_ADMIN) {
		relay(&client.control, SESSION_FD_CLIENT);
		return 0;
	}
	pidfd = fcntl(SESSION_FD_PIDFD, F_GETFD) < 0 ? -1 : SESSION_FD_PIDFD;
	if (client_init(&client, welcome, SESSION_FD_CLIENT, pidfd) < 0)
		return EXIT_NO_MEMORY;
	serve(&client);
	return client_fini(&client) ? 0 : EXIT_REGIONS_LEFT;
}
