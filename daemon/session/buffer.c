/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/session/client.h"
#include "daemon/session/faults.h"
#include "daemon/session/grant.h"
#include "proto/codec.h"

/* Linux 5.14; older headers lack it, older kernels answer EINVAL. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static const struct amounts one_buffer = { .of[BOOK_BUFFERS] = 1 };

static int check_seals(int fd, struct failure *f)
{
	int flags = fcntl(fd, F_GETFL), seals;

	if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) != O_RDWR)
		return failure_set(f, KVREG_E_BAD_MEMORY_FD, KVREG_STAGE_IMPORT,
				   "the fd is not open for read and write");
	seals = fault(FAULT_IMPORT) < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	if (seals < 0) {
		f->errnum = errno;
		return failure_set(f, KVREG_E_BAD_MEMORY_FD, KVREG_STAGE_IMPORT,
				   "the fd is not a memfd: it has no seals");
	}
	if (!(seals & F_SEAL_SHRINK))
		return failure_set(f, KVREG_E_BAD_SEALS, KVREG_STAGE_IMPORT,
				   "F_SEAL_SHRINK is missing (seals 0x%x)", (unsigned int)seals);
	if (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
		return failure_set(f, KVREG_E_BAD_SEALS, KVREG_STAGE_IMPORT,
				   "the memfd is sealed against writing (seals 0x%x)",
				   (unsigned int)seals);
	return 0;
}

/*
 * st_blocks counts the pages that the file has, in units of 512 bytes (shmem and hugetlbfs). Who
 * touches a page first is charged for it: memory that its owner has not touched, or punched out
 * again, would be charged to our cgroup by the pin. Between this look and the pin it still can be,
 * which the leaf's memory.max bounds.
 */
static int check_resident(const struct buffer *buffer, enum kvreg_stage stage, struct failure *f)
{
	struct stat st;

	if (fstat(buffer->fd, &st) < 0) {
		f->errnum = errno;
		return failure_set(f, KVREG_E_BAD_MEMORY_FD, stage, "fstat failed");
	}
	uint64_t size = (uint64_t)st.st_size, resident = (uint64_t)st.st_blocks * 512;

	f->snapshot.has_fd_size = f->snapshot.has_fd_claim = f->snapshot.has_fd_resident = true;
	f->snapshot.fd_size = size;
	f->snapshot.fd_claim = buffer->length;
	f->snapshot.fd_resident = resident;
	if (buffer->length > size)
		return failure_set(f, KVREG_E_SHORT_HANDLE, stage,
				   "the memfd has %" PRIu64 " bytes, the buffer claims %" PRIu64,
				   size, buffer->length);
	if (resident < buffer->length)
		return failure_set(f, KVREG_E_SPARSE, stage,
				   "%" PRIu64 " of %" PRIu64 " bytes have pages", resident,
				   buffer->length);
	return 0;
}

static int check_size(struct buffer *buffer, struct failure *f)
{
	struct statfs fs;

	if (fstatfs(buffer->fd, &fs) < 0) {
		f->errnum = errno;
		return failure_set(f, KVREG_E_BAD_MEMORY_FD, KVREG_STAGE_IMPORT, "fstatfs failed");
	}
	buffer->is_hugetlb = fs.f_type == HUGETLBFS_MAGIC;
	buffer->page = buffer->is_hugetlb ? (uint64_t)fs.f_bsize : (uint64_t)sysconf(_SC_PAGESIZE);
	return check_resident(buffer, KVREG_STAGE_IMPORT, f);
}

static int check(struct buffer *buffer, struct failure *f)
{
	int r = check_seals(buffer->fd, f);

	if (r == 0)
		r = check_size(buffer, f);
	if (r != 0)
		return r;
	if (buffer->address % buffer->page)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_IMPORT,
				   "address 0x%" PRIx64 " is not aligned to pages of %" PRIu64
				   " bytes",
				   buffer->address, buffer->page);
	if (buffer->length == 0 || buffer->address + buffer->length < buffer->address)
		return failure_set(f, KVREG_E_INVALID_ARG, KVREG_STAGE_IMPORT,
				   "length %" PRIu64 " at 0x%" PRIx64, buffer->length,
				   buffer->address);
	return 0;
}

/* The last step of an import: what it takes of the grant, and its number. */
static int enter(struct client *c, struct buffer *buffer, struct failure *f)
{
	struct stat st;
	int r = grant_take(c, &one_buffer, KVREG_STAGE_IMPORT, f);

	if (r != 0)
		return r;
	if (fstat(buffer->fd, &st) == 0)
		buffer->backing = backing_get(&c->backings, st.st_dev, st.st_ino);
	if (buffer->backing)
		buffer->number = handles_add(&c->buffers, buffer);
	if (buffer->number)
		return 0;
	grant_give(c, &one_buffer);
	if (!buffer->backing)
		return failure_set(f, KVREG_E_LIMIT_MEMORY, KVREG_STAGE_IMPORT, "out of memory");
	return failure_set(f, KVREG_E_LIMIT_OBJECTS, KVREG_STAGE_IMPORT, "%u buffers are imported",
			   BUFFERS_PER_SESSION);
}

static void buffer_free(struct buffer *buffer)
{
	backing_unref(buffer->backing);
	fd_close(&buffer->fd);
	free(buffer);
}

int buffer_import(struct client *c, int fd, const Kvreg__ImportBuffer *request,
		  struct buffer **ret_buffer, struct failure *f)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));
	int r;

	if (!buffer) {
		fd_close(&fd);
		return failure_set(f, KVREG_E_LIMIT_MEMORY, KVREG_STAGE_IMPORT, "out of memory");
	}
	buffer->fd = fd;
	buffer->length = request->length;
	buffer->address = request->address;
	text_clean(buffer->label, sizeof(buffer->label), request->label);
	r = check(buffer, f);
	if (r == 0)
		r = enter(c, buffer, f);
	if (r != 0) {
		buffer_free(buffer);
		return r;
	}
	*ret_buffer = buffer;
	return 0;
}

/* NOREPLACE and no hint at all are the two tries: what lies at an address in here is ours. */
static void *map_at(const struct buffer *buffer, uint64_t offset, uint64_t length)
{
	/* NORESERVE: a hugetlb mapping would take from the pool what the client's already has. */
	int flags = MAP_SHARED | MAP_NORESERVE;
	void *want = (void *)(buffer->address + offset), *map = MAP_FAILED;

	if (buffer->address)
		map = mmap(want, length, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE,
			   buffer->fd, (off_t)offset);
	if (map == MAP_FAILED)
		map = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, buffer->fd, (off_t)offset);
	return map;
}

/*
 * The pin would fault each page in by itself, one by one and under a lock; done before, a shortage
 * of memory also shows as itself and not as one more ENOMEM of REG_MR. Read faults: they leave the
 * inode's ctime alone (again.h), and pages of shmem are writable at once.
 */
static int populate(uint64_t start, uint64_t length, struct failure *f)
{
	if ((fault(FAULT_POPULATE) == 0 &&
	     madvise((void *)start, length, MADV_POPULATE_READ) == 0) ||
	    errno == EINVAL)
		return 0;
	f->errnum = errno;
	return failure_set(f, errno == ENOMEM ? KVREG_E_LIMIT_MEMORY : KVREG_E_BAD_REGION,
			   KVREG_STAGE_POPULATE, "MADV_POPULATE_READ of %" PRIu64 " bytes: %s",
			   length, strerrordesc_np(f->errnum));
}

static bool is_mapped(const struct buffer *buffer, uint64_t first, uint64_t size)
{
	return buffer->map && first >= buffer->map_offset &&
	       first + size <= buffer->map_offset + buffer->map_length;
}

static int map(struct buffer *buffer, uint64_t first, uint64_t size, struct failure *f)
{
	void *mapped;

	buffer_unmap(buffer);
	mapped = fault(FAULT_MAP) < 0 ? MAP_FAILED : map_at(buffer, first, size);
	if (mapped == MAP_FAILED) {
		f->errnum = errno;
		return failure_set(f, errno == ENOMEM ? KVREG_E_LIMIT_MEMORY : KVREG_E_BAD_REGION,
				   KVREG_STAGE_MAP, "mmap of %" PRIu64 " bytes: %s", size,
				   strerrordesc_np(errno));
	}
	buffer->map = mapped;
	buffer->map_offset = first;
	buffer->map_length = size;
	return 0;
}

int buffer_map(struct buffer *buffer, uint64_t offset, uint64_t length, bool whole,
	       uint64_t *ret_start, struct failure *f)
{
	uint64_t page = buffer->page, first = offset / page * page, start;
	uint64_t size = (offset + length + page - 1) / page * page - first;
	int r = check_resident(buffer, KVREG_STAGE_MAP, f);

	if (r == 0 && !is_mapped(buffer, first, size))
		r = whole ? map(buffer, 0, (buffer->length + page - 1) / page * page, f)
			  : map(buffer, first, size, f);
	if (r != 0)
		return r;
	start = (uint64_t)(uintptr_t)buffer->map + (first - buffer->map_offset);
	r = populate(start, size, f);
	if (r == 0)
		*ret_start = start + (offset - first);
	return r;
}

void buffer_unmap(struct buffer *buffer)
{
	if (buffer->map)
		munmap(buffer->map, buffer->map_length);
	buffer->map = NULL;
	buffer->map_offset = buffer->map_length = 0;
}

void buffer_release(struct client *c, struct buffer *buffer)
{
	buffer_unmap(buffer);
	handles_remove(&c->buffers, buffer->number);
	grant_give(c, &one_buffer);
	buffer_free(buffer);
}
