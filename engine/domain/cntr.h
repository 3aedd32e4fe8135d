/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters, as the paths that count see them, and work that waits for one to reach a value
 * (cntr.c). The object is in cntr_fid.c.
 *
 * The caller holds the domain: it is the only writer.
 */
#ifndef WEFT_CNTR_H
#define WEFT_CNTR_H

#include "contexts.h"

/*
 * engine_cntr_await - let @work run when @cntr has reached work->threshold
 *
 * Those of one threshold run in the order of these calls. It runs at the end of a round of
 * progress, also when the value is there already: a caller that wants it now calls
 * engine_due_run() afterwards. The counter can't be closed meanwhile.
 */
void engine_cntr_await(struct engine_cntr *cntr, struct cntr_work *work);

/*
 * engine_due_run - run the work whose counters have reached their values
 * From work that runs: nothing, it is run after that.
 */
void engine_due_run(struct engine_domain *domain);

/* engine_cntr_forget - @work, which waits, will not run */
void engine_cntr_forget(struct cntr_work *work);

/*
 * engine_cntr_watch - wake those who sleep on the counter when it changes next, or do not any more
 * What is watched is to be looked at by engine_cntr_reached() whenever it counts, as it is with work.
 */
void engine_cntr_watch(struct engine_cntr *cntr, bool on);

/* engine_cntr_reached - the value may be that of work that waits: remember to run it */
void engine_cntr_reached(struct engine_cntr *cntr);

/*
 * engine_cntr_hold - the counter of a fid that a program binds to an object of @domain
 * Returns 0 and a reference in @out, or -FI_EINVAL: not of this domain.
 */
int engine_cntr_hold(struct fid *fid, struct engine_domain *domain, struct engine_cntr **out);
/* engine_cntr_release - takes that reference, or NULL */
void engine_cntr_release(struct engine_cntr *cntr);

/*
 * engine_cntr_region_open, engine_cntr_region_close - an event of a region that nothing counts; not any more
 * engine_cntr_region_bind - @cntr, of the region's domain, counts it until it is closed
 */
static inline void engine_cntr_region_open(struct cntr_region *r)
{
	list_init(&r->link);
	r->cntr = NULL;
}

static inline void engine_cntr_region_close(struct cntr_region *r)
{
	list_remove(&r->link);
	r->cntr = NULL;
}

static inline void engine_cntr_region_bind(struct cntr_region *r, struct engine_cntr *cntr)
{
	list_push(&cntr->regions, &r->link);
	r->cntr = cntr;
}

/* engine_tx_counted, engine_rx_counted - is there a counter that tells of the context's operations? */
static inline bool engine_tx_counted(const struct engine_tx_ctx *tx)
{
	return tx->cntr[ENGINE_CNTR_SEND] || tx->cntr[ENGINE_CNTR_READ] ||
	       tx->cntr[ENGINE_CNTR_WRITE];
}

static inline bool engine_rx_counted(const struct engine_rx_ctx *rx)
{
	return rx->cntr[ENGINE_CNTR_RECV];
}

/* engine_cntr_add - operations that went well */
static inline void engine_cntr_add(struct engine_cntr *cntr, uint64_t cnt)
{
	uint64_t value = atomic_load_explicit(&cntr->value, memory_order_relaxed);

	atomic_store_explicit(&cntr->value, value + cnt, memory_order_relaxed);
	if (unlikely(!list_empty(&cntr->waiting)))
		engine_cntr_reached(cntr);
}

/* engine_cntr_add_error - operations that failed */
static inline void engine_cntr_add_error(struct engine_cntr *cntr, uint64_t cnt)
{
	uint64_t errors = atomic_load_explicit(&cntr->errors, memory_order_relaxed);

	atomic_store_explicit(&cntr->errors, errors + cnt, memory_order_relaxed);
	if (unlikely(!list_empty(&cntr->waiting)))
		engine_cntr_reached(cntr);
}

/* engine_count - an operation of @len bytes ended; @cntr: NULL or what counts it; @status: 0 or -FI_E* */
static inline void engine_count(struct engine_cntr *cntr, int status, uint64_t len)
{
	if (likely(!cntr))
		return;
	if (status)
		engine_cntr_add_error(cntr, 1);
	else
		engine_cntr_add(cntr, cntr->bytes ? len : 1);
}

/*
 * engine_deferred_end - count the end of deferred work
 * @own:       counter of its endpoint for such operations, or NULL
 * @work_cntr: its own; takes the reference; or NULL
 * @flags:  of the operation: with ENGINE_EP_REPORTS both count, once when they are the same
 * @status: 0 or -FI_E*
 * @len:    bytes that it moved
 */
void engine_deferred_end(struct engine_cntr *own, struct engine_cntr *work_cntr, uint32_t flags,
			 int status, uint64_t len);

#endif
