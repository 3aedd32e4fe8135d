/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mapping peers' key tables, once in the process. They are opened and unmapped without the lock, which a fork
 * takes: two threads may map one at the same time, and the second one then lets its mapping go.
 */
#include <rdma/fi_errno.h>
#include "lists.h"
#include "peer_tables.h"

static struct list tables = { &tables, &tables };

/* Returns the table with a reference more, or NULL. */
static struct pshm_peer_table *find_locked(const struct pshm_process *process,
					   const uint8_t nonce[PSHM_NONCE])
{
	struct pshm_peer_table *table;

	list_for_each_entry(table, &tables, link) {
		if (table->process == process && pshm_nonce_same(table->nonce, nonce)) {
			table->refs++;
			return table;
		}
	}
	return NULL;
}

/* Returns the table that is there with a reference more, or @made, which is now. NULL: there is none. */
static struct pshm_peer_table *find_or_add(const struct pshm_process *process,
					   const uint8_t nonce[PSHM_NONCE],
					   struct pshm_peer_table *made)
{
	struct pshm_peer_table *found;

	pshm_lists_lock();
	found = find_locked(process, nonce);
	if (!found && made) {
		list_add_tail(&tables, &made->link);
		found = made;
	}
	pshm_lists_unlock();
	return found;
}

static void table_free(struct pshm_peer_table *table)
{
	pshm_region_close(&table->region);
	platform_free(table);
}

/* Returns 0 and a table that is in no list, or -FI_E*. */
static int table_open(const struct pshm_process *process, const struct pshm_shown *shown,
		      struct pshm_peer_table **out)
{
	struct pshm_offer offer = { .pid = process->pid, .fd = shown->fd };
	struct pshm_peer_table *table = platform_alloc(sizeof(*table));
	int err;

	if (!table)
		return -FI_ENOMEM;
	memcpy(offer.nonce, shown->nonce, PSHM_NONCE);
	err = pshm_table_open(&offer, &table->region);
	if (err) {
		platform_free(table);
		return err;
	}
	table->refs = 1;
	table->process = process;
	memcpy(table->nonce, shown->nonce, PSHM_NONCE);
	*out = table;
	return 0;
}

int pshm_peer_table_get(const struct pshm_process *process, const struct pshm_shown *shown,
			struct pshm_peer_table **table)
{
	struct pshm_peer_table *found = find_or_add(process, shown->nonce, NULL), *made;
	int err;

	if (!found) {
		err = table_open(process, shown, &made);
		if (err)
			return err;
		found = find_or_add(process, shown->nonce, made);
		if (found != made)
			table_free(made);
	}
	*table = found;
	return 0;
}

void pshm_peer_table_put(struct pshm_peer_table *table)
{
	bool last;

	pshm_lists_lock();
	last = !--table->refs;
	if (last)
		list_remove(&table->link);
	pshm_lists_unlock();
	if (last)
		table_free(table);
}
