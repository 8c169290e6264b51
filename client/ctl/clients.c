/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvregctl clients: who is connected, what each has registered, and whose book carries the pin.
 * What only the session knows is absent ("-", null) when it did not answer in time.
 */
#include <stdio.h>

#include "admin.h"
#include "command.h"
#include "complain.h"
#include "table.h"

#define CLIENT(member)   FIELD(Kvreg__ClientInfo, member), 0
#define ANSWERED(member) FIELD(Kvreg__ClientInfo, member), offsetof(Kvreg__ClientInfo, answered)

static const struct column columns[] = {
	{ "pid", "PID", COLUMN_NUMBER, CLIENT(pid) },
	{ "comm", "COMM", COLUMN_NAME, CLIENT(comm) },
	{ "program", NULL, COLUMN_TEXT, ANSWERED(program) },
	{ "uid", NULL, COLUMN_NUMBER, CLIENT(uid) },
	{ "gid", NULL, COLUMN_NUMBER, CLIENT(gid) },
	{ "user", "USER", COLUMN_USER, CLIENT(uid) },
	{ "class", "CLASS", COLUMN_NAME, CLIENT(class_) },
	{ "state", "STATE", COLUMN_STATE, CLIENT(state) },
	{ "answered", NULL, COLUMN_BOOL, CLIENT(answered) },
	{ "domains", "DOMAINS", COLUMN_NUMBER, ANSWERED(domains) },
	{ "buffers", "BUFFERS", COLUMN_NUMBER, ANSWERED(buffers) },
	{ "regions", "REGIONS", COLUMN_NUMBER, ANSWERED(regions) },
	{ "registered", "REGISTERED", COLUMN_SIZE, ANSWERED(registered) },
	{ "memory", NULL, COLUMN_SIZE, CLIENT(memory) },
	{ "granted", "GRANTED", COLUMN_SIZE, CLIENT(granted) },
	{ "gpu", NULL, COLUMN_SIZE, CLIENT(gpu) },
	{ "leased", "LEASED", COLUMN_SIZE, CLIENT(leased) },
	{ "session_vm_pin", "VMPIN", COLUMN_SIZE, CLIENT(session_vm_pin) },
	{ "client_vm_pin", "CLIENT-VMPIN", COLUMN_SIZE, CLIENT(client_vm_pin) },
	{ "session_pid", "SESSION", COLUMN_NUMBER, CLIENT(session_pid) },
	{ "session_uid", NULL, COLUMN_NUMBER, CLIENT(session_uid) },
	{ "age_ms", "AGE", COLUMN_DURATION, CLIENT(age_ms) },
	{ "cgroup", "CGROUP", COLUMN_PATH, CLIENT(cgroup) },
};

static int take(void *arg, const Kvreg__AdminReply *reply)
{
	for (size_t i = 0; i < reply->n_clients; i++)
		table_add(arg, reply->clients[i]);
	admin_tell_unanswered(reply);
	return 0;
}

int clients_run(const struct options *options)
{
	__attribute__((cleanup(table_freep))) struct table *table =
		table_new(columns, sizeof(columns) / sizeof(columns[0]));
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__ClientsRequest body = KVREG__CLIENTS_REQUEST__INIT;
	struct json json = { .out = stdout };
	int status;

	if (!table)
		return complain(CTL_FAILED, "out of memory");
	request.body_case = KVREG__ADMIN_REQUEST__BODY_CLIENTS;
	request.clients = &body;
	status = admin_ask(options, &request, take, table);
	if (status)
		return status;
	table_sort(table);
	if (options->json)
		return table_json(table, &json, NULL);
	if (!table_rows(table)) {
		puts("no clients");
		return 0;
	}
	return table_print(table, options);
}
