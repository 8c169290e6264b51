/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: each key, and for each slip of the pen the line that says where. */
#include "test.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config.h"
#include "proto/limits.h"
#include "proto/procfs.h"

#define ALL_ACCESS                                                                                 \
	(IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |                            \
	 IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC |                           \
	 IB_UVERBS_ACCESS_MW_BIND | IB_UVERBS_ACCESS_RELAXED_ORDERING)

static char words[512];
static char path[64];

/* A file of @text for one config_load(). */
static int load_with(const char *text, bool allow_faults, struct config *config)
{
	int fd = memfd_create("config", MFD_CLOEXEC), r;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	words[0] = '\0';
	r = config_load(path, allow_faults, config, words, sizeof(words));
	close(fd);
	return r;
}

static int load(const char *text, struct config *config)
{
	return load_with(text, /* allow_faults */ false, config);
}

static uint64_t share_of_memory(unsigned int percent)
{
	uint64_t total;

	assert_int_equal(proc_meminfo("MemTotal", &total), 0);
	return total / 100 * percent;
}

static void defaults_are_safe(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(config_load(NULL, false, &config, words, sizeof(words)), 0);
	assert_string_equal(config.path, "");
	assert_string_equal(config.session_user, DEFAULT_SESSION_USER);
	assert_string_equal(config.cgroup, "");
	assert_false(config.cuda_sessions);
	assert_int_equal(config.quotas.host.most[BOOK_MEMORY],
			 share_of_memory(DEFAULT_TOTAL_PERCENT));
	assert_int_equal(config.quotas.per_uid.most[BOOK_MEMORY],
			 share_of_memory(DEFAULT_UID_PERCENT));
	assert_int_equal(config.quotas.host.most[BOOK_SESSIONS], DEFAULT_SESSIONS);
	assert_int_equal(config.quotas.per_uid.most[BOOK_SESSIONS], DEFAULT_SESSIONS_PER_UID);
	assert_int_equal(config.access, ALL_ACCESS);
	assert_int_equal(config.quotas.n_rules, 0);
	config_fini(&config);
}

static void an_empty_file_is_the_defaults(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(load("# nothing\n\n", &config), 0);
	assert_string_equal(config.path, path);
	assert_int_equal(config.quotas.host.most[BOOK_SESSIONS], DEFAULT_SESSIONS);
	config_fini(&config);
}

static void every_key_is_taken(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(load("[daemon]\nsession_user = 12:13\ncgroup = /kvreg\n"
			      "cuda_sessions = on\n"
			      "[quota]\ntotal = 3G\nper_uid = 1.5M\nsessions = 7\n"
			      "sessions_per_uid = 0\naccess = local_write, remote_read\n",
			      &config),
			 0);
	assert_string_equal(config.session_user, "12:13");
	assert_string_equal(config.cgroup, "/kvreg");
	assert_true(config.cuda_sessions);
	assert_int_equal(config.quotas.host.most[BOOK_MEMORY], 3ull << 30);
	assert_int_equal(config.quotas.per_uid.most[BOOK_MEMORY], 3ull << 19);
	assert_int_equal(config.quotas.host.most[BOOK_SESSIONS], 7);
	assert_int_equal(config.quotas.per_uid.most[BOOK_SESSIONS], 0);
	assert_int_equal(config.access,
			 IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_READ);
	config_fini(&config);
}

static void a_uid_has_its_own_rule_or_the_default(void **state)
{
	struct config config;
	struct limits rule;

	(void)state;
	assert_int_equal(load("[uid 7]\nbytes = 4K\n[uid 8]\nsessions = 2\n"
			      "[quota]\nper_uid = 1M\nsessions_per_uid = 5\n[uid 7]\nsessions=3\n",
			      &config),
			 0);
	assert_int_equal(config.quotas.n_rules, 2);
	rule = quotas_find(&config.quotas, SCOPE_UID, 7, 1);
	assert_int_equal(rule.most[BOOK_MEMORY], 4096);
	assert_int_equal(rule.most[BOOK_SESSIONS], 3);
	rule = quotas_find(&config.quotas, SCOPE_UID, 8, 1);
	assert_int_equal(rule.most[BOOK_MEMORY], 1 << 20);
	assert_int_equal(rule.most[BOOK_SESSIONS], 2);
	rule = quotas_find(&config.quotas, SCOPE_UID, 9, 1);
	assert_int_equal(rule.most[BOOK_MEMORY], 1 << 20);
	assert_int_equal(rule.most[BOOK_SESSIONS], 5);
	config_fini(&config);
}

static void every_book_has_its_keys(void **state)
{
	struct config config;
	struct limits rule;

	(void)state;
	assert_int_equal(
		load("[quota]\ntotal = 8G\ncharge = 16G\ngpu = 80G\ndomains = 1\nbuffers = 2\n"
		     "regions = 3\nper_gid = 1G\ncharge_per_uid = 5G\ngpu_per_gid = 6G\n"
		     "regions_per_uid = 7\nsessions_per_gid = 8\n"
		     "[gid 9]\nbytes = 2G\nbuffers = 10\n[uid 9]\ngpu = 11G\n",
		     &config),
		0);
	assert_int_equal(config.quotas.host.most[BOOK_CHARGE], 16ull << 30);
	assert_int_equal(config.quotas.host.most[BOOK_GPU], 80ull << 30);
	assert_int_equal(config.quotas.host.most[BOOK_DOMAINS], 1);
	assert_int_equal(config.quotas.host.most[BOOK_BUFFERS], 2);
	assert_int_equal(config.quotas.host.most[BOOK_REGIONS], 3);
	rule = quotas_find(&config.quotas, SCOPE_GID, 9, 1);
	assert_int_equal(rule.most[BOOK_MEMORY], 2ull << 30);
	assert_int_equal(rule.most[BOOK_CHARGE], 2ull << 30);
	assert_int_equal(rule.most[BOOK_BUFFERS], 10);
	assert_int_equal(rule.most[BOOK_SESSIONS], 8);
	assert_int_equal(rule.most[BOOK_GPU], 6ull << 30);
	rule = quotas_find(&config.quotas, SCOPE_GID, 1, 3);
	assert_int_equal(rule.most[BOOK_MEMORY], 1ull << 30);
	assert_int_equal(rule.most[BOOK_CHARGE], 3ull << 30);
	assert_true(rule.most[BOOK_REGIONS] == NO_LIMIT);
	rule = quotas_find(&config.quotas, SCOPE_UID, 9, 3);
	assert_int_equal(rule.most[BOOK_CHARGE], 5ull << 30);
	assert_int_equal(rule.most[BOOK_GPU], 11ull << 30);
	assert_int_equal(rule.most[BOOK_REGIONS], 7);
	config_fini(&config);
}

/* Beyond any number there is no limit, and no small one either. */
static void a_derived_limit_does_not_overflow(void **state)
{
	struct limits limits = limits_none();

	(void)state;
	limits.most[BOOK_MEMORY] = 1ull << 62;
	assert_true(limits_derive(limits, 8).most[BOOK_CHARGE] == NO_LIMIT);
	assert_int_equal(limits_derive(limits, 2).most[BOOK_CHARGE], 1ull << 63);
	assert_int_equal(limits_derive(limits, 0).most[BOOK_CHARGE], 1ull << 62);
	limits.most[BOOK_CHARGE] = 5;
	assert_int_equal(limits_derive(limits, 8).most[BOOK_CHARGE], 5);
}

/* Each key of the example, its comment mark taken away, is one that the daemon takes. */
static void the_example_has_every_key(void **state)
{
	static char text[16384];
	FILE *file = fopen(KVREG_SRC "/systemd/kvregd.conf", "re");
	struct config config;
	char line[256];

	(void)state;
	assert_non_null(file);
	text[0] = '\0';
	while (fgets(line, sizeof(line), file))
		strncat(text, line[0] == ';' ? line + 1 : line, sizeof(text) - strlen(text) - 1);
	fclose(file);
	assert_int_equal(load(text, &config), -EINVAL);
	if (load_with(text, /* allow_faults */ true, &config) != 0)
		fail_msg("%s", words);
	for (size_t i = 0; i < BOOKS; i++) {
		assert_true(config.quotas.host.most[i] != NO_LIMIT);
		assert_true(config.quotas.per_uid.most[i] != NO_LIMIT);
		assert_true(config.quotas.per_gid.most[i] != NO_LIMIT);
		assert_true(config.quotas.rules[0].limits.most[i] != NO_LIMIT);
	}
	assert_int_equal(config.quotas.n_rules, 2);
	assert_int_equal(config.n_classes, 2);
	config_fini(&config);
}

static void sizes_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },           { "4096", 4096 },     { "1K", 1024 },
		{ "1M", 1 << 20 },    { "2G", 2ull << 30 }, { "1.5T", 3ull << 39 },
		{ "1P", 1ull << 50 }, { "25%", 50 },        { "0%", 0 },
		{ "100%", 200 },      { "0.5%", 1 },        { "8191P", 8191ull << 50 },
	};
	static const char *const bad[] = { "",    "x",   "-1",  "1k",    "1KB", "1 K", "%",  "5%%",
					   "5%x", "nan", "inf", "1e400", "K",   "--5", "1GG" };
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(quota_size(good[i].text, 200, &bytes), 0);
		assert_int_equal(bytes, good[i].bytes);
	}
	bytes = 77;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(quota_size(bad[i], 200, &bytes), -EINVAL);
	assert_int_equal(quota_size("8192P", 200, &bytes), -ERANGE);
	assert_int_equal(quota_size("1e30", 200, &bytes), -ERANGE);
	assert_int_equal(bytes, 77);
}

static void every_slip_names_its_line(void **state)
{
	static const struct {
		const char *text, *says;
	} slips[] = {
		{ "[quota]\ntotal = much\n", ":2: [quota] total: not a value" },
		{ "[quota]\n\nper_uid = 5X\n", ":3: [quota] per_uid: not a value" },
		{ "[quota]\nsessions = -1\n", ":2: [quota] sessions: not a value" },
		{ "[quota]\nsessions = 4294967296\n", ":2: [quota] sessions: not a value" },
		{ "[quota]\nsessions = 1x\n", ":2: [quota] sessions: not a value" },
		{ "[quota]\naccess = local_write,fly\n", ":2: [quota] access: not a value" },
		{ "[quota]\naccess = local\n", ":2: [quota] access: not a value" },
		{ "[quota]\ntotl = 5G\n", ":2: [quota] totl: unknown key" },
		{ "[quota]\nsession_user = x\n", ":2: [quota] session_user: unknown key" },
		{ "[daemon]\ncgroup = kvreg\n", ":2: [daemon] cgroup: not a value" },
		{ "[daemon]\ncuda_sessions = yes\n", ":2: [daemon] cuda_sessions: not a value" },
		{ "[daemon]\ncuda_sessions = On\n", ":2: [daemon] cuda_sessions: not a value" },
		{ "[daemon]\nsessions = 5\n", ":2: [daemon] sessions: unknown key" },
		{ "[qota]\ntotal = 5G\n", ":2: [qota] total: unknown section" },
		{ "total = 5G\n", ":1: [] total: unknown section" },
		{ "[uid root]\nbytes = 1G\n", ":2: [uid root] bytes: the section names no uid" },
		{ "[gid x]\nbytes = 1G\n", ":2: [gid x] bytes: the section names no gid" },
		{ "[quota]\ngpu = 5%\n", ":2: [quota] gpu: not a value" },
		{ "[quota]\nbytes = 5G\n", ":2: [quota] bytes: unknown key" },
		{ "[quota]\nbytes_per_uid = 5G\n", ":2: [quota] bytes_per_uid: unknown key" },
		{ "[quota]\n_per_uid = 5\n", ":2: [quota] _per_uid: unknown key" },
		{ "[quota]\nregions_per = 5\n", ":2: [quota] regions_per: unknown key" },
		{ "[class a]\nleases = some\n", ":2: [class a] leases: not a value" },
		{ "[quota]\nleases = 1\n", ":2: [quota] leases: not a value" },
		{ "[class a]\nmode = 8\n", ":2: [class a] mode: not a value" },
		{ "[uid ]\nbytes = 1G\n", "bytes" },
		{ "[uid 5]\nbits = 1G\n", ":2: [uid 5] bits: unknown key" },
		{ "[uid 5]\nbytes = x\n", ":2: [uid 5] bytes: not a value" },
		{ "[quota]\nwhat is this\n", ":2: not an INI line" },
		{ "[quota\ntotal = 1G\n", ":1: not an INI line" },
		/* The first of several. */
		{ "[quota]\ntotal = x\nper_uid = y\n", ":2: [quota] total" },
	};
	struct config config = { .access = 77 };

	(void)state;
	for (size_t i = 0; i < COUNT(slips); i++) {
		assert_int_equal(load(slips[i].text, &config), -EINVAL);
		assert_true(strncmp(words, path, strlen(path)) == 0);
		if (!strstr(words, slips[i].says))
			fail_msg("\"%s\" has not \"%s\"", words, slips[i].says);
	}
	assert_int_equal(config.access, 77);
}

static void a_long_user_name_is_refused(void **state)
{
	struct config config;
	char text[200];

	(void)state;
	snprintf(text, sizeof(text), "[daemon]\nsession_user = %070d\n", 0);
	assert_int_equal(load(text, &config), -EINVAL);
}

static void a_missing_file_is_named(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(config_load("/no/such.conf", false, &config, words, sizeof(words)),
			 -ENOENT);
	assert_string_equal(words, "/no/such.conf: No such file or directory");
	assert_int_equal(config_load("/tmp", false, &config, words, sizeof(words)), -EIO);
}

static void a_class_has_a_socket_and_bounds(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(load("[quota]\nleases = none\n[class team-a]\nsocket = /run/x/s\nleases = "
			      "momentary\nmode = 0660\nbytes = 8K\n"
			      "[class b]\nsocket = /run/y/s\nsessions = 3\n",
			      &config),
			 0);
	assert_int_equal(config.n_classes, 3);
	assert_string_equal(config.classes[0].name, "default");
	assert_string_equal(config.classes[1].name, "team-a");
	assert_string_equal(config.classes[1].socket, "/run/x/s");
	assert_int_equal(config.classes[1].mode, 0660);
	assert_int_equal(config.classes[1].limits.most[BOOK_MEMORY], 8192);
	assert_true(config.classes[1].limits.most[BOOK_SESSIONS] == NO_LIMIT);
	assert_int_equal(config.classes[2].mode, 0666);
	assert_int_equal(config.classes[2].limits.most[BOOK_SESSIONS], 3);
	assert_int_equal(config.classes[0].leases, LEASES_NONE);
	assert_int_equal(config.classes[1].leases, LEASES_MOMENTARY);
	assert_int_equal(config.classes[2].leases, LEASES_ALL);
	config_fini(&config);
	assert_int_equal(load("[class a]\nbytes = 8K\n", &config), -EINVAL);
	assert_int_equal(load("[class A]\nsocket = /x\n", &config), -EINVAL);
	assert_int_equal(load("[class a]\nsocket = x\n", &config), -EINVAL);
	assert_int_equal(load("[class a]\nsocket = /x\nmode = 0999\n", &config), -EINVAL);
	assert_int_equal(load("[daemon]\ncgroup = x\n", &config), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_safe),
		cmocka_unit_test(an_empty_file_is_the_defaults),
		cmocka_unit_test(every_key_is_taken),
		cmocka_unit_test(a_uid_has_its_own_rule_or_the_default),
		cmocka_unit_test(every_book_has_its_keys),
		cmocka_unit_test(a_derived_limit_does_not_overflow),
		cmocka_unit_test(the_example_has_every_key),
		cmocka_unit_test(sizes_are_read),
		cmocka_unit_test(every_slip_names_its_line),
		cmocka_unit_test(a_long_user_name_is_refused),
		cmocka_unit_test(a_missing_file_is_named),
		cmocka_unit_test(a_class_has_a_socket_and_bounds),
	};

	return RUN_GROUP("daemon-config", tests);
}
