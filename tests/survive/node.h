/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process with an endpoint of a real provider, for tests of what it must survive: peers that die,
 * stop or write at random, and a machine that refuses. Through the public interface of
 * libfabric.so.1 alone. Processes agree through memory that they share beside the fabric (struct
 * stage); one that fails prints why, makes the others end, and exits.
 */
#ifndef WEFT_NODE_H
#define WEFT_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "seeded.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NODE_SANITIZED true
#else
#define NODE_SANITIZED false
#endif

#define NODE_NAME 128

/* What processes share beside the fabric; a test's own struct begins with it. */
struct stage {
	_Atomic int failed;
	_Atomic uint32_t gates[16]; /* stage_pass(), stage_passed() */
};

/* stage_open - @len zeroed bytes that the children of this process share; never NULL */
void *stage_open(size_t len);

/*
 * stage_start - fork, and let the child run @role(@stage, @rank), then exit with 0
 * It dies with this process, and after @secs whatever happens.
 */
pid_t stage_start(void *stage, int rank, unsigned int secs, void (*role)(void *, int));

/*
 * stage_ended - wait for a child; returns true if it exited with 0, or by signal @killed if that is
 * not 0
 */
bool stage_ended(void *stage, pid_t pid, int killed);

/* stage_pass - let those go on that wait for gate @gate; counts */
void stage_pass(void *stage, int gate);

/* stage_passed - how often */
uint32_t stage_passed(void *stage, int gate);

/* node_secs - for whatever is waited for; of this process and its children. 60 unless a test says more */
extern unsigned int node_secs;

struct node {
	void *stage;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq; /* both directions, FI_CQ_FORMAT_TAGGED */
	struct fid_ep *ep;
	struct fid_ep *rma;  /* the same: operations complete at the target */
	struct fid_mr *mr;   /* node_expose(), or NULL */
	const char *refused; /* node_open(): the call that was */
	/* Of node_turn(): */
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	fi_addr_t source;
};

struct node_attr {
	const char *provider;
	bool sleeps;	/* its queue can be slept on */
	bool automatic; /* its domain makes progress by itself */
	size_t cq_size;
};

/*
 * NODE_CHECK - end this process with a line when something is not so
 * @stage: NULL, or where the others see it
 */
#define NODE_CHECK(stage_, cond)                                      \
	do {                                                          \
		if (!(cond))                                          \
			node_fail(stage_, __FILE__, __LINE__, #cond); \
	} while (0)

/* node_fail - say it, tell the others, exit */
void node_fail(void *stage, const char *file, int line, const char *what)
	__attribute__((noreturn));

/*
 * node_open - an endpoint in a domain of its own
 * Returns 0, or -FI_E* and the call in node->refused; all that was opened is closed again then.
 */
int node_open(struct node *node, void *stage, const struct node_attr *attr);

/* node_open_in - another endpoint in the domain of @first, with its queue and addresses */
int node_open_in(struct node *node, const struct node *first);

/* node_close - close what node_open() or node_open_in() opened, and the region */
void node_close(struct node *node);

/* node_expose - let peers read and write memory under a key */
void node_expose(struct node *node, void *region, size_t len, uint64_t key);

/* node_name, node_knows - what others insert; the address of such a name */
void node_name(struct node *node, char name[NODE_NAME]);
fi_addr_t node_knows(struct node *node, const char name[NODE_NAME]);

/* node_turn - one look at the queue: 1 with node->entry, -FI_EAVAIL with node->error, or -FI_EAGAIN */
ssize_t node_turn(struct node *node);

/* node_ended - the same, with one operation under way; returns true once that is over; @err: out: 0, or its FI_E* */
bool node_ended(struct node *node, int *err);

/*
 * node_meet - of two processes, ranks 0 and 1: show this one's name, and wait for the other one's
 * @names: of both, which they share
 * @gate:  that of rank 0; the next one is that of rank 1
 * Returns the other one's address.
 */
fi_addr_t node_meet(struct node *node, char names[2][NODE_NAME], int rank, int gate);

/*
 * NODE_UNTIL - make progress until @cond; what completes meanwhile is the test's own to notice by
 * @turn, an expression that returns whether anything happened. Fails after node_secs.
 */
#define NODE_UNTIL(stage_, cond, turn)                                                    \
	do {                                                                              \
		uint64_t end_ = node_now_ns() + node_secs * 1000000000ull;                \
		while (!(cond)) {                                                         \
			if (turn)                                                         \
				continue;                                                 \
			node_pause(stage_);                                               \
			if (node_now_ns() > end_)                                         \
				node_fail(stage_, __FILE__, __LINE__, "in time: " #cond); \
		}                                                                         \
	} while (0)

/* node_pause - let others run; ends this process when one of them failed */
void node_pause(void *stage);

/* node_now_ns - CLOCK_MONOTONIC */
uint64_t node_now_ns(void);

/*
 * node_worked_ns - time for which this thread has run on a core: polling counts, waiting for a core
 * does not
 */
uint64_t node_worked_ns(void);

/*
 * node_pattern - fill with bytes that are specific to @id; node_is_pattern - returns true if all of
 * them are there
 */
void node_pattern(void *buf, size_t len, uint64_t id);
bool node_is_pattern(const void *buf, size_t len, uint64_t id);

/* node_descriptors - how many this process has open */
int node_descriptors(void);

/* node_heap - bytes that this process has allocated and not freed; 0 where that is not known */
size_t node_heap(void);

/* node_setting - a number from the environment, or @otherwise */
uint64_t node_setting(const char *name, uint64_t otherwise);

/* node_seed - that of the environment's SURVIVE_SEED, or a new one; printed */
uint64_t node_seed(void);

#endif
