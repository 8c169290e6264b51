/* SPDX-License-Identifier: Apache-2.0 */
/* [test ...] sections: what they take, what they refuse, and what a session is told of them. */
#include "test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/faults.h"

static char words[512];
static char path[64];
static struct config config;

/* A file of @text for one config_load(). */
static int load(const char *text, bool allow_faults)
{
	int fd = memfd_create("config", MFD_CLOEXEC), r;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	words[0] = '\0';
	r = config_load(path, allow_faults, &config, words, sizeof(words));
	close(fd);
	return r;
}

static void every_key_is_taken(void **state)
{
	const struct fault_rule *rule;

	(void)state;
	assert_int_equal(load("[test a]\n" /* before its class */
			      "delay = register:20000, map:5,connect:4294967295\n"
			      "fail = register:ENOMEM:2, attach:EIO:1\n"
			      "max_mr = 64\nmax_mr_size = 1.5M\n"
			      "[class a]\nsocket = /a\n[class b]\nsocket = /b\n",
			      true),
			 0);
	assert_int_equal(config.faults.count, 1);
	assert_null(faults_of(&config.faults, "b"));
	assert_null(faults_of(&config.faults, "default"));
	rule = faults_of(&config.faults, "a");
	assert_non_null(rule);
	assert_int_equal(rule->stages[FAULT_REGISTER].delay_ms, 20000);
	assert_int_equal(rule->stages[FAULT_REGISTER].errnum, ENOMEM);
	assert_int_equal(rule->stages[FAULT_REGISTER].count, 2);
	assert_int_equal(rule->stages[FAULT_MAP].delay_ms, 5);
	assert_int_equal(rule->stages[FAULT_MAP].count, 0);
	assert_int_equal(rule->stages[FAULT_CONNECT].delay_ms, UINT32_MAX);
	assert_int_equal(rule->stages[FAULT_ATTACH].errnum, EIO);
	assert_int_equal(rule->stages[FAULT_ATTACH].delay_ms, 0);
	assert_int_equal(rule->max_mr, 64);
	assert_int_equal(rule->max_mr_size, 3 << 19);
	config_fini(&config);
}

static void every_stage_has_its_name(void **state)
{
	static const char *const names[] = { "connect",  "attach",   "import",    "map",
					     "populate", "register", "deregister" };
	char text[128];

	(void)state;
	assert_int_equal(COUNT(names), FAULT_STAGES);
	for (uint32_t i = 0; i < FAULT_STAGES; i++) {
		assert_string_equal(fault_stage_name(i), names[i]);
		snprintf(text, sizeof(text), "[test default]\ndelay = %s:7\nfail = %s:EINTR:9\n",
			 names[i], names[i]);
		assert_int_equal(load(text, true), 0);
		const struct fault_rule *rule = faults_of(&config.faults, "default");
		for (uint32_t j = 0; j < FAULT_STAGES; j++) {
			assert_int_equal(rule->stages[j].delay_ms, i == j ? 7 : 0);
			assert_int_equal(rule->stages[j].errnum, i == j ? EINTR : 0);
			assert_int_equal(rule->stages[j].count, i == j ? 9 : 0);
		}
		config_fini(&config);
	}
	assert_null(fault_stage_name(FAULT_STAGES));
}

static void a_key_may_stand_again(void **state)
{
	const struct fault_rule *rule;

	(void)state;
	assert_int_equal(load("[test default]\ndelay = map:1\ndelay = register:2\ndelay = map:3\n"
			      "[class x]\nsocket = /x\n[test default]\nmax_mr = 2\n",
			      true),
			 0);
	assert_int_equal(config.faults.count, 1);
	rule = faults_of(&config.faults, "default");
	assert_int_equal(rule->stages[FAULT_MAP].delay_ms, 3);
	assert_int_equal(rule->stages[FAULT_REGISTER].delay_ms, 2);
	assert_int_equal(rule->max_mr, 2);
	config_fini(&config);
}

static void every_slip_names_its_line(void **state)
{
	static const struct {
		const char *text, *says;
	} slips[] = {
		{ "[test default]\ndelay = pin:5\n", ":2: [test default] delay: not a value" },
		{ "[test default]\ndelay = map\n", ":2: [test default] delay: not a value" },
		{ "[test default]\ndelay = map:\n", ":2: [test default] delay: not a value" },
		{ "[test default]\ndelay = map:0\n", ":2: [test default] delay: not a value" },
		{ "[test default]\ndelay = map:-1\n", ":2: [test default] delay: not a value" },
		{ "[test default]\ndelay = map:5ms\n", ":2: [test default] delay: not a value" },
		{ "[test default]\ndelay = map:4294967296\n", "delay: not a value" },
		{ "[test default]\ndelay = map:5:5\n", ":2: [test default] delay: not a value" },
		{ "[test default]\ndelay = map:5, x\n", ":2: [test default] delay: not a value" },
		{ "[test default]\ndelay = \n", ":2: [test default] delay: not a value" },
		{ "[test default]\ndelay = ,\n", ":2: [test default] delay: not a value" },
		{ "[test default]\n\nfail = map:ENOMEM\n", ":3: [test default] fail: not a value" },
		{ "[test default]\nfail = map:ENOMEM:0\n", ":2: [test default] fail: not a value" },
		{ "[test default]\nfail = map:12:1\n", ":2: [test default] fail: not a value" },
		{ "[test default]\nfail = map:ENOFUN:1\n", ":2: [test default] fail: not a value" },
		{ "[test default]\nfail = :EIO:1\n", ":2: [test default] fail: not a value" },
		{ "[test default]\nfail = map::1\n", ":2: [test default] fail: not a value" },
		{ "[test default]\nfail = map:EIO:1:1\n", ":2: [test default] fail: not a value" },
		{ "[test default]\nmax_mr = 0\n", ":2: [test default] max_mr: not a value" },
		{ "[test default]\nmax_mr = 1K\n", ":2: [test default] max_mr: not a value" },
		{ "[test default]\nmax_mr_size = 0\n", "max_mr_size: not a value" },
		{ "[test default]\nmax_mr_size = big\n", "max_mr_size: not a value" },
		{ "[test default]\nstall = map:1\n", ":2: [test default] stall: unknown key" },
		{ "[test]\nmax_mr = 1\n", ":2: [test] max_mr: unknown section" },
		{ "[quota]\n[test b]\n\nmax_mr = 1\n", ":4: [test b]: there is no such class" },
		{ "[class a]\nsocket = /a\n[test ]\nmax_mr = 1\n", "there is no such class" },
		{ "[test a23456789012345678901234567890123]\nmax_mr = 1\n", "no such class" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(slips); i++) {
		if (load(slips[i].text, true) != -EINVAL)
			fail_msg("taken: %s", slips[i].text);
		assert_true(strncmp(words, path, strlen(path)) == 0);
		if (!strstr(words, slips[i].says))
			fail_msg("\"%s\" has not \"%s\"", words, slips[i].says);
	}
}

static void sections_beyond_all_classes_are_refused(void **state)
{
	char text[1024] = "";
	size_t length = 0;

	(void)state;
	for (unsigned int i = 0; i < CLASSES_MAX + 2; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   "[test c%u]\nmax_mr = 1\n", i);
	assert_int_equal(load(text, true), -EINVAL);
	assert_non_null(strstr(words, "there is no such class"));
}

static void without_the_option_the_section_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(load("[quota]\nsessions = 5\n[test default]\nmax_mr = 5\n", false),
			 -EINVAL);
	assert_non_null(strstr(words, ":4: [test default] max_mr: "));
	assert_non_null(strstr(words, "--allow-faults"));
	assert_int_equal(load("[quota]\nsessions = 5\n", false), 0);
	assert_int_equal(config.faults.count, 0);
	config_fini(&config);
}

static void a_start_fails_so_many_times(void **state)
{
	(void)state;
	assert_int_equal(load("[test a]\nfail = connect:EAGAIN:2\n[class a]\nsocket = /a\n"
			      "[test default]\nmax_mr = 1\n",
			      true),
			 0);
	assert_int_equal(faults_connect(&config.faults, "default"), 0);
	assert_int_equal(faults_connect(&config.faults, "a"), -EAGAIN);
	assert_int_equal(faults_connect(&config.faults, "none"), 0);
	assert_int_equal(faults_connect(&config.faults, "a"), -EAGAIN);
	assert_int_equal(faults_connect(&config.faults, "a"), 0);
	config_fini(&config);
}

static void a_session_is_told_what_it_is_to_do(void **state)
{
	struct faults_wire wire;

	(void)state;
	assert_int_equal(load("[test default]\nfail = connect:EAGAIN:2, register:EIO:3\n"
			      "delay = deregister:4, connect:1\nmax_mr = 5\nmax_mr_size = 6\n",
			      true),
			 0);
	faults_to_wire(faults_of(&config.faults, "default"), &wire);
	assert_int_equal(wire.faults.max_mr, 5);
	assert_int_equal(wire.faults.max_mr_size, 6);
	assert_int_equal(wire.faults.n_stages, 3);
	/* Its start has not failed when it hears of this. */
	assert_int_equal(wire.faults.stages[0]->stage, FAULT_CONNECT);
	assert_int_equal(wire.faults.stages[0]->delay_ms, 1);
	assert_int_equal(wire.faults.stages[0]->count, 0);
	assert_int_equal(wire.faults.stages[1]->stage, FAULT_REGISTER);
	assert_int_equal(wire.faults.stages[1]->delay_ms, 0);
	assert_int_equal(wire.faults.stages[1]->errnum, EIO);
	assert_int_equal(wire.faults.stages[1]->count, 3);
	assert_int_equal(wire.faults.stages[2]->stage, FAULT_DEREGISTER);
	assert_int_equal(wire.faults.stages[2]->delay_ms, 4);
	config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_taken),
		cmocka_unit_test(every_stage_has_its_name),
		cmocka_unit_test(a_key_may_stand_again),
		cmocka_unit_test(every_slip_names_its_line),
		cmocka_unit_test(sections_beyond_all_classes_are_refused),
		cmocka_unit_test(without_the_option_the_section_is_an_error),
		cmocka_unit_test(a_start_fails_so_many_times),
		cmocka_unit_test(a_session_is_told_what_it_is_to_do),
	};

	return RUN_GROUP("daemon-faults", tests);
}
