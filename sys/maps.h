/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is mapped at addresses of this process, as the kernel says (/proc/self/maps): whoever has
 * mapped it. Any thread; nothing is allocated, so that it may be asked around fork(2).
 *
 * Source: proc_pid_maps(5), PROCMAP_QUERY (Linux 6.11).
 */
#ifndef WEFT_SYS_MAPS_H
#define WEFT_SYS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A mapping, or the part of it that is in a range. */
struct sys_map {
	void *addr;
	size_t len;
	/* PROT_* of mmap(2) */
	int prot;
	/* MAP_SHARED */
	bool shared;
	/* of a file: bytes from its beginning, its device as in struct stat, and its number; 0 of other memory */
	uint64_t offset;
	uint64_t device;
	uint64_t inode;
	/* private memory without a file, heap and stacks among it; no huge pages that were reserved */
	bool private_anonymous;
};

/*
 * sys_maps_each - call @each for every mapping of a range, lowest first
 * @each: may map other memory there. It ends the walk by returning what is not 0
 * Returns 0, what @each returned, or -FI_E*: -FI_ENOENT where there is no /proc, -FI_EMFILE, ...
 */
int sys_maps_each(const void *addr, size_t len,
		  int (*each)(const struct sys_map *mapping, void *arg), void *arg);

/*
 * sys_maps_find - find the mapping that has an address
 * The answer was true during the call. Takes about 2 us, or some per 100 mappings before Linux 6.11.
 * Returns 0; -FI_ENOENT: nothing is mapped there; or another -FI_E*.
 */
int sys_maps_find(const void *addr, struct sys_map *mapping);

/*
 * sys_maps_max - returns how many mappings a process may have (vm.max_map_count), or the kernel's own default
 * where that can't be read
 */
uint64_t sys_maps_max(void);

/*
 * sys_maps_allow - ask whether all of a range is mapped with these PROT_* at least
 * Takes as long as sys_maps_find(), and a little for each further mapping. Pages are not touched, so that
 * guard pages and the end of a file that is shorter than its mapping are not seen.
 * Returns 0; -FI_EFAULT: it is not; or another -FI_E*: that can't be known.
 */
int sys_maps_allow(const void *addr, size_t len, int prot);

#endif
