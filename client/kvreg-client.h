/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_CLIENT_H
#define KVREG_CLIENT_H
/**
 * libkvreg-client: register memory with an RDMA device through kvregd.
 *
 * The program opens its device and allocates its protection domain itself, as always, and keeps
 * using its own queue pairs and addresses. What fails for an ordinary user with a small
 * locked-memory limit, ibv_reg_mr(), is done by the node's daemon: it maps the same memory and
 * issues REG_MR on the program's own uverbs fd, into the program's own protection domain.
 *
 *	kvreg_open(NULL, &k);
 *	kvreg_attach_pd(k, pd, &domain);
 *	kvreg_buffer_alloc(k, size, 0, &address, &buffer);
 *	kvreg_register(domain, buffer, 0, size, 0, access, NULL, &region);
 *	... post work requests with address, kvreg_lkey(region), kvreg_rkey(region) ...
 *	kvreg_deregister(region);
 *	kvreg_close(k);
 *
 * Sizes, offsets, lengths and addresses are bytes.
 *
 * Results. Every call that can fail returns 0 or -errno and leaves its out-pointer alone on
 * failure. The whole story (code, evidence, hint) is in kvreg_last_error() of the calling thread.
 * Beside what is listed at a call, each that asks the session may give -ECONNRESET
 * (KVREG_E_SESSION_LOST), -EPROTO (KVREG_E_PROTOCOL), and -EIO (KVREG_E_UNKNOWN, INTERNAL).
 *
 * Lifetime. A region lives until kvreg_deregister(), kvreg_close(), or the end of the process,
 * whatever happens to the daemon: a crash or upgrade of kvregd breaks no region. Memory must stay
 * mapped as long as the program itself uses it; the device's pin is on the pages and does not
 * depend on the mapping. Regions and domains must be gone before ibv_dealloc_pd() (the kernel
 * answers EBUSY) and before the verbs context is closed.
 *
 * Threads. All calls may be used from any thread; calls on one connection wait for each other.
 * An object must not be used by one thread while another releases it.
 *
 * Fork. A connection belongs to the process that opened it. In a child every call on it fails with
 * KVREG_E_FORKED, but kvreg_close() frees the child's copy and leaves the parent's regions alone.
 *
 * The library never prints, never exits, raises no SIGPIPE and starts no thread.
 */
#include <stddef.h>
#include <stdint.h>

#include <kvreg-errors.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_pd;

struct kvreg;        /* a connection to the daemon */
struct kvreg_domain; /* a protection domain of the program, made known to the daemon */
struct kvreg_buffer; /* memory that the program shares with its session */
struct kvreg_region; /* a registered range: an MR in the program's own protection domain */
struct kvreg_error;  /* a failure, see kvreg_last_error() */

enum kvreg_event {
	/** The daemon stops or is drained: regions stay, new registrations may be refused. */
	KVREG_EVENT_DRAINING = 1,
	/** The session is gone: regions stay usable, kvreg_deregister() works, nothing else does.
	 */
	KVREG_EVENT_SESSION_LOST = 2,
};

/** Options of kvreg_open(). Set @size to sizeof(struct kvreg_open_options), the rest to 0. */
struct kvreg_open_options {
	size_t size;
	/** Path of the socket; NULL: $KVREG_SOCKET (not in set-uid programs), else the default. */
	const char *socket;
	/** A name for administrators to see; NULL: the program's short name. At most 64 bytes. */
	const char *program;
	/** Called from kvreg_dispatch() and from other calls on this connection, in their thread,
	 *  with the connection's lock held: it must not call back into the library. May be NULL. */
	void (*on_event)(void *arg, enum kvreg_event event);
	void *arg;
};

/**
 * kvreg_open() - connects to the daemon and agrees on a protocol version.
 * @options: borrowed during the call; NULL for the defaults
 * @ret_k: the connection, to be ended with kvreg_close()
 *
 * Return: 0; -ECONNREFUSED (KVREG_E_NO_DAEMON) nobody listens; -EACCES (KVREG_E_NO_PERMISSION);
 * -EUSERS (KVREG_E_LIMIT_SESSIONS); -EPROTONOSUPPORT (KVREG_E_VERSION); -EAGAIN (KVREG_E_SPAWN);
 * -ECONNRESET (KVREG_E_SESSION_LOST); -EINVAL (KVREG_E_INVALID_ARG) path or name too long; -ENOMEM.
 */
int kvreg_open(const struct kvreg_open_options *options, struct kvreg **ret_k);

/**
 * kvreg_close() - ends the connection and frees everything made through it.
 *
 * Regions still live are destroyed, as by kvreg_deregister(), before this returns: the protection
 * domains can then be deallocated. Memory of kvreg_buffer_alloc() is unmapped. NULL is allowed.
 */
void kvreg_close(struct kvreg *k);

/** kvreg_fd() - a descriptor that polls readable when kvreg_dispatch() has something to do. */
int kvreg_fd(const struct kvreg *k);

/**
 * kvreg_dispatch() - takes the waiting events, without blocking, and reports each to on_event.
 *
 * While another thread is in a call it does nothing, for that call takes them.
 *
 * Return: 0; -ECONNRESET (KVREG_E_SESSION_LOST): from now on always, stop polling kvreg_fd();
 * -EINVAL (KVREG_E_FORKED); -EPROTO.
 */
int kvreg_dispatch(struct kvreg *k);

/**
 * kvreg_attach_pd() - makes a protection domain known to the session.
 * @pd: borrowed: of an open device; it must outlive the domain
 * @ret_domain: owned by @k, to be given back with kvreg_detach() or by kvreg_close()
 *
 * Sends pd->context->cmd_fd and pd->handle (struct ibv_context and struct ibv_pd of
 * <infiniband/verbs.h>). The session gets a duplicate of the fd; handles are valid on it alone.
 *
 * Return: 0; -EBADF (KVREG_E_BAD_UVERBS); -ENOENT (KVREG_E_BAD_PD); -ENOSPC
 * (KVREG_E_LIMIT_OBJECTS); -ECONNRESET; -ENOMEM.
 */
int kvreg_attach_pd(struct kvreg *k, struct ibv_pd *pd, struct kvreg_domain **ret_domain);

/** kvreg_attach_fd() - the same for programs with verbs of their own: uverbs fd and PD handle. */
int kvreg_attach_fd(struct kvreg *k, int cmd_fd, uint32_t pd_handle,
		    struct kvreg_domain **ret_domain);

/** kvreg_domain_device() - the device's name as the daemon found it, e.g. "mlx5_0". */
const char *kvreg_domain_device(const struct kvreg_domain *domain);

/**
 * kvreg_detach() - gives a domain back.
 *
 * Return: 0; -EBUSY (KVREG_E_BUSY) it has regions; -EINVAL (KVREG_E_FORKED). In these two it stays;
 * otherwise it is freed, also if the session is gone (0).
 */
int kvreg_detach(struct kvreg_domain *domain);

/**
 * kvreg_buffer_alloc() - makes memory that can be registered: a sealed memfd, mapped and touched.
 * @size: not 0; rounded up to whole pages
 * @flags: 0, or KVREG_ALLOC_* bits
 * @ret_address: where it is mapped, page aligned, read-write; owned by @ret_buffer
 * @ret_buffer: owned by @k; kvreg_buffer_release() unmaps the memory
 *
 * The pages are populated here, so that they are charged to the program's own cgroup.
 *
 * Return: 0; -EINVAL (KVREG_E_INVALID_ARG); -ENOMEM (KVREG_E_LIMIT_MEMORY); -ENOSPC
 * (KVREG_E_LIMIT_OBJECTS); -ECONNRESET.
 */
int kvreg_buffer_alloc(struct kvreg *k, size_t size, uint32_t flags, void **ret_address,
		       struct kvreg_buffer **ret_buffer);

/** Use 2 MiB huge pages of the host's pool (hugetlb); @size is rounded up to them. */
#define KVREG_ALLOC_HUGE_2M (1u << 0)

/** Options of kvreg_buffer_memfd(). Set @size to sizeof(struct kvreg_buffer_options). */
struct kvreg_buffer_options {
	size_t size;
	/** Shown in errors and listings; NULL: none. At most 64 bytes. */
	const char *label;
};

/**
 * kvreg_buffer_memfd() - shares memory that the program already has as a memfd.
 * @fd: borrowed during the call: read-write, made with MFD_ALLOW_SEALING (4 KiB, THP or hugetlb)
 * @address: where the program has byte 0 of the memfd mapped; NULL if it has no mapping
 * @length: bytes of the memfd to share, from byte 0
 * @options: borrowed during the call; may be NULL
 *
 * Adds F_SEAL_SHRINK to the memfd: it can never be made smaller again. Populates its pages, as
 * kvreg_buffer_alloc() does; the session refuses memory that has none. Pass @address whenever the
 * program has one: some drivers (siw, mlx4, hfi1, qib, usnic, vmw_pvrdma) register right only at
 * the program's own address.
 *
 * Return: 0; -EBADF (KVREG_E_BAD_MEMORY_FD); -EPERM (KVREG_E_BAD_SEALS); -ERANGE
 * (KVREG_E_SHORT_HANDLE); -EFAULT (KVREG_E_SPARSE); -EINVAL (KVREG_E_INVALID_ARG); -ENOSPC;
 * -ENOMEM; -ECONNRESET.
 */
int kvreg_buffer_memfd(struct kvreg *k, int fd, void *address, uint64_t length,
		       const struct kvreg_buffer_options *options,
		       struct kvreg_buffer **ret_buffer);

/**
 * kvreg_buffer_release() - gives a buffer back. Its regions stay, and pin the pages themselves.
 *
 * Return: 0, also if the session is gone; -EINVAL (KVREG_E_FORKED) and it is not freed.
 */
int kvreg_buffer_release(struct kvreg_buffer *buffer);

/** Options of kvreg_register(). Set @size to sizeof(struct kvreg_register_options). */
struct kvreg_register_options {
	size_t size;
};

/**
 * kvreg_register() - registers a range of a buffer in a protection domain.
 * @offset, @length: the range; length is not 0, and the range is never clipped
 * @iova: the address that work requests will use; 0: the program's own address of the range. Must
 *	have the same offset within its page as the memory (the kernel's rule, ib_uverbs_reg_mr).
 * @access: IBV_ACCESS_LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC, MW_BIND,
 *	RELAXED_ORDERING; the kernel wants LOCAL_WRITE with REMOTE_WRITE and REMOTE_ATOMIC
 * @options: borrowed during the call; may be NULL
 * @ret_region: owned by @domain's connection, to be ended with kvreg_deregister()
 *
 * The pages are charged to the session (its VmPin), within the quota of the caller's uid, gid and
 * class. What is the same in every argument as a live region gives that MR again, with the same
 * keys; it is destroyed when each of its regions was deregistered. Not where the memory may have
 * changed since (a page of the memfd was punched out, or first written by another mapping: the
 * inode's ctime tells, but not on hugetlbfs), nor where the program destroyed the MR itself.
 *
 * Return: 0; -EINVAL (KVREG_E_INVALID_ARG, BAD_ACCESS, ALIGNMENT); -ERANGE (SHORT_HANDLE);
 * -ENOENT (BAD_PD); -EDQUOT (LIMIT_QUOTA); -ENOSPC (LIMIT_OBJECTS); -EFAULT (BAD_REGION, SPARSE);
 * -ENOMEM (LIMIT_MEMLOCK, LIMIT_MEMORY, LIMIT_DEVICE); -EAGAIN (LIMIT_RDMA_CGROUP); -EADDRINUSE
 * (ADDRESS_TAKEN); -EIO (DEVICE_GONE, UNKNOWN); -EBUSY (DEVICE_BUSY); -ECONNRESET (SESSION_LOST).
 */
int kvreg_register(struct kvreg_domain *domain, struct kvreg_buffer *buffer, uint64_t offset,
		   uint64_t length, uint64_t iova, uint32_t access,
		   const struct kvreg_register_options *options, struct kvreg_region **ret_region);

uint32_t kvreg_lkey(const struct kvreg_region *region);
uint32_t kvreg_rkey(const struct kvreg_region *region);
/** kvreg_handle() - the kernel's MR handle on the program's own uverbs fd. */
uint32_t kvreg_handle(const struct kvreg_region *region);
/** kvreg_iova() - the address that work requests use for the region's first byte. */
uint64_t kvreg_iova(const struct kvreg_region *region);

/**
 * kvreg_deregister() - destroys a region and frees @region, by its session or, when that is gone,
 * by the program's own uverbs fd. Only a region that the kernel still shows with the same keys,
 * address and length is destroyed: handles are reused at once.
 *
 * Return: 0, and @region is freed. It is freed too with -ENOENT (MR_GONE, BAD_HANDLE) the program
 * had destroyed it by itself; -EIO (DEVICE_GONE) the device took it along; -EBADF (BAD_UVERBS) the
 * session is gone and the program has closed the verbs context before. It stays, to be tried again,
 * with -EBUSY (DEVICE_BUSY) memory windows are bound to it; -EINVAL (FORKED); and whatever else
 * went wrong on the way (-EIO, -EPROTO).
 */
int kvreg_deregister(struct kvreg_region *region);

struct kvreg_lease; /* a raised locked-memory limit of this process */

/** Options of kvreg_lease_memlock(). Set @size to sizeof(struct kvreg_lease_options), the rest 0. */
struct kvreg_lease_options {
	size_t size;
	/** Not 0: until the process ends, whatever it executes and even if it ends the connection. */
	uint32_t held;
	/** Of a held lease: processes of this limit to book; its children inherit it. 0 is 1. */
	uint32_t processes;
};

/**
 * kvreg_lease_memlock() - raises this process's RLIMIT_MEMLOCK, for a call of its own.
 * @bytes: that the call will pin, on top of what is pinned now; of a held lease the limit of each
 *	process, 0 as much as the quota allows
 * @options: borrowed during the call; NULL: none
 * @ret_lease: owned by @k, to be ended with kvreg_lease_end() after the call, or with kvreg_close().
 *	NULL, of a held lease alone: nothing is returned
 *
 * For memory that cannot be shared (private pages, the rings of completion queues and queue pairs).
 * The daemon raises the limit of the process that opened @k and of no other, within the quota of its
 * uid, gid and class, from which what is pinned so is taken. When the lease ends, the limit falls to
 * what is pinned and the old limit; what is unpinned later falls back to the quota by itself.
 *
 * The limit is the process's: another thread can use the room meanwhile. A child forked meanwhile
 * inherits it; kvreg_lease_end() returns when no such process has it any more.
 *
 * Return: 0; -EDQUOT (KVREG_E_LIMIT_QUOTA); -EACCES (LEASE_FORBIDDEN); -ENOMEM (LIMIT_MEMLOCK: the
 * daemon cannot raise limits); -ENOSPC (LIMIT_OBJECTS); -EINVAL (INVALID_ARG, FORKED); -ECONNRESET.
 */
int kvreg_lease_memlock(struct kvreg *k, uint64_t bytes, const struct kvreg_lease_options *options,
			struct kvreg_lease **ret_lease);

/** kvreg_lease_limit() - RLIMIT_MEMLOCK (soft) that the lease gave, bytes. */
uint64_t kvreg_lease_limit(const struct kvreg_lease *lease);

/** kvreg_lease_bytes() - what was leased to each process, bytes. */
uint64_t kvreg_lease_bytes(const struct kvreg_lease *lease);

/**
 * kvreg_lease_end() - ends a lease and frees it; a held one lasts on and is only freed.
 * Return: 0, also if the session is gone (the daemon has ended it then); -EINVAL (FORKED) and it is
 * not freed.
 */
int kvreg_lease_end(struct kvreg_lease *lease);

/** What kvreg_whoami() answers: who the daemon sees, and what the session holds. */
struct kvreg_identity {
	uint32_t pid, uid, gid;
	uint32_t session_pid, session_uid;
	uint64_t granted; /* bytes that the session may have pinned now; grows on demand */
	uint64_t charged; /* bytes that the kernel has charged to it */
	uint64_t memory;  /* bytes under at least one of its regions */
	uint32_t domains, buffers, regions;
	char klass[65];
};

/** kvreg_whoami() - asks the session. Return: 0; -ECONNRESET; -EINVAL (FORKED). */
int kvreg_whoami(struct kvreg *k, struct kvreg_identity *ret_identity);

/** kvreg_device_kind() - what stands behind the daemon: "verbs", or "mock" for tests. */
const char *kvreg_device_kind(const struct kvreg *k);

/**
 * kvreg_last_error() - why the last call of this thread failed.
 *
 * Return: owned by the thread, the same until its next call that fails; never NULL (code KVREG_E_OK
 * if none failed yet).
 */
const struct kvreg_error *kvreg_last_error(void);

enum kvreg_code kvreg_error_code(const struct kvreg_error *e);
enum kvreg_class kvreg_error_class(const struct kvreg_error *e);
enum kvreg_stage kvreg_error_stage(const struct kvreg_error *e);
/** kvreg_error_errno() - as the kernel gave it, positive; 0 if no system call failed. */
int kvreg_error_errno(const struct kvreg_error *e);
const char *kvreg_error_name(const struct kvreg_error *e);   /* "LIMIT_QUOTA" */
const char *kvreg_error_detail(const struct kvreg_error *e); /* the numbers; may be empty */
const char *kvreg_error_hint(const struct kvreg_error *e);   /* what to change */
const char *kvreg_error_device(const struct kvreg_error *e); /* may be empty */
const char *kvreg_error_label(const struct kvreg_error *e);  /* the buffer's; may be empty */
uint64_t kvreg_error_address(const struct kvreg_error *e);
uint64_t kvreg_error_length(const struct kvreg_error *e);

/**
 * kvreg_error_text() - the failure as one line: "kvreg: register failed: LIMIT_QUOTA: ...: hint".
 *
 * Return: the length of the whole line without its end, like snprintf(3); @text may be NULL if
 * @size is 0.
 */
int kvreg_error_text(const struct kvreg_error *e, char *text, size_t size);

/** kvreg_strerror() - what a code means, for any number; never NULL. */
const char *kvreg_strerror(enum kvreg_code code);

#ifdef __cplusplus
}
#endif

#endif
