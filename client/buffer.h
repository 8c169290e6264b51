/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_BUFFER_H
#define KVREG_BUFFER_H
/* Memory that the program shares with its session: made here, or the program's own memfd. */
#include "client/kvreg.h"
#include "client/memory.h"

struct kvreg_buffer {
	LIST_ENTRY(kvreg_buffer) link; /* in k->buffers */
	struct kvreg *k;
	uint32_t id;      /* in the session */
	uint64_t address; /* of byte 0 in the program; 0: it has no mapping */
	uint64_t length;
	struct memory memory; /* of kvreg_buffer_alloc(); else nothing */
	char label[LABEL_MAX + 1];
};

/** buffer_free() - takes @buffer out of its list, unmaps it if it is ours; the session is not
 *  told. */
void buffer_free(struct kvreg_buffer *buffer);

#endif
