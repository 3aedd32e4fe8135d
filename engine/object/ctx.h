/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What endpoints, their aliases and contexts have in common; see ctx.c and options.c. The caller
 * holds the domain, unless a slot of an op table is meant.
 */
#ifndef WEFT_CTX_H
#define WEFT_CTX_H

#include "engine.h"

/*
 * engine_ctx_init - one that does nothing yet: not enabled, its op tables refuse
 * @base: itself, or of an alias what it is one of
 * Its tx, rx, ep, capabilities and op flags are the caller's to set.
 */
void engine_ctx_init(struct engine_ctx *ctx, struct engine_domain *domain,
		     struct engine_ctx *base);

/* engine_ctx_flags - work out the flags of calls without flags, from op flags, queues and capabilities */
void engine_ctx_flags(struct engine_ctx *ctx);

/*
 * engine_ctx_open_tables - set the op tables of one that is enabled, by its capabilities and op flags
 *
 * Other threads may call by them meanwhile: each finds every slot as it was or as it will be (op_tables.c).
 */
void engine_ctx_open_tables(struct engine_ctx *ctx);

/* engine_ctx_close_tables - it is closed: forget it, and works that would use it; nothing for one that was not enabled */
void engine_ctx_close_tables(struct engine_ctx *ctx);

/* engine_ctx_watch - the child of a fork can do nothing with it from now on */
void engine_ctx_watch(struct engine_ctx *ctx);

/* engine_ctx_enable - it, and aliases that were made before, can be called from now on */
void engine_ctx_enable(struct engine_ctx *ctx);

/*
 * engine_tx_attr_check, engine_rx_attr_check - is that what contexts can be; NULL: yes
 * @call: which has them, for the log
 * Return 0, or -FI_EINVAL for capabilities, flags, orders and limits beyond what is offered.
 * Source: fi_endpoint(3), transmit and receive context attributes.
 */
int engine_tx_attr_check(const struct engine_domain *domain, const char *call,
			 const struct fi_tx_attr *attr);
int engine_rx_attr_check(const struct engine_domain *domain, const char *call,
			 const struct fi_rx_attr *attr);

/* engine_whole_caps - with the directions that follow from capabilities without any. Source: fi_getinfo(3) */
uint64_t engine_whole_caps(uint64_t caps);

/* engine_part_caps - capabilities of a context: those of its endpoint, narrowed to what it asks for, if it does */
uint64_t engine_part_caps(uint64_t asked, uint64_t caps);

/*
 * engine_ctx_bind_cq - a completion queue for the directions that @flags names
 * @tx, @rx: NULL: there is no such direction, and nothing to bind for it
 *
 * Takes the place of the one before, for what ends from then on. Returns 0; -FI_EBADFLAGS, or -FI_EINVAL:
 * another domain's queue (nothing is bound). Source: fi_endpoint(3), fi_ep_bind; libfabric's sockets for the
 * place that is taken.
 */
int engine_ctx_bind_cq(struct engine_domain *domain, struct engine_tx_ctx *tx,
		       struct engine_rx_ctx *rx, struct fid *cq, uint64_t flags);

/*
 * engine_ctx_bound - queues or counters were bound: its calls from now on, and those of its aliases, tell
 * them. What is under way ends as it was begun, but counts.
 */
void engine_ctx_bound(struct engine_ctx *ctx);

/* engine_tx_release, engine_rx_release - give back queue and counters */
void engine_tx_release(struct engine_tx_ctx *tx);
void engine_rx_release(struct engine_rx_ctx *rx);

/*
 * engine_ctx_control - slot: FI_ALIAS, FI_GETOPSFLAG, FI_SETOPSFLAG; what enables comes first
 * Source: fi_endpoint(3), fi_control and fi_ep_alias.
 */
int engine_ctx_control(struct fid *fid, int command, void *arg);

/* Slots. Source: fi_endpoint(3), fi_getopt and fi_setopt, fi_cancel, fi_rx_size_left. */
int engine_ctx_getopt(struct fid *fid, int level, int name, void *val, size_t *len);
int engine_ctx_setopt(struct fid *fid, int level, int name, const void *val, size_t len);
ssize_t engine_ctx_cancel(struct fid *fid, void *context);
ssize_t engine_ctx_rx_left(struct fid_ep *fid);
ssize_t engine_ctx_tx_left(struct fid_ep *fid);
int engine_no_export(struct fid_ep *ep, uint64_t flags, struct fid_xpu_ep *xpu_ep);

/* engine_ctx_ops - of all but scalable endpoints */
extern struct fi_ops_ep engine_ctx_ops;
/* engine_options_init - what an endpoint with that fi_info, or none, says of its limits */
void engine_options_init(struct engine_options *options, const struct fi_info *info);

#endif
