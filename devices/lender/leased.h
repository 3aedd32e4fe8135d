/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a session keeps in mind of leases, the newest first. Leases may end otherwise than by it: what is of those is left out
 * now and then, so that a session has no more of it than LEASED_ENDED_MAX, and than there is of leases that run. One thread.
 */
#ifndef WEFT_DEVICES_LENDER_LEASED_H
#define WEFT_DEVICES_LENDER_LEASED_H

#include <stdbool.h>
#include <stdint.h>

#include "lent.h"

#define LEASED_ENDED_MAX 64u

/* struct leased - an entry, alone or at the beginning of a larger one, from malloc() */
struct leased {
	struct leased *next;
	struct lent *lent;
	struct lent_lease lease;
};

/* struct leased_list - @cnt entries; those of leases that have ended are left out when there are @look_cnt */
struct leased_list {
	struct leased *first;
	uint32_t cnt;
	uint32_t look_cnt;
};

/* leased_add - takes @one */
void leased_add(struct leased_list *list, struct leased *one);

/* leased_is - whether an entry is of that lease */
bool leased_is(const struct leased *one, const struct lent *lent,
	       const struct lent_lease *lease);

/* leased_drop - free the entry at @at, which points to it in the list */
void leased_drop(struct leased_list *list, struct leased **at);

/* leased_forget_ended - leave out what is of leases that have ended */
void leased_forget_ended(struct leased_list *list);

#endif
