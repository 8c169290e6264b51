/* SPDX-License-Identifier: Apache-2.0 */
/* What a user may have: bytes, connections, access flags; and the kernel's own limit below that. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <kvreg-client.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "daemon.h"
#include "holder.h"
#include "raw.h"

#define MIB (1ull << 20)

static struct daemon_under_test daemon_;

static bool one_session_is_left(void *arg)
{
	struct admin_status status;

	(void)arg;
	return admin_status(daemon_.admin_socket, &status) && status.sessions == 1;
}

static bool only_the_room_is_granted(void *arg)
{
	struct admin_status status;

	(void)arg;
	return admin_status(daemon_.admin_socket, &status) && status.granted == GRANT_ROOM_MIN;
}

static void start(const char *config)
{
	const struct daemon_options options = { .config = config };

	daemon_start(&daemon_, &options);
}

static void the_quota_of_a_uid_ends(void **state)
{
	(void)state;
	start("[quota]\nper_uid = 3M\n");
	struct holder h = hold(daemon_.socket, 2 * MIB);
	uint32_t region = must_register(&h, 2 * MIB);

	const Kvreg__Reply *reply = try_register(&h, 2 * MIB);
	assert_true(raw_refused(reply, KVREG_E_LIMIT_QUOTA));
	const Kvreg__Snapshot *s = reply->error->snapshot;
	assert_true(s->has_quota_limit && s->has_quota_used && s->has_need);
	assert_int_equal(s->quota_limit, 3 * MIB);
	assert_int_equal(s->quota_used, 3 * MIB); /* the room reached to the end of the quota */
	assert_int_equal(s->need, 2 * MIB);
	assert_non_null(strstr(reply->error->detail, "uid"));
	/* What fits still passes, and after a deregistration so does what did not. */
	uint32_t small = must_register(&h, MIB);
	assert_non_null(raw_deregister(h.raw, small)->done);
	assert_non_null(raw_deregister(h.raw, region)->done);
	must_register(&h, 2 * MIB);
	let_go(&h);
	daemon_end(&daemon_);
}

static void a_quota_is_shared_by_the_connections_of_a_uid(void **state)
{
	struct admin_status status;

	(void)state;
	start("[quota]\nper_uid = 2M\n");
	struct holder a = hold(daemon_.socket, 2 * MIB), b = hold(daemon_.socket, 2 * MIB);
	must_register(&a, 2 * MIB);
	assert_true(raw_refused(try_register(&b, 4096), KVREG_E_LIMIT_QUOTA));
	require(admin_status(daemon_.admin_socket, &status));
	assert_int_equal(status.granted, 2 * MIB);
	assert_int_equal(status.grants_refused, 1);
	assert_int_equal(status.users, 1);
	let_go(&a);
	assert_true(wait_until(one_session_is_left, NULL));
	must_register(&b, 2 * MIB);
	let_go(&b);
	daemon_end(&daemon_);
}

static void the_host_bounds_all(void **state)
{
	(void)state;
	start("[quota]\ntotal = 1M\nper_uid = 1G\n");
	struct holder h = hold(daemon_.socket, 2 * MIB);
	const Kvreg__Reply *reply = try_register(&h, 2 * MIB);

	assert_true(raw_refused(reply, KVREG_E_LIMIT_QUOTA));
	assert_int_equal(reply->error->snapshot->quota_limit, MIB);
	assert_non_null(strstr(reply->error->detail, "host"));
	let_go(&h);
	daemon_end(&daemon_);
}

static void a_uid_has_a_section_of_its_own(void **state)
{
	char config[128];

	(void)state;
	snprintf(config, sizeof(config), "[quota]\nper_uid = 0\n[uid %u]\nbytes = 1M\n", getuid());
	start(config);
	struct holder h = hold(daemon_.socket, 2 * MIB);
	must_register(&h, MIB);
	assert_true(raw_refused(try_register(&h, MIB), KVREG_E_LIMIT_QUOTA));
	let_go(&h);
	daemon_end(&daemon_);
}

static void a_batch_beyond_the_quota_leaves_nothing(void **state)
{
	(void)state;
	start("[quota]\nper_uid = 3M\n");
	struct holder h = hold(daemon_.socket, 2 * MIB);
	Kvreg__RegisterItem items[] = { raw_item(h.domain, h.buffer, 2 * MIB),
					raw_item(h.domain, h.buffer, 2 * MIB) };
	items[1].iova = 1ull << 30; /* the same again would be the same region */
	const Kvreg__Reply *reply = raw_register(h.raw, items, COUNT(items));

	assert_true(raw_refused(reply, KVREG_E_LIMIT_QUOTA));
	assert_int_equal(reply->error->index, 1);
	assert_int_equal(raw_who_am_i(h.raw)->who_am_i->charged, 0);
	let_go(&h);
	daemon_end(&daemon_);
}

static void access_is_a_matter_of_policy(void **state)
{
	(void)state;
	start("[quota]\naccess = local_write,remote_read\n");
	struct holder h = hold(daemon_.socket, 4096);
	Kvreg__RegisterItem item = raw_item(h.domain, h.buffer, 4096);

	item.access = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE;
	assert_true(raw_refused(raw_register(h.raw, &item, 1), KVREG_E_BAD_ACCESS));
	item.access = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_READ;
	assert_non_null(raw_register(h.raw, &item, 1)->register_);
	let_go(&h);
	daemon_end(&daemon_);
}

static void lower_memlock(void)
{
	const struct rlimit limit = { 65536, 65536 };

	setrlimit(RLIMIT_MEMLOCK, &limit);
}

static void the_kernels_limit_is_told_from_the_quota(void **state)
{
	const struct daemon_options options = { .before_exec = lower_memlock };
	struct admin_status status;

	(void)state;
	daemon_start(&daemon_, &options);
	require(admin_status(daemon_.admin_socket, &status));
	if (status.privileged) {
		daemon_end(&daemon_);
		skip_test("this daemon raises its sessions' RLIMIT_MEMLOCK");
	}
	struct holder h = hold(daemon_.socket, MIB);
	const Kvreg__Reply *reply = try_register(&h, MIB);
	assert_true(raw_refused(reply, KVREG_E_LIMIT_MEMLOCK));
	assert_int_equal(reply->error->stage, KVREG_STAGE_PIN);
	assert_int_equal(reply->error->snapshot->session_memlock, 65536);
	uint32_t region = must_register(&h, 65536);
	assert_true(raw_refused(try_register(&h, 4096), KVREG_E_LIMIT_MEMLOCK));
	assert_non_null(raw_deregister(h.raw, region)->done);
	must_register(&h, 4096);
	let_go(&h);
	daemon_end(&daemon_);
}

/* The usual room beyond what is needed stays; what is far above that goes back. */
static void a_large_grant_goes_back(void **state)
{
	(void)state;
	start("[quota]\ntotal = 4G\nper_uid = 2G\n");
	struct holder h = hold(daemon_.socket, 65 * MIB);
	/* Granted in any case; registered only where the kernel's limit follows. */
	const Kvreg__Reply *reply = try_register(&h, 65 * MIB);
	if (reply->register_)
		assert_non_null(raw_deregister(h.raw, reply->register_->regions[0]->region)->done);
	else
		assert_true(raw_refused(reply, KVREG_E_LIMIT_MEMLOCK));
	assert_non_null(raw_deregister(h.raw, must_register(&h, 4096))->done);
	assert_int_equal(raw_who_am_i(h.raw)->who_am_i->granted, GRANT_ROOM_MIN);
	/* Its words to the supervisor come before its answer to us. */
	assert_true(wait_until(only_the_room_is_granted, NULL));
	let_go(&h);
	daemon_end(&daemon_);
}

static void connections_of_a_uid_are_bounded(void **state)
{
	struct kvreg *k[3] = { NULL };
	struct admin_status status;
	char holder[128];

	(void)state;
	start("[quota]\nsessions_per_uid = 2\n");
	assert_int_equal(kvreg_open(NULL, &k[0]), 0);
	assert_int_equal(kvreg_open(NULL, &k[1]), 0);
	assert_int_equal(kvreg_open(NULL, &k[2]), -EUSERS);
	assert_int_equal(kvreg_error_code(kvreg_last_error()), KVREG_E_LIMIT_SESSIONS);
	snprintf(holder, sizeof(holder),
		 "uid: 2 of 2 connections of uid %u, class default; held by %d (", getuid(),
		 getpid());
	assert_non_null(strstr(kvreg_error_detail(kvreg_last_error()), holder));
	require(admin_status(daemon_.admin_socket, &status));
	assert_int_equal(status.sessions, 2);
	assert_int_equal(status.accepted, 3);
	assert_int_equal(status.refused, 1);
	kvreg_close(k[0]);
	assert_true(wait_until(one_session_is_left, NULL));
	assert_int_equal(kvreg_open(NULL, &k[0]), 0);
	kvreg_close(k[0]);
	kvreg_close(k[1]);
	daemon_end(&daemon_);
}

static void connections_of_the_host_are_bounded(void **state)
{
	struct kvreg *k, *other;

	(void)state;
	start("[quota]\nsessions = 1\n");
	assert_int_equal(kvreg_open(NULL, &k), 0);
	assert_int_equal(kvreg_open(NULL, &other), -EUSERS);
	assert_int_equal(kvreg_error_code(kvreg_last_error()), KVREG_E_LIMIT_SESSIONS);
	kvreg_close(k);
	daemon_end(&daemon_);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_quota_of_a_uid_ends),
		cmocka_unit_test(a_quota_is_shared_by_the_connections_of_a_uid),
		cmocka_unit_test(the_host_bounds_all),
		cmocka_unit_test(a_uid_has_a_section_of_its_own),
		cmocka_unit_test(a_batch_beyond_the_quota_leaves_nothing),
		cmocka_unit_test(access_is_a_matter_of_policy),
		cmocka_unit_test(the_kernels_limit_is_told_from_the_quota),
		cmocka_unit_test(a_large_grant_goes_back),
		cmocka_unit_test(connections_of_a_uid_are_bounded),
		cmocka_unit_test(connections_of_the_host_are_bounded),
	};

	return RUN_GROUP("quota", tests);
}
