/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint of a provider of the kernel in a domain of its own, in user space. Each by one thread. The provider is
 * kofi_loop, with KOFI_OVER_IBVERBS kofi_ibverbs over mock_link.c, or with KOFI_OVER_RDS kofi_rds over mock_datagram.c.
 */
#ifndef WEFT_LOOP_END_H
#define WEFT_LOOP_END_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#ifdef KOFI_OVER_IBVERBS
#include "kofi_ibverbs.h"
#include "mock_link.h"
#define KOFI(name) kofi_ibverbs_##name
#define KOFI_OVER_NETWORK
#elif defined(KOFI_OVER_RDS)
#include "kofi_rds.h"
#include "mock_datagram.h"
#include "rds.h"
/* What is of the shared provider */
#define kofi_rds_getinfo rds_getinfo
#define kofi_rds_wire	 rds_wire_provider
#define kofi_rds_begin	 rds_beats_init
#define kofi_rds_end	 rds_beats_fini
#define KOFI(name)	 kofi_rds_##name
#define KOFI_OVER_NETWORK
#else
#include "kofi_loop.h"
#define KOFI(name) kofi_loop_##name
#endif

#define NAME_MAX_LEN 256u

/* Zeroed before it is opened. */
struct loop_end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t other;
	char name[NAME_MAX_LEN];
};

/*
 * loop_end_open - open all of it, and register @len bytes at @memory for accesses of peers with the key 1
 * Returns 0 or -FI_E*: what was opened is closed by loop_end_close() in both cases.
 */
int loop_end_open(struct loop_end *e, void *memory, size_t len);
/* loop_end_knows - insert the other's address. Returns 0 or -FI_E* */
int loop_end_knows(struct loop_end *e, const struct loop_end *other);
/* loop_end_close - close what is open; asserts that it can be */
void loop_end_close(struct loop_end *e);

/*
 * loop_end_completion - read one completion
 * @other: makes progress too, unless it is NULL
 * Returns 0, the -FI_E* of an operation that failed, or -FI_ETIMEDOUT after 20 s.
 */
int loop_end_completion(struct loop_end *e, struct loop_end *other,
			struct fi_cq_tagged_entry *entry);

/* loop_end_serves - returns true if an endpoint that is opened for it can send @len bytes to @e */
bool loop_end_serves(struct loop_end *e, size_t len);

/* loop_chance - returns a number below @below, by a seed that loop_chance_begin() prints */
void loop_chance_begin(void);
uint32_t loop_chance(uint32_t below);

/* loop_now_s - monotonic time, seconds */
double loop_now_s(void);

#endif
