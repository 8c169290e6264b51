/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's verdicts on limits, capabilities and the daemon, each on a machine made for it. */
#include "fake-host.h"

#include <sys/socket.h>
#include <sys/un.h>

#define MIB (1ull << 20)

/* ---- memlock ---- */

static void a_small_limit_is_a_warning_that_says_where_to_raise_it(void **state)
{
	struct fake_host *f = *state;

	fake_status(f, false, false, true, 12);
	is_finding(examine(f, check_memlock), VERDICT_WARN, "is 64K (hard: 64K), of which 12K are",
		   "nothing for what kvregd registers; else LimitMEMLOCK=infinity in [Service] of "
		   "engine.service");
	assert_null(strstr(f->exam.findings.all[0].change, "ulimit"));
}

static void a_soft_limit_is_raised_by_the_user(void **state)
{
	struct fake_host *f = *state;

	f->host.memlock.rlim_max = 8 * MIB;
	is_finding(examine(f, check_memlock), VERDICT_WARN, "hard: 8M", "ulimit -l 8192 in");
	f->host.memlock.rlim_max = RLIM_INFINITY;
	is_finding(examine(f, check_memlock), VERDICT_WARN, "hard: unlimited",
		   "ulimit -l unlimited in");
}

static void a_limit_of_nothing_is_said_to_give_eperm(void **state)
{
	struct fake_host *f = *state;

	f->host.memlock = (struct rlimit){ 0, 0 };
	is_finding(examine(f, check_memlock), VERDICT_WARN, "EPERM", "LimitMEMLOCK");
}

static void no_limit_and_a_capability_that_counts_pass(void **state)
{
	struct fake_host *f = *state;

	f->host.memlock = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	is_finding(examine(f, check_memlock), VERDICT_PASS, "unlimited", "");
	f->host.memlock = (struct rlimit){ 64 << 10, 64 << 10 };
	fake_status(f, true, true, true, 0);
	is_finding(examine(f, check_memlock), VERDICT_PASS, "64K, which CAP_IPC_LOCK", "");
	is_finding(examine(f, check_capability), VERDICT_PASS, "effective", "");
}

/* ---- the capability ---- */

static void an_ordinary_process_needs_no_capability(void **state)
{
	struct fake_host *f = *state;

	is_finding(examine(f, check_capability), VERDICT_PASS, "no CAP_IPC_LOCK", "");
}

static void a_capability_in_a_user_namespace_does_not_count(void **state)
{
	static const char *const maps[] = { "0 1000 1\n", "0 100000 65536\n", "1000 1000 1\n",
					    "0 0 65536\n" };
	struct fake_host *f = *state;

	fake_status(f, true, true, true, 0);
	for (size_t i = 0; i < COUNT(maps); i++) {
		fake_file(f, "proc/self/uid_map", maps[i]);
		is_finding(examine(f, check_capability), VERDICT_WARN, "user namespace",
			   "nothing for what kvregd registers");
		is_finding(examine(f, check_memlock), VERDICT_WARN, "64K", "LimitMEMLOCK");
		assert_false(exam_may_pin(&f->exam));
	}
}

static void a_containers_capability_does_not_reach_its_user(void **state)
{
	struct fake_host *f = *state;

	fake_file(f, "proc/self/cgroup", "0::/kubepods.slice/kubepods-pod1.slice\n");
	is_finding(examine(f, check_capability), VERDICT_WARN, "this process of uid 1000 has not",
		   "cap_ipc_lock+ep");
	fake_status(f, false, false, false, 0);
	is_finding(examine(f, check_capability), VERDICT_PASS, "no CAP_IPC_LOCK", "");
}

static void a_capability_that_is_only_permitted_is_named(void **state)
{
	struct fake_host *f = *state;

	fake_status(f, false, true, true, 0);
	is_finding(examine(f, check_capability), VERDICT_WARN, "not effective", "effective set");
}

/* ---- would it fit? ---- */

static void what_is_not_asked_is_skipped(void **state)
{
	struct fake_host *f = *state;

	is_finding(examine(f, check_fits_direct), VERDICT_SKIP, "--for", "");
	fake_daemon(f, "verbs");
	is_finding(examine(f, check_fits_brokered), VERDICT_SKIP, "--for", "");
	assert_int_equal(findings_worst(&f->exam.findings), VERDICT_PASS);
}

static void every_device_and_what_is_pinned_count(void **state)
{
	struct fake_host *f = *state;

	f->host.memlock = (struct rlimit){ 8 * MIB, 8 * MIB };
	f->exam.bytes = 4 * MIB;
	f->exam.nics = 2;
	is_finding(examine(f, check_fits_direct), VERDICT_PASS, "2 x 4M = 8M", "");
	fake_status(f, false, false, true, 4);
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "with 4K pinned",
		   "a limit of at least 8196 KiB: LimitMEMLOCK");
	fake_status(f, false, false, true, 0);
	f->exam.nics = 3;
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "ENOMEM", "12288 KiB");
	f->exam.nics = 2;
	f->exam.bytes = 4 * MIB + 1; /* whole pages are counted */
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "more than", "8200 KiB");
}

static void a_daemon_makes_too_much_a_warning(void **state)
{
	struct fake_host *f = *state;

	f->exam.bytes = MIB;
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "ENOMEM", "a limit of at least");
	is_finding(examine(f, check_fits_brokered), VERDICT_SKIP, "no daemon", "");
	fake_daemon(f, "verbs");
	is_finding(examine(f, check_fits_direct), VERDICT_WARN, "ENOMEM",
		   "nothing for what kvregd registers");
	is_finding(examine(f, check_fits_brokered), VERDICT_PASS, "1M of the 1G", "");
}

static void a_hard_limit_that_suffices_is_offered(void **state)
{
	struct fake_host *f = *state;

	f->exam.bytes = MIB;
	f->host.memlock.rlim_max = MIB;
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "64K", "ulimit -l 1024 in");
	f->host.memlock.rlim_max = MIB - 1;
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "64K", "LimitMEMLOCK");
	f->host.memlock.rlim_cur = 0;
	is_finding(examine(f, check_fits_direct), VERDICT_FAIL, "EPERM", "LimitMEMLOCK");
}

static void sizes_beyond_counting_do_not_fit(void **state)
{
	struct fake_host *f = *state;

	fake_daemon(f, "verbs");
	f->host.memlock = (struct rlimit){ MIB, MIB };
	f->exam.bytes = UINT64_MAX;
	is_finding(examine(f, check_fits_direct), VERDICT_WARN, "16E", "KiB");
	f->exam.bytes = 1ull << 62;
	f->exam.nics = 4; /* 2^64 is 0 in 64 bits */
	is_finding(examine(f, check_fits_direct), VERDICT_WARN, "4 x 4E", "KiB");
	is_finding(examine(f, check_fits_brokered), VERDICT_FAIL, "1G", "a smaller buffer");
	fake_status(f, true, true, true, 0);
	is_finding(examine(f, check_fits_direct), VERDICT_PASS, "no limit applies", "");
}

static void memory_is_needed_once_for_all_devices(void **state)
{
	struct fake_host *f = *state;

	fake_daemon(f, "verbs");
	f->exam.bytes = 1024 * MIB;
	f->exam.nics = 8;
	is_finding(examine(f, check_fits_brokered), VERDICT_PASS, "8 x 1G = 8G will be booked", "");
	f->exam.bytes++;
	is_finding(examine(f, check_fits_brokered), VERDICT_FAIL, "MemAvailable", "free memory");
}

/* ---- the daemon ---- */

static void no_daemon_is_a_failure_only_where_one_is_needed(void **state)
{
	struct fake_host *f = *state;

	is_finding(examine(f, check_daemon), VERDICT_FAIL, "/no/such/socket", "start kvregd");
	is_finding(examine(f, check_quota), VERDICT_SKIP, "no daemon", "");
	f->host.memlock.rlim_cur = RLIM_INFINITY;
	is_finding(examine(f, check_daemon), VERDICT_WARN, "nobody listens", "start kvregd");
}

/* It accepts, as the kernel does for it, and never says a word: stopped, or hanging. */
static void a_daemon_that_hangs_does_not_hang_the_doctor(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct fake_host *f = *state;
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/silent", f->root);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	f->host.socket = address.sun_path;
	f->host.memlock.rlim_cur = RLIM_INFINITY;
	is_finding(examine(f, check_daemon), VERDICT_FAIL, "does not answer within 200 ms",
		   "the daemon's log");
	close(listener);
}

static void the_worst_verdict_is_the_answer(void **state)
{
	struct findings findings = { .check = "memlock" };

	(void)state;
	assert_int_equal(findings_worst(&findings), VERDICT_PASS);
	found(&findings, VERDICT_PASS, "a");
	found(&findings, VERDICT_SKIP, "b");
	assert_int_equal(findings_worst(&findings), VERDICT_PASS);
	found(&findings, VERDICT_FAIL, "c");
	change(&findings, "all of %s", "it");
	found_about(&findings, VERDICT_WARN, "mlx5_0", "d");
	assert_int_equal(findings_worst(&findings), VERDICT_FAIL);
	assert_int_equal(findings_count(&findings, VERDICT_SKIP), 1);
	assert_string_equal(findings.all[2].change, "all of it");
	assert_string_equal(findings.all[3].subject, "mlx5_0");
	findings_fini(&findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_small_limit_is_a_warning_that_says_where_to_raise_it),
		TEST(a_soft_limit_is_raised_by_the_user),
		TEST(a_limit_of_nothing_is_said_to_give_eperm),
		TEST(no_limit_and_a_capability_that_counts_pass),
		TEST(an_ordinary_process_needs_no_capability),
		TEST(a_capability_in_a_user_namespace_does_not_count),
		TEST(a_containers_capability_does_not_reach_its_user),
		TEST(a_capability_that_is_only_permitted_is_named),
		TEST(what_is_not_asked_is_skipped),
		TEST(every_device_and_what_is_pinned_count),
		TEST(a_daemon_makes_too_much_a_warning),
		TEST(a_hard_limit_that_suffices_is_offered),
		TEST(sizes_beyond_counting_do_not_fit),
		TEST(memory_is_needed_once_for_all_devices),
		TEST(no_daemon_is_a_failure_only_where_one_is_needed),
		TEST(a_daemon_that_hangs_does_not_hang_the_doctor),
		cmocka_unit_test(the_worst_verdict_is_the_answer),
	};

	return RUN_GROUP("doctor", tests);
}
