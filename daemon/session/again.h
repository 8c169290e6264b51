/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_AGAIN_H
#define KVREG_SESSION_AGAIN_H
/*
 * Live regions by what the client asked for, so that asking the same again finds the region there
 * is. It is given again only when nothing can have changed:
 *
 *  - The memory: a hole punched into a memfd after the pin leaves the old pages to the MR and new
 *    ones to the client. It also stamps the inode's ctime (shmem_truncate_range), as does a page's
 *    first write fault in any mapping; the session's own faults are read faults, which do not. So
 *    an unchanged ctime that is older than the pin's tick is proof of no hole; anything else is
 *    none, and a new MR is made. hugetlbfs stamps nothing: never there.
 *  - The MR: the kernel is asked (QUERY_MR), since the client may have destroyed it itself.
 *
 * A region that failed this is not offered again, and lives on until it is deregistered.
 */
#include <stdbool.h>
#include <sys/queue.h>
#include <time.h>

struct client;
struct region;
struct region_request;

#define AGAIN_BUCKETS 1024u

LIST_HEAD(again_list, region);

struct again {
	struct again_list buckets[AGAIN_BUCKETS];
};

/** When memory was last seen to change, and whether a change since then would show. */
struct again_stamp {
	struct timespec changed; /* ctime of the inode */
	bool settled;            /* it is older than the tick in which it was read */
};

/** again_stamp() - of the memory behind @fd; to be taken before its pages are pinned. */
struct again_stamp again_stamp(int fd, bool is_hugetlb);

/** again_find() - the live region that is what @request asks for, or NULL. */
struct region *again_find(struct client *c, const struct region_request *request);

/** again_add() - offers @region, which has become live, if a change since its stamp would show. */
void again_add(struct client *c, struct region *region);

/** again_remove() - offers it no more, if it was offered. */
void again_remove(struct region *region);

#endif
