/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/kvreg-client.h"
#include "proto/fdset.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u /* Linux 6.3 */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif

#define HUGE_PAGE ((size_t)2 << 20)
/* A signal makes fallocate() undo all that it did: in steps, a program with a timer gets on too. */
#define FALLOCATE_STEP ((uint64_t)16 << 20)

#define HINT_MEMORY                                                                                \
	"free memory, or raise the memory limits of this program (memory.max, RLIMIT_AS)"
#define HINT_HUGE  "raise vm.nr_hugepages on the node, or its hugepages-2Mi in the pod"
#define HINT_FSIZE "raise RLIMIT_FSIZE of this program (ulimit -f): it bounds memfds too"

static int no_memory(struct failure *f, enum kvreg_stage stage, uint64_t size, const char *hint)
{
	f->errnum = errno;
	failure_set(f, KVREG_E_LIMIT_MEMORY, stage, "%" PRIu64 " bytes in this process: %m", size);
	snprintf(f->hint, sizeof(f->hint), "%s", hint);
	return (int)f->code;
}

static int unknown(struct failure *f, enum kvreg_stage stage, const char *call)
{
	f->errnum = errno;
	return failure_set(f, KVREG_E_UNKNOWN, stage, "%s: %m", call);
}

/* Older kernels know no MFD_NOEXEC_SEAL and refuse it with EINVAL. */
static int make_memfd(unsigned int flags)
{
	int fd = memfd_create("kvreg", flags | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create("kvreg", flags) : fd;
}

static int open_memfd(uint32_t flags, struct failure *f, int *ret_fd)
{
	bool huge = flags & KVREG_ALLOC_HUGE_2M;
	int fd = make_memfd(MFD_CLOEXEC | MFD_ALLOW_SEALING |
			    (huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0));

	if (fd < 0 && huge && (errno == ENODEV || errno == ENOENT || errno == EINVAL))
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_MAP,
				   "flags: this host has no huge pages of 2 MiB");
	if (fd < 0)
		return unknown(f, KVREG_STAGE_MAP, "memfd_create");
	*ret_fd = fd;
	return KVREG_E_OK;
}

/* Growing a file beyond RLIMIT_FSIZE would not only fail but raise SIGXFSZ. */
static int set_size(int fd, size_t size, struct failure *f)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur) {
		errno = EFBIG;
		return no_memory(f, KVREG_STAGE_MAP, size, HINT_FSIZE);
	}
	if (ftruncate(fd, (off_t)size) < 0)
		return unknown(f, KVREG_STAGE_MAP, "ftruncate");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return unknown(f, KVREG_STAGE_MAP, "F_ADD_SEALS");
	return KVREG_E_OK;
}

int memory_make(size_t size, uint32_t flags, struct failure *f, struct memory *ret_memory)
{
	_cleanup_memory_ struct memory memory = MEMORY_INIT;
	bool huge = flags & KVREG_ALLOC_HUGE_2M;
	size_t page = huge ? HUGE_PAGE : (size_t)sysconf(_SC_PAGESIZE);
	size_t rounded = (size + page - 1) & ~(page - 1);
	void *address;
	int code;

	if (flags & ~KVREG_ALLOC_HUGE_2M)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_MAP,
				   "flags: %#x has unknown bits", flags);
	/* 0 also where rounding up wrapped. */
	if (rounded == 0 || rounded > PTRDIFF_MAX)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_MAP, "size: %zu bytes",
				   size);
	code = open_memfd(flags, f, &memory.fd);
	if (code != KVREG_E_OK)
		return code;
	code = set_size(memory.fd, rounded, f);
	if (code != KVREG_E_OK)
		return code;
	/* Huge pages are reserved here: a pool without enough of them fails with ENOMEM. */
	address = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
	if (address == MAP_FAILED)
		return no_memory(f, KVREG_STAGE_MAP, rounded, huge ? HINT_HUGE : HINT_MEMORY);
	memory.address = address;
	memory.size = rounded;
	code = memory_populate(memory.fd, address, rounded, f);
	if (code != KVREG_E_OK)
		return code;
	*ret_memory = memory;
	memory = MEMORY_INIT;
	return KVREG_E_OK;
}

void memory_fini(struct memory *memory)
{
	int saved = errno;

	if (memory->address)
		munmap(memory->address, memory->size);
	fd_close(&memory->fd);
	*memory = MEMORY_INIT;
	errno = saved;
}

static int short_handle(struct failure *f, uint64_t size, uint64_t length)
{
	f->snapshot.has_fd_size = 1;
	f->snapshot.fd_size = size;
	f->snapshot.has_fd_claim = 1;
	f->snapshot.fd_claim = length;
	return failure_set(f, KVREG_E_SHORT_HANDLE, KVREG_STAGE_IMPORT,
			   "the memfd has %" PRIu64 " bytes, %" PRIu64 " were asked for", size,
			   length);
}

int memory_seal(int fd, uint64_t length, struct failure *f)
{
	int mode = fcntl(fd, F_GETFL), seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (mode < 0 || seals < 0) {
		f->errnum = errno;
		return failure_set(f, KVREG_E_BAD_MEMORY_FD, KVREG_STAGE_IMPORT, "fd %d: %m", fd);
	}
	if ((mode & O_ACCMODE) != O_RDWR)
		return failure_set(f, KVREG_E_BAD_MEMORY_FD, KVREG_STAGE_IMPORT,
				   "fd %d is not open for read and write", fd);
	if (!(seals & F_SEAL_SHRINK) && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) {
		f->errnum = errno;
		return failure_set(f, KVREG_E_BAD_SEALS, KVREG_STAGE_IMPORT,
				   "F_SEAL_SHRINK cannot be added to seals %#x: %m",
				   (unsigned int)seals);
	}
	if (fstat(fd, &st) < 0)
		return unknown(f, KVREG_STAGE_IMPORT, "fstat");
	if ((uint64_t)st.st_size < length)
		return short_handle(f, (uint64_t)st.st_size, length);
	return KVREG_E_OK;
}

static int populate_file(int fd, uint64_t length, struct failure *f)
{
	for (uint64_t done = 0; done < length;) {
		uint64_t left = length - done, step = left < FALLOCATE_STEP ? left : FALLOCATE_STEP;

		if (fallocate(fd, /* mode */ 0, (off_t)done, (off_t)step) == 0)
			done += step;
		else if (errno == ENOSPC || errno == ENOMEM)
			return no_memory(f, KVREG_STAGE_POPULATE, length, HINT_MEMORY);
		else if (errno != EINTR)
			return unknown(f, KVREG_STAGE_POPULATE, "fallocate");
	}
	return KVREG_E_OK;
}

int memory_populate(int fd, void *address, uint64_t length, struct failure *f)
{
	int r;

	if (!address)
		return populate_file(fd, length, f);
	do {
		r = madvise(address, length, MADV_POPULATE_WRITE);
	} while (r < 0 && (errno == EAGAIN || errno == EINTR));
	if (r == 0)
		return KVREG_E_OK;
	/* Unknown before Linux 5.14, and refused for a mapping that the program may not write. */
	if (errno == EINVAL)
		return populate_file(fd, length, f);
	if (errno != ENOMEM)
		return unknown(f, KVREG_STAGE_POPULATE, "MADV_POPULATE_WRITE");
	/* ENOMEM has two meanings; msync(MS_ASYNC) does nothing but fail for one of them. */
	if (msync(address, length, MS_ASYNC) < 0)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_POPULATE,
				   "address: not all %" PRIu64 " bytes at %p are mapped", length,
				   address);
	errno = ENOMEM;
	return no_memory(f, KVREG_STAGE_POPULATE, length, HINT_MEMORY);
}
