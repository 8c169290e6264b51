/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_SESSION_H
#define FAKE_SESSION_H
/*
 * The other end of the client library: a thread that listens in a directory of its own, takes one
 * connection and follows a script. For tests of client/, which include it once each.
 *
 * Fields of struct fake are the thread's until fake_stop(), except those that say otherwise.
 */
#undef NDEBUG /* the asserts do the work */
#include <assert.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/kvreg-client.h"
#include "kvreg.pb-c.h"
#include "proto/codec.h"
#include "proto/fdset.h"
#include "proto/wire.h"

struct fake {
	char dir[64];
	char path[96]; /* constant once started */
	int listener;
	pthread_t thread;
	bool joined; /* the test's */
	void (*script)(struct fake *fake);
	const char *device;      /* "verbs" or "mock" */
	_Atomic int sock;        /* any time: to be shut down */
	uint32_t deregistered;   /* Deregister requests seen */
	enum kvreg_code answer;  /* to Deregister; OK: done */
	bool dies_on_deregister; /* closes without an answer */
	_Atomic int memory_fd;   /* the last that ImportBuffer brought */
	uint8_t record[RECORD_MAX];
	struct arena arena;
};

static inline int fake_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* The next request, or NULL at the end of the connection. A memory fd is kept for the test. */
static inline const Kvreg__Request *fake_take(struct fake *fake)
{
	_cleanup_fdset_ struct fdset set = FDSET_INIT;
	ssize_t n = wire_recv(fake->sock, fake->record, sizeof(fake->record), &set, 0);
	Kvreg__Request *request;

	if (n <= 0)
		return NULL;
	request = (Kvreg__Request *)codec_unpack(&fake->arena, &kvreg__request__descriptor,
						 fake->record, (size_t)n);
	assert(request);
	if (request->body_case == KVREG__REQUEST__BODY_IMPORT_BUFFER) {
		int old = fake->memory_fd;

		fd_close(&old);
		fake->memory_fd = fdset_take(&set, 0);
	}
	return request;
}

static inline void fake_send(struct fake *fake, const Kvreg__Reply *reply)
{
	uint8_t bytes[1024]; /* on the stack: two fakes may talk at once */
	size_t length = codec_pack(&reply->base, bytes, sizeof(bytes));

	wire_send(fake->sock, bytes, length, NULL, 0, 0);
}

static inline void fake_refuse(struct fake *fake, uint32_t seq, enum kvreg_code code)
{
	Kvreg__Error error = KVREG__ERROR__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	error.code = code;
	error.stage = KVREG_STAGE_CONNECT;
	error.detail = "said by the fake";
	reply.seq = seq;
	reply.error = &error;
	fake_send(fake, &reply);
}

static inline void fake_done(struct fake *fake, uint32_t seq)
{
	Kvreg__Done done = KVREG__DONE__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	reply.seq = seq;
	reply.body_case = KVREG__REPLY__BODY_DONE;
	reply.done = &done;
	fake_send(fake, &reply);
}

static inline void fake_hello(struct fake *fake, uint32_t seq, uint32_t major)
{
	Kvreg__HelloReply hello = KVREG__HELLO_REPLY__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	hello.major = major;
	hello.device = (char *)fake->device;
	reply.seq = seq;
	reply.body_case = KVREG__REPLY__BODY_HELLO;
	reply.hello = &hello;
	fake_send(fake, &reply);
}

static inline void fake_draining(struct fake *fake)
{
	Kvreg__Draining draining = KVREG__DRAINING__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	reply.body_case = KVREG__REPLY__BODY_DRAINING;
	reply.draining = &draining;
	fake_send(fake, &reply);
}

/* Takes the Hello and answers it. */
static inline void fake_greet(struct fake *fake)
{
	fake_hello(fake, fake_take(fake)->seq, PROTOCOL_MAJOR);
}

static inline void fake_answer_with_ids(struct fake *fake, const Kvreg__Request *request)
{
	Kvreg__AttachDomainReply domain = KVREG__ATTACH_DOMAIN_REPLY__INIT;
	Kvreg__ImportBufferReply buffer = KVREG__IMPORT_BUFFER_REPLY__INIT;
	Kvreg__Region region = KVREG__REGION__INIT, *regions[] = { &region };
	Kvreg__RegisterReply registered = KVREG__REGISTER_REPLY__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	reply.seq = request->seq;
	domain.domain = 1;
	domain.device = "fake0";
	buffer.buffer = 2;
	region.region = 3;
	region.handle = 4;
	region.lkey = 5;
	region.rkey = 6;
	registered.regions = regions;
	registered.n_regions = 1;
	if (request->body_case == KVREG__REQUEST__BODY_ATTACH_DOMAIN) {
		reply.body_case = KVREG__REPLY__BODY_ATTACH_DOMAIN;
		reply.attach_domain = &domain;
	} else if (request->body_case == KVREG__REQUEST__BODY_IMPORT_BUFFER) {
		reply.body_case = KVREG__REPLY__BODY_IMPORT_BUFFER;
		reply.import_buffer = &buffer;
	} else {
		reply.body_case = KVREG__REPLY__BODY_REGISTER;
		reply.register_ = &registered;
	}
	fake_send(fake, &reply);
}

static inline void fake_who(struct fake *fake, uint32_t seq)
{
	Kvreg__WhoAmIReply who = KVREG__WHO_AM_IREPLY__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	who.pid = 7;
	who.class_ = "default";
	reply.seq = seq;
	reply.body_case = KVREG__REPLY__BODY_WHO_AM_I;
	reply.who_am_i = &who;
	fake_send(fake, &reply);
}

/* A session that grants everything. */
static inline void fake_oblige(struct fake *fake)
{
	const Kvreg__Request *request;

	fake_greet(fake);
	while ((request = fake_take(fake))) {
		switch ((int)request->body_case) {
		case KVREG__REQUEST__BODY_DEREGISTER:
			fake->deregistered++;
			if (fake->dies_on_deregister)
				return;
			if (fake->answer != KVREG_E_OK) {
				fake_refuse(fake, request->seq, fake->answer);
				break;
			}
			/* fall through */
		case KVREG__REQUEST__BODY_RELEASE_BUFFER:
		case KVREG__REQUEST__BODY_DETACH_DOMAIN:
			fake_done(fake, request->seq);
			break;
		case KVREG__REQUEST__BODY_WHO_AM_I:
			fake_who(fake, request->seq);
			break;
		default:
			fake_answer_with_ids(fake, request);
		}
	}
}

static inline void fake_hang_up(struct fake *fake)
{
	int sock = fake->sock;

	fake->sock = -1;
	fd_close(&sock);
}

static inline void *fake_thread(void *arg)
{
	struct fake *fake = arg;

	fake->sock = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
	assert(fake->sock >= 0);
	fake->script(fake);
	fake_hang_up(fake);
	return NULL;
}

static inline struct fake *fake_new(const char *device, void (*script)(struct fake *fake))
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct fake *fake = calloc(1, sizeof(*fake));

	assert(fake);
	fake->script = script;
	fake->device = device;
	fake->memory_fd = -1;
	strcpy(fake->dir, "/tmp/fake-session-XXXXXX");
	assert(mkdtemp(fake->dir));
	assert(chmod(fake->dir, 0755) == 0);
	snprintf(fake->path, sizeof(fake->path), "%s/sock", fake->dir);
	strcpy(address.sun_path, fake->path);
	fake->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert(bind(fake->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert(listen(fake->listener, 8) == 0);
	assert(pthread_create(&fake->thread, NULL, fake_thread, fake) == 0);
	return fake;
}

/* Waits for the script's end, which comes by itself or with the end of the connection. */
static inline void fake_join(struct fake *fake)
{
	if (!fake->joined)
		pthread_join(fake->thread, NULL);
	fake->joined = true;
}

static inline void fake_free(struct fake *fake)
{
	int memory_fd = fake->memory_fd;

	fd_close(&memory_fd);
	fd_close(&fake->listener);
	unlink(fake->path);
	rmdir(fake->dir);
	free(fake);
}

static inline int fake_open(struct fake *fake, struct kvreg **ret_k)
{
	struct kvreg_open_options options = { .size = sizeof(options), .socket = fake->path };

	return kvreg_open(&options, ret_k);
}

static inline enum kvreg_code last_code(void)
{
	return kvreg_error_code(kvreg_last_error());
}

#define assert_fails(call, errnum, name)                                                           \
	do {                                                                                       \
		assert_int_equal(call, -(errnum));                                                 \
		assert_int_equal(last_code(), KVREG_E_##name);                                     \
	} while (0)

#endif
