/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The op tables of an endpoint, alias or context: those of its family and domain, or its own where
 * it supports less than those, or has calls that may wait for a counter (FI_TRIGGER). Called with
 * the domain held, from fi_enable and FI_SETOPSFLAG.
 *
 * Another thread may call through a table that changes; it reads the pointer and the slot without
 * a lock. So a slot changes from one function to another in one store, and a table is complete
 * before a pointer to it is stored.
 */
#include "access.h"
#include "coll.h"
#include "ctx.h"
#include "directions.h"
#include "guard.h"
#include "nosys.h"
#include "safe.h"
#include "trigger.h"

/* An entry of an op table: a pointer to a function, after the size. Also a pointer to a table. */
typedef _Atomic(uintptr_t) engine_slot __attribute__((may_alias));

_Static_assert(sizeof(engine_slot) == sizeof(void (*)(void)), "a slot is a pointer");
_Static_assert(sizeof(engine_slot) == sizeof(size_t), "and as large as what stands before it");

/* A set of calls: a bit for each slot. */
#define SLOT(table, call) (1u << offsetof(struct table, call) / sizeof(engine_slot))
#define SLOTS(table, first, last) \
	(2 * SLOT(table, last) - SLOT(table, first)) /* in the order of the struct's members */
#define EVERY(table) ((1u << sizeof(struct table) / sizeof(engine_slot)) - 2)

/* Messages, tagged or not. */
#define RECVS	SLOTS(fi_ops_msg, recv, recvmsg)
#define SENDS	SLOTS(fi_ops_msg, send, injectdata)
#define INJECTS (SLOT(fi_ops_msg, inject) | SLOT(fi_ops_msg, injectdata))
#define FLAGGED (SLOT(fi_ops_msg, recvmsg) | SLOT(fi_ops_msg, sendmsg))

_Static_assert(SLOTS(fi_ops_tagged, recv, recvmsg) == RECVS &&
		       SLOTS(fi_ops_tagged, send, injectdata) == SENDS &&
		       (SLOT(fi_ops_tagged, inject) | SLOT(fi_ops_tagged, injectdata)) ==
			       INJECTS &&
		       (SLOT(fi_ops_tagged, recvmsg) | SLOT(fi_ops_tagged, sendmsg)) == FLAGGED,
	       "both kinds of messages have the same calls");

#define RMA_INJECTS (SLOT(fi_ops_rma, inject) | SLOT(fi_ops_rma, injectdata))
#define RMA_FLAGGED (SLOT(fi_ops_rma, readmsg) | SLOT(fi_ops_rma, writemsg))
#define ATOMIC_FLAGGED                                                       \
	(SLOT(fi_ops_atomic, writemsg) | SLOT(fi_ops_atomic, readwritemsg) | \
	 SLOT(fi_ops_atomic, compwritemsg))

/* The calls of one table that a context supports. */
struct engine_calls {
	/* Tables that refuse every call, and that carry out every call */
	const void *none, *all;
	/* Table of calls that can wait for a counter; its other slots are NULL */
	const void *trigger;
	/* Size of each table, bytes */
	size_t size;
	/*
	 * SLOT() sets: all of the table, those that the context supports, those taken from
	 * @trigger
	 */
	uint32_t every, has, triggers;
};

static const engine_slot *engine_source(const struct engine_calls *c, size_t i)
{
	const engine_slot *trigger = c->trigger;
	uint32_t bit = 1u << i;

	if (!(c->has & bit))
		return c->none;
	return c->triggers & bit && trigger[i] ? trigger : c->all;
}

/* A slot that keeps its value is not stored, so that its cache line stays shared with readers. */
static void engine_slot_set(engine_slot *slot, uintptr_t to)
{
	if (atomic_load_explicit(slot, memory_order_relaxed) != to)
		/*
		 * R:fid_ep.ops  the slots before it; pairs with the dependent loads of the inline
		 * calls
		 */
		atomic_store_explicit(slot, to, memory_order_release);
}

/*
 * Sets @ops, a pointer in a struct fid_ep, to the table of all calls or to @own; @plain to the
 * former.
 */
static void engine_table(void *ops, void *own, void *plain, const struct engine_calls *c)
{
	const void *table = c->all;
	engine_slot *to = own;

	engine_slot_set(plain, (uintptr_t)table);
	if (c->has != c->every || c->triggers) {
		for (size_t i = 1; i < c->size / sizeof(*to); i++)
			engine_slot_set(&to[i], engine_source(c, i)[i]);
		engine_slot_set(&to[0], c->size);
		table = own;
	}
	engine_slot_set(ops, (uintptr_t)table);
}

/*
 * Returns true if sends without flags may wait for a counter. Injected ones never do: they end in
 * the call.
 */
static bool engine_sends_wait(const struct engine_ctx *ctx)
{
	return ctx->tx && ctx->tx_op_flags & FI_TRIGGER;
}

/* Returns SLOT() of the calls with flags that may wait for a counter: @flagged, or 0 */
static uint32_t engine_flagged(const struct engine_ctx *ctx, uint32_t flagged)
{
	return (ctx->tx_caps | ctx->rx_caps) & FI_TRIGGER ? flagged : 0;
}

/*
 * Returns SLOT() of message calls. Sends and receives come together, since programs ask for too
 * little.
 */
static uint32_t engine_messages(const struct engine_ctx *ctx)
{
	uint32_t has = 0;

	if (engine_transmits(ctx))
		has |= engine_sends_wait(ctx) ? SENDS & ~INJECTS : SENDS;
	if (engine_receives(ctx))
		has |= RECVS;
	return has;
}

static void engine_message_tables(struct engine_ctx *ctx, bool safe)
{
	const struct engine_family *family = ctx->domain->family;
	bool receives_wait = ctx->rx && ctx->rx_op_flags & FI_TRIGGER;
	uint32_t waits = (engine_sends_wait(ctx) ? SENDS : 0) | (receives_wait ? RECVS : 0);
	uint32_t triggers = (waits & ~FLAGGED) | engine_flagged(ctx, FLAGGED);
	uint32_t messages = engine_messages(ctx);
	struct engine_calls msg = {
		.none = &engine_no_msg_ops,
		.all = safe ? &engine_safe_msg_ops : family->msg,
		.trigger = &engine_trigger_msg_ops,
		.size = sizeof(ctx->msg),
		.every = EVERY(fi_ops_msg),
		.has = messages,
		.triggers = triggers,
	};
	struct engine_calls tagged = {
		.none = &engine_no_tagged_ops,
		.all = safe ? &engine_safe_tagged_ops : family->tagged,
		.trigger = &engine_trigger_tagged_ops,
		.size = sizeof(ctx->tagged),
		.every = EVERY(fi_ops_tagged),
		.has = messages,
		.triggers = triggers,
	};

	engine_table(&ctx->fid.msg, &ctx->msg, &ctx->plain.msg, &msg);
	engine_table(&ctx->fid.tagged, &ctx->tagged, &ctx->plain.tagged, &tagged);
}

static void engine_access_tables(struct engine_ctx *ctx, bool safe)
{
	bool has = engine_accesses(ctx), waits = engine_sends_wait(ctx);
	struct engine_calls rma = {
		.none = &engine_no_rma_ops,
		.all = safe ? &engine_safe_rma_ops : &engine_rma_ops,
		.trigger = &engine_trigger_rma_ops,
		.size = sizeof(ctx->rma),
		.every = EVERY(fi_ops_rma),
		.has = has ? EVERY(fi_ops_rma) : 0,
		.triggers = (waits ? EVERY(fi_ops_rma) & ~RMA_FLAGGED : 0) |
			    engine_flagged(ctx, RMA_FLAGGED),
	};
	struct engine_calls atomic = {
		.none = &engine_no_atomic_ops,
		.all = safe ? &engine_safe_atomic_ops : &engine_atomic_ops,
		.trigger = &engine_trigger_atomic_ops,
		.size = sizeof(ctx->atomic),
		.every = EVERY(fi_ops_atomic),
		.has = has ? EVERY(fi_ops_atomic) : 0,
		.triggers = (waits ? EVERY(fi_ops_atomic) & ~ATOMIC_FLAGGED : 0) |
			    engine_flagged(ctx, ATOMIC_FLAGGED),
	};

	if (waits) {
		rma.has &= ~RMA_INJECTS;
		atomic.has &= ~SLOT(fi_ops_atomic, inject);
	}
	engine_table(&ctx->fid.rma, &ctx->rma, &ctx->plain.rma, &rma);
	engine_table(&ctx->fid.atomic, &ctx->atomic, &ctx->plain.atomic, &atomic);
}

void engine_ctx_open_tables(struct engine_ctx *ctx)
{
	bool safe = engine_has_lock(ctx->domain);

	engine_message_tables(ctx, safe);
	engine_access_tables(ctx, safe);
	ctx->fid.collective = ctx->ep && ctx->tx && ctx->ep->caps & FI_COLLECTIVE
				      ? engine_coll_calls()
				      : &engine_no_collective_ops;
}
