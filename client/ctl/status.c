/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvregctl status: what the daemon is and holds, then each user's share of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin.h"
#include "command.h"
#include "complain.h"
#include "format.h"
#include "table.h"

#define USER(member) FIELD(Kvreg__UserUsage, member), 0

#define CLASS(member) FIELD(Kvreg__ClassUsage, member), 0

static const struct column class_columns[] = {
	{ "class", "CLASS", COLUMN_NAME, CLASS(name) },
	{ "sessions", "SESSIONS", COLUMN_NUMBER, CLASS(sessions) },
	{ "sessions_limit", "LIMIT", COLUMN_NUMBER, CLASS(sessions_limit) },
	{ "granted", "GRANTED", COLUMN_SIZE, CLASS(granted) },
	{ "granted_limit", "LIMIT", COLUMN_SIZE, CLASS(granted_limit) },
	{ "socket", "SOCKET", COLUMN_PATH, CLASS(socket) },
};

static const struct column columns[] = {
	{ "class", "CLASS", COLUMN_NAME, USER(class_) },
	{ "uid", "UID", COLUMN_NUMBER, USER(uid) },
	{ "user", "USER", COLUMN_USER, USER(uid) },
	{ "sessions", "SESSIONS", COLUMN_NUMBER, USER(sessions) },
	{ "sessions_limit", "LIMIT", COLUMN_NUMBER, USER(sessions_limit) },
	{ "granted", "GRANTED", COLUMN_SIZE, USER(granted) },
	{ "granted_limit", "LIMIT", COLUMN_SIZE, USER(granted_limit) },
};

/*
 * The user table grows record by record; the rest stands in the first record that has a status and
 * is rendered from there into memory, so that nothing is printed unless the whole answer came.
 */
struct answer {
	const struct options *options;
	struct table *users, *classes;
	FILE *out; /* in memory */
	struct json json;
	bool begun;
};

static void print_state(FILE *out, const char *state, bool color)
{
	const char *sequence = color ? state_color(state) : NULL;

	fprintf(out, "%s%s%s", sequence ? sequence : "", format_text(state).text,
		sequence ? "\033[0m" : "");
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
	fprintf(out, "  sessions      %" PRIu32 " of %" PRIu32 ", run as %s\n", s->sessions,
		s->sessions_limit, format_text(s->session_user).text);
	fprintf(out, "  granted       %s of %s\n", format_size(s->granted).text,
		format_size(s->granted_limit).text);
	fprintf(out, "  connections   %" PRIu64 " accepted, of these %" PRIu64 " refused\n",
		s->accepted, s->refused);
	fprintf(out, "  grants        %" PRIu64 " refused\n", s->grants_refused);
	fprintf(out, "  configuration %s\n",
		s->config[0] ? format_text(s->config).text : "defaults");
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
	json_number(json, "sessions", s->sessions);
	json_number(json, "sessions_limit", s->sessions_limit);
	json_number(json, "granted", s->granted);
	json_number(json, "granted_limit", s->granted_limit);
	json_number(json, "accepted", s->accepted);
	json_number(json, "refused", s->refused);
	json_number(json, "grants_refused", s->grants_refused);
	json_text(json, "session_user", s->session_user);
	json_text(json, "config", s->config[0] ? s->config : NULL);
}

static int take(void *arg, const Kvreg__AdminReply *reply)
{
	struct answer *answer = arg;
	const Kvreg__StatusReply *s = reply->status;

	if (!s)
		return 0;
	for (size_t i = 0; i < s->n_users; i++)
		table_add(answer->users, s->users[i]);
	for (size_t i = 0; i < s->n_classes; i++)
		table_add(answer->classes, s->classes[i]);
	if (answer->begun)
		return 0;
	answer->begun = true;
	if (answer->options->json)
		write_status(s, &answer->json);
	else
		print_status(answer->out, s, answer->options);
	return 0;
}

static int print_answer(struct answer *answer, char *const *text)
{
	int status = 0;

	table_sort(answer->users);
	if (answer->options->json) {
		status = table_json(answer->classes, &answer->json, "classes");
		if (!status)
			status = table_json(answer->users, &answer->json, "users");
		json_end(&answer->json);
	}
	if (fflush(answer->out) || ferror(answer->out))
		return complain(CTL_FAILED, "out of memory");
	if (status)
		return status;
	fputs(*text, stdout);
	if (answer->options->json)
		return 0;
	/* The default class alone says nothing that the lines above have not said. */
	if (table_rows(answer->classes) > 1) {
		puts("");
		status = table_print(answer->classes, answer->options);
	}
	if (status || !table_rows(answer->users))
		return status;
	puts("");
	return table_print(answer->users, answer->options);
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

	answer.users = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	answer.classes = table_new(class_columns, sizeof(class_columns) / sizeof(class_columns[0]));
	answer.out = open_memstream(&text, &size);
	answer.json.out = answer.out;
	if (answer.users && answer.classes && answer.out)
		status = ask(&answer, &text);
	else
		status = complain(CTL_FAILED, "out of memory");
	if (answer.out)
		fclose(answer.out);
	free(text);
	table_free(answer.users);
	table_free(answer.classes);
	return status;
}
