/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is mapped at an address of this process, from /proc/self/maps. For mem/cache. Any thread; it allocates
 * nothing. Source: proc_pid_maps(5), PROCMAP_QUERY (Linux 6.11).
 */
#ifndef WEFT_SYS_MAPPINGS_H
#define WEFT_SYS_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

struct sys_mapping {
	/* addresses from start to before end */
	uintptr_t start;
	uintptr_t end;
	/* private memory without a file, heap and stacks among it; no huge pages that were reserved */
	bool private_anonymous;
};

/*
 * sys_mapping_find - find the mapping that has an address
 * The answer was true during the call. Takes about 2 us, or some per 100 mappings before Linux 6.11.
 * Returns 0; -FI_ENOENT: nothing is mapped there; or another -FI_E*.
 */
int sys_mapping_find(const void *addr, struct sys_mapping *mapping);

#endif
