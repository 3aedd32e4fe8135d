/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A range of addresses that nothing else is mapped in, and memory at fixed places of it. Used by mem/,
 * any thread; the caller keeps two maps off the same place.
 */
#ifndef WEFT_SYS_RESERVE_H
#define WEFT_SYS_RESERVE_H

#include <stddef.h>

/*
 * sys_reserve - reserve addresses, without memory: an access faults
 * @len, @align: bytes; multiples of a page, @align a power of two
 * @addr: out: begins at a multiple of @align
 * Returns 0 or -FI_E*: -FI_ENOMEM where the address space has no such room (RLIMIT_AS).
 */
int sys_reserve(size_t len, size_t align, void **addr);

/* sys_reserve_end - give reserved addresses back, with what was mapped there */
void sys_reserve_end(void *addr, size_t len);

/*
 * sys_reserve_map - map the first bytes of a memfd at reserved addresses, shared and writable
 * @fd: writable
 * The child of a fork has nothing there, not even the reservation.
 * Returns 0, or -FI_E*: the addresses are as reserved as before.
 */
int sys_reserve_map(void *addr, size_t len, int fd);

/*
 * sys_reserve_zero - map a table at an address that the kernel chooses: private, all zero, without a
 * promise of memory, so that what is not touched costs nothing
 * Returns it, for sys_reserve_end(), or NULL.
 */
void *sys_reserve_zero(size_t len);

#endif
