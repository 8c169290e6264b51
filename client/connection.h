/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CONNECTION_H
#define KVREG_CONNECTION_H
/*
 * The connection to a session: one socket, one request under way at a time.
 *
 * Lost. Once the session ended or broke the protocol, every later request fails; there is no way
 * back. The socket stays open until connection_fini(), since a session that still lives destroys
 * its regions when the socket closes, and regions in use must survive.
 *
 * Fork. A connection belongs to the process that opened it: a child that spoke on the shared socket
 * would steal the parent's replies. Each call compares getpid() before it takes the lock. Handlers
 * of pthread_atfork() would do worse: they cannot take the lock without holding up every fork of
 * the program for as long as a registration runs, and clone(2) and vfork(2) do not run them. Not
 * noticed is a child with its parent's number: pid 1 of a new pid namespace, made by a pid 1.
 *
 * The lock also guards the lists of struct kvreg. A child never takes it: some other thread of the
 * parent may have held it during the fork.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/kvreg-client.h"
#include "proto/codec.h"
#include "proto/failure.h"
#include "proto/limits.h"

struct connection {
	int sock;
	pid_t owner;
	pthread_mutex_t lock; /* guards what follows */
	bool lost;
	uint32_t seq; /* of the last request; 0 before the first, the Hello, which must have 1 */
	void (*on_event)(void *arg, enum kvreg_event event); /* may be NULL */
	void *arg;
	uint8_t record[RECORD_MAX];
	struct arena arena; /* holds the last reply */
};

/* One request and the kind of reply that answers it. */
struct call {
	enum kvreg_stage stage;
	Kvreg__Reply__BodyCase wants;
	Kvreg__Request request; /* seq is filled in by connection_call() */
	int fd;                 /* borrowed: travels with the request; -1: none */
};

/* A call at KVREG_STAGE_<stage> answered by KVREG__REPLY__BODY_<body>, without fd or request body.
 */
#define CALL(stage_, body_)                                                                        \
	{                                                                                          \
		.stage = KVREG_STAGE_##stage_, .wants = KVREG__REPLY__BODY_##body_,                \
		.request = KVREG__REQUEST__INIT, .fd = -1                                          \
	}

/** connection_init() - makes @c, all zero, an unconnected connection of this process. */
void connection_init(struct connection *c);

/**
 * connection_open() - connects @c to the socket at @path.
 *
 * Return: 0, INVALID_ARG, NO_DAEMON, NO_PERMISSION, or UNKNOWN.
 */
int connection_open(struct connection *c, const char *path, struct failure *f);

/** connection_fini() - closes the socket; the caller knows that no thread uses @c any more. */
void connection_fini(struct connection *c);

/** connection_forked() - whether this process is not the one that opened @c. */
bool connection_forked(const struct connection *c);

/**
 * connection_enter() - takes the lock, waiting for the call in progress.
 * @ret_entered: @c, to be given back with connection_leave()
 *
 * Return: 0 or FORKED.
 */
int connection_enter(struct connection *c, enum kvreg_stage stage, struct failure *f,
		     struct connection **ret_entered);

/** connection_leave() - gives the lock back if @entered holds a connection. Keeps errno. */
void connection_leave(struct connection **entered);

#define _cleanup_leave_ __attribute__((cleanup(connection_leave)))

/**
 * connection_call() - sends @call and waits for its reply; the lock is held. Events that come
 * before it are reported.
 * @ret_reply: has no error and the body that was wanted; lives in @c until the next call
 *
 * Return: 0; SESSION_LOST, PROTOCOL, UNKNOWN (@c may be lost now), or the session's own code.
 */
int connection_call(struct connection *c, struct call *call, struct failure *f,
		    Kvreg__Reply **ret_reply);

/**
 * connection_dispatch() - reports the events that wait, without blocking. While another thread is
 * in a call it does nothing, for that call takes them.
 *
 * Return: 0, FORKED, SESSION_LOST or PROTOCOL.
 */
int connection_dispatch(struct connection *c, struct failure *f);

#endif
