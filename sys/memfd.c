/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sealed memory behind descriptors. Called by providers when an endpoint or a connection
 * is made, on any thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"
#include "memfd.h"

/* Linux 6.3; older headers lack it, older kernels answer EINVAL. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
/* of stat.st_blocks */
#define BLOCK_LEN 512

static int faulty(enum sys_call call)
{
	int err = sys_fault(call);

	if (err)
		errno = err;
	return err;
}

/* newer: a flag that older kernels answer with EINVAL. They are asked again, and the hook is not, which
 * counts what callers do. */
static int create(const char *name, unsigned int flags, unsigned int newer)
{
	int fd;

	if (faulty(SYS_CALL_MEMFD_CREATE))
		return errno == EINVAL && newer ? create(name, flags, 0) : -1;
	fd = memfd_create(name, flags | newer | MFD_CLOEXEC);
	if (fd < 0 && errno == EINVAL && newer)
		fd = memfd_create(name, flags | MFD_CLOEXEC);
	return sys_descriptor_keep(fd);
}

/* fallocate(), which is no cancellation point here. */
static int allocate(int fd, int mode, uint64_t offset, size_t len)
{
	return faulty(SYS_CALL_FALLOCATE)
		       ? -1
		       : (int)syscall(SYS_fallocate, fd, mode, (off_t)offset, (off_t)len);
}

/* Closes @fd. Returns -FI_E* for what errno says. */
static int fail(int fd)
{
	int err = errno;

	sys_descriptor_close(fd);
	return -err;
}

size_t sys_memfd_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur > INT64_MAX)
		return INT64_MAX;
	return (size_t)limit.rlim_cur;
}

int sys_memfd_create(const char *name, size_t len, mode_t mode)
{
	int fd;

	if (!len || len > INT64_MAX)
		return -FI_EINVAL;
	/* The kernel would end the process with SIGXFSZ. */
	if (len > sys_memfd_max())
		return -EFBIG;
	/* Where the administrator forbids executable ones, nothing else is allowed. */
	fd = create(name, MFD_ALLOW_SEALING, MFD_NOEXEC_SEAL);
	if (fd < 0)
		return -errno;

	if (faulty(SYS_CALL_FCHMOD) || fchmod(fd, mode))
		return fail(fd);
	if (faulty(SYS_CALL_FTRUNCATE) || ftruncate(fd, (off_t)len))
		return fail(fd);
	if (faulty(SYS_CALL_FCNTL_SEAL) || fcntl(fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_SEAL))
		return fail(fd);
	return fd;
}

/* Reserves all pages first: too few are not cleared in vain. */
static int huge_fill(int fd, size_t len)
{
	void *addr = faulty(SYS_CALL_MMAP)
			     ? MAP_FAILED
			     : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int err = 0;

	if (addr == MAP_FAILED)
		return -errno;
	do
		err = allocate(fd, 0, 0, len) ? -errno : 0;
	while (err == -EINTR);
	munmap(addr, len);
	return err;
}

int sys_memfd_create_huge(const char *name, size_t len, mode_t mode)
{
	int err, fd;

	if (!len || len > INT64_MAX || len % SYS_MEMFD_HUGE)
		return -FI_EINVAL;
	if (len > sys_memfd_max())
		return -EFBIG;
	fd = create(name, MFD_HUGETLB | MFD_HUGE_2MB | MFD_ALLOW_SEALING, 0);
	if (fd < 0)
		return -errno;
	if (faulty(SYS_CALL_FCHMOD) || fchmod(fd, mode))
		return fail(fd);
	if (faulty(SYS_CALL_FTRUNCATE) || ftruncate(fd, (off_t)len))
		return fail(fd);
	if (faulty(SYS_CALL_FCNTL_SEAL) || fcntl(fd, F_ADD_SEALS, SIZE_SEALS))
		return fail(fd);
	err = huge_fill(fd, len);
	if (!err)
		return fd;
	sys_descriptor_close(fd);
	return err;
}

int sys_memfd_fix(int fd)
{
	if (faulty(SYS_CALL_FCNTL_SEAL) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		return -errno;
	return 0;
}

/* The devices that the kernel has memfds on, and those of huge pages; the same for all processes. 0: not known yet */
static _Atomic uint64_t plain_device, huge_device;

/* Returns 0 and the device, or -FI_E*. */
static int device_of(_Atomic uint64_t *known, unsigned int flags, uint64_t *device)
{
	struct stat st;
	int err = 0, fd;

	*device = atomic_load_explicit(known, memory_order_relaxed);
	if (*device)
		return 0;
	fd = memfd_create("weft-device", flags | MFD_NOEXEC_SEAL | MFD_CLOEXEC);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("weft-device", flags | MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	sys_descriptor_close(fd);
	if (err)
		return err;
	*device = st.st_dev;
	atomic_store_explicit(known, *device, memory_order_relaxed);
	return 0;
}

/*
 * Checks that a path descriptor is of a file where there are only memfds, and memory like them. A file system in
 * user space or on another host is not asked, and so can't have the caller wait. Returns 0; -FI_EINVAL; or -FI_E*.
 */
static int memory_check(int found)
{
	struct statx stx;
	uint64_t device;
	int err;

	if (faulty(SYS_CALL_FSTAT) ||
	    statx(found, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx))
		return -errno;
	if (!S_ISREG(stx.stx_mode))
		return -FI_EINVAL;
	err = device_of(&plain_device, 0, &device);
	if (err || device == makedev(stx.stx_dev_major, stx.stx_dev_minor))
		return err;
	/* not every kernel has these */
	err = device_of(&huge_device, MFD_HUGETLB | MFD_HUGE_2MB, &device);
	return !err && device == makedev(stx.stx_dev_major, stx.stx_dev_minor) ? 0 : -FI_EINVAL;
}

int sys_memfd_open(pid_t pid, int fd, bool writable)
{
	char path[64];
	int err, found, opened;

	/* A path descriptor does not open the file: first check what it is. */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	found = faulty(SYS_CALL_OPEN_FD) ? -1 : sys_descriptor_open(path, O_PATH);
	if (found < 0)
		return -errno;
	err = memory_check(found);
	if (err) {
		sys_descriptor_close(found);
		return err;
	}

	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	opened = faulty(SYS_CALL_OPEN_FD)
			 ? -1
			 : sys_descriptor_keep(sys_descriptor_open(
				   path, (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK));
	if (opened < 0 && errno == EWOULDBLOCK)
		errno = EBUSY;
	if (opened < 0)
		return fail(found);
	sys_descriptor_close(found);
	return opened;
}

int sys_memfd_is_writable(pid_t pid, int fd, uint64_t inode)
{
	unsigned long long found = 0;
	unsigned int flags = 0;
	char path[64], text[256];
	ssize_t len;
	int info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, fd);
	info = faulty(SYS_CALL_OPEN_FD) ? -1 : sys_descriptor_open(path, O_RDONLY);
	if (info < 0)
		return -errno;
	len = faulty(SYS_CALL_PREAD) ? -1
				     : sys_descriptor_read_at(info, text, sizeof(text) - 1, 0);
	if (len < 0)
		return fail(info);
	sys_descriptor_close(info);
	text[len] = '\0';
	/* Linux 5.14 and later name the file */
	if (sscanf(text, "pos: %*u flags: %o mnt_id: %*u ino: %llu", &flags, &found) < 1)
		return -FI_ENOSYS;
	if (found && found != inode)
		return -FI_ENOENT;
	return (flags & O_ACCMODE) == O_RDWR ? 0 : -FI_EACCES;
}

/* Returns true for huge pages of which none is missing, or ever will: a seal against writing is one against holes. */
static bool is_whole(const struct statfs *fs, const struct stat *st, int seals)
{
	return fs->f_type == HUGETLBFS_MAGIC && (seals & F_SEAL_FUTURE_WRITE) &&
	       st->st_blocks >= st->st_size / BLOCK_LEN;
}

/* As sys_memfd_size(). @unit: out: bytes of which only multiples are mapped */
static int size_of(int fd, size_t *len, size_t *unit)
{
	struct statfs fs;
	struct stat st;
	int seals;

	/* Seals first: a size that was read before them could have changed since. */
	seals = faulty(SYS_CALL_FCNTL_SEAL) ? -1 : fcntl(fd, F_GET_SEALS);
	if (seals < 0)
		return -errno;
	if ((seals & SIZE_SEALS) != SIZE_SEALS)
		return -FI_EINVAL;
	if (faulty(SYS_CALL_FSTAT) || fstatfs(fd, &fs) || fstat(fd, &st))
		return -errno;
	if (st.st_size < 0 || (fs.f_type != TMPFS_MAGIC && !is_whole(&fs, &st, seals)))
		return -FI_EINVAL;
	*len = (size_t)st.st_size;
	/* any number of bytes is whole pages to mmap(2) and munmap(2), but for huge ones of a pool */
	*unit = fs.f_type == TMPFS_MAGIC ? 1 : (size_t)fs.f_bsize;
	return 0;
}

int sys_memfd_size(int fd, size_t *len)
{
	size_t unit;

	return size_of(fd, len, &unit);
}

int sys_memfd_map(int fd, size_t len, unsigned int flags, void **addr)
{
	return sys_memfd_map_at(fd, 0, len, flags, addr);
}

/* Bytes before @at in its page. Pages have 4, 16 or 64 KiB, after the machine. */
static size_t in_page(size_t at)
{
	return at & ((size_t)sysconf(_SC_PAGESIZE) - 1);
}

int sys_memfd_map_at(int fd, size_t skip, size_t len, unsigned int flags, void **addr)
{
	int prot = flags & SYS_MEMFD_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
	size_t size, unit, before = in_page(skip);
	void *at;
	int ret;

	ret = size_of(fd, &size, &unit);
	if (ret)
		return ret;
	/* mmap(2) would map a whole unit, and munmap(2) take away no part of it */
	if (!len || skip > size || len > size - skip || len % unit)
		return -FI_EINVAL;
	at = faulty(SYS_CALL_MMAP)
		     ? MAP_FAILED
		     : mmap(NULL, before + len, prot, MAP_SHARED, fd, (off_t)(skip - before));
	if (at == MAP_FAILED)
		return -errno;
	*addr = (char *)at + before;
	return 0;
}

int sys_memfd_read(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = faulty(SYS_CALL_PREAD) ? -1 : sys_descriptor_read_at(fd, buf, len, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -FI_EINVAL;
}

void sys_memfd_populate(void *addr, size_t len)
{
	size_t before = in_page((uintptr_t)addr);

	madvise((char *)addr - before, before + len, MADV_POPULATE_WRITE);
}

int sys_memfd_identify(int fd, struct sys_memfd_id *id)
{
	struct stat st;

	if (faulty(SYS_CALL_FSTAT) || fstat(fd, &st))
		return -errno;
	*id = (struct sys_memfd_id){ .device = st.st_dev, .inode = st.st_ino };
	return 0;
}

bool sys_memfd_is(int fd, const struct sys_memfd_id *id)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == id->device && st.st_ino == id->inode;
}

int sys_memfd_dup(int fd, const struct sys_memfd_id *id)
{
	int again = faulty(SYS_CALL_FCNTL_DUP) ? -1
					       : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (again < 0)
		return -errno;
	/* What was looked at is what is used, whatever @fd becomes meanwhile. */
	if (sys_memfd_is(again, id))
		return again;
	sys_descriptor_close(again);
	return -FI_EBADF;
}

void sys_memfd_close(int fd, const struct sys_memfd_id *id)
{
	if (fd >= 0 && sys_memfd_is(fd, id))
		sys_descriptor_close(fd);
}

/*
 * The descriptor is duplicated first: what was looked at is what is punched, whatever another thread closes
 * and opens meanwhile. Where there is no further descriptor it is only looked at.
 */
int sys_memfd_punch(int fd, const struct sys_memfd_id *id, uint64_t offset, size_t len)
{
	int again = faulty(SYS_CALL_FCNTL_DUP) ? -1
					       : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int err = 0;

	fd = again >= 0 ? again : fd;
	if (!sys_memfd_is(fd, id))
		err = -FI_EBADF;
	else if (allocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, len))
		err = -errno;
	if (again >= 0)
		sys_descriptor_close(again);
	return err;
}

int sys_memfd_inode(int fd, uint64_t *inode)
{
	struct stat st;

	if (faulty(SYS_CALL_FSTAT) || fstat(fd, &st))
		return -errno;
	*inode = st.st_ino;
	return 0;
}

int sys_memfd_data(int fd, uint64_t *at, uint64_t *len)
{
	off_t data, hole;

	if (faulty(SYS_CALL_PREAD))
		return -errno;
	data = lseek(fd, (off_t)*at, SEEK_DATA);
	hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
	if (hole < 0)
		return -errno;
	*at = (uint64_t)data;
	*len = (uint64_t)(hole - data);
	return 0;
}

void sys_memfd_forget(void *addr, size_t len)
{
	if (faulty(SYS_CALL_MMAP) ||
	    mmap(addr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		munmap(addr, len);
}

void sys_memfd_unmap(void *addr, size_t len)
{
	size_t before = in_page((uintptr_t)addr);

	if (addr)
		munmap((char *)addr - before, before + len);
}
