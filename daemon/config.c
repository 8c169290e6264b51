/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include <errno.h>
#include <ini.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/procfs.h"

static const struct {
	const char *name;
	uint32_t bit;
} access_names[] = {
	{ "local_write", IB_UVERBS_ACCESS_LOCAL_WRITE },
	{ "remote_write", IB_UVERBS_ACCESS_REMOTE_WRITE },
	{ "remote_read", IB_UVERBS_ACCESS_REMOTE_READ },
	{ "remote_atomic", IB_UVERBS_ACCESS_REMOTE_ATOMIC },
	{ "mw_bind", IB_UVERBS_ACCESS_MW_BIND },
	{ "relaxed_ordering", IB_UVERBS_ACCESS_RELAXED_ORDERING },
};

struct parse {
	struct config *config;
	uint64_t whole;
	FILE *file;
	bool allow_faults;
	int line;           /* being read */
	const char *reason; /* of the first key that was refused; NULL: none was */
	int refused;        /* its line */
	char section[64], key[64];
};

static int parse_switch(const char *text, bool *ret_on)
{
	bool on = strcmp(text, "on") == 0;

	if (!on && strcmp(text, "off") != 0)
		return -EINVAL;
	*ret_on = on;
	return 0;
}

static int parse_access(const char *text, uint32_t *ret_access)
{
	uint32_t access = 0;

	while (*text) {
		size_t n = strcspn(text, ", "), i = 0;

		while (i < sizeof(access_names) / sizeof(access_names[0]) &&
		       (strlen(access_names[i].name) != n ||
			strncmp(access_names[i].name, text, n) != 0))
			i++;
		if (i == sizeof(access_names) / sizeof(access_names[0]))
			return -EINVAL;
		access |= access_names[i].bit;
		text += n;
		text += strspn(text, ", ");
	}
	*ret_access = access;
	return 0;
}

/* A key that is none of the book's limits, or a value that is none of the key's. */
static int told(struct parse *p, int r)
{
	if (r == -ENOENT)
		p->reason = "unknown key";
	return r;
}

static int set_rule(struct parse *p, enum scope scope, const char *id, const char *key,
		    const char *value)
{
	struct rule *rule;
	uint32_t number;

	if (quota_number(id, &number) < 0) {
		p->reason = scope == SCOPE_UID ? "the section names no uid"
					       : "the section names no gid";
		return -EINVAL;
	}
	rule = quotas_rule(&p->config->quotas, scope, number);
	return rule ? told(p, limits_set(&rule->limits, key, value, p->whole)) : -ENOMEM;
}

static int set_text(char *ret_text, size_t size, const char *value)
{
	if (strlen(value) >= size)
		return -EINVAL;
	strcpy(ret_text, value);
	return 0;
}

static int parse_leases(const char *text, enum lease_policy *ret_policy)
{
	static const char *const names[] = {
		[LEASES_ALL] = "all", [LEASES_MOMENTARY] = "momentary", [LEASES_NONE] = "none"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], text) != 0)
			continue;
		*ret_policy = (enum lease_policy)i;
		return 0;
	}
	return -EINVAL;
}

static struct class_rule *class_for(struct parse *p, const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
	struct config *config = p->config;
	struct class_rule *rule = &config->classes[config->n_classes];

	if (!*name || strlen(name) > CLASS_NAME_MAX || strspn(name, plain) != strlen(name)) {
		p->reason = "a class is named in small letters, digits, '-', '_' and '.'";
		return NULL;
	}
	/* Two of one name could not be told apart in any listing. */
	if (strcmp(config->classes[0].name, name) == 0) {
		p->reason = "the default class has no section: its limits are [quota]";
		return NULL;
	}
	for (size_t i = 1; i < config->n_classes; i++)
		if (strcmp(config->classes[i].name, name) == 0)
			return &config->classes[i];
	if (config->n_classes > CLASSES_MAX) {
		p->reason = "too many classes";
		return NULL;
	}
	/* What the section leaves out is bounded by the host's limits alone. */
	*rule = (struct class_rule){ .mode = 0666, .limits = limits_none() };
	strcpy(rule->name, name);
	config->n_classes++;
	return rule;
}

static int set_class(struct parse *p, const char *section, const char *key, const char *value)
{
	struct class_rule *rule = class_for(p, section + strlen("class "));
	unsigned long mode;
	char *end;

	if (!rule)
		return -EINVAL;
	if (strcmp(key, "socket") == 0)
		return *value == '/' ? set_text(rule->socket, sizeof(rule->socket), value)
				     : -EINVAL;
	if (strcmp(key, "mode") == 0) {
		mode = strtoul(value, &end, 8);
		rule->mode = (mode_t)mode;
		return *value && !*end && mode <= 0777 ? 0 : -EINVAL;
	}
	if (strcmp(key, "leases") == 0)
		return parse_leases(value, &rule->leases);
	return told(p, limits_set(&rule->limits, key, value, p->whole));
}

static int set_test(struct parse *p, const char *section, const char *key, const char *value)
{
	if (!p->allow_faults) {
		p->reason =
			"faults on purpose are for tests: kvregd takes them with --allow-faults";
		return -EINVAL;
	}
	return faults_set(&p->config->faults, section + strlen("test "), key, value, p->line,
			  &p->reason);
}

static int set(struct parse *p, const char *section, const char *key, const char *value)
{
	struct config *config = p->config;

	if (strncmp(section, "uid ", 4) == 0)
		return set_rule(p, SCOPE_UID, section + 4, key, value);
	if (strncmp(section, "gid ", 4) == 0)
		return set_rule(p, SCOPE_GID, section + 4, key, value);
	if (strncmp(section, "class ", 6) == 0)
		return set_class(p, section, key, value);
	if (strncmp(section, "test ", 5) == 0)
		return set_test(p, section, key, value);
	if (strcmp(section, "daemon") == 0 && strcmp(key, "session_user") == 0)
		return set_text(config->session_user, sizeof(config->session_user), value);
	if (strcmp(section, "daemon") == 0 && strcmp(key, "cgroup") == 0)
		return *value == '/' || strcmp(value, "none") == 0
			       ? set_text(config->cgroup, sizeof(config->cgroup), value)
			       : -EINVAL;
	if (strcmp(section, "daemon") == 0 && strcmp(key, "cuda_sessions") == 0)
		return parse_switch(value, &config->cuda_sessions);
	if (strcmp(section, "daemon") != 0 && strcmp(section, "quota") != 0) {
		p->reason = "unknown section";
		return -EINVAL;
	}
	if (strcmp(section, "quota") == 0 && strcmp(key, "access") == 0)
		return parse_access(value, &config->access);
	if (strcmp(section, "quota") == 0 && strcmp(key, "leases") == 0)
		return parse_leases(value, &config->classes[0].leases);
	if (strcmp(section, "quota") == 0)
		return told(p, quotas_set(&config->quotas, key, value, p->whole));
	p->reason = "unknown key";
	return -EINVAL;
}

/* inih wants 1 for "fine"; it goes on after an error, and the first one is the one to tell. */
static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct parse *p = user;

	if (p->reason)
		return 0;
	if (set(p, section, key, value) == 0)
		return 1;
	if (!p->reason)
		p->reason = "not a value that this key takes";
	p->refused = p->line;
	snprintf(p->section, sizeof(p->section), "%s", section);
	snprintf(p->key, sizeof(p->key), "%s", key);
	return 0;
}

static int defaults(struct config *config, uint64_t *ret_whole)
{
	int r = proc_meminfo("MemTotal", ret_whole);

	if (r < 0)
		return r;
	*config = (struct config){
		.session_user = DEFAULT_SESSION_USER,
		.n_classes = 1,
		.classes[0] = { .name = "default", .limits = limits_none() },
	};
	quotas_init(&config->quotas, *ret_whole);
	for (size_t i = 0; i < sizeof(access_names) / sizeof(access_names[0]); i++)
		config->access |= access_names[i].bit;
	return 0;
}

static char *next_line(char *text, int size, void *stream)
{
	struct parse *p = stream;

	p->line++;
	return fgets(text, size, p->file);
}

/* Return: 0; the number of the first bad line; or -errno. */
static int parse_file(struct parse *p, const char *path)
{
	int line;

	p->file = fopen(path, "re");
	if (!p->file)
		return -errno;
	line = ini_parse_stream(next_line, p, on_key, p);
	if (line < 0 || (line == 0 && ferror(p->file)))
		line = -EIO;
	fclose(p->file);
	return line;
}

/* Return: the first [test ...] section of no class; NULL: there is none. */
static const struct fault_rule *stray_faults(const struct config *config)
{
	for (size_t i = 0; i < config->faults.count; i++) {
		size_t n = 0;

		while (n < config->n_classes &&
		       strcmp(config->classes[n].name, config->faults.rules[i].klass) != 0)
			n++;
		if (n == config->n_classes)
			return &config->faults.rules[i];
	}
	return NULL;
}

int config_load(const char *path, bool allow_faults, struct config *ret_config, char *ret_words,
		size_t size)
{
	const struct fault_rule *stray;
	struct config config;
	struct parse p = { .config = &config, .allow_faults = allow_faults };
	int r = defaults(&config, &p.whole), line;

	if (r < 0) {
		snprintf(ret_words, size, "/proc/meminfo: %s", strerror(-r));
		return r;
	}
	if (path) {
		snprintf(config.path, sizeof(config.path), "%s", path);
		line = parse_file(&p, path);
		if (line != 0) {
			r = line > 0 ? -EINVAL : line;
			if (line < 0)
				snprintf(ret_words, size, "%s: %s", path, strerror(-r));
			else if (line == p.refused)
				snprintf(ret_words, size, "%s:%d: [%s] %s: %s", path, line,
					 p.section, p.key, p.reason);
			else
				snprintf(ret_words, size, "%s:%d: not an INI line", path, line);
			config_fini(&config);
			return r;
		}
	}
	for (size_t i = 1; i < config.n_classes; i++) {
		if (config.classes[i].socket[0])
			continue;
		snprintf(ret_words, size, "%s: [class %s] has no socket", path,
			 config.classes[i].name);
		config_fini(&config);
		return -EINVAL;
	}
	stray = stray_faults(&config);
	if (stray) {
		snprintf(ret_words, size, "%s:%d: [test %s]: there is no such class", path,
			 stray->line, stray->klass);
		config_fini(&config);
		return -EINVAL;
	}
	*ret_config = config;
	return 0;
}

void config_fini(struct config *config)
{
	quotas_fini(&config->quotas);
}
