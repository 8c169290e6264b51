/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_FUZZ_STEPS_H
#define KVREG_FUZZ_STEPS_H
/* The numbers in the scripts of each fuzzer, whose head says what they do. seeds.c writes them. */

/* ---- fuzz-session ---- */

enum session_op { SESSION_REQUEST, SESSION_SUPERVISOR, SESSION_DOWN, SESSION_OPS };

/* What a client may send along with a record. */
enum fd_kind {
	FD_NONE,
	FD_DEVICE,
	FD_SEALED,
	FD_BIG,
	FD_SPARSE,
	FD_UNSEALED,
	FD_WRITE_SEALED,
	FD_READ_ONLY,
	FD_DEVICE_READ_ONLY,
	FD_PATH,
	FD_PIPE,
	FD_SOCKET,
	FD_DIRECTORY,
	FD_FILE,
	FD_KINDS
};

/* How the supervisor answers. */
enum policy { GRANTS_SLABS, GRANTS_NEED, REFUSES, ANSWERS_ANOTHER_FIRST, GONE, POLICIES };

/* Beside a policy: the device is the kernel's. */
#define VERBS 0x80u

/* ---- fuzz-control ---- */

enum control_op {
	CONTROL_CLIENT,
	CONTROL_ADMIN,
	CONTROL_UP,
	CONTROL_ENDED,
	CONTROL_ORPHAN,
	CONTROL_TIME,
	CONTROL_READ,
	CONTROL_CLOSE,
	CONTROL_HOST,
	CONTROL_OPS
};

enum ability { RAISES_LIMITS = 1, QUEUES_ARE_FULL = 2, NEEDS_A_KILLER = 4, CANNOT_KILL = 8 };

#define ONLY_PIPE 0x80u
#define NO_LEAF   255u
/* The arg of a connection whose class has faults on purpose. */
#define HAS_FAULTS 3u
#define KILLED     128u

/* ---- fuzz-client ---- */

enum client_call {
	CALL_ATTACH,
	CALL_ALLOC,
	CALL_MEMFD,
	CALL_REGISTER,
	CALL_DEREGISTER,
	CALL_RELEASE,
	CALL_DETACH,
	CALL_WHOAMI,
	CALL_DISPATCH,
	CALLS
};

/* ANSWER is the bit that tells an answer from a call; the others are its flags. */
enum client_answer {
	ANSWER_SEQ = 0x01,
	ANSWER_LONG = 0x02,
	ANSWER_CLOSES = 0x04,
	ANSWER_FAILS = 0x08,
	ANSWER = 0x80
};

#endif
