/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions say up: lives of two sessions, and an administrator who asks them. */
#include <stdbool.h>

#include "control.pb-c.h"
#include "proto/faults.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/steps.h"

static void up(unsigned int who, Kvreg__Up body)
{
	Kvreg__Up m = KVREG__UP__INIT;

	body.base = m.base;
	seed_message(CONTROL_UP, who, &body.base);
}

#define UP(name, NAME, value) ((Kvreg__Up){ .body_case = KVREG__UP__BODY_##NAME, .name = value })

static void up_life(unsigned int who)
{
	Kvreg__Ready ready = KVREG__READY__INIT;
	Kvreg__DeviceQuery device = KVREG__DEVICE_QUERY__INIT;
	Kvreg__GrantRequest grant = KVREG__GRANT_REQUEST__INIT;
	Kvreg__GrantReturn back = KVREG__GRANT_RETURN__INIT;
	Kvreg__Amounts need = KVREG__AMOUNTS__INIT, keep = KVREG__AMOUNTS__INIT;

	ready.program = "seed";
	device.seq = grant.seq = 1;
	device.major = 1;
	device.minor = 3;
	need.charge = need.memory = 200u << 20;
	need.regions = 20;
	keep.charge = keep.memory = 64u << 20;
	grant.need = &need;
	back.keep = &keep;
	up(who, UP(ready, READY, &ready));
	up(who, UP(device, DEVICE, &device));
	up(who, UP(grant, GRANT, &grant));
	up(who, UP(grant_return, GRANT_RETURN, &back));
}

static void up_report(unsigned int who, uint32_t cookie, bool more, size_t n)
{
	Kvreg__RegionInfo info = KVREG__REGION_INFO__INIT, *list[REGIONS_PER_REPORT + 1];
	Kvreg__Report report = KVREG__REPORT__INIT;

	info.device = "mock0";
	info.label = "kv";
	info.length = 4096;
	report.cookie = cookie;
	report.more = more;
	report.regions = 2;
	for (size_t i = 0; i < n; i++)
		list[i] = &info;
	report.list = list;
	report.n_list = n;
	up(who, UP(report, REPORT, &report));
}

static void up_admin(unsigned int who, Kvreg__AdminRequest__BodyCase body)
{
	Kvreg__StatusRequest status = KVREG__STATUS_REQUEST__INIT;
	Kvreg__ClientsRequest clients = KVREG__CLIENTS_REQUEST__INIT;
	Kvreg__RegionsRequest regions = KVREG__REGIONS_REQUEST__INIT;
	Kvreg__AdminRequest m = KVREG__ADMIN_REQUEST__INIT;

	m.seq = 1;
	m.major = PROTOCOL_MAJOR;
	m.body_case = body;
	if (body == KVREG__ADMIN_REQUEST__BODY_STATUS)
		m.status = &status;
	else if (body == KVREG__ADMIN_REQUEST__BODY_CLIENTS)
		m.clients = &clients;
	else
		m.regions = &regions;
	up(who, UP(admin, ADMIN, &m));
}

static void control_lives(const char *name, unsigned int abilities, uint8_t status)
{
	seed_step(CONTROL_HOST, abilities);
	seed_step(CONTROL_CLIENT, 0);
	seed_step(CONTROL_CLIENT, 1);
	up_life(0);
	up_life(1);
	seed_step(CONTROL_READ, 0);
	seed_step(CONTROL_ORPHAN, 0);
	seed_raw(CONTROL_ENDED, 0, &status, 1);
	seed_step(CONTROL_TIME, 1);
	seed_raw(CONTROL_ENDED, 1, &status, 1);
	seed_step(CONTROL_TIME, 0);
	seed_step(CONTROL_ORPHAN, 1);
	seed_step(CONTROL_TIME, NO_LEAF);
	seed_save("control", name);
}

/* In a stage that has a delay, in none, by a class without, and in a stage without. */
static void held(void)
{
	static const struct {
		unsigned int client, who, stage;
	} words[] = {
		{ HAS_FAULTS, 0, FAULT_REGISTER },
		{ HAS_FAULTS, 1, FAULT_STAGES },
		{ 0, 2, FAULT_REGISTER },
	};
	Kvreg__Held m = KVREG__HELD__INIT;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		seed_step(CONTROL_CLIENT, words[i].client);
		m.stage = words[i].stage;
		up(words[i].who, UP(held, HELD, &m));
	}
	m.stage = FAULT_MAP;
	up(0, UP(held, HELD, &m));
	seed_save("control", "held");
}

static void leases(void)
{
	Kvreg__LeaseRequest request = KVREG__LEASE_REQUEST__INIT;
	Kvreg__LeaseMemlock lease = KVREG__LEASE_MEMLOCK__INIT;
	Kvreg__LeaseEnd end = KVREG__LEASE_END__INIT;

	request.lease = &lease;
	seed_step(CONTROL_HOST, RAISES_LIMITS);
	seed_step(CONTROL_CLIENT, 0);
	seed_step(CONTROL_CLIENT, 1);
	for (unsigned int who = 0; who < 2; who++) {
		request.seq = end.seq = who + 1;
		lease.bytes = 4096;
		up(who, UP(lease, LEASE, &request));
		lease.bytes = 1ull << 40;
		up(who, UP(lease, LEASE, &request));
		end.lease = 1;
		up(who, UP(lease_end, LEASE_END, &end));
	}
	lease.held = true;
	lease.processes = 2;
	lease.bytes = 0;
	up(0, UP(lease, LEASE, &request));
	seed_step(CONTROL_TIME, 0);
	seed_step(CONTROL_READ, 0);
	seed_save("control", "leases");
}

void seed_control(void)
{
	leases();
	Kvreg__Violation violation = KVREG__VIOLATION__INIT;

	control_lives("life", 0, 0);
	control_lives("limits", RAISES_LIMITS, 103);
	control_lives("full", QUEUES_ARE_FULL | NEEDS_A_KILLER, KILLED + 9);
	control_lives("unkillable", CANNOT_KILL, 127);
	for (unsigned int more = 0; more < 2; more++) {
		seed_step(CONTROL_CLIENT, 0);
		seed_step(CONTROL_CLIENT, 1);
		seed_step(CONTROL_ADMIN, 0);
		up_admin(2, KVREG__ADMIN_REQUEST__BODY_STATUS);
		up_admin(2, KVREG__ADMIN_REQUEST__BODY_CLIENTS);
		up_report(0, 1, more, 0);
		up_report(0, 1, false, 0);
		up_admin(2, KVREG__ADMIN_REQUEST__BODY_REGIONS);
		up_report(0, 2, more, 2);
		up_report(1, 2, false, REGIONS_PER_REPORT + more);
		seed_step(CONTROL_READ, 2);
		seed_step(CONTROL_TIME, 0);
		seed_step(CONTROL_READ, 2);
		seed_raw(CONTROL_ENDED, 2, "", 1);
		seed_save("control", more ? "unanswered" : "answered");
	}
	held();
	seed_step(CONTROL_CLIENT, 0);
	violation.words = "a second Hello";
	up(0, UP(violation, VIOLATION, &violation));
	seed_raw(CONTROL_UP, 0, "\xff\xff", 2);
	seed_step(CONTROL_CLOSE, ONLY_PIPE);
	seed_step(CONTROL_CLOSE, 0);
	seed_save("control", "violation");
}
