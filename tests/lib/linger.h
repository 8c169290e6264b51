/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_LINGER_H
#define KVREG_TEST_LINGER_H
/*
 * A TCP socket with SO_LINGER and bytes that its peer does not read: the close(2) that is the last
 * one waits for longer than any test.
 */
#include "raw.h"

struct linger_pair {
	int fd;   /* the one that lingers; -1: sent */
	int peer; /* the one that does not read */
};

void linger_open(struct linger_pair *pair);

typedef void linger_send_fn(struct raw *raw, int fd);

/**
 * linger_send() - sends it on @raw by @send, and keeps no copy. A child does it, whose end closes the
 * last descriptor but the one in the message: a process that ends does not linger.
 */
void linger_send(struct linger_pair *pair, struct raw *raw, linger_send_fn *send);

/** linger_release() - reads until its end, and closes the peer: whoever waits goes on. */
void linger_release(struct linger_pair *pair);

#endif
