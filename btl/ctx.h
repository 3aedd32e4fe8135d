/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contexts: their lanes, their routes to peers, and what is under way. All of it is the context's thread's.
 */
#ifndef BTL_CTX_H
#define BTL_CTX_H

#include <assert.h>
#include "transport.h"

/* Handles that a context has checked and keeps, a power of two. */
#define BTL_KNOWN_CNT 64u

/* struct btl_lane - a context's own objects on a device */
struct btl_lane {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

/*
 * struct btl_route - a context's way to a peer
 * @serial:    the peer's; 0: no peer's
 * @device:    by which it is reached
 * @addr:      by device; FI_ADDR_NOTAVAIL: not by this one
 * @under_way: operations that have begun and not ended
 */
struct btl_route {
	uint64_t serial;
	uint32_t device;
	fi_addr_t addr[WEFT_BTL_DEVICES_MAX];
	size_t under_way;
};

/*
 * struct btl_known - a handle that was checked
 * @bytes: as it came, @len of it; @len 0: none
 */
struct btl_known {
	size_t len;
	unsigned char bytes[WEFT_BTL_HANDLE_MAX];
	struct btl_handle handle;
};

/* struct btl_tag - what a completion of libfabric's gives back: one for each of its operations under way */
struct btl_tag {
	struct fi_context2 context;
	struct weft_btl_op *op;
	struct btl_tag *next;
};

enum btl_kind { BTL_PUT, BTL_GET };

/*
 * struct btl_state - what struct weft_btl_op has inside
 * @tag:    of an operation that is one of libfabric's
 * @route:  index of the peer's
 * @pieces: operations of libfabric's under way
 * @next:   in the list of operations that have pieces to begin, or of those that have ended
 * @desc:   of the local memory of a transfer
 * @buf, @left, @at, @key: of a transfer in pieces, what has not begun
 * @value, @compare, @old: of an atomic
 * @result, @result_len: where to put @old
 * @local:  a registration for this operation alone
 */
struct btl_state {
	struct btl_tag tag;
	size_t route;
	size_t pieces;
	struct weft_btl_op *next;
	enum btl_kind kind;
	uint32_t result_len;
	char *buf;
	size_t left;
	uint64_t at;
	uint64_t key;
	void *desc;
	void *result;
	uint64_t value, compare, old;
	struct fid_mr *local;
};

static_assert(sizeof(struct btl_state) <= sizeof(((struct weft_btl_op *)0)->internal),
	      "an operation has room for its state");

static inline struct btl_state *btl_state(struct weft_btl_op *op)
{
	return (struct btl_state *)op->internal;
}

/* struct btl_ops - a list of operations, linked by their states */
struct btl_ops {
	struct weft_btl_op *first, **last;
};

/*
 * struct weft_btl_ctx
 * @rounds:  of progress; written by its thread, read by btl/service.c
 * @lanes:   by device
 * @routes:  by weft_btl_peer.idx, @route_cnt of them
 * @tags:    free ones
 * @cut:     operations with pieces that have not begun
 * @ended:   operations without @done that weft_btl_poll() has not returned
 * @ended_now: operations that have ended by themselves, whose end has not been told
 */
struct weft_btl_ctx {
	struct weft_btl *btl;
	_Atomic uint32_t rounds;
	struct btl_lane lanes[WEFT_BTL_DEVICES_MAX];
	struct btl_route *routes;
	size_t route_cnt;
	size_t under_way;
	struct btl_tag *tags;
	struct btl_ops cut, ended, ended_now;
	struct btl_known known[BTL_KNOWN_CNT];
};

/* btl_ctx_create - open a context of @btl and its lanes. Returns 0 with an owned context, or -FI_E* */
int btl_ctx_create(struct weft_btl *btl, struct weft_btl_ctx **ctx);

/* btl_ctx_destroy - close a context with nothing under way. Returns 0 or -FI_E* */
int btl_ctx_destroy(struct weft_btl_ctx *ctx);

/*
 * btl_route_get - the way to a peer
 * @idx: out: index in ctx->routes, valid as long as the peer is open
 * Returns 0 or -FI_E*.
 */
int btl_route_get(struct weft_btl_ctx *ctx, const struct weft_btl_peer *peer, size_t *idx);

/* btl_ops_clear - make a list empty */
static inline void btl_ops_clear(struct btl_ops *ops)
{
	ops->first = NULL;
	ops->last = &ops->first;
}

/* btl_ops_add - put an operation at the end of a list */
void btl_ops_add(struct btl_ops *ops, struct weft_btl_op *op);

/* btl_tag_give - a tag is free again */
static inline void btl_tag_give(struct weft_btl_ctx *ctx, struct btl_tag *tag)
{
	tag->next = ctx->tags;
	ctx->tags = tag;
}

/* btl_op_prepare - make an operation's state that of one of libfabric's operations that gives no result */
void btl_op_prepare(struct weft_btl_op *op);

/*
 * btl_op_begun - one more operation is under way on @route
 * @ret: what libfabric has returned: if not 0, the operation has not begun, and its own registration ends
 * Returns @ret.
 */
int btl_op_begun(struct weft_btl_ctx *ctx, struct weft_btl_op *op, size_t route, ssize_t ret);

/* btl_op_end - an operation has ended: tells the program */
void btl_op_end(struct weft_btl_ctx *ctx, struct weft_btl_op *op);

/* btl_pieces_begin - begin what can begin of the operations in pieces; btl/access.c */
void btl_pieces_begin(struct weft_btl_ctx *ctx);

#endif
