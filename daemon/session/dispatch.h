/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_DISPATCH_H
#define KVREG_SESSION_DISPATCH_H
/*
 * From a request to its handler. The table says of each body what must hold before the handler is
 * called: whether Hello has been said, and how many fds come along. A handler has two ways out:
 * refuse (the code set in the failure: the client is told, and lives on), or end the client.
 */
#include "daemon/session/client.h"

/** An answer under construction: bodies live here until it is packed. */
struct answer {
	Kvreg__Reply reply;
	union {
		Kvreg__HelloReply hello;
		Kvreg__AttachDomainReply attach;
		Kvreg__ImportBufferReply import;
		Kvreg__RegisterReply registered;
		Kvreg__WhoAmIReply who;
		Kvreg__LeaseMemlockReply lease;
		Kvreg__Done done;
	};
	Kvreg__Region regions[ITEMS_PER_REGISTER];
	Kvreg__Region *list[ITEMS_PER_REGISTER];
	struct failure failure;
	struct failure_wire wire;
};

/**
 * dispatch() - serves one request, and fills in the answer to send.
 * Return: 0; -EPROTO the client broke the protocol (@ret_words says how); or another -errno: it
 * has gone.
 */
int dispatch(struct client *c, const Kvreg__Request *request, struct fdset *fds,
	     struct answer *ret_answer, const char **ret_words);

/* requests.c: one handler a request, each as the table in dispatch.c describes. */
typedef int handler_fn(struct client *c, const Kvreg__Request *request, struct fdset *fds,
		       struct answer *answer);
handler_fn handle_hello, handle_attach_domain, handle_detach_domain, handle_import_buffer,
	handle_release_buffer, handle_register, handle_deregister, handle_who_am_i,
	handle_lease_memlock, handle_end_lease;

#endif
