/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_FUZZ_HOST_H
#define KVREG_FUZZ_HOST_H
/*
 * The host that the supervisor runs on, played: what it calls to start, end and look at processes is
 * replaced at link time (--wrap) and does what stands here.
 */
#include <stdint.h>
#include <sys/types.h>

#include "daemon/spawn.h"

struct host {
	pid_t process;        /* of every session; a real one */
	struct spare spawned; /* what the last start was given */
	uint8_t abilities;    /* enum ability */
	uint8_t objects;      /* RDMA objects in every leaf; NO_LEAF */
	uint8_t exit_status;  /* of every session; a signal from KILLED on */
};

extern struct host host;

#endif
