/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_SESSION_FDS_H
#define KVREG_SESSION_FDS_H
/* What a session inherits from the supervisor that starts it, and how it says why it cannot. */

enum session_fd {
	SESSION_FD_CLIENT = 3, /* the accepted socket */
	SESSION_FD_DOWN = 4,   /* SEQPACKET socket: the supervisor's words */
	SESSION_FD_UP = 5,     /* packet-mode pipe: words for the supervisor */
	SESSION_FD_PIDFD = 6,  /* of the connecting process; not open if the kernel gave none */
	SESSION_FD_COUNT = 7,
};

enum session_exit {
	EXIT_WRONG_VERSION = 100, /* not the kvregd-session of this kvregd */
	EXIT_NOT_CONFINED = 101,  /* a capability was left, or prctl failed */
	EXIT_NO_MEMORY = 102,
	/* A region could not be destroyed, or pins are left: the grant is not free yet. Never
	 * logged as a fault: the client can bring it about (a memory window bound to the MR). */
	EXIT_REGIONS_LEFT = 103,
	EXIT_SPAWN = 127, /* the child could not become a session: dropping privilege or exec */
};

#endif
