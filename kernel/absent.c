/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parts of the engine that the kernel module does not have: poll and wait sets, named address vectors,
 * triggered operations, collectives. Functions that open such an object fail with -FI_ENOSYS. The others
 * are called for objects that have none of them: they do nothing.
 */
#include <rdma/fi_errno.h>
#include "av_fid.h"
#include "av_set.h"
#include "coll.h"
#include "nosys.h"
#include "poll_fid.h"
#include "trigger.h"
#include "wait_set_fid.h"

/* Poll sets and wait sets */

int engine_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		     struct fid_poll **pollset)
{
	return -FI_ENOSYS;
}

void engine_poll_forget(struct engine_wait_obj *w)
{
}

int engine_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			struct fid_wait **waitset)
{
	return -FI_ENOSYS;
}

void engine_wait_obj_leave_set(struct engine_wait_obj *w)
{
}

void engine_set_put(struct engine_waitset *set)
{
}

int engine_waitset_join(struct engine_eq *eq, struct fid_wait *set)
{
	return -FI_ENOSYS;
}

void engine_waitset_leave(struct engine_eq *eq)
{
}

int engine_waitset_get_wait(struct engine_waitset *set, int *descriptor)
{
	return -FI_ENODATA;
}

/* Named address vectors */

int engine_av_named_open(struct engine_av *av, struct fi_av_attr *attr)
{
	return -FI_ENOSYS;
}

void engine_av_named_close(struct engine_av *av)
{
}

int engine_av_change(struct engine_av *av)
{
	return 0;
}

void engine_av_changed(struct engine_av *av)
{
}

int av_view_insert(struct av_view *view, const struct weft_addr *addr, fi_addr_t *index)
{
	return -FI_ENOSYS;
}

int av_view_removable(struct av_view *view, const fi_addr_t *index, size_t cnt)
{
	return -FI_ENOSYS;
}

int av_view_remove(struct av_view *view, fi_addr_t index)
{
	return -FI_ENOSYS;
}

/* Triggered operations */

const uint64_t engine_trigger_flag = 0;

struct fi_ops_msg engine_trigger_msg_ops = { .size = sizeof(struct fi_ops_msg) };
struct fi_ops_tagged engine_trigger_tagged_ops = { .size = sizeof(struct fi_ops_tagged) };
struct fi_ops_rma engine_trigger_rma_ops = { .size = sizeof(struct fi_ops_rma) };
struct fi_ops_atomic engine_trigger_atomic_ops = { .size = sizeof(struct fi_ops_atomic) };

void engine_works_init(struct engine_domain *domain)
{
	list_init(&domain->works);
}

void engine_works_drop(struct engine_ctx *ctx)
{
}

int engine_work_control(struct engine_domain *domain, int command, void *arg)
{
	return -FI_ENOSYS;
}

int engine_trigger_cancel(struct engine_ctx *ctx, void *context)
{
	return -FI_ENOENT;
}

/*
 * Collectives. Without a receive context for their messages, a peer that sends one has its conn
 * ended.
 */

struct fi_ops_collective *engine_coll_calls(void)
{
	return &engine_no_collective_ops;
}

int engine_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			    struct fi_collective_attr *attr, uint64_t flags)
{
	return -FI_ENOSYS;
}

int engine_av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
		       void *context)
{
	return -FI_ENOSYS;
}

int engine_coll_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		     void *context)
{
	return -FI_ENOSYS;
}

int engine_coll_cancel(struct engine_ctx *ctx, void *context)
{
	return -FI_ENOENT;
}

bool engine_coll_busy(const struct engine_ep *ep)
{
	return false;
}

void engine_coll_free(struct engine_ep *ep)
{
}

static struct engine_rx_ctx *absent_group_rx(struct engine_ep *ep)
{
	return NULL;
}

const struct engine_group_ops engine_groups = {
	.rx = absent_group_rx, /* NULL: the other operations are not called */
};
