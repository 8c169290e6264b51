/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_HOLDERS_H
#define KVREG_DAEMON_HOLDERS_H
/*
 * Who holds what of a quota that has refused: the largest holders, for the one who is refused. Of
 * his own class only, whoever's limit it was: one tenant of the node learns nothing of another.
 */
#include <stddef.h>

#include "daemon/account.h"

struct supervisor;

/**
 * holders_text() - "41 (vllm) 2097152, 77 (sglang) 4096 and 3 more", by process; "" if nobody.
 * @klass, @uid, @gid: of the one who asked, which say what he may see
 */
void holders_text(const struct supervisor *supervisor, size_t klass, uint32_t uid, uint32_t gid,
		  const struct quota *quota, char *ret_text, size_t size);

#endif
