/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A range of addresses that nothing else is mapped in, and memory at fixed places of it. Used by mem/,
 * any thread; the caller keeps two maps off the same place.
 */
#ifndef WEFT_SYS_RESERVE_H
#define WEFT_SYS_RESERVE_H

#include <stddef.h>
#include <stdint.h>
#include "memfd.h"

/*
 * sys_reserve - reserve addresses, without memory: an access faults
 * @len, @align: bytes; multiples of a page, @align a power of two
 * @around: bytes of addresses that stay free on either side. The kernel places what it is not told a place for in
 * the first hole from one end, so that it takes these before a hole of the range: the child of a fork has such holes until
 * its handlers have run, and what handlers of others map before must not be where the memory goes.
 * @addr: out: begins at a multiple of @align
 * Returns 0 or -FI_E*: -FI_ENOMEM where the address space has no such room (RLIMIT_AS).
 */
int sys_reserve(size_t len, size_t align, size_t around, void **addr);

/* sys_reserve_end - give reserved addresses back, with what was mapped there */
void sys_reserve_end(void *addr, size_t len);

/*
 * sys_reserve_map - map the first bytes of a memfd at reserved addresses, shared and writable
 * @fd: writable
 * It has huge pages where the host gives some to shared memory that asks for them.
 * The child of a fork has nothing there, not even the reservation.
 * Returns 0, or -FI_E*: the addresses are as reserved as before.
 */
int sys_reserve_map(void *addr, size_t len, int fd);

/*
 * sys_reserve_again - make addresses reserved again, whatever is mapped there
 * Returns 0, or -FI_E*: they are as they were.
 */
int sys_reserve_again(void *addr, size_t len);

/*
 * sys_reserve_zeros - make addresses memory of zeros of this process alone, whatever is mapped there
 * A load or store finds one or the other at any time. Returns 0, or -FI_E*: they are as they were.
 */
int sys_reserve_zeros(void *addr, size_t len);

/*
 * sys_reserve_leave - make what is mapped of a memfd private to this process, for a fork to copy
 * @fd, @id: of the memfd. Other mappings between are left alone, and so are those that are private already
 * What is stored from now on goes to pages of its own, and no store to the memfd by others may follow. All
 * the time other threads find the memory as they left it. Protections stay.
 * @offset: where the range begins in the memfd, if nothing else is mapped there and all is writable: then it is
 * done also where the kernel can't be asked what is mapped. NULL: that is not known
 * Returns 0 or -FI_E*: parts may still be shared, which a child does not have.
 */
int sys_reserve_leave(void *addr, size_t len, int fd, const struct sys_memfd_id *id,
		      const uint64_t *offset);

/*
 * sys_reserve_remove - take the pages of a memfd away that a range has mapped, without a descriptor of it
 * Other mappings between are left alone. Returns 0 or -FI_E*: parts that this process has locked, or may not
 * write, keep theirs.
 */
int sys_reserve_remove(void *addr, size_t len, const struct sys_memfd_id *id);

/*
 * sys_reserve_own - give every page of private memory to this process, so that no store by others to
 * the memfd behind it can be seen; other threads may use it meanwhile
 * Returns 0, or -FI_E*: some pages are as they were, since there is no memory, or -FI_EACCES, since this
 * process may not write there.
 */
int sys_reserve_own(void *addr, size_t len);

/* sys_reserve_take - the same for a range all of which this process may write */
int sys_reserve_take(void *addr, size_t len);

/*
 * sys_reserve_clear - replace memory by private pages of zeros, at the same place, as protected as it was
 * Returns 0 or -FI_E*.
 */
int sys_reserve_clear(void *addr, size_t len);

/*
 * sys_reserve_discard - take the contents of memory away as madvise(MADV_DONTNEED) does
 * What is mapped of the memfd becomes private pages of zeros, whatever is in it. Other mappings stay: private memory
 * is zero, and that of a file what the file has. Returns 0 or -FI_E*.
 */
int sys_reserve_discard(void *addr, size_t len, const struct sys_memfd_id *id);

/*
 * sys_reserve_zero - map a table at an address that the kernel chooses: private, all zero, without a
 * promise of memory, so that what is not touched costs nothing
 * Returns it, for sys_reserve_end(), or NULL.
 */
void *sys_reserve_zero(size_t len);

/* sys_reserve_limit - returns the bytes of addresses that this process may map (RLIMIT_AS); UINT64_MAX: any */
uint64_t sys_reserve_limit(void);

#endif
