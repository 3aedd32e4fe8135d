/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a process has open by its connection, of leases that may outlive it: queue pairs and windows. They go with the
 * process, so that those who have the same lease find them free. A connection that ends alone takes nothing along: the
 * process uses what it has, and connects again.
 */
#ifndef WEFT_DEVICES_LENDER_USES_H
#define WEFT_DEVICES_LENDER_USES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "leased.h"

enum use_kind { USE_PAIR, USE_WINDOW };

/*
 * struct use - something that is open, @of a lease
 * @at:  number of the queue pair, or address of the window; @len: of the window
 */
struct use {
	struct leased of;
	enum use_kind kind;
	uint64_t at;
	uint64_t len;
};

/* uses_add - @uses: of struct use. @use: copied. Without memory it stays open until its lease ends */
void uses_add(struct leased_list *uses, const struct use *use);

/* uses_remove - @len of @use is of no matter. Returns whether it was there */
bool uses_remove(struct leased_list *uses, const struct use *use);

/*
 * uses_end - forget all, and close what is open if its process has ended, or is about to: a process that is killed ends its
 * connections before it has ended, which is waited for, USES_LINGER_MS at most
 * @process: a pidfd of @pid, or -1: not known
 */
void uses_end(struct leased_list *uses, pid_t pid, int process);

#define USES_LINGER_MS 10000

#endif
