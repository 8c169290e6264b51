/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/quota.h"

#define ITEMS_TEXT 512u

static const char *const stage_names[] = {
	[FAULT_CONNECT] = "connect",       [FAULT_ATTACH] = "attach",
	[FAULT_IMPORT] = "import",         [FAULT_MAP] = "map",
	[FAULT_POPULATE] = "populate",     [FAULT_REGISTER] = "register",
	[FAULT_DEREGISTER] = "deregister",
};
_Static_assert(sizeof(stage_names) / sizeof(stage_names[0]) == FAULT_STAGES, "a stage has a name");

const char *fault_stage_name(uint32_t stage)
{
	return stage < FAULT_STAGES ? stage_names[stage] : NULL;
}

/* ---- a value ---- */

static struct stage_fault *stage_find(struct fault_rule *rule, const char *name)
{
	for (size_t i = 0; name && i < FAULT_STAGES; i++)
		if (strcmp(stage_names[i], name) == 0)
			return &rule->stages[i];
	return NULL;
}

static int errno_find(const char *name)
{
	/* EHWPOISON, 133, is Linux's last. */
	for (int i = 1; name && i <= EHWPOISON; i++) {
		const char *known = strerrorname_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return 0;
}

/* Return: the number; 0: @text is none, or 0. */
static uint32_t number(const char *text)
{
	unsigned long value;
	char *end;

	if (!text || strspn(text, "0123456789") == 0)
		return 0;
	errno = 0;
	value = strtoul(text, &end, 10);
	return *end || errno || value > UINT32_MAX ? 0 : (uint32_t)value;
}

/* STAGE:MILLISECONDS */
static int take_delay(struct fault_rule *rule, char *item)
{
	struct stage_fault *stage = stage_find(rule, strsep(&item, ":"));
	uint32_t ms = number(strsep(&item, ":"));

	if (!stage || ms == 0 || item)
		return -EINVAL;
	stage->delay_ms = ms;
	return 0;
}

/* STAGE:ERRNO:COUNT */
static int take_fail(struct fault_rule *rule, char *item)
{
	struct stage_fault *stage = stage_find(rule, strsep(&item, ":"));
	int errnum = errno_find(strsep(&item, ":"));
	uint32_t count = number(strsep(&item, ":"));

	if (!stage || errnum == 0 || count == 0 || item)
		return -EINVAL;
	stage->errnum = errnum;
	stage->count = count;
	return 0;
}

static int take_items(struct fault_rule *rule, const char *value,
		      int (*take)(struct fault_rule *rule, char *item))
{
	char text[ITEMS_TEXT], *rest, *item;
	int r = -EINVAL; /* there is no item */

	if (strlen(value) >= sizeof(text))
		return -EINVAL;
	strcpy(text, value);
	for (item = strtok_r(text, ", ", &rest); item; item = strtok_r(NULL, ", ", &rest)) {
		r = take(rule, item);
		if (r < 0)
			return r;
	}
	return r;
}

/* ---- a section ---- */

/* Return: its index; faults->count: there is none. */
static size_t find(const struct faults *faults, const char *klass)
{
	size_t i = 0;

	while (i < faults->count && strcmp(faults->rules[i].klass, klass) != 0)
		i++;
	return i;
}

const struct fault_rule *faults_of(const struct faults *faults, const char *klass)
{
	size_t i = find(faults, klass);

	return i < faults->count ? &faults->rules[i] : NULL;
}

static struct fault_rule *rule_for(struct faults *faults, const char *klass, int line)
{
	size_t i = find(faults, klass);
	struct fault_rule *rule = &faults->rules[i];

	if (i < faults->count)
		return rule;
	/* More sections, or longer names, than there can be classes. */
	if (i == sizeof(faults->rules) / sizeof(faults->rules[0]) ||
	    strlen(klass) >= sizeof(rule->klass))
		return NULL;
	*rule = (struct fault_rule){ .line = line };
	strcpy(rule->klass, klass);
	faults->count++;
	return rule;
}

int faults_set(struct faults *faults, const char *klass, const char *key, const char *value,
	       int line, const char **ret_reason)
{
	struct fault_rule *rule = rule_for(faults, klass, line);

	if (!rule) {
		*ret_reason = "there is no such class";
		return -EINVAL;
	}
	if (strcmp(key, "delay") == 0)
		return take_items(rule, value, take_delay);
	if (strcmp(key, "fail") == 0)
		return take_items(rule, value, take_fail);
	if (strcmp(key, "max_mr") == 0) {
		rule->max_mr = number(value);
		return rule->max_mr ? 0 : -EINVAL;
	}
	if (strcmp(key, "max_mr_size") == 0)
		return quota_size(value, 0, &rule->max_mr_size) < 0 || rule->max_mr_size == 0
			       ? -EINVAL
			       : 0;
	*ret_reason = "unknown key";
	return -EINVAL;
}

/* ---- what comes of it ---- */

int faults_connect(struct faults *faults, const char *klass)
{
	size_t i = find(faults, klass);
	struct stage_fault *stage = &faults->rules[i].stages[FAULT_CONNECT];

	if (i == faults->count || stage->count == 0)
		return 0;
	stage->count--;
	return -stage->errnum;
}

void faults_to_wire(const struct fault_rule *rule, struct faults_wire *ret_wire)
{
	kvreg__faults__init(&ret_wire->faults);
	ret_wire->faults.max_mr = rule->max_mr;
	ret_wire->faults.max_mr_size = rule->max_mr_size;
	ret_wire->faults.stages = ret_wire->list;
	for (uint32_t i = 0; i < FAULT_STAGES; i++) {
		const struct stage_fault *from = &rule->stages[i];
		size_t n = ret_wire->faults.n_stages;
		Kvreg__StageFault *to = &ret_wire->stages[n];

		if (from->delay_ms == 0 && from->count == 0)
			continue;
		kvreg__stage_fault__init(to);
		to->stage = i;
		to->delay_ms = from->delay_ms;
		/* That a session cannot be started is over when it hears of it. */
		if (i != FAULT_CONNECT) {
			to->errnum = (uint32_t)from->errnum;
			to->count = from->count;
		}
		ret_wire->list[n] = to;
		ret_wire->faults.n_stages++;
	}
}
