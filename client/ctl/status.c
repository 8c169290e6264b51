/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvregctl status: what the daemon is and holds, then the share of each class, user and group.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin.h"
#include "command.h"
#include "complain.h"
#include "format.h"
#include "table.h"

#define USAGE(member) FIELD(Kvreg__Usage, member), 0

/* A book and its limit. Charge is what sessions are granted: the kernel's own measure. */
#define AMOUNTS                                                                                    \
	{ "sessions", "SESSIONS", COLUMN_NUMBER, USAGE(sessions) },                                \
		{ "sessions_limit", "LIMIT", COLUMN_LIMIT, USAGE(sessions_limit) },                \
		{ "memory", "MEMORY", COLUMN_SIZE, USAGE(memory) },                                \
		{ "memory_limit", "LIMIT", COLUMN_SIZE_LIMIT, USAGE(memory_limit) },               \
		{ "granted", "GRANTED", COLUMN_SIZE, USAGE(charge) },                              \
		{ "granted_limit", "LIMIT", COLUMN_SIZE_LIMIT, USAGE(charge_limit) },              \
		{ "gpu", "GPU", COLUMN_SIZE, USAGE(gpu) },                                         \
		{ "gpu_limit", "LIMIT", COLUMN_SIZE_LIMIT, USAGE(gpu_limit) },                     \
		{ "domains", NULL, COLUMN_NUMBER, USAGE(domains) },                                \
		{ "domains_limit", NULL, COLUMN_LIMIT, USAGE(domains_limit) },                     \
		{ "buffers", NULL, COLUMN_NUMBER, USAGE(buffers) },                                \
		{ "buffers_limit", NULL, COLUMN_LIMIT, USAGE(buffers_limit) },                     \
		{ "regions", "REGIONS", COLUMN_NUMBER, USAGE(regions) },                           \
	{                                                                                          \
		"regions_limit", "LIMIT", COLUMN_LIMIT, USAGE(regions_limit)                       \
	}

static const struct column class_columns[] = {
	{ "class", "CLASS", COLUMN_NAME, USAGE(class_) },
	AMOUNTS,
	{ "socket", "SOCKET", COLUMN_PATH, USAGE(socket) },
};

static const struct column user_columns[] = {
	{ "class", "CLASS", COLUMN_NAME, USAGE(class_) },
	{ "uid", "UID", COLUMN_NUMBER, USAGE(id) },
	{ "user", "USER", COLUMN_USER, USAGE(id) },
	AMOUNTS,
};

static const struct column group_columns[] = {
	{ "class", "CLASS", COLUMN_NAME, USAGE(class_) },
	{ "gid", "GID", COLUMN_NUMBER, USAGE(id) },
	AMOUNTS,
};

/*
 * The tables grow record by record; the rest stands in the first record that has a status and is
 * rendered from there into memory, so that nothing is printed unless the whole answer came.
 */
struct answer {
	const struct options *options;
	struct table *classes, *users, *groups;
	bool groups_matter; /* one of them has a limit */
	FILE *out;          /* in memory */
	struct json json;
	bool begun;
};

static void print_state(FILE *out, const char *state, bool color)
{
	const char *sequence = color ? state_color(state) : NULL;

	fprintf(out, "%s%s%s", sequence ? sequence : "", format_text(state).text,
		sequence ? "\033[0m" : "");
}

/* What the whole host has and may have; NULL if the daemon did not say. */
static const Kvreg__Usage *find_host(const Kvreg__StatusReply *s)
{
	for (size_t i = 0; i < s->n_usage; i++)
		if (s->usage[i]->scope == KVREG__SCOPE__SCOPE_HOST)
			return s->usage[i];
	return NULL;
}

static void print_size(FILE *out, const char *name, uint64_t used, uint64_t limit)
{
	fprintf(out, "  %-13s %s", name, format_size(used).text);
	fprintf(out, limit == UINT64_MAX ? ", no limit\n" : " of %s\n", format_size(limit).text);
}

static void print_usage(FILE *out, const Kvreg__Usage *host, const char *session_user)
{
	if (!host)
		return;
	fprintf(out, "  sessions      %" PRIu32 " of %" PRIu64 ", run as %s\n", host->sessions,
		host->sessions_limit, format_text(session_user).text);
	print_size(out, "memory", host->memory, host->memory_limit);
	print_size(out, "granted", host->charge, host->charge_limit);
	print_size(out, "gpu", host->gpu, host->gpu_limit);
}

static void print_status(FILE *out, const Kvreg__StatusReply *s, const struct options *options)
{
	fprintf(out, "kvregd %s, pid %" PRIu32 ", ", format_text(s->version).text, s->pid);
	print_state(out, s->state, colors_wanted(options));
	fprintf(out, ", up for %s\n", format_duration(s->uptime_ms).text);
	fprintf(out, "  device        %s\n", format_text(s->device).text);
	fprintf(out, "  privileged    %s\n", s->privileged ? "yes" : "no");
	for (size_t i = 0; i < s->n_missing; i++)
		fprintf(out, "  %-13s %s\n", i ? "" : "missing", format_text(s->missing[i]).text);
	print_usage(out, find_host(s), s->session_user);
	fprintf(out, "  connections   %" PRIu64 " accepted, of these %" PRIu64 " refused\n",
		s->accepted, s->refused);
	fprintf(out, "  grants        %" PRIu64 " refused\n", s->grants_refused);
	fprintf(out, "  configuration %s\n",
		s->config[0] ? format_text(s->config).text : "defaults");
}

static void write_limit(struct json *json, const char *key, uint64_t limit)
{
	if (limit == UINT64_MAX)
		json_text(json, key, NULL);
	else
		json_number(json, key, limit);
}

static void write_usage(const Kvreg__Usage *host, struct json *json)
{
	const struct {
		const char *key, *limit_key;
		uint64_t used, limit;
	} books[] = {
		{ "sessions", "sessions_limit", host->sessions, host->sessions_limit },
		{ "memory", "memory_limit", host->memory, host->memory_limit },
		{ "granted", "granted_limit", host->charge, host->charge_limit },
		{ "gpu", "gpu_limit", host->gpu, host->gpu_limit },
		{ "domains", "domains_limit", host->domains, host->domains_limit },
		{ "buffers", "buffers_limit", host->buffers, host->buffers_limit },
		{ "regions", "regions_limit", host->regions, host->regions_limit },
	};

	for (size_t i = 0; i < sizeof(books) / sizeof(books[0]); i++) {
		json_number(json, books[i].key, books[i].used);
		write_limit(json, books[i].limit_key, books[i].limit);
	}
}

static void write_status(const Kvreg__StatusReply *s, struct json *json)
{
	json_object(json, NULL);
	json_text(json, "version", s->version);
	json_number(json, "pid", s->pid);
	json_number(json, "uptime_ms", s->uptime_ms);
	json_text(json, "device", s->device);
	json_text(json, "state", s->state);
	json_bool(json, "privileged", s->privileged);
	json_array(json, "missing");
	for (size_t i = 0; i < s->n_missing; i++)
		json_text(json, NULL, s->missing[i]);
	json_end(json);
	if (find_host(s))
		write_usage(find_host(s), json);
	json_number(json, "accepted", s->accepted);
	json_number(json, "refused", s->refused);
	json_number(json, "grants_refused", s->grants_refused);
	json_text(json, "session_user", s->session_user);
	json_text(json, "config", s->config[0] ? s->config : NULL);
}

static bool has_limit(const Kvreg__Usage *usage)
{
	const uint64_t limits[] = { usage->sessions_limit, usage->memory_limit,
				    usage->charge_limit,   usage->gpu_limit,
				    usage->domains_limit,  usage->buffers_limit,
				    usage->regions_limit };

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i] != UINT64_MAX)
			return true;
	return false;
}

static void add_usage(struct answer *answer, const Kvreg__Usage *usage)
{
	if (usage->scope == KVREG__SCOPE__SCOPE_CLASS)
		table_add(answer->classes, usage);
	else if (usage->scope == KVREG__SCOPE__SCOPE_UID)
		table_add(answer->users, usage);
	else if (usage->scope == KVREG__SCOPE__SCOPE_GID)
		table_add(answer->groups, usage);
	if (usage->scope == KVREG__SCOPE__SCOPE_GID)
		answer->groups_matter |= has_limit(usage);
}

static int take(void *arg, const Kvreg__AdminReply *reply)
{
	struct answer *answer = arg;
	const Kvreg__StatusReply *s = reply->status;

	if (!s)
		return 0;
	for (size_t i = 0; i < s->n_usage; i++)
		add_usage(answer, s->usage[i]);
	if (answer->begun)
		return 0;
	answer->begun = true;
	if (answer->options->json)
		write_status(s, &answer->json);
	else
		print_status(answer->out, s, answer->options);
	return 0;
}

static int write_tables(struct answer *answer)
{
	int status = table_json(answer->classes, &answer->json, "classes");

	if (!status)
		status = table_json(answer->users, &answer->json, "users");
	if (!status)
		status = table_json(answer->groups, &answer->json, "groups");
	json_end(&answer->json);
	return status;
}

static int print_tables(const struct answer *answer)
{
	/* The default class alone says nothing that the lines above have not said. */
	const struct {
		const struct table *table;
		bool wanted;
	} tables[] = {
		{ answer->classes, table_rows(answer->classes) > 1 },
		{ answer->users, table_rows(answer->users) > 0 },
		{ answer->groups, answer->groups_matter },
	};
	int status = 0;

	for (size_t i = 0; !status && i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (!tables[i].wanted)
			continue;
		puts("");
		status = table_print(tables[i].table, answer->options);
	}
	return status;
}

static int print_answer(struct answer *answer, char *const *text)
{
	int status = 0;

	table_sort(answer->users);
	table_sort(answer->groups);
	if (answer->options->json)
		status = write_tables(answer);
	if (fflush(answer->out) || ferror(answer->out))
		return complain(CTL_FAILED, "out of memory");
	if (status)
		return status;
	fputs(*text, stdout);
	return answer->options->json ? 0 : print_tables(answer);
}

static int ask(struct answer *answer, char *const *text)
{
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__StatusRequest body = KVREG__STATUS_REQUEST__INIT;
	int status;

	request.body_case = KVREG__ADMIN_REQUEST__BODY_STATUS;
	request.status = &body;
	status = admin_ask(answer->options, &request, take, answer);
	if (status)
		return status;
	if (!answer->begun)
		return complain(CTL_FAILED, "the daemon answered without a status");
	return print_answer(answer, text);
}

int status_run(const struct options *options)
{
	struct answer answer = { .options = options };
	char *text = NULL;
	size_t size = 0;
	int status;

	answer.users = table_new(user_columns, sizeof(user_columns) / sizeof(user_columns[0]));
	answer.groups = table_new(group_columns, sizeof(group_columns) / sizeof(group_columns[0]));
	answer.classes = table_new(class_columns, sizeof(class_columns) / sizeof(class_columns[0]));
	answer.out = open_memstream(&text, &size);
	answer.json.out = answer.out;
	if (answer.users && answer.groups && answer.classes && answer.out)
		status = ask(&answer, &text);
	else
		status = complain(CTL_FAILED, "out of memory");
	if (answer.out)
		fclose(answer.out);
	free(text);
	table_free(answer.users);
	table_free(answer.groups);
	table_free(answer.classes);
	return status;
}
