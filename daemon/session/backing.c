/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/backing.h"

#include <assert.h>
#include <stdlib.h>

struct backing *backing_get(struct backing_list *list, dev_t dev, ino_t ino)
{
	struct backing *backing;

	LIST_FOREACH(backing, list, link)
		if (backing->dev == dev && backing->ino == ino)
			return backing_ref(backing);
	backing = calloc(1, sizeof(*backing));
	if (!backing)
		return NULL;
	backing->dev = dev;
	backing->ino = ino;
	backing->refs = 1;
	LIST_INSERT_HEAD(list, backing, link);
	return backing;
}

struct backing *backing_ref(struct backing *backing)
{
	backing->refs++;
	return backing;
}

void backing_unref(struct backing *backing)
{
	if (!backing || --backing->refs > 0)
		return;
	assert(backing->coverage.regions == 0);
	LIST_REMOVE(backing, link);
	coverage_fini(&backing->coverage);
	free(backing);
}
