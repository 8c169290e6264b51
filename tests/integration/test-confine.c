/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a session is confined: not at all less than it must be, unless the policy lets it run CUDA
 * and its client asks for that. The session here runs its attacker's code (tests/attack).
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "daemon.h"
#include "proto/limits.h"
#include "raw.h"

enum outcome { FAILS, WORKS, ABSENT };

static const struct {
	const char *name;
	enum outcome wide;
} attacks[] = {
#define ATTACK(name, function, wide) { #name, wide },
#include "tests/attack/attacks.def"
#undef ATTACK
};

static struct daemon_under_test daemon_;
static char programs[4096];

static int tear_down(void **state)
{
	(void)state;
	daemon_end(&daemon_);
	return 0;
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 1;
}

static void start(const char *config, void (*before_exec)(void))
{
	const struct daemon_options options = {
		.config = config,
		.programs = programs,
		.before_exec = before_exec,
	};

#ifdef KVREG_NO_FILTER
	skip_test("a sanitizer's build is not confined");
#endif
	build_path(programs, sizeof(programs), "attack");
	daemon_start(&daemon_, &options);
}

/* Return: the features that both sides have. */
static uint64_t greet(struct raw *raw, uint64_t features)
{
	Kvreg__Hello hello = KVREG__HELLO__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;
	const Kvreg__Reply *reply;

	require(raw);
	hello.major = PROTOCOL_MAJOR;
	hello.features = features;
	hello.program = "confine";
	request.body_case = KVREG__REQUEST__BODY_HELLO;
	request.hello = &hello;
	reply = raw_call(raw, &request, -1);
	require(reply->hello && !reply->error);
	return reply->hello->features;
}

/* What the kernel said, from "attack NAME: EPERM"; it lives until the next request. */
static const char *attack(struct raw *raw, const char *name, uint32_t victim)
{
	Kvreg__ImportBuffer import = KVREG__IMPORT_BUFFER__INIT;
	Kvreg__Request request = KVREG__REQUEST__INIT;
	const Kvreg__Reply *reply;
	char label[LABEL_MAX + 1], *said;
	int fd = memory_fd(4096, F_SEAL_SHRINK);

	snprintf(label, sizeof(label), "attack:%s:%u", name, victim);
	import.length = 4096;
	import.label = label;
	request.body_case = KVREG__REQUEST__BODY_IMPORT_BUFFER;
	request.import_buffer = &import;
	reply = raw_call(raw, &request, fd);
	close(fd);
	require(reply->error);
	said = strstr(reply->error->detail, ": ");
	require(said && strstr(reply->error->detail, name));
	return said + 2;
}

static bool is(const char *said, const char *name)
{
	return strncmp(said, name, strlen(name)) == 0;
}

static bool is_refused(const char *said)
{
	return is(said, "EPERM") || is(said, "EACCES");
}

/* As attacks.def says of a wide session. */
static bool is_as_in_wide(const char *said, size_t i)
{
	if (attacks[i].wide == ABSENT)
		return is(said, "ENOSYS");
	if (strcmp(attacks[i].name, "device") == 0 && access("/dev/nvidia0", F_OK) < 0)
		return is(said, "ENOENT");
	return attacks[i].wide == WORKS ? is(said, "SUCCESS") : is_refused(said);
}

/* All attacks, on the session of another client; both sessions then serve as if nothing was. */
static void attack_all(uint64_t features, bool wide)
{
	struct raw *raw = raw_open(daemon_.socket), *victim = raw_greet(daemon_.socket);
	uint32_t pid = raw_who_am_i(victim)->who_am_i->session_pid;
	int fd = memory_fd(4096, F_SEAL_SHRINK), failures = 0;

	assert_int_equal(greet(raw, features),
			 features & (FEATURE_MEMFD | (wide ? FEATURE_CUDA : 0)));
	for (size_t i = 0; i < COUNT(attacks); i++) {
		const char *said = attack(raw, attacks[i].name, pid);

		if (wide ? is_as_in_wide(said, i) : is_refused(said))
			continue;
		print_error("attack %s: %s\n", attacks[i].name, said);
		failures++;
	}
	assert_int_equal(failures, 0);
	assert_non_null(raw_import(raw, fd, 4096, 0)->import_buffer);
	assert_non_null(raw_import(victim, fd, 4096, 0)->import_buffer);
	close(fd);
	raw_close(raw);
	raw_close(victim);
}

static void without_the_policy_every_attack_fails(void **state)
{
	(void)state;
	start(NULL, NULL);
	attack_all(FEATURE_MEMFD | FEATURE_CUDA, /* wide */ false);
}

static void a_session_that_was_not_asked_for_cuda_is_narrow(void **state)
{
	(void)state;
	start("cuda_sessions = on\n", NULL);
	attack_all(FEATURE_MEMFD, /* wide */ false);
}

static void a_cuda_session_does_what_cuda_needs_and_no_more(void **state)
{
	(void)state;
	if (!has_landlock())
		skip_test("this kernel has no Landlock");
	start("cuda_sessions = on\n", NULL);
	attack_all(FEATURE_MEMFD | FEATURE_CUDA, /* wide */ true);
}

/* As a kernel that was booted without it: landlock_create_ruleset() fails with EOPNOTSUPP. */
static void no_landlock(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { COUNT(code), code };

	require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void without_landlock_no_session_runs_cuda(void **state)
{
	(void)state;
	start("cuda_sessions = on\n", no_landlock);
	attack_all(FEATURE_MEMFD | FEATURE_CUDA, /* wide */ false);
}

static void the_feature_is_what_the_policy_says(void **state)
{
	struct raw *raw;

	(void)state;
	if (!has_landlock())
		skip_test("this kernel has no Landlock");
	daemon_start(&daemon_, NULL);
	raw = raw_open(daemon_.socket);
	assert_int_equal(greet(raw, FEATURE_CUDA), 0);
	raw_close(raw);
	daemon_end(&daemon_);
	daemon_start(&daemon_, &(struct daemon_options){ .config = "cuda_sessions = on\n" });
	raw = raw_open(daemon_.socket);
	assert_int_equal(greet(raw, FEATURE_CUDA), FEATURE_CUDA);
	raw_close(raw);
	raw = raw_open(daemon_.socket);
	assert_int_equal(greet(raw, UINT64_MAX), FEATURE_MEMFD | FEATURE_CUDA);
	raw_close(raw);
}

#define TEST(function) cmocka_unit_test_teardown(function, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_the_policy_every_attack_fails),
		TEST(a_session_that_was_not_asked_for_cuda_is_narrow),
		TEST(a_cuda_session_does_what_cuda_needs_and_no_more),
		TEST(without_landlock_no_session_runs_cuda),
		TEST(the_feature_is_what_the_policy_says),
	};

	return RUN_GROUP("confine", tests);
}
