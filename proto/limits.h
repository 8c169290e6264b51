/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_LIMITS_H
#define KVREG_LIMITS_H
/*
 * Every bound of the protocol and of the processes, each with its reason. A number lives here and
 * nowhere else; manual pages and help texts are checked against it.
 */

#include <stdint.h>

/* Versions. A change that an old peer would misread raises MAJOR; any other addition, MINOR. */
#define PROTOCOL_MAJOR  1u
#define PROTOCOL_MINOR  0u
#define CONTROL_VERSION 1u

/* Feature bits of Hello. */
#define FEATURE_MEMFD (1ull << 0)
/* Memory kinds that need CUDA in the session: asked for and granted, it is confined less. */
#define FEATURE_CUDA (1ull << 1)

/* A Register of ITEMS_PER_REGISTER items with every field at its longest packs below this. */
#define RECORD_MAX 65536u
/* The kernel writes a packet-mode pipe record whole only up to PIPE_BUF. */
#define UP_RECORD_MAX 4096u
/* One uverbs fd or one memory fd a message; the second place is for kinds that need two. */
#define FDS_PER_RECORD 2u
/* What 64 KiB may unpack to: a record of empty sub-messages grows about 50-fold without it. */
#define UNPACK_BUDGET (256u * 1024u)

/* Labels are shown in one table column and one journal field. */
#define LABEL_MAX      64u
#define CLASS_NAME_MAX 32u
/* A kernel comm is 15 bytes, an RDMA device name at most 63 (IB_DEVICE_NAME_MAX). */
#define DEVICE_NAME_MAX 64u

/* Per connection: an engine has a domain per NIC and a few; regions are the real number. */
#define DOMAINS_PER_SESSION 64u
#define BUFFERS_PER_SESSION 1024u
#define REGIONS_PER_SESSION 16384u
/* Momentary leases at once: one for each thread that is in a call. */
#define LEASES_PER_SESSION 256u
/* 256 items of at most 50 bytes fit a record many times; the answer is smaller. */
#define ITEMS_PER_REGISTER 256u

/* fds of a session: its own few, two per record in flight, one per domain and buffer. */
#define SESSION_NOFILE (DOMAINS_PER_SESSION + BUFFERS_PER_SESSION + 32u)

/* fds that the supervisor leaves to a child, which places its own before it closes the rest. */
#define CHILD_NOFILE 8u

/* Room in a grant beyond what is asked for (book_room()): bytes, and objects. */
#define GRANT_ROOM_MIN    (1ull << 20)
#define GRANT_ROOM_MAX    (64ull << 20)
#define GRANT_OBJECTS_MIN 16u
#define GRANT_OBJECTS_MAX 1024u

/*
 * A session's own memory is about a megabyte; tables for all its objects, a few more. Pages of a
 * client's memfd that were punched out after the check would be charged to it when they are pinned.
 */
#define SESSION_MEMORY_BASE (64ull << 20)
/* Page tables of what is mapped to be pinned: 8 bytes for 4 KiB, and as much again to spare. */
#define SESSION_MEMORY_SHARE 256u
/* One process; threads to populate and pin with. */
#define SESSION_PIDS_MAX 32u

/* How often a dead session's leaf is asked whether its last region is gone. */
#define DRAIN_POLL_S 0.25
/* How often it is seen what processes with leases have unpinned. */
#define LEASE_LOOK_S 2.0
/* How often children are looked for that they forked while something stays pinned: that reads all of
 * /proc. At the end of a lease it is done at once. */
#define LEASE_SWEEP_S 20.0
/* A client that is gone leaves its session this long to destroy what it made. */
#define SESSION_GRACE_S 5.0
/* An administrator's question waits this long for sessions that do not answer. */
#define QUERY_WAIT_S 1.0
/* accept() stops this long when the process or host is out of file descriptors or processes. */
#define ACCEPT_PAUSE_S 0.2
/* Connections taken in one turn of the loop before others have theirs. */
#define ACCEPTS_PER_TURN 16
/* Bytes of answers that may wait for one administrator's session to read them: all regions of a
 * host full of sessions, in listings that somebody reads slowly. */
#define ADMIN_QUEUE_MAX (8u << 20)
/* The same for a client's session, which has one question open at a time. */
#define CLIENT_QUEUE_MAX (64u << 10)
/* Uids and gids in one record of a status: below 240 bytes each, with the longest class name. */
#define USERS_PER_RECORD 256u
/* Pids in one record of sessions that did not answer: 6 bytes each. */
#define UNANSWERED_PER_RECORD 4096u
/* Regions in one report of a session: what fits a packet of the pipe at their longest. */
#define REGIONS_PER_REPORT 12u
/* Administrators' connections at once. */
#define ADMIN_SESSIONS_MAX 16u
/* Children that get rid of refused connections: each may hang in the kernel. */
#define REFUSALS_MAX 32u
/* Refused connections that one such child takes along when many are at it. */
#define REFUSED_WAITING_MAX 64u
/* A refusing child that its client's fds hold up is ended after this. */
#define REFUSAL_WAIT_S 5u

/* Defaults of the configuration: safe on a host that many share. */
#define DEFAULT_TOTAL_PERCENT    50u
#define DEFAULT_UID_PERCENT      25u
#define DEFAULT_SESSIONS         1024u
#define DEFAULT_SESSIONS_PER_UID 64u
/* Objects: what the sessions above could have at most, but of regions, of which each costs the
 * kernel a kilobyte or more that nobody is charged for. */
#define DEFAULT_DOMAINS         (DEFAULT_SESSIONS * DOMAINS_PER_SESSION)
#define DEFAULT_DOMAINS_PER_UID (DEFAULT_SESSIONS_PER_UID * DOMAINS_PER_SESSION)
#define DEFAULT_BUFFERS         (DEFAULT_SESSIONS * BUFFERS_PER_SESSION)
#define DEFAULT_BUFFERS_PER_UID (DEFAULT_SESSIONS_PER_UID * BUFFERS_PER_SESSION)
#define DEFAULT_REGIONS         (1u << 20)
#define DEFAULT_REGIONS_PER_UID (1u << 18)
/* Who holds most, in a refusal: as many as fit one line for people. */
#define HOLDERS_SHOWN 3u
#define HOLDERS_TEXT  192u
/* Listening sockets of clients beside the default one: tenants of a node are few. */
#define CLASSES_MAX 16u
/* Log lines about one uid's misbehaviour in one window. */
#define LOG_BURST    5u
#define LOG_WINDOW_S 60.0
/* Counters of those lines; uids that share one share its lines. */
#define LOG_BUDGETS 256u

#define DEFAULT_CONFIG       "/etc/kvregd.conf"
#define DEFAULT_SOCKET       "/run/kvregd/client/kvregd.sock"
#define DEFAULT_ADMIN_SOCKET "/run/kvregd/admin/admin.sock"
#define DEFAULT_SESSION_USER "kvreg-session"

#endif
