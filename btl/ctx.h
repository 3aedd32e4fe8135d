/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Contexts: their lanes, and what is under way. All of it is the context's thread's. */
#ifndef BTL_CTX_H
#define BTL_CTX_H

#include <assert.h>
#include "route.h"
#include "transport.h"

/* Handles that a context has checked and keeps, a power of two. */
#define BTL_KNOWN_CNT 64u

/* Registrations for local use that a lane keeps, a power of two. */
#define BTL_KEPT_CNT 16u

/*
 * struct btl_kept - a registration of memory of the program with a lane's domain
 * @serial: the memory's, or 0
 * @mem:    by which btl_mem_find_locked() has it, as long as it is open
 */
struct btl_kept {
	uint64_t serial, mem;
	struct fid_mr *mr;
};

/*
 * struct btl_lane - a context's own objects on a device
 * @receives: NULL where it receives no messages
 * @kept:     where the device wants local memory registered
 */
struct btl_lane {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct btl_receives *receives;
	struct btl_kept kept[BTL_KEPT_CNT];
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

/*
 * Part of an operation; or a buffer that receives a message; a request to a server (client.h); a
 * server's answer, in the buffer of the request (service.c)
 */
enum btl_tag_kind { BTL_TAG_OP, BTL_TAG_RECEIVE, BTL_TAG_REQUEST, BTL_TAG_ANSWER };

/*
 * struct btl_tag - what a completion of libfabric's gives back: one for each of its operations
 * under way
 * @op, @device: of BTL_TAG_OP: whose part it is, and what carries it out
 * @tried:  bit i: device i has failed at it
 * @buf, @len, @addr: what it moves, and to or from where at the peer; not of an atomic. Of
 *	    BTL_TAG_ANSWER: its bytes, and the libfabric address it goes to
 * @local:  a registration for it alone, or NULL
 */
struct btl_tag {
	struct fi_context2 context;
	enum btl_tag_kind kind;
	uint32_t device, tried;
	struct weft_btl_op *op;
	struct btl_tag *next;
	char *buf;
	size_t len;
	uint64_t addr;
	struct fid_mr *local;
};

/* BTL_CANCELLED: one of the others, which nothing waits for any more */
enum btl_kind { BTL_PUT, BTL_GET, BTL_ATOMIC, BTL_SEND, BTL_CANCELLED };

/*
 * struct btl_split - a transfer that has pieces, or may need another device: what is not in the
 * program's operation
 * @op:     its memory is the program's and the state is in it
 * @handle: of the target
 * @mem:    the program's registration of the local bytes, or NULL
 * @buf, @left, @addr: what has not begun
 * @again:  pieces that failed with their device, and are to begin again by another one
 * @next:   in the list of those that have something to begin, or of free ones
 */
struct btl_split {
	struct weft_btl_op *op;
	struct btl_handle handle;
	const struct weft_btl_mem *mem;
	char *buf;
	size_t left;
	uint64_t addr;
	struct btl_tag *again;
	struct btl_split *next;
	bool waits;
};

/*
 * struct btl_state - what struct weft_btl_op has inside
 * @tag:    of an operation that is one of libfabric's
 * @route:  index of the peer's
 * @pieces: operations of libfabric's under way; 0 of one that has ended, whose @split is NULL then
 * @next:   in the list of those that have ended
 * @split:  NULL: it is one operation of libfabric's, and no other device can take it over
 * @value, @compare, @old: of an atomic
 * @result, @result_len: where to put @old
 */
struct btl_state {
	struct btl_tag tag;
	size_t route;
	size_t pieces;
	struct weft_btl_op *next;
	enum btl_kind kind;
	uint32_t result_len;
	struct btl_split *split;
	void *result;
	uint64_t value, compare, old;
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

/* struct btl_injected - a put of bytes that were the program's */
struct btl_injected {
	struct weft_btl_op op;
	struct btl_injected *next;
	unsigned char bytes[WEFT_BTL_INJECT_MAX];
};

/*
 * struct weft_btl_ctx
 * @rounds:  of progress; written by its thread, read by btl/service.c
 * @lanes:   by device
 * @client:  NULL: no device needs it
 * @routes:  by weft_btl_peer.idx, @route_cnt of them
 * @under_way: operations that have begun and not ended, without @lost
 * @lost:    those that were cancelled and have not ended
 * @tags:    free ones
 * @waiting: transfers with something to begin
 * @splits, @injected: free ones
 * @inject_status: the first error of an injected put since the last flush
 * @more:    another operation follows at once
 * @closes_seen: of the transport's @mem_closes: no registration is kept of memory that was closed
 *	      before
 * @ended:   operations without @done that weft_btl_poll() has not returned
 * @ended_now: operations that have ended by themselves, whose end has not been told
 */
struct weft_btl_ctx {
	struct weft_btl *btl;
	_Atomic uint32_t rounds;
	struct btl_lane lanes[WEFT_BTL_DEVICES_MAX];
	struct btl_client *client;
	struct btl_route *routes;
	size_t route_cnt;
	size_t under_way, lost;
	struct btl_tag *tags;
	struct btl_split *waiting, *splits;
	struct btl_injected *injected;
	int inject_status;
	bool more;
	uint64_t closes_seen;
	struct btl_ops ended, ended_now;
	struct btl_known known[BTL_KNOWN_CNT];
};

/*
 * btl_lane_open - open the objects of a lane; it receives nothing
 * @info: one of the device's
 * Returns 0 or -FI_E*.
 */
int btl_lane_open(const struct btl_device *device, struct fi_info *info, struct btl_lane *lane);

/* btl_lane_close - close what is open of a lane, and its receives */
void btl_lane_close(struct btl_lane *lane);

/*
 * btl_ctx_create - open a context of @btl and its lanes
 * Returns 0 with an owned context, or -FI_E*.
 */
int btl_ctx_create(struct weft_btl *btl, struct weft_btl_ctx **ctx);

/* btl_ctx_destroy - close a context with nothing under way, or with what is given up */
void btl_ctx_destroy(struct weft_btl_ctx *ctx);

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

/*
 * btl_op_prepare - make an operation's state that of one of libfabric's operations that gives no
 * result
 */
void btl_op_prepare(struct weft_btl_op *op, enum btl_kind kind);

/*
 * btl_op_begun - one more operation is under way on @route
 * @ret: what libfabric has returned: if not 0, the operation has not begun, and its own
 *	 registration ends
 * Returns @ret.
 */
int btl_op_begun(struct weft_btl_ctx *ctx, struct weft_btl_op *op, size_t route, ssize_t ret);

/* btl_op_end - an operation has ended: tells the program */
void btl_op_end(struct weft_btl_ctx *ctx, struct weft_btl_op *op);

/*
 * btl_tag_end - one of libfabric's operations has ended
 * Returns whether the program's has.
 */
bool btl_tag_end(struct weft_btl_ctx *ctx, struct btl_tag *tag, int status);

/* btl_kept_check - end the registrations that lanes keep of memory that was closed; btl/access.c */
void btl_kept_check(struct weft_btl_ctx *ctx);

/* btl_pieces_begin - begin what can begin of the transfers that wait; btl/access.c */
void btl_pieces_begin(struct weft_btl_ctx *ctx);

/* btl_split_wait - a transfer has something to begin; btl/access.c */
void btl_split_wait(struct weft_btl_ctx *ctx, struct btl_split *split);

/* btl_split_give - a transfer's record is free again */
static inline void btl_split_give(struct weft_btl_ctx *ctx, struct btl_split *split)
{
	split->next = ctx->splits;
	ctx->splits = split;
}

#endif
