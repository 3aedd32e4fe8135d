/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Members of collectives over the real library: each an endpoint with all that belongs to it, in
 * threads of one process or in processes, always in children of the test, so that a crash or a
 * hang is a failed test. What a member does is the test's.
 */
#ifndef WEFT_COLL_MEMBERS_H
#define WEFT_COLL_MEMBERS_H

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <cmocka.h>

#define MEMBERS 9
#define NAME	128

/* What the members share beside the fabric. */
struct shared {
	char names[MEMBERS][NAME];
	_Atomic int arrived[64]; /* of the meetings, in order */
	_Atomic int dead;
};

struct member {
	struct shared *shared;
	int rank, cnt;
	int met; /* meetings so far */
	enum fi_threading threading;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t addrs[MEMBERS];
	struct fi_cq_err_entry error;
};

typedef void (*role)(struct member *m);

#define CHECK(m, cond)                                                                       \
	do {                                                                                 \
		if (!(cond)) {                                                               \
			fprintf(stderr, "member %d of %d: %s:%d: %s\n", (m)->rank, (m)->cnt, \
				__FILE__, __LINE__, #cond);                                  \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

extern const char *provider;	    /* that the members use */
extern const int everyone[MEMBERS]; /* ranks of a group of all */

/* members_run - run @cnt members, in threads or processes; one that fails fails the test */
void members_run(int cnt, role r, bool threads);

/* member_meet - wait for all members; the endpoint works meanwhile, if there is one */
void member_meet(struct member *m);

/* member_next - the next completion: its context; or NULL for an error, in m->error */
void *member_next(struct member *m);

/*
 * member_join_begin, member_joined, member_join - join a group of these ranks: begin to, wait for
 * the end, which is 0 or an FI_E*, or both, with success
 */
struct fid_mc *member_join_begin(struct member *m, const int *ranks, int cnt, void *context);
int member_joined(struct member *m, struct fid_mc *mc, void *context);
struct fid_mc *member_join(struct member *m, const int *ranks, int cnt);

#endif
