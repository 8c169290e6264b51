/* SPDX-License-Identifier: Apache-2.0 */
#include "admin.h"

#include <stdio.h>

#include "check.h"

void admin_send(struct raw *admin, Kvreg__AdminRequest *request)
{
	uint8_t record[256];
	size_t length;

	request->seq = ++admin->seq;
	if (!request->major)
		request->major = PROTOCOL_MAJOR;
	length = codec_pack(&request->base, record, sizeof(record));
	require(length > 0);
	raw_send(admin, record, length, NULL, 0);
}

const Kvreg__AdminReply *admin_reply(struct raw *admin)
{
	return (const Kvreg__AdminReply *)raw_receive(admin, &kvreg__admin_reply__descriptor);
}

bool admin_status(const char *path, struct admin_status *ret_status)
{
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__StatusRequest body = KVREG__STATUS_REQUEST__INIT;
	const Kvreg__AdminReply *reply;
	struct raw *admin = raw_open(path);

	if (!admin)
		return false;
	request.body_case = KVREG__ADMIN_REQUEST__BODY_STATUS;
	request.status = &body;
	admin_send(admin, &request);
	reply = admin_reply(admin);
	if (reply) {
		const Kvreg__StatusReply *s = reply->status;

		require(s && reply->more && !reply->error && reply->seq == 1);
		require(s->n_usage > 0 && s->usage[0]->scope == KVREG__SCOPE__SCOPE_HOST);
		*ret_status = (struct admin_status){
			.pid = s->pid,
			.sessions = s->usage[0]->sessions,
			.granted = s->usage[0]->charge,
			.memory = s->usage[0]->memory,
			.regions = s->usage[0]->regions,
			.accepted = s->accepted,
			.refused = s->refused,
			.grants_refused = s->grants_refused,
			.privileged = s->privileged,
		};
	}
	while (reply && reply->more) {
		reply = admin_reply(admin);
		require(reply && reply->status && reply->seq == 1);
		for (size_t i = 0; i < reply->status->n_usage; i++)
			ret_status->users +=
				reply->status->usage[i]->scope == KVREG__SCOPE__SCOPE_UID;
	}
	raw_close(admin);
	return reply != NULL;
}

static void take_client(const Kvreg__ClientInfo *info, struct admin_client *ret_client)
{
	*ret_client = (struct admin_client){
		.pid = info->pid,
		.uid = info->uid,
		.session_pid = info->session_pid,
		.regions = info->regions,
		.granted = info->granted,
		.registered = info->registered,
		.answered = info->answered,
	};
	snprintf(ret_client->state, sizeof(ret_client->state), "%s", info->state);
}

bool admin_client(const char *path, uint32_t pid, struct admin_client *ret_client)
{
	Kvreg__AdminRequest request = KVREG__ADMIN_REQUEST__INIT;
	Kvreg__ClientsRequest body = KVREG__CLIENTS_REQUEST__INIT;
	const Kvreg__AdminReply *reply;
	struct raw *admin = raw_open(path);
	bool found = false;

	require(admin);
	request.body_case = KVREG__ADMIN_REQUEST__BODY_CLIENTS;
	request.clients = &body;
	admin_send(admin, &request);
	do {
		reply = admin_reply(admin);
		require(reply && !reply->error);
		for (size_t i = 0; i < reply->n_clients; i++) {
			if (reply->clients[i]->pid != pid)
				continue;
			take_client(reply->clients[i], ret_client);
			found = true;
		}
		for (size_t i = 0; found && i < reply->n_unanswered; i++)
			ret_client->unanswered |= reply->unanswered[i] == pid;
	} while (reply->more);
	raw_close(admin);
	return found;
}
