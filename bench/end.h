/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint of a domain of its own, for programs that count what messages take (weft-cost,
 * weft-peers). What fails ends the process. One thread.
 */
#ifndef WEFT_BENCH_END_H
#define WEFT_BENCH_END_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define CHECK(cond)                                                                       \
	do {                                                                              \
		if (!(cond)) {                                                            \
			fprintf(stderr, "%s: %s:%d: %s\n", program_invocation_short_name, \
				__FILE__, __LINE__, #cond);                               \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

struct end {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

/*
 * end_open - open an endpoint for tagged messages, with FI_THREAD_DOMAIN and manual progress
 * @addr_format: FI_FORMAT_UNSPEC: the provider's own
 */
void end_open(struct end *e, const char *provider, uint32_t addr_format);

void end_close(struct end *e);

/* end_insert - insert the address of @other into the vector of @e. Returns it */
fi_addr_t end_insert(struct end *e, struct end *other);

/* end_turn - one look at the queue. Returns the number of completions taken, 0 or 1 */
static inline uint32_t end_turn(struct end *e)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = fi_cq_read(e->cq, &entry, 1);

	CHECK(ret == 1 || ret == -FI_EAGAIN);
	return ret == 1;
}

#endif
