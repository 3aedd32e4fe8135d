/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What endpoints, their aliases and contexts have in common (ctx.c, options.c). The caller holds
 * the domain, unless it calls a slot of an op table.
 */
#ifndef WEFT_CTX_H
#define WEFT_CTX_H

#include "engine.h"

/*
 * engine_ctx_init - initialize a context that is not enabled: its op tables refuse all calls
 * @base: @ctx itself, or for an alias the context that it is an alias of
 *
 * The caller sets tx, rx, ep, capabilities and op flags.
 */
void engine_ctx_init(struct engine_ctx *ctx, struct engine_domain *domain,
		     struct engine_ctx *base);

/*
 * engine_ctx_open_tables - set the op tables of an enabled context, by its capabilities and op
 * flags
 *
 * Other threads may call through the tables meanwhile: each slot is the old or the new one
 * (op_tables.c).
 */
void engine_ctx_open_tables(struct engine_ctx *ctx);

/*
 * engine_ctx_close_tables - @ctx is closed: forget it, and cancel triggered work that would use it
 *
 * Does nothing for a context that was not enabled.
 */
void engine_ctx_close_tables(struct engine_ctx *ctx);

/* engine_ctx_watch - refuse calls on @ctx in children of a fork from now on */
void engine_ctx_watch(struct engine_ctx *ctx);

/* engine_ctx_enable - allow calls on @ctx and on the aliases made before */
void engine_ctx_enable(struct engine_ctx *ctx);

/*
 * engine_tx_attr_check, engine_rx_attr_check - check attributes against what the domain offers
 * @call: name of the call that has them, for the log
 * @attr: NULL is accepted
 *
 * Return 0, or -FI_EINVAL for capabilities, flags, orders and limits that are not offered.
 * Source: fi_endpoint(3), transmit and receive context attributes.
 */
int engine_tx_attr_check(const struct engine_domain *domain, const char *call,
			 const struct fi_tx_attr *attr);
int engine_rx_attr_check(const struct engine_domain *domain, const char *call,
			 const struct fi_rx_attr *attr);

/*
 * engine_whole_caps - add both directions to capabilities that are given without any
 * Source: fi_getinfo(3).
 */
uint64_t engine_whole_caps(uint64_t caps);

/*
 * engine_part_caps - capabilities of a context: @asked out of @caps of its endpoint, or all if
 * @asked is 0
 */
uint64_t engine_part_caps(uint64_t asked, uint64_t caps);

/*
 * engine_ctx_bind_cq - bind a completion queue to the directions that @flags names
 * @tx, @rx: NULL: the object has no such direction
 *
 * Replaces the queue bound before for operations that end from now on. Returns 0, -FI_EBADFLAGS, or
 * -FI_EINVAL for a queue of another domain (nothing is bound). Source: fi_endpoint(3), fi_ep_bind;
 * libfabric's sockets provider for the replacement.
 */
int engine_ctx_bind_cq(struct engine_domain *domain, struct engine_tx_ctx *tx,
		       struct engine_rx_ctx *rx, struct fid *cq, uint64_t flags);

/*
 * engine_ctx_bound - use newly bound queues and counters in later calls on @ctx and its aliases
 *
 * Operations under way keep their flags, but are counted.
 */
void engine_ctx_bound(struct engine_ctx *ctx);

/* engine_tx_release, engine_rx_release - release the queue and the counters of a context */
void engine_tx_release(struct engine_tx_ctx *tx);
void engine_rx_release(struct engine_rx_ctx *rx);

/*
 * engine_ctx_control - slot: FI_ALIAS, FI_GETOPSFLAG, FI_SETOPSFLAG
 *
 * Callers handle FI_ENABLE before. Source: fi_endpoint(3), fi_control and fi_ep_alias.
 */
int engine_ctx_control(struct fid *fid, int command, void *arg);

/* Slots. Source: fi_endpoint(3), fi_getopt and fi_setopt, fi_cancel, fi_rx_size_left. */
int engine_ctx_getopt(struct fid *fid, int level, int name, void *val, size_t *len);
int engine_ctx_setopt(struct fid *fid, int level, int name, const void *val, size_t len);
ssize_t engine_ctx_cancel(struct fid *fid, void *context);
ssize_t engine_ctx_rx_left(struct fid_ep *fid);
ssize_t engine_ctx_tx_left(struct fid_ep *fid);
int engine_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		     struct fid_ep **tx_ep, void *context);
int engine_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		     struct fid_ep **rx_ep, void *context);
int engine_no_export(struct fid_ep *ep, uint64_t flags, struct fid_xpu_ep *xpu_ep);

/* engine_ctx_ops - slots of all objects but scalable endpoints */
extern struct fi_ops_ep engine_ctx_ops;
/*
 * engine_options_init - set the options of an endpoint from its fi_info, or defaults if that is
 * NULL
 */
void engine_options_init(struct engine_options *options, const struct fi_info *info);

#endif
