/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations and messages under way: beginning them, keeping those that the device does not take
 * yet, and telling Open MPI of those that have ended. Called by Open MPI, on any of its threads.
 *
 * What the device does not take is kept here and not handed back: pml/ob1 tries a get again only
 * when something else ends, which may never be, as with the first one to a peer that still
 * connects.
 */
#include "btl_weft.h"
#include <time.h>
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "rdma/fi_errno.h"

/* Ended operations that are taken at once. */
#define ENDED_MAX 16

/* Operations that wait for the device; a caller with more has to wait itself. */
#define PENDING_MAX 4096

static void ops_add(struct btl_weft_ops *ops, struct btl_weft_op *op)
{
	op->next = NULL;
	if (ops->first)
		ops->last->next = op;
	else
		ops->first = op;
	ops->last = op;
}

static struct btl_weft_op *ops_take(struct btl_weft_ops *ops)
{
	struct btl_weft_op *op = ops->first;

	if (op)
		ops->first = op->next;
	return op;
}

/* @tells: else nobody is there to be told, and what has ended stays in btl_weft_module.ops */
static void end_all(struct btl_weft_module *module, struct btl_weft_ops *ended, bool tells)
{
	struct btl_weft_op *op;

	while (tells && (op = ops_take(ended)))
		op->end(module, op);
}

void btl_weft_add_locked(struct btl_weft_module *module, struct btl_weft_op *op)
{
	op->all = module->ops;
	module->ops = op;
}

void btl_weft_give_locked(struct btl_weft_module *module, struct btl_weft_op *op)
{
	if (op->state == BTL_WEFT_LOST)
		op->is_given = true;
	else
		op->give(module, op);
}

/* The library has ended one that was lost. */
static void found_locked(struct btl_weft_module *module, struct btl_weft_op *op)
{
	op->state = BTL_WEFT_NONE;
	if (!op->is_given)
		return;
	op->is_given = false;
	op->give(module, op);
}

static void begun_locked(struct btl_weft_module *module, struct btl_weft_op *op,
			 enum btl_weft_state state)
{
	op->state = state;
	op->endpoint->left++;
	module->left++;
}

/* One that was pending or begun has ended: Open MPI is to be told. */
static void over_locked(struct btl_weft_module *module, struct btl_weft_op *op,
			struct btl_weft_ops *ended)
{
	op->state = BTL_WEFT_NONE;
	op->endpoint->left--;
	op->endpoint->idle_ns = 0;
	module->left--;
	ops_add(ended, op);
}

static int keep_locked(struct btl_weft_module *module, struct btl_weft_op *op)
{
	struct mca_btl_base_endpoint_t *endpoint = op->endpoint;

	if (module->pending_cnt >= PENDING_MAX)
		return -FI_EAGAIN;
	if (!endpoint->pending.first) {
		endpoint->next = module->waiting;
		module->waiting = endpoint;
	}
	ops_add(&endpoint->pending, op);
	module->pending_cnt++;
	begun_locked(module, op, BTL_WEFT_PENDING);
	return 0;
}

int btl_weft_try_locked(struct btl_weft_module *module, struct btl_weft_op *op)
{
	int ret;

	if (!op->endpoint->peer || op->state == BTL_WEFT_LOST)
		return -FI_EHOSTUNREACH;
	if (op->endpoint->pending.first)
		return -FI_EAGAIN;
	op->op.done = NULL;
	op->op.status = 0;
	ret = op->begin(module, op);
	if (!ret)
		begun_locked(module, op, BTL_WEFT_BEGUN);
	return ret;
}

int btl_weft_begin_locked(struct btl_weft_module *module, struct btl_weft_op *op)
{
	int ret = btl_weft_try_locked(module, op);

	return ret == -FI_EAGAIN ? keep_locked(module, op) : ret;
}

/* Begins what is pending to an endpoint, up to the first that the device does not take. */
static void retry_endpoint_locked(struct btl_weft_module *module,
				  struct mca_btl_base_endpoint_t *endpoint,
				  struct btl_weft_ops *ended)
{
	struct btl_weft_op *op;
	int ret;

	while ((op = endpoint->pending.first)) {
		struct btl_weft_op *next = op->next;

		op->op.done = NULL;
		op->op.status = 0;
		ret = op->begin(module, op);
		if (ret == -FI_EAGAIN)
			return;
		endpoint->pending.first = next;
		module->pending_cnt--;
		if (!ret) {
			op->state = BTL_WEFT_BEGUN;
			continue;
		}
		op->op.status = ret < 0 ? ret : 0;
		over_locked(module, op, ended);
	}
}

static void retry_locked(struct btl_weft_module *module, struct btl_weft_ops *ended)
{
	struct mca_btl_base_endpoint_t **at = &module->waiting, *endpoint;

	while ((endpoint = *at)) {
		retry_endpoint_locked(module, endpoint, ended);
		if (endpoint->pending.first)
			at = &endpoint->next;
		else
			*at = endpoint->next;
	}
}

static size_t poll_locked(struct btl_weft_module *module, struct btl_weft_ops *ended)
{
	struct weft_btl_op *ops[ENDED_MAX];
	size_t cnt;

	if (module->waiting)
		retry_locked(module, ended);
	module->polling = !opal_using_threads();
	cnt = weft_btl_poll(module->ctx, ops, ENDED_MAX);
	module->polling = false;
	for (size_t i = 0; i < cnt; i++) {
		struct btl_weft_op *op = (struct btl_weft_op *)ops[i];

		if (op->state == BTL_WEFT_LOST)
			found_locked(module, op);
		else
			over_locked(module, op, ended);
	}
	return cnt;
}

int btl_weft_progress(void)
{
	struct btl_weft_module *module = mca_btl_weft_component.module;
	struct btl_weft_ops ended = { 0 };
	bool arrived;
	size_t cnt;

	/* a function that is called from progress makes none */
	if (!module || module->polling || OPAL_THREAD_TRYLOCK(&module->lock))
		return 0;
	cnt = poll_locked(module, &ended);
	arrived = module->received && !module->delivers;
	OPAL_THREAD_UNLOCK(&module->lock);
	end_all(module, &ended, true);
	return (int)cnt + (arrived ? btl_weft_messages_deliver(module) : 0);
}

int btl_weft_flush(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint)
{
	struct btl_weft_module *module = btl_weft_module_of(base);
	size_t left;

	if (module->polling)
		return OPAL_ERR_RESOURCE_BUSY;
	/* what has ended has been told of too; one round at least: messages may wait for it */
	do {
		btl_weft_progress();
		OPAL_THREAD_LOCK(&module->lock);
		left = endpoint ? endpoint->left : module->left;
		OPAL_THREAD_UNLOCK(&module->lock);
	} while (left);
	return OPAL_SUCCESS;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Begins to count the time in which nothing to an endpoint ends, at all that something is left to: where many have
 * died, the wait for the first is one for all.
 */
static void idle_begin_locked(struct btl_weft_module *module, uint64_t now)
{
	opal_list_t *list = &module->endpoints;

	for (opal_list_item_t *item = opal_list_get_first(list);
	     item != opal_list_get_end(list); item = opal_list_get_next(item)) {
		struct mca_btl_base_endpoint_t *endpoint = (void *)item;

		if (endpoint->left && !endpoint->idle_ns)
			endpoint->idle_ns = now;
	}
}

/* Returns whether nothing is left to an endpoint, or none of it has ended for too long. */
static bool is_over_locked(struct mca_btl_base_endpoint_t *endpoint, uint64_t now)
{
	int limit = mca_btl_weft_component.timeout;

	if (!endpoint->left)
		return true;
	if (!endpoint->idle_ns)
		endpoint->idle_ns = now;
	return limit >= 0 && now - endpoint->idle_ns >= (uint64_t)limit * 1000000000u;
}

static void wait_for(struct btl_weft_module *module, struct mca_btl_base_endpoint_t *endpoint,
		     bool tells)
{
	bool is_over;

	OPAL_THREAD_LOCK(&module->lock);
	idle_begin_locked(module, now_ns());
	OPAL_THREAD_UNLOCK(&module->lock);
	do {
		struct btl_weft_ops ended = { 0 };

		OPAL_THREAD_LOCK(&module->lock);
		poll_locked(module, &ended);
		is_over = is_over_locked(endpoint, now_ns());
		OPAL_THREAD_UNLOCK(&module->lock);
		end_all(module, &ended, tells);
		if (tells)
			btl_weft_messages_deliver(module);
	} while (!is_over);
}

static void not_waiting_locked(struct btl_weft_module *module,
			       struct mca_btl_base_endpoint_t *endpoint)
{
	struct mca_btl_base_endpoint_t **at = &module->waiting;

	if (!endpoint->pending.first)
		return;
	while (*at != endpoint)
		at = &(*at)->next;
	*at = endpoint->next;
	endpoint->pending.first = NULL;
}

/* Ends what is left to an endpoint. Returns how much that was. */
static size_t give_up_locked(struct btl_weft_module *module,
			     struct mca_btl_base_endpoint_t *endpoint,
			     struct btl_weft_ops *ended)
{
	size_t cnt = 0;

	not_waiting_locked(module, endpoint);
	for (struct btl_weft_op *op = endpoint->left ? module->ops : NULL; op; op = op->all) {
		if (op->endpoint != endpoint)
			continue;
		if (op->state == BTL_WEFT_PENDING) {
			module->pending_cnt--;
			op->op.status = -FI_ECANCELED;
			over_locked(module, op, ended);
			cnt++;
		} else if (op->state == BTL_WEFT_BEGUN &&
			   !weft_btl_cancel(module->ctx, &op->op)) {
			over_locked(module, op, ended);
			op->state = BTL_WEFT_LOST;
			cnt++;
		}
	}
	return cnt;
}

void btl_weft_remove(struct btl_weft_module *module, struct mca_btl_base_endpoint_t *endpoint,
		     bool tells)
{
	struct btl_weft_ops ended = { 0 };
	size_t cnt;

	if (!endpoint->peer)
		return;
	if (!module->polling)
		wait_for(module, endpoint, tells);
	OPAL_THREAD_LOCK(&module->lock);
	cnt = give_up_locked(module, endpoint, &ended);
	weft_btl_peer_close(endpoint->peer);
	endpoint->peer = NULL;
	/* others have ended, and the library has not told of them; none can begin any more */
	while (endpoint->left && !module->polling)
		poll_locked(module, &ended);
	OPAL_THREAD_UNLOCK(&module->lock);
	if (cnt)
		opal_output(0,
			    "btl:weft: %zu operations on the process %s, which is removed, have "
			    "failed: none has ended for %d s (btl_weft_timeout)",
			    cnt, OPAL_NAME_PRINT(endpoint->name),
			    mca_btl_weft_component.timeout);
	end_all(module, &ended, tells);
}

void btl_weft_ops_close(struct btl_weft_module *module)
{
	struct btl_weft_op *op;

	while ((op = module->ops)) {
		module->ops = op->all;
		op->destroy(op);
	}
}
