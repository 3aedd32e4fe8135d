/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * References to counters, and work that waits for one. Work runs at the end of a round of progress,
 * or at the end of the call by which the program sets the value, and never within a path that
 * counts: it may send. Called with the domain held.
 */
#include <rdma/fi_errno.h>
#include "cntr.h"
#include "refs.h"
#include "waiting.h"

int engine_cntr_hold(struct fid *fid, struct engine_domain *domain, struct engine_cntr **out)
{
	struct engine_cntr *cntr = container_of(fid, struct engine_cntr, fid.fid);

	if (fid->fclass != FI_CLASS_CNTR || cntr->domain != domain)
		return -FI_EINVAL;
	engine_ref(&cntr->refs);
	*out = cntr;
	return 0;
}

void engine_cntr_release(struct engine_cntr *cntr)
{
	if (cntr)
		engine_unref(&cntr->refs);
}

void engine_deferred_end(struct engine_cntr *own, struct engine_cntr *work_cntr, uint32_t flags,
			 int status, uint64_t len)
{
	if (flags & ENGINE_EP_REPORTS && own != work_cntr)
		engine_count(own, status, len);
	engine_count(work_cntr, status, len);
	engine_cntr_release(work_cntr);
}

/* Returns the value that thresholds are compared with: operations that have succeeded or failed. */
static uint64_t engine_cntr_ended(struct engine_cntr *cntr)
{
	uint64_t value = atomic_load_explicit(&cntr->value, memory_order_relaxed);
	uint64_t errors = atomic_load_explicit(&cntr->errors, memory_order_relaxed);

	return value > UINT64_MAX - errors ? UINT64_MAX : value + errors;
}

/* The counter has changed: wake its sleepers, once. */
static bool engine_cntr_changed(struct cntr_work *watch)
{
	struct engine_cntr *cntr = container_of(watch, struct engine_cntr, watch);

	list_remove(&watch->link);
	engine_wait_wake(&cntr->wait.base);
	return true;
}

void engine_cntr_watch(struct engine_cntr *cntr, bool on)
{
	list_remove(&cntr->watch.link);
	cntr->watch.threshold = 0;
	cntr->watch.run = engine_cntr_changed;
	if (on)
		list_insert_after(&cntr->waiting, &cntr->watch.link);
}

void engine_cntr_reached(struct engine_cntr *cntr)
{
	const struct cntr_work *first;

	if (!list_empty(&cntr->watch.link))
		engine_cntr_changed(&cntr->watch);
	first = container_of(cntr->waiting.next, struct cntr_work, link);
	if (list_empty(&cntr->waiting) || first->threshold > engine_cntr_ended(cntr) ||
	    !list_empty(&cntr->due))
		return;
	list_add_tail(&cntr->domain->due, &cntr->due);
	cntr->domain->pending = true;
	engine_wake(cntr->domain);
}

void engine_cntr_await(struct engine_cntr *cntr, struct cntr_work *work)
{
	struct list *before = cntr->waiting.prev;

	while (before != &cntr->waiting &&
	       container_of(before, struct cntr_work, link)->threshold > work->threshold)
		before = before->prev;
	list_insert_after(before, &work->link);
	engine_cntr_reached(cntr);
}

void engine_cntr_forget(struct cntr_work *work)
{
	list_remove(&work->link);
}

/* Removes and returns the first work of @cntr that is due, or NULL. */
static struct cntr_work *engine_due_next(struct engine_cntr *cntr)
{
	struct cntr_work *work = container_of(cntr->waiting.next, struct cntr_work, link);

	if (list_empty(&cntr->waiting) || work->threshold > engine_cntr_ended(cntr))
		return NULL;
	list_remove(&work->link);
	return work;
}

/* Run the work of @cntr that is due. Returns true if some of it found no room and waits again. */
static bool engine_cntr_run(struct engine_cntr *cntr)
{
	struct cntr_work *work;
	struct list stuck;

	list_init(&stuck);
	while ((work = engine_due_next(cntr))) {
		if (work->run(work))
			continue;
		work->threshold = 0;
		list_add_tail(&stuck, &work->link);
	}
	if (list_empty(&stuck))
		return false;
	/* Back to the head of the list, in order: it runs before everything else. */
	while (!list_empty(&stuck)) {
		struct list *last = stuck.prev;

		list_remove(last);
		list_insert_after(&cntr->waiting, last);
	}
	return true;
}

void engine_due_run(struct engine_domain *domain)
{
	struct list stuck, *node;

	if (domain->running)
		return;
	domain->running = true;
	domain->due_round++;
	list_init(&stuck);
	while ((node = list_pop(&domain->due)))
		if (engine_cntr_run(container_of(node, struct engine_cntr, due)) &&
		    list_empty(node))
			list_add_tail(&stuck, node);
	while ((node = list_pop(&stuck)))
		list_add_tail(&domain->due, node);
	domain->running = false;
}
