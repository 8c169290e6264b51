/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon answers: all calls of the library, answered well, with errors, and badly. */
#include "kvreg.pb-c.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/steps.h"

static void answer(Kvreg__Reply body)
{
	Kvreg__Reply m = KVREG__REPLY__INIT;

	body.base = m.base;
	seed_message(ANSWER | ANSWER_SEQ, 0, &body.base);
}

#define REPLY(name_, NAME, value)                                                                  \
	((Kvreg__Reply){ .body_case = KVREG__REPLY__BODY_##NAME, .name_ = value })

static void answer_hello(const char *device)
{
	Kvreg__HelloReply m = KVREG__HELLO_REPLY__INIT;

	m.major = PROTOCOL_MAJOR;
	m.device = (char *)device;
	answer(REPLY(hello, HELLO, &m));
}

static void answer_domain(void)
{
	Kvreg__AttachDomainReply domain = KVREG__ATTACH_DOMAIN_REPLY__INIT;

	domain.domain = FIRST;
	domain.device = "mock0";
	answer(REPLY(attach_domain, ATTACH_DOMAIN, &domain));
}

static void answer_objects(size_t n_regions)
{
	Kvreg__ImportBufferReply buffer = KVREG__IMPORT_BUFFER_REPLY__INIT;
	Kvreg__Region region = KVREG__REGION__INIT, *list[] = { &region, &region };
	Kvreg__RegisterReply registered = KVREG__REGISTER_REPLY__INIT;

	buffer.buffer = region.region = FIRST;
	region.lkey = region.rkey = 0x100;
	registered.regions = list;
	registered.n_regions = n_regions;
	answer_domain();
	answer(REPLY(import_buffer, IMPORT_BUFFER, &buffer));
	answer(REPLY(register_, REGISTER, &registered));
}

static void answer_error(uint32_t code)
{
	Kvreg__Attempt attempt = KVREG__ATTEMPT__INIT, *list[] = { &attempt };
	Kvreg__Snapshot snapshot = KVREG__SNAPSHOT__INIT;
	Kvreg__Error m = KVREG__ERROR__INIT;
	Kvreg__Reply reply = KVREG__REPLY__INIT;

	m.code = code;
	m.stage = KVREG_STAGE_PIN;
	m.label = "kv";
	m.device = "mock0";
	m.detail = "said by the seed";
	m.hint = "change it";
	m.attempts = list;
	m.n_attempts = 1;
	m.snapshot = &snapshot;
	snapshot.has_need = true;
	reply.error = &m;
	answer(reply);
}

static void calls(void)
{
	static const unsigned int all[] = { CALL_ATTACH,     CALL_ALLOC,   CALL_REGISTER,
					    CALL_DEREGISTER, CALL_RELEASE, CALL_DETACH,
					    CALL_WHOAMI,     CALL_DISPATCH };

	for (size_t i = 0; i < COUNT(all); i++)
		seed_step(all[i], all[i] == CALL_ALLOC || all[i] == CALL_REGISTER ? 64 : 0);
}

void seed_client(void)
{
	Kvreg__WhoAmIReply who = KVREG__WHO_AM_IREPLY__INIT;
	Kvreg__Draining draining = KVREG__DRAINING__INIT;
	Kvreg__Done done = KVREG__DONE__INIT;
	Kvreg__Reply event = REPLY(draining, DRAINING, &draining);

	for (unsigned int i = 0; i < 2; i++) {
		calls();
		answer_hello(i == 0 ? "mock" : "verbs");
		answer_objects(1);
		for (int n = 0; n < 3; n++)
			answer(REPLY(done, DONE, &done));
		who.class_ = "default";
		answer(REPLY(who_am_i, WHO_AM_I, &who));
		kvreg__reply__init(&event);
		event.body_case = KVREG__REPLY__BODY_DRAINING;
		event.draining = &draining;
		seed_message(ANSWER, 0, &event.base);
		seed_save("client", i == 0 ? "life" : "verbs");
	}
	calls();
	answer_hello("mock");
	answer_objects(1);
	for (uint32_t code = KVREG_E_BUSY; code < KVREG_E_BUSY + 8; code++)
		answer_error(code);
	seed_save("client", "errors");
	seed_step(CALL_ATTACH, 0);
	for (unsigned int again = 0; again < 2; again++)
		seed_step(CALL_DETACH, 0);
	answer_hello("mock");
	answer_domain();
	answer_error(KVREG_E_DEVICE_BUSY);
	answer_error(KVREG_E_BUSY);
	seed_save("client", "busy");
	seed_step(CALL_MEMFD, 0);
	answer_hello("mock");
	seed_raw(ANSWER | ANSWER_SEQ, 2, "", 0);
	seed_raw(ANSWER | ANSWER_LONG, 3, "x", 1);
	seed_raw(ANSWER | ANSWER_CLOSES, 0, "x", 1);
	seed_save("client", "bad");
	answer_error(KVREG_E_LIMIT_SESSIONS);
	seed_save("client", "refused");
	answer_error(KVREG_E_OK);
	seed_save("client", "no-code");
	for (size_t n = 0; n <= 2; n += 2) {
		calls();
		answer_hello("mock");
		answer_objects(n);
		seed_save("client", n ? "two-regions" : "no-region");
	}
	answer_hello("mock");
	kvreg__reply__init(&event);
	event.seq = 77;
	seed_message(ANSWER, 0, &event.base);
	seed_step(CALL_WHOAMI, 0);
	seed_save("client", "no-request");
}
