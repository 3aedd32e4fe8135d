/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an endpoint reports: completions, errors, counts and events. The caller holds the domain's
 * lock.
 */
#ifndef WEFT_UDP_REPORT_H
#define WEFT_UDP_REPORT_H

#include "wait.h"

/*
 * udp_cq_write - append a completion; without memory the queue is overrun, which its readers are
 * told
 */
static inline void udp_cq_write(struct udp_cq *cq, void *context, uint64_t flags, size_t len,
				void *buf, fi_addr_t src)
{
	struct cq_entry *e = cq_slot(&cq->queue);

	if (likely(e != NULL)) {
		*e = (struct cq_entry){
			.context = context, .flags = flags, .len = len, .buf = buf, .src = src
		};
		cq_push(&cq->queue);
	}
	udp_wait_notify(&cq->wait);
}

/* udp_cq_error - append an error; @cq may be NULL */
static inline void udp_cq_error(struct udp_cq *cq, const struct fi_cq_err_entry *err)
{
	if (!cq)
		return;
	cq_push_error(&cq->queue, err);
	udp_wait_notify(&cq->wait);
}

/* udp_cntr_count, udp_cntr_error - count a success or an error; @cntr may be NULL */
static inline void udp_cntr_count(struct udp_cntr *cntr)
{
	if (!cntr)
		return;
	cntr->value++;
	udp_wait_notify(&cntr->wait);
}

static inline void udp_cntr_error(struct udp_cntr *cntr)
{
	if (!cntr)
		return;
	cntr->errors++;
	udp_wait_notify(&cntr->wait);
}

/*
 * udp_cntr_moved - returns true if the program has not read the counter since it changed
 * (counter.c)
 */
bool udp_cntr_moved(const struct udp_cntr *cntr);
/* udp_cntr_polled - fi_poll reports the counter no more until it changes (counter.c) */
void udp_cntr_polled(struct udp_cntr *cntr);

#endif
