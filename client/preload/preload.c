/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libkvreg-preload.so: locked memory for programs that were never told about kvreg.
 *
 * It is ioctl(2), loaded before libc's: libibverbs' own calls come here, however a program found
 * libibverbs (dlopen, dlvsym), so that all objects stay the providers' own.
 *
 *	kernel     the verbs call itself, and memory that may not be there
 *	verbs      what a call that failed had wanted
 *	decide     errno and evidence -> lease, tell, or nothing; pure
 *	lender     leases for all threads, on one connection
 *	say        lines on stderr
 *
 * The real call goes first, and if it works that is all: nothing else runs, nothing is allocated. A
 * call that failed for the limit of locked memory is made again under a momentary lease. Whatever
 * happens here, the program sees the kernel's own answer: the return value and errno of the last
 * time that the call was made.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/preload/decide.h"
#include "client/preload/kernel.h"
#include "client/preload/lender.h"
#include "client/preload/say.h"
#include "client/preload/settings.h"
#include "proto/procfs.h"

#define EXPORT __attribute__((visibility("default")))

/* What runs here may call ioctl itself: hooks of malloc(3) or mmap(2) may, by way of a program's
 * cache of registrations. Such a call is the kernel's alone. */
static _Thread_local bool inside;

static void take_evidence(bool moved, struct evidence *ret_evidence)
{
	struct proc_status status = { 0 };
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

	/* Limits first: what moves after this is seen to have moved. */
	getrlimit(RLIMIT_MEMLOCK, &limit);
	proc_status(/* pid */ 0, &status);
	*ret_evidence = (struct evidence){
		.limit = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur,
		.vm_pin = status.vm_pin,
		.moved = moved,
	};
}

/* Makes the call again under a lease. The evidence of a failure is taken while the lease lasts, so
 * that its numbers are those that the call met. Return: errno of the call; or -errno: no lease. */
static int call_leased(int fd, void *buffer, const struct verbs_call *call, uint64_t bytes,
		       struct evidence *ret_evidence)
{
	struct loan loan;
	int r = lender_take(bytes, &loan), errnum;

	if (r < 0)
		return r;
	errnum = kernel_verbs(fd, buffer) < 0 ? errno : 0;
	if (errnum)
		take_evidence(/* moved */ false, ret_evidence);
	lender_give_back(&loan);
	say_leased(call, bytes, errnum);
	return errnum;
}

/* Return: 0 the call worked in the end; else the errno that it failed with. */
static int handle(int fd, void *buffer, int errnum, unsigned int mark)
{
	struct verbs_call call = verbs_read(buffer);
	struct decision decision;
	struct evidence evidence;
	unsigned int leases = 0;
	int r;

	if (call.kind == VERBS_OTHER)
		return errnum;
	take_evidence(/* moved */ false, &evidence);
	evidence.moved = lender_moved(mark);
	while ((decision = decide(&call, errnum, &evidence, leases)).action == ACTION_LEASE) {
		r = call_leased(fd, buffer, &call, decision.bytes, &evidence);
		if (r < 0) {
			say_refused(&call, errnum, &evidence);
			return errnum;
		}
		if (r == 0)
			return 0;
		errnum = r;
		leases++;
	}
	if (decision.action == ACTION_TELL)
		say_failed(&call, errnum, &evidence);
	return errnum;
}

/* ioctl(2) is no place where a thread can be cancelled: what is done here in its name is not either. */
__attribute__((noinline, cold)) static int failed(int fd, void *buffer, unsigned int mark,
						  int before)
{
	int errnum = errno, state;

	if (inside || settings()->off)
		return -1;
	inside = true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	errnum = handle(fd, buffer, errnum, mark);
	pthread_setcancelstate(state, NULL);
	inside = false;
	errno = errnum ? errnum : before;
	return errnum ? -1 : 0;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	unsigned int mark;
	va_list args;
	void *argument;
	int r, before;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	/* The kernel looks at 32 bits, and callers extend the sign of an int. */
	if (__builtin_expect((unsigned int)request != RDMA_VERBS_IOCTL, 1))
		return (int)syscall(SYS_ioctl, fd, request, argument);
	before = errno;
	mark = lender_mark();
	r = kernel_verbs(fd, argument);
	return r < 0 ? failed(fd, argument, mark, before) : r;
}
