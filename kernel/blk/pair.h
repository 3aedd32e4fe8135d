/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of a queue pair share; blk.h is what others see. */
#ifndef KOFI_BLK_PAIR_H
#define KOFI_BLK_PAIR_H

#include <linux/sched.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include "blk.h"

#define PAIR_RECEIVES_MAX 64u

/* struct pair_receive - a message of the lender's, or room for one */
struct pair_receive {
	struct fi_context2 context;
	struct remote_complete message;
};

/*
 * struct blk_pair - an endpoint, and the session that it has at the controller
 * @mr:        the disk's buffers, for as long as the pair lasts; @base: by which address they begin
 * @connected: the controller has answered
 * @lost:      0, or why nothing comes any more
 * @forged:    remote CQ data that was not the session's
 * @cq:        of what comes, on which the thread sleeps; @sent: of messages that the provider has no more, which nobody
 *	       is to be woken for
 * @hello:     CONNECT; @greeting: it is the provider's, and so is @hello_context
 * @lagging:   requests that the lender has answered, and whose message the provider still has; of its thread
 * @ended:     requests that have ended, and are to be told of; of its thread
 */
struct blk_pair {
	struct blk_disk *disk;
	struct remote_place place;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq, *sent;
	struct fid_ep *ep;
	struct fid_mr *mr;
	u64 base;
	fi_addr_t peer;
	struct pair_receive *receives;
	u32 receive_cnt;
	bool connected, greeting;
	int lost;
	u32 forged;
	struct remote_connect hello;
	struct fi_context2 hello_context;
	struct request **ended;
	u32 ended_cnt, lagging;
	struct task_struct *task;
};

/* pair_listen - post a receive. Returns 0 or -FI_E* */
int pair_listen(struct blk_pair *p, struct pair_receive *r);

/* pair_ping - send what is not answered: who does so hears from the provider whether the other one is there */
void pair_ping(struct blk_pair *p);

/*
 * pair_progress - wait until something has come, and take it
 * @ms: how long at most
 * Requests that have ended are in @ended. Takes the disk's lock. Returns whether anything had come.
 */
bool pair_progress(struct blk_pair *p, int ms);

#endif
