/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Anonymous shared memory behind a descriptor (memfd_create(2)). Used by the providers
 * for what two processes share. The size is sealed at creation, so that
 * no process can make another one fault by truncating it. Any thread; no state.
 */
#ifndef WEFT_SYS_MEMFD_H
#define WEFT_SYS_MEMFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* sys_memfd_max - returns the bytes that a memfd of ours may have: RLIMIT_FSIZE holds for it too */
size_t sys_memfd_max(void);

/*
 * sys_memfd_create - make zeroed memory of a fixed size behind a descriptor
 * @name: shown in /proc/PID/maps and nowhere else; need not be unique
 * @len:  bytes, not 0; rounded up to a page by the kernel where it is mapped
 * @mode: 0600, or 0400 for memory that other processes may only read. The kernel's own
 *	  default lets every user who is handed a read-only descriptor reopen it writable.
 *	  Our own descriptor is writable either way; root is not held by it.
 *
 * Sealed against shrinking, growing and further seals; close-on-exec.
 * Returns the descriptor, owned, or -FI_E*: -FI_EMFILE, -FI_ENOMEM, -EFBIG beyond
 * sys_memfd_max(), ...
 */
int sys_memfd_create(const char *name, size_t len, mode_t mode);

/*
 * sys_memfd_create_huge - the same of the host's pool of huge pages
 * @len: a multiple of SYS_MEMFD_HUGE
 *
 * All pages are there, zeroed, when it returns. It may be mapped for writing until sys_memfd_fix(),
 * and is to be shown to nobody before.
 * Returns the descriptor, owned, or -FI_E*: -FI_ENOMEM or -FI_ENOSPC: the pool has not so many that are free.
 */
#define SYS_MEMFD_HUGE ((size_t)2 << 20)
int sys_memfd_create_huge(const char *name, size_t len, mode_t mode);

/*
 * sys_memfd_fix - nobody takes pages away from it or maps it for writing any more
 * Who has mapped it for writing before goes on. Further seals are refused. Returns 0 or -FI_E*.
 */
int sys_memfd_fix(int fd);

/*
 * sys_memfd_open - open what another process has at a descriptor
 * @pid:      process as numbered in our /proc
 * @fd:	      its descriptor
 * @writable: for reading and writing, else for reading
 *
 * Nothing but a memfd, or other memory of its kind, is ever opened: no device or pipe that the number may mean by
 * now is touched, and no file system of another process has the caller wait. Its contents have to prove that it is the
 * memory that the caller looks for.
 * Returns the descriptor, owned, or -FI_E*: -FI_EACCES or -FI_EPERM without the right to
 * look into the process, -FI_ENOENT for no such process or descriptor, -FI_EINVAL for
 * something else, -FI_EBUSY where its owner holds a lease (F_SETLEASE), with which opening would
 * wait, and fail once the kernel has ended it.
 */
int sys_memfd_open(pid_t pid, int fd, bool writable);

/*
 * sys_memfd_is_writable - find out whether another process has a file open for writing at a descriptor
 * @inode: of the file, sys_memfd_inode()
 * Who may open everything (root) could otherwise be led to write for a process that may only read.
 * Returns 0; -FI_EACCES if not; -FI_ENOENT for another file; -FI_E*.
 */
int sys_memfd_is_writable(pid_t pid, int fd, uint64_t inode);

/*
 * sys_memfd_size - the bytes behind a descriptor that is not trusted
 * @len: out
 *
 * Returns 0; -FI_EINVAL unless it is a memfd whose size is sealed, both ways, and of huge pages one
 * that has all its pages and is sealed against losing them: where the pool is empty an access to one that is
 * missing ends the process; -FI_E*.
 */
int sys_memfd_size(int fd, size_t *len);

enum {
	SYS_MEMFD_WRITE = 1 << 0, /* map for writing too */
};

/*
 * sys_memfd_map - map the first bytes of a memfd, shared
 * @fd:	   not trusted; may be closed afterwards
 * @len:   bytes, not 0
 * @flags: SYS_MEMFD_*
 * @addr:  out
 *
 * Size and seals are checked first, as by sys_memfd_size(): within @len nothing that the
 * other side does makes an access fault, as long as there is memory.
 * Returns 0; -FI_EINVAL when it is not a memfd sealed at @len bytes or more, or of larger pages than @len has
 * whole ones of; -FI_EACCES for a
 * read-only descriptor with SYS_MEMFD_WRITE; -FI_ENOMEM; -FI_E*.
 */
int sys_memfd_map(int fd, size_t len, unsigned int flags, void **addr);

/* sys_memfd_map_at - the same from @skip bytes on, which need not begin a page */
int sys_memfd_map_at(int fd, size_t skip, size_t len, unsigned int flags, void **addr);

/*
 * sys_memfd_read - read the first bytes of a memfd without mapping it, which allocates no page
 * @fd: one that sys_memfd_size() accepts: reading anything else might wait
 * Returns 0 and all @len bytes; -FI_EINVAL when there are fewer; -FI_E*.
 */
int sys_memfd_read(int fd, void *buf, size_t len);

/*
 * sys_memfd_populate - allocate the pages of a writable mapping before the first access
 * @addr: need not begin a page
 * Where an older kernel, or one short of memory, does not do it, the first access does.
 */
void sys_memfd_populate(void *addr, size_t len);

/*
 * What a memfd is known by as long as it exists. The number of a descriptor is not that: a program may close
 * all descriptors, and open others under their numbers.
 */
struct sys_memfd_id {
	uint64_t device;
	uint64_t inode;
};

/*
 * sys_memfd_identify - what a memfd is known by
 * @fd: of this process, which has just made it
 * Returns 0 or -FI_E*.
 */
int sys_memfd_identify(int fd, struct sys_memfd_id *id);

/*
 * sys_memfd_dup - a further descriptor of a memfd, which no other part of the program knows and closes
 * @fd: was one of it
 * Returns it, owned; -FI_EBADF: @fd is no descriptor of it any more; or -FI_E*.
 */
int sys_memfd_dup(int fd, const struct sys_memfd_id *id);

/* sys_memfd_is - returns whether @fd is a descriptor of the memfd, unless another thread changes that meanwhile */
bool sys_memfd_is(int fd, const struct sys_memfd_id *id);

/* sys_memfd_close - close @fd, unless it is no descriptor of the memfd any more */
void sys_memfd_close(int fd, const struct sys_memfd_id *id);

/*
 * sys_memfd_punch - take pages away: a load finds zeros, a store gets a new page
 * @fd:		 was a writable descriptor of the memfd, which any number of processes has mapped
 * @offset, @len: multiples of a page
 * Returns 0; -FI_EBADF: @fd is no descriptor of it any more (sys_reserve_remove()); or -FI_E*: -FI_ENOMEM.
 */
int sys_memfd_punch(int fd, const struct sys_memfd_id *id, uint64_t offset, size_t len);

/*
 * sys_memfd_inode - the number of the file behind a descriptor, which no other memfd has while the
 * file exists
 * Returns 0 or -FI_E*.
 */
int sys_memfd_inode(int fd, uint64_t *inode);

/*
 * sys_memfd_data - find the next pages that a memfd has
 * @at:	 in: where to look from; out: where they begin
 * @len: out: bytes until the next page that it does not have
 * Returns 0, or -FI_E*: -ENXIO: there are no more.
 */
int sys_memfd_data(int fd, uint64_t *at, uint64_t *len);

/*
 * sys_memfd_forget - replace a writable mapping by private pages of zeros at the same place
 * In the child of a fork, whose stores the parent is not to see. Where that is refused an access faults.
 */
void sys_memfd_forget(void *addr, size_t len);

/* sys_memfd_unmap - @addr and @len as mapped; NULL is allowed */
void sys_memfd_unmap(void *addr, size_t len);

#endif
