/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/refuse.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/spawn.h"
#include "daemon/supervisor.h"
#include "proto/codec.h"
#include "proto/failure.h"
#include "proto/fdset.h"

/* The answer to the Hello that has not been read: its seq is 1. */
static size_t pack(enum kvreg_code code, const char *words, uint8_t *bytes, size_t size)
{
	Kvreg__Reply reply = KVREG__REPLY__INIT;
	struct failure_wire wire;
	struct failure f;

	if (!words)
		return 0;
	failure_init(&f);
	failure_set(&f, code, KVREG_STAGE_CONNECT, "%s", words);
	failure_to_wire(&f, &wire);
	reply.seq = 1;
	reply.error = &wire.error;
	return codec_pack(&reply.base, bytes, size);
}

/* One child for all that wait. Return: whether there was one to be had. */
static bool take_along(struct supervisor *supervisor)
{
	struct refusals *refusals = &supervisor->refusals;
	pid_t pid;

	if (refusals->n_children >= REFUSALS_MAX)
		return false;
	pid = spawn_sink(&supervisor->spawner, refusals->waiting, refusals->n_waiting);
	if (pid < 0)
		return false;
	refusals->n_waiting = 0;
	refusals->n_children++;
	supervisor_adopt(supervisor, pid, true);
	return true;
}

static bool wait_with_others(struct supervisor *supervisor, int *sock)
{
	struct refusals *refusals = &supervisor->refusals;
	size_t i;

	if (refusals->n_waiting == REFUSED_WAITING_MAX && !take_along(supervisor))
		return false;
	shutdown(*sock, SHUT_RDWR);
	for (i = refusals->n_waiting++; i > 0 && refusals->waiting[i - 1] > *sock; i--)
		refusals->waiting[i] = refusals->waiting[i - 1];
	refusals->waiting[i] = *sock;
	*sock = -1;
	return true;
}

void refuse_connection(struct supervisor *supervisor, int *sock, struct spare *spare,
		       enum kvreg_code code, const char *words)
{
	uint8_t bytes[1024];
	pid_t pid;

	if (supervisor->refusals.n_children >= REFUSALS_MAX / 2) {
		supervisor->refused += wait_with_others(supervisor, sock);
		return;
	}
	pid = spawn_refusal(&supervisor->spawner, sock, spare, bytes,
			    pack(code, words, bytes, sizeof(bytes)));
	if (pid < 0)
		return; /* the listener offers the connection again */
	supervisor->refused++;
	supervisor->refusals.n_children++;
	supervisor_adopt(supervisor, pid, true);
}

void refuse_ended(struct supervisor *supervisor)
{
	struct refusals *refusals = &supervisor->refusals;

	assert(refusals->n_children > 0);
	refusals->n_children--;
	if (refusals->n_waiting > 0 && refusals->n_children < REFUSALS_MAX / 2)
		(void)take_along(supervisor);
}

void refusals_fini(struct refusals *refusals)
{
	while (refusals->n_waiting > 0)
		fd_close(&refusals->waiting[--refusals->n_waiting]);
}
