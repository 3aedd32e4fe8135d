/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counter object: to read a counter, or to wait for one, makes progress on its domain. Called
 * by programs on any thread; the calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include "cntr.h"
#include "cntr_fid.h"
#include "ep_early.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "progress.h"
#include "refs.h"
#include "refuse.h"
#include "sleep.h"
#include "wait_obj.h"
#include "waiting.h"

static struct engine_cntr *cntr_of(struct fid_cntr *fid)
{
	return container_of(fid, struct engine_cntr, fid);
}

static uint64_t engine_value(struct engine_cntr *cntr)
{
	return atomic_load_explicit(&cntr->value, memory_order_relaxed);
}

static uint64_t engine_errors(struct engine_cntr *cntr)
{
	return atomic_load_explicit(&cntr->errors, memory_order_relaxed);
}

void engine_cntr_seen(struct engine_cntr *cntr)
{
	cntr->seen_value = engine_value(cntr);
	cntr->seen_errors = engine_errors(cntr);
}

void engine_cntr_polled(struct engine_cntr *cntr)
{
	cntr->polled_value = engine_value(cntr);
	cntr->polled_errors = engine_errors(cntr);
}

/* The interface */

static uint64_t engine_cntr_read(struct fid_cntr *fid)
{
	struct engine_cntr *cntr = cntr_of(fid);
	uint64_t value;

	engine_use(cntr->domain);
	engine_domain_progress(cntr->domain);
	value = engine_value(cntr);
	engine_cntr_seen(cntr);
	engine_unuse(cntr->domain);
	return value;
}

static uint64_t engine_cntr_readerr(struct fid_cntr *fid)
{
	struct engine_cntr *cntr = cntr_of(fid);
	uint64_t errors;

	engine_use(cntr->domain);
	engine_domain_progress(cntr->domain);
	errors = engine_errors(cntr);
	engine_cntr_seen(cntr);
	engine_unuse(cntr->domain);
	return errors;
}

static int engine_cntr_add_call(struct fid_cntr *fid, uint64_t value)
{
	struct engine_cntr *cntr = cntr_of(fid);

	engine_use(cntr->domain);
	engine_cntr_add(cntr, value);
	engine_cntr_polled(cntr);
	engine_due_run(cntr->domain);
	engine_unuse(cntr->domain);
	return 0;
}

static int engine_cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct engine_cntr *cntr = cntr_of(fid);

	engine_use(cntr->domain);
	engine_cntr_add(cntr, value - engine_value(cntr));
	engine_cntr_polled(cntr);
	engine_due_run(cntr->domain);
	engine_unuse(cntr->domain);
	return 0;
}

static int engine_cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	struct engine_cntr *cntr = cntr_of(fid);

	engine_use(cntr->domain);
	engine_cntr_add_error(cntr, value);
	engine_due_run(cntr->domain);
	engine_unuse(cntr->domain);
	return 0;
}

static int engine_cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct engine_cntr *cntr = cntr_of(fid);

	engine_use(cntr->domain);
	engine_cntr_add_error(cntr, value - engine_errors(cntr));
	engine_due_run(cntr->domain);
	engine_unuse(cntr->domain);
	return 0;
}

/* What fi_cntr_wait waits for. */
struct cntr_want {
	struct engine_cntr *cntr;
	uint64_t threshold;
	/* Error value when the wait began */
	uint64_t before;
};

static bool engine_cntr_there(void *arg)
{
	const struct cntr_want *want = arg;

	return engine_value(want->cntr) >= want->threshold ||
	       engine_errors(want->cntr) != want->before;
}

/* Makes a round. Returns what fi_cntr_wait returns, or -FI_EAGAIN. */
static int engine_cntr_look(const struct cntr_want *want)
{
	struct engine_cntr *cntr = want->cntr;
	uint64_t value, errors;

	engine_use(cntr->domain);
	engine_domain_progress(cntr->domain);
	value = engine_value(cntr);
	errors = engine_errors(cntr);
	engine_cntr_seen(cntr);
	engine_unuse(cntr->domain);
	if (value >= want->threshold)
		return 0;
	return errors != want->before ? -FI_EAVAIL : -FI_EAGAIN;
}

static int engine_cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct engine_cntr *cntr = cntr_of(fid);
	struct cntr_want want = {
		.cntr = cntr,
		.threshold = threshold,
		.before = atomic_load_explicit(&cntr->errors, memory_order_acquire),
	};
	struct engine_sleeper sleeper;
	int ret;

	/*
	 * A counter without a wait object is accepted: none is needed, and programs do wait for
	 * such ones.
	 */
	engine_sleeper_init(&sleeper, &cntr->domain->channel, timeout);
	sleeper.patient = cntr->wait.obj == FI_WAIT_YIELD;
	sleeper.wait = &cntr->wait.base;
	sleeper.there = engine_cntr_there;
	sleeper.arg = &want;
	while ((ret = engine_cntr_look(&want)) == -FI_EAGAIN) {
		if (sleeper.interrupted || engine_sleeper_over(&sleeper)) {
			ret = sleeper.interrupted ? -FI_EINTR : -FI_ETIMEDOUT;
			break;
		}
		engine_sleeper_wait(&sleeper);
	}
	engine_sleeper_end(&sleeper);
	return ret;
}

static int engine_cntr_no_export(struct fid_cntr *fid, uint64_t flags,
				 struct fid_xpu_cntr *xpu_cntr)
{
	return -FI_ENOSYS;
}

/* Bindings */

/* The events that a flag of fi_ep_bind counts, for transmit and for receive contexts. */
static const uint64_t tx_flags[ENGINE_TX_CNTRS] = {
	[ENGINE_CNTR_SEND] = FI_SEND,
	[ENGINE_CNTR_READ] = FI_READ,
	[ENGINE_CNTR_WRITE] = FI_WRITE,
};

static const uint64_t rx_flags[ENGINE_RX_CNTRS] = {
	[ENGINE_CNTR_RECV] = FI_RECV,
	[ENGINE_CNTR_REMOTE_READ] = FI_REMOTE_READ,
	[ENGINE_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
};

/* Binds @cntr in place of the counters before it; without flags there is nothing to bind. */
static void engine_slots_fill(struct engine_cntr **slots, const uint64_t *kinds, int cnt,
			      uint64_t flags, struct engine_cntr *cntr)
{
	for (int i = 0; i < cnt; i++) {
		if (!(flags & kinds[i]))
			continue;
		engine_ref(&cntr->refs);
		engine_cntr_release(slots[i]);
		slots[i] = cntr;
	}
}

#define BIND_CNTR "fi_ep_bind of a counter"

int engine_cntr_bind(struct engine_tx_ctx *tx, struct engine_rx_ctx *rx,
		     struct engine_domain *domain, struct fid *fid, uint64_t flags)
{
	struct engine_cntr *cntr = container_of(fid, struct engine_cntr, fid.fid);

	if (flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE))
		return engine_refuse_value(
			domain->family, FI_LOG_CNTR, -FI_EBADFLAGS, BIND_CNTR,
			"flags are FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE",
			flags);
	if (cntr->domain != domain)
		return engine_refuse(domain->family, FI_LOG_CNTR, -FI_EINVAL, BIND_CNTR,
				     "it is of another domain; open one in the endpoint's");
	if (tx)
		engine_slots_fill(tx->cntr, tx_flags, ENGINE_TX_CNTRS, flags, cntr);
	if (rx)
		engine_slots_fill(rx->cntr, rx_flags, ENGINE_RX_CNTRS, flags, cntr);
	return 0;
}

void engine_tx_unbind(struct engine_tx_ctx *tx)
{
	for (int i = 0; i < ENGINE_TX_CNTRS; i++) {
		engine_cntr_release(tx->cntr[i]);
		tx->cntr[i] = NULL;
	}
}

void engine_rx_unbind(struct engine_rx_ctx *rx)
{
	for (int i = 0; i < ENGINE_RX_CNTRS; i++) {
		engine_cntr_release(rx->cntr[i]);
		rx->cntr[i] = NULL;
	}
}

/* The object */

static int engine_cntr_control(struct fid *fid, int command, void *arg)
{
	struct engine_cntr *cntr = container_of(fid, struct engine_cntr, fid.fid);
	int ret;

	if (!arg)
		return engine_refuse(cntr->domain->family, FI_LOG_CNTR, -FI_EINVAL,
				     "fi_control of a counter", "NULL");
	switch (command) {
	case FI_GETOPSFLAG:
		*(uint64_t *)arg = 0;
		return 0;
	case FI_SETOPSFLAG:
		return *(const uint64_t *)arg
			       ? engine_refuse(cntr->domain->family, FI_LOG_CNTR, -FI_EBADFLAGS,
					       "FI_SETOPSFLAG", "a counter has no flags")
			       : 0;
	default:
		ret = engine_wait_obj_control(&cntr->wait, command, arg);
		return ret == -FI_ENODATA ? -FI_ENOSYS : ret; /* opened without FI_WAIT_FD */
	}
}

/* Unbinds the counter from regions, which stay registered. */
static void engine_cntr_regions_drop(struct engine_cntr *cntr)
{
	while (!list_empty(&cntr->regions))
		engine_cntr_region_close(
			container_of(cntr->regions.next, struct cntr_region, link));
}

static int engine_cntr_close(struct fid *fid)
{
	struct engine_cntr *cntr = container_of(fid, struct engine_cntr, fid.fid);
	struct engine_domain *domain = cntr->domain;
	int ret = engine_left(domain, FI_LOG_CNTR, "fi_close of a counter");
	bool busy, watched;

	if (ret)
		return ret;
	engine_wait_obj_enter(&cntr->wait);
	watched = !list_empty(&cntr->watch.link);
	engine_cntr_watch(cntr, false);
	if (list_empty(&cntr->waiting))
		engine_early_part(domain, fid, &cntr->refs);
	busy = engine_in_use(&cntr->refs) || !list_empty(&cntr->waiting);
	if (!busy) {
		list_remove(&cntr->due);
		engine_cntr_regions_drop(cntr);
		engine_wait_obj_forget(&cntr->wait);
	} else if (watched) {
		engine_cntr_watch(cntr, true);
	}
	engine_wait_obj_leave(&cntr->wait);
	if (busy)
		return engine_refuse(
			domain->family, FI_LOG_CNTR, -FI_EBUSY, "fi_close of a counter",
			"an endpoint that is enabled, or a context, is bound to it, or an operation waits for it; close those first");
	engine_wait_obj_close(&cntr->wait);
	platform_free(cntr);
	engine_unref(&domain->refs);
	return 0;
}

static struct fi_ops engine_cntr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_cntr_close,
	.bind = engine_no_bind,
	.control = engine_cntr_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_cntr engine_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = engine_cntr_read,
	.readerr = engine_cntr_readerr,
	.add = engine_cntr_add_call,
	.set = engine_cntr_set,
	.wait = engine_cntr_wait,
	.adderr = engine_cntr_adderr,
	.seterr = engine_cntr_seterr,
	.export_xpu = engine_cntr_no_export,
};

/* Kinds of events that are not supported count as FI_CNTR_EVENTS_COMP. */
static int engine_cntr_check(const struct engine_domain *domain, const struct fi_cntr_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->flags)
		return engine_refuse_value(domain->family, FI_LOG_CNTR, -FI_EBADFLAGS,
					   "fi_cntr_open", "no flags are valid", attr->flags);
	return 0;
}

int engine_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
		     void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct engine_cntr *cntr;
	int ret;

	if (!out)
		return engine_refuse(domain->family, FI_LOG_CNTR, -FI_EINVAL, "fi_cntr_open",
				     "NULL where the counter is to go");
	ret = engine_cntr_check(domain, attr);
	if (ret)
		return ret;
	cntr = platform_alloc(sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &engine_cntr_fi_ops;
	cntr->fid.ops = &engine_cntr_ops;
	cntr->domain = domain;
	cntr->bytes = attr && attr->events == FI_CNTR_EVENTS_BYTES;
	list_init(&cntr->waiting);
	list_init(&cntr->due);
	list_init(&cntr->regions);
	list_init(&cntr->watch.link);
	ret = engine_wait_obj_open(&cntr->wait, &cntr->fid.fid, domain,
				   attr ? attr->wait_obj : FI_WAIT_NONE,
				   attr ? attr->wait_set : NULL);
	if (ret) {
		platform_free(cntr);
		return ret;
	}
	engine_ref(&domain->refs);
	*out = &cntr->fid;
	return 0;
}
