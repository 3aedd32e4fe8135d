/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a session keeps in mind of leases; leased.h has the contract.
 */
#include "leased.h"

#include <errno.h>
#include <stdlib.h>

void leased_add(struct leased_list *list, struct leased *one)
{
	if (list->cnt >= list->look_cnt)
		leased_forget_ended(list);
	one->next = list->first;
	list->first = one;
	list->cnt++;
}

bool leased_is(const struct leased *one, const struct lent *lent, const struct lent_lease *lease)
{
	return one->lent == lent && one->lease.lease == lease->lease &&
	       one->lease.generation == lease->generation;
}

void leased_drop(struct leased_list *list, struct leased **at)
{
	struct leased *one = *at;

	*at = one->next;
	list->cnt--;
	free(one);
}

void leased_forget_ended(struct leased_list *list)
{
	struct leased **at = &list->first;

	while (*at) {
		struct lent_state state = { .lease = (*at)->lease };

		if (lent_state((*at)->lent, &state) == -ESTALE)
			leased_drop(list, at);
		else
			at = &(*at)->next;
	}
	list->look_cnt = 2 * list->cnt + LEASED_ENDED_MAX;
}
