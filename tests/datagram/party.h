/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint of the provider udp with what it needs, for tests. A call that fails fails the test.
 * One thread for each.
 */
#ifndef WEFT_TESTS_PARTY_H
#define WEFT_TESTS_PARTY_H

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define PARTY_VERSION FI_VERSION(1, 17)
#define PARTY_WAIT_MS 20000

/* What a test may choose; zero: the default. */
struct party_choice {
	/* besides FI_MSG | FI_SOURCE */
	uint64_t caps;
	/* flags of the queue's binding, besides FI_TRANSMIT | FI_RECV */
	uint64_t bind;
	enum fi_wait_obj wait;
	bool six;
	/* NULL: the loopback interface, its address, any port */
	const char *iface, *node, *port;
	/* not enabled yet */
	bool idle;
	/* of that party; NULL: its own fabric and domain */
	const struct party *domain_of;
	size_t rx_size;
	/* with counters in the place of the queue */
	bool counts;
};

struct party {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *tx_cntr, *rx_cntr;
	struct fid_ep *ep;
	bool guest;
	struct sockaddr_in6 name;
	size_t name_len;
};

/*
 * party_open - open all that. party_close - close it; an open group is
 * closed before
 */
void party_open(struct party *p, const struct party_choice *choice);
void party_close(struct party *p);

/* party_fi_info - what fi_getinfo answers for a choice, owned; NULL: nothing */
struct fi_info *party_fi_info(const struct party_choice *choice);

/* party_meet - insert @peer's name into @p's vector. Returns its index */
fi_addr_t party_meet(struct party *p, const struct party *peer);

/* party_completion - read one completion, and its source; waits for it */
struct fi_cq_tagged_entry party_completion(struct party *p, fi_addr_t *src);
/* party_error - read the error that comes next; waits for it */
struct fi_cq_err_entry party_error(struct party *p);
/* party_quiet - the queue is empty */
void party_quiet(struct party *p);

/*
 * party_rests - the program may sleep at the queue's descriptor, which has nothing to say
 * What was sent to it a moment ago may arrive later, and be looked at once.
 */
void party_rests(struct party *p, int descriptor);

/* party_allocated - bytes that the process has allocated; 0 where a sanitizer allocates */
size_t party_allocated(void);

/* party_now_ms - monotonic time */
uint64_t party_now_ms(void);

#endif
