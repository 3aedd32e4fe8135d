/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bells of queues and counters: what has something, and waking who sleeps until it has. Called with
 * the domain held, at the end of rounds of progress among others.
 *
 * A bell rings once after fi_trywait has armed it: in the round that finds something in its object.
 * What came before that is not missed, since arming looks at the object with the domain held.
 */
#include "cntr.h"
#include "progress.h"
#include "wait.h"

static bool engine_cntr_moved(struct engine_cntr *cntr)
{
	return atomic_load_explicit(&cntr->value, memory_order_relaxed) != cntr->seen_value ||
	       atomic_load_explicit(&cntr->errors, memory_order_relaxed) != cntr->seen_errors;
}

bool engine_wait_ready(const struct engine_wait *w)
{
	if (w->fid->fclass == FI_CLASS_CNTR)
		return engine_cntr_moved(container_of(w->fid, struct engine_cntr, fid.fid));
	return cq_reached(&container_of(w->fid, struct engine_cq, fid.fid)->queue, 1);
}

int engine_wait_bell(const struct engine_wait *w)
{
	return w->set ? w->set->bell : w->bell;
}

void engine_wait_signal(struct engine_wait *w)
{
	if (engine_wait_bell(w) >= 0)
		platform_bell_ring(engine_wait_bell(w));
}

void engine_bells_ring(struct engine_domain *domain)
{
	struct list *node, *after;

	list_for_each(node, after, &domain->armed) {
		struct engine_wait *w = container_of(node, struct engine_wait, armed);

		if (!engine_wait_ready(w))
			continue;
		list_remove(&w->armed);
		platform_bell_ring(engine_wait_bell(w));
	}
}
