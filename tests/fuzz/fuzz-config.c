/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: any text is either taken whole, and then every number keeps to its range, or
 * refused with one line that names the file. What has faults on purpose is taken only where they
 * are allowed. The input is the text.
 */
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config.h"
#include "proto/limits.h"
#include "tests/fuzz/harness.h"

static int file = -1;
static char path[64];

static void check_limits(const struct limits *limits)
{
	for (size_t i = 0; i < BOOKS; i++)
		must(limits->most[i] <= INT64_MAX || limits->most[i] == NO_LIMIT);
}

static void check_config(const struct config *config)
{
	must(strcmp(config->path, path) == 0);
	must(strnlen(config->session_user, sizeof(config->session_user)) <
	     sizeof(config->session_user));
	must(strnlen(config->cgroup, sizeof(config->cgroup)) < sizeof(config->cgroup));
	must(!config->cgroup[0] || config->cgroup[0] == '/' || strcmp(config->cgroup, "none") == 0);
	check_limits(&config->quotas.host);
	check_limits(&config->quotas.per_uid);
	check_limits(&config->quotas.per_gid);
	must(config->n_classes >= 1 && config->n_classes <= COUNT(config->classes));
	for (size_t i = 0; i < config->n_classes; i++) {
		const struct class_rule *rule = &config->classes[i];

		must(rule->name[0] && strlen(rule->name) <= CLASS_NAME_MAX);
		must(rule->mode <= 0777 && strlen(rule->socket) < sizeof(rule->socket));
		for (size_t j = 0; j < i; j++)
			must(strcmp(config->classes[j].name, rule->name) != 0);
	}
	for (size_t i = 0; i < config->quotas.n_rules; i++) {
		const struct rule *rule = &config->quotas.rules[i];
		struct limits limits = quotas_find(&config->quotas, rule->scope, rule->id, 8);

		must(rule->scope == SCOPE_UID || rule->scope == SCOPE_GID);
		check_limits(&rule->limits);
		must(limits.most[BOOK_MEMORY] <= limits.most[BOOK_CHARGE] ||
		     limits.most[BOOK_CHARGE] <= INT64_MAX);
		for (size_t j = 0; j < i; j++)
			must(config->quotas.rules[j].scope != rule->scope ||
			     config->quotas.rules[j].id != rule->id);
	}
}

static void check_faults(const struct config *config)
{
	const struct faults *faults = &config->faults;

	must(faults->count <= config->n_classes);
	for (size_t i = 0; i < faults->count; i++) {
		const struct fault_rule *rule = &faults->rules[i];
		size_t n = 0;

		while (n < config->n_classes && strcmp(config->classes[n].name, rule->klass) != 0)
			n++;
		must(n < config->n_classes);
		must(faults_of(faults, rule->klass) == rule);
		for (size_t j = 0; j < FAULT_STAGES; j++)
			must((rule->stages[j].count > 0) == (rule->stages[j].errnum > 0));
	}
}

/* Return: as config_load(), whose rules hold. */
static int load(bool allow_faults, size_t *ret_faults)
{
	struct config config;
	char words[256];
	int r;

	memset(words, 'x', sizeof(words));
	words[0] = '\0';
	r = config_load(path, allow_faults, &config, words, sizeof(words));
	if (r == 0) {
		check_config(&config);
		check_faults(&config);
		*ret_faults = config.faults.count;
		config_fini(&config);
	} else {
		size_t n = strnlen(words, sizeof(words));

		must(r < 0 && n > 0 && n < sizeof(words));
		must(strncmp(words, path, strlen(path)) == 0);
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int before = lowest_fd(), r;
	size_t faults = 0, none = 0;

	must(ftruncate(file, 0) == 0);
	must(pwrite(file, data, size, 0) == (ssize_t)size);
	r = load(/* allow_faults */ true, &faults);
	must((load(false, &none) == 0) == (r == 0 && faults == 0));
	must(none == 0);
	must(lowest_fd() == before);
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	file = memfd_create("fuzz", MFD_CLOEXEC);
	must(file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return 0;
}
