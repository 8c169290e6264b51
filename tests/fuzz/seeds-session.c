/* SPDX-License-Identifier: Apache-2.0 */
/* What a client says: lives of a connection, with memory and supervisors of all kinds. */
#include "control.pb-c.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/steps.h"

#define BODY(name, NAME, ...)                                                                      \
	{                                                                                          \
		.body_case = KVREG__REQUEST__BODY_##NAME, .name = __VA_ARGS__                      \
	}

static void request(unsigned int fds, Kvreg__Request body)
{
	static uint32_t seq;
	Kvreg__Request m = KVREG__REQUEST__INIT;

	if (seed_count() == 0)
		seq = 0;
	body.base = m.base;
	body.seq = ++seq;
	seed_message(SESSION_REQUEST, fds, &body.base);
}

static void hello(void)
{
	Kvreg__Hello m = KVREG__HELLO__INIT;

	m.major = PROTOCOL_MAJOR;
	m.features = FEATURE_MEMFD;
	m.program = "seed";
	request(FD_NONE, (Kvreg__Request)BODY(hello, HELLO, &m));
}

static void attach(unsigned int fd)
{
	Kvreg__AttachDomain m = KVREG__ATTACH_DOMAIN__INIT;

	m.pd_handle = 7;
	request(fd, (Kvreg__Request)BODY(attach_domain, ATTACH_DOMAIN, &m));
}

static void import(unsigned int fd, uint64_t length)
{
	Kvreg__ImportBuffer m = KVREG__IMPORT_BUFFER__INIT;

	m.kind = KVREG__BUFFER_KIND__BUFFER_MEMFD;
	m.length = length;
	m.address = 0x7e0000000000;
	m.label = "kv";
	request(fd, (Kvreg__Request)BODY(import_buffer, IMPORT_BUFFER, &m));
}

/* The items lie one behind the other, as far as the buffer goes. */
static void register_items(uint64_t length, size_t n)
{
	static Kvreg__RegisterItem items[ITEMS_PER_REGISTER + 1], *list[COUNT(items)];
	Kvreg__Register m = KVREG__REGISTER__INIT;

	for (size_t i = 0; i < n; i++) {
		list[i] = &items[i];
		kvreg__register_item__init(list[i]);
		items[i].domain = items[i].buffer = FIRST;
		items[i].offset = i % 8 * length;
		items[i].iova = 0x100000 + i % 8 * length;
		items[i].length = length;
		items[i].access = 7;
	}
	m.items = list;
	m.n_items = n;
	request(FD_NONE, (Kvreg__Request)BODY(register_, REGISTER, &m));
}

/* Empty items: two bytes each, and far more unpacked. */
static void ask_too_much(void)
{
	static Kvreg__RegisterItem item, *list[3700];
	Kvreg__Register m = KVREG__REGISTER__INIT;

	kvreg__register_item__init(&item);
	for (size_t i = 0; i < COUNT(list); i++)
		list[i] = &item;
	m.items = list;
	m.n_items = COUNT(list);
	request(FD_NONE, (Kvreg__Request)BODY(register_, REGISTER, &m));
}

static void ends(void)
{
	Kvreg__Deregister deregister = KVREG__DEREGISTER__INIT;
	Kvreg__ReleaseBuffer release = KVREG__RELEASE_BUFFER__INIT;
	Kvreg__DetachDomain detach = KVREG__DETACH_DOMAIN__INIT;
	Kvreg__WhoAmI who = KVREG__WHO_AM_I__INIT;

	deregister.region = release.buffer = detach.domain = FIRST;
	request(FD_NONE, (Kvreg__Request)BODY(who_am_i, WHO_AM_I, &who));
	request(FD_NONE, (Kvreg__Request)BODY(deregister, DEREGISTER, &deregister));
	request(FD_NONE, (Kvreg__Request)BODY(release_buffer, RELEASE_BUFFER, &release));
	request(FD_NONE, (Kvreg__Request)BODY(detach_domain, DETACH_DOMAIN, &detach));
}

static void down(Kvreg__Down *m)
{
	seed_message(SESSION_DOWN, 0, &m->base);
}

static void query(void)
{
	Kvreg__Query query = KVREG__QUERY__INIT;
	Kvreg__Draining draining = KVREG__DRAINING__INIT;
	Kvreg__ClientGone gone = KVREG__CLIENT_GONE__INIT;
	Kvreg__Down m = KVREG__DOWN__INIT;

	query.cookie = 1;
	query.regions = true;
	m.body_case = KVREG__DOWN__BODY_QUERY;
	m.query = &query;
	down(&m);
	m.body_case = KVREG__DOWN__BODY_DRAINING;
	m.draining = &draining;
	down(&m);
	m.body_case = KVREG__DOWN__BODY_CLIENT_GONE;
	m.client_gone = &gone;
	down(&m);
}

void seed_session(void)
{
	static const struct {
		const char *name;
		unsigned int policy, device, memory, n;
		uint64_t length;
	} runs[] = {
		{ "life", GRANTS_SLABS, FD_DEVICE, FD_SEALED, 1, 4096 },
		{ "batch", GRANTS_NEED, FD_DEVICE, FD_SEALED, 8, 8192 },
		{ "big", GRANTS_SLABS, FD_DEVICE, FD_BIG, 1, 4u << 20 },
		{ "refused", REFUSES, FD_DEVICE, FD_SEALED, 2, 4096 },
		{ "gone", GONE, FD_DEVICE, FD_SEALED, 1, 4096 },
		{ "another", ANSWERS_ANOTHER_FIRST, FD_DEVICE, FD_SEALED, 1, 4096 },
		{ "sparse", GRANTS_SLABS, FD_DEVICE, FD_SPARSE, 1, 4096 },
		{ "unsealed", GRANTS_SLABS, FD_DEVICE, FD_UNSEALED, 1, 4096 },
		{ "file", GRANTS_SLABS, FD_PATH, FD_FILE, 1, 4096 },
		{ "verbs", VERBS, FD_DEVICE, FD_WRITE_SEALED, 1, 4096 },
	};

	for (size_t i = 0; i < COUNT(runs); i++) {
		hello();
		seed_step(SESSION_SUPERVISOR, runs[i].policy);
		attach(runs[i].device);
		import(runs[i].memory, runs[i].n * runs[i].length);
		register_items(runs[i].length, runs[i].n);
		register_items(runs[i].length, 1);
		if (i < 2)
			query();
		ends();
		seed_save("session", runs[i].name);
	}
	for (size_t more = 0; more < 2; more++) {
		hello();
		attach(FD_DEVICE);
		import(FD_SEALED, 8 * 4096);
		register_items(4096, ITEMS_PER_REGISTER + more);
		seed_save("session", more ? "too-many" : "many");
	}
	hello();
	ask_too_much();
	seed_save("session", "budget");
}
