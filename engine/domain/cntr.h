/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters as data paths use them, and work that waits until a counter reaches a value (cntr.c).
 * The object that the program holds is in object/cntr_fid.c.
 *
 * The caller holds the domain, and so is the only writer.
 */
#ifndef WEFT_CNTR_H
#define WEFT_CNTR_H

#include "contexts.h"

/*
 * engine_cntr_await - run @work when @cntr has reached work->threshold
 * @work: stays in place until it runs or engine_cntr_forget()
 *
 * Work of equal threshold runs in the order of these calls, at the end of a round of progress, even
 * if the counter has the value already. A caller that needs it at once calls engine_due_run()
 * afterwards. The counter can't be closed while work waits for it.
 */
void engine_cntr_await(struct engine_cntr *cntr, struct cntr_work *work);

/*
 * engine_due_run - run the work whose counters have reached the threshold
 * Does nothing when it is called by such work: what is due by then runs afterwards.
 */
void engine_due_run(struct engine_domain *domain);

/* engine_cntr_forget - withdraw @work, which waits */
void engine_cntr_forget(struct cntr_work *work);

/*
 * engine_cntr_watch - start, or stop, waking the sleepers of the counter when it changes next
 * @on: start
 * A watched counter calls engine_cntr_reached() whenever it changes, like one with work that waits.
 */
void engine_cntr_watch(struct engine_cntr *cntr, bool on);

/*
 * engine_cntr_reached - the counter has changed: schedule its work that is due, and wake its
 * sleepers
 */
void engine_cntr_reached(struct engine_cntr *cntr);

/*
 * engine_cntr_hold - get a reference to a counter that a program binds to an object of @domain
 * @fid: what the program binds
 * @out: out: the counter, referenced until engine_cntr_release()
 * Returns 0, or -FI_EINVAL: not a counter of this domain.
 */
int engine_cntr_hold(struct fid *fid, struct engine_domain *domain, struct engine_cntr **out);
/* engine_cntr_release - release the reference; @cntr may be NULL */
void engine_cntr_release(struct engine_cntr *cntr);

/*
 * engine_cntr_region_open - initialize one kind of access to a memory region, with no counter bound
 * engine_cntr_region_bind - bind a counter of the region's domain, which may be closed before it
 * engine_cntr_region_close - remove the counter, if there is one
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
	list_add_tail(&cntr->regions, &r->link);
	r->cntr = cntr;
}

/*
 * engine_tx_counted, engine_rx_counted - returns true if a counter counts operations of the context
 */
static inline bool engine_tx_counted(const struct engine_tx_ctx *tx)
{
	return tx->cntr[ENGINE_CNTR_SEND] || tx->cntr[ENGINE_CNTR_READ] ||
	       tx->cntr[ENGINE_CNTR_WRITE];
}

static inline bool engine_rx_counted(const struct engine_rx_ctx *rx)
{
	return rx->cntr[ENGINE_CNTR_RECV];
}

/* engine_cntr_add - count @cnt successful operations, or bytes */
static inline void engine_cntr_add(struct engine_cntr *cntr, uint64_t cnt)
{
	uint64_t value = atomic_load_explicit(&cntr->value, memory_order_relaxed);

	atomic_store_explicit(&cntr->value, value + cnt, memory_order_relaxed);
	if (unlikely(!list_empty(&cntr->waiting)))
		engine_cntr_reached(cntr);
}

/* engine_cntr_add_error - count @cnt failed operations */
static inline void engine_cntr_add_error(struct engine_cntr *cntr, uint64_t cnt)
{
	uint64_t errors = atomic_load_explicit(&cntr->errors, memory_order_relaxed);

	atomic_store_explicit(&cntr->errors, errors + cnt, memory_order_relaxed);
	if (unlikely(!list_empty(&cntr->waiting)))
		engine_cntr_reached(cntr);
}

/*
 * engine_count - count an operation that has ended
 * @cntr:   its counter, or NULL
 * @status: 0 or -FI_E*
 * @len:    bytes that it moved; added instead of 1 if the counter counts bytes
 */
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
 * engine_deferred_end - count a deferred operation that has ended
 * @own:       counter of its endpoint for operations of this kind, or NULL
 * @work_cntr: completion counter of the deferred work, or NULL; takes the reference
 * @flags:     flags of the operation: with ENGINE_EP_REPORTS both counters count, once if they are
 *             the same
 * @status:    0 or -FI_E*
 * @len:       bytes that it moved
 */
void engine_deferred_end(struct engine_cntr *own, struct engine_cntr *work_cntr, uint32_t flags,
			 int status, uint64_t len);

#endif
