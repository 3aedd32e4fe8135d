/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A side of the tests of address vectors: what belongs to one domain of a real provider, and an
 * endpoint in it. One thread.
 */
#ifndef WEFT_AV_SIDE_H
#define WEFT_AV_SIDE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define ADDR_MAX  64
#define WAIT_SECS 20

/* A domain, and an endpoint with its queue when a test asks for one. */
struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	char name[ADDR_MAX];
	size_t len;
};

extern bool ports; /* services of the provider are ports, of any node */

/* side_choose - the provider by its name. Returns false where it can't do this, and says so */
bool side_choose(const char *name);

/* side_open - all but the endpoint; side_close - what is there */
void side_open(struct side *s);
void side_close(struct side *s);

/* side_enable - an endpoint with that vector, and its name */
void side_enable(struct side *s, struct fid_av *av);

/* av_open - a vector, with a name or NULL */
struct fid_av *av_open(struct side *s, const char *name, uint64_t flags);

/* opened - open a vector and close it. Returns what fi_av_open said */
int opened(struct side *s, struct fi_av_attr attr);

/* ep_open - an independent endpoint with a queue, and its name */
struct fid_ep *ep_open(struct side *s, struct fid_av *av, struct fid_cq **cq, char *name,
		       size_t *len);

/* completion - the next completion of either queue has this context. Returns its source */
fi_addr_t completion(struct fid_cq *cq, struct fid_cq *other, void *context);

#endif
