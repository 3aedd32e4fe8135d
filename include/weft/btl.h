/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libweft-btl: a transport of one-sided operations over the OFI interface. It needs nothing but a
 * libfabric.so.1,
 * Weft's or another, and hides how that one's providers want memory to be registered.
 *
 * A process opens a transport, and gives the others its name. Who has a name opens a peer; who has the
 * handle of
 * registered memory, some bytes that travel as the program likes, puts, gets and updates there, by contexts:
 *
 *	struct weft_btl_target to = { peer, &handle, addr };
 *
 *	weft_btl_put(ctx, &to, buf, len, NULL, &op);
 *	weft_btl_flush(ctx, peer);
 *
 * An operation is complete when it has been carried out in the peer's memory, and everyone sees it
 * there. The peer
 * need not call anything for this.
 *
 * Threads: a context belongs to one thread at a time, and shares no lock with other contexts. Calls that
 * take a
 * transport, a peer or memory and no context may be made on any thread. Nothing here ends the process:
 * what fails
 * is the call, or the operation.
 */
#ifndef WEFT_BTL_H
#define WEFT_BTL_H

#include <rdma/fi_atomic.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the largest handle and of the largest name. */
#define WEFT_BTL_HANDLE_MAX 128
#define WEFT_BTL_NAME_MAX   4096

/* Devices that a transport uses at most. */
#define WEFT_BTL_DEVICES_MAX 8

struct weft_btl;
struct weft_btl_ctx;
struct weft_btl_peer;
struct weft_btl_mem;

/*
 * struct weft_btl_attr - what a transport is to use
 * @size:       sizeof(struct weft_btl_attr); the struct only grows at its end
 * @provider:   libfabric's name of a provider; NULL: the first that has what is needed
 * @device:     name of a domain of it; NULL: any
 * @device_cnt: how many devices to use at most, up to WEFT_BTL_DEVICES_MAX; 0: one
 */
struct weft_btl_attr {
	size_t size;
	const char *provider;
	const char *device;
	size_t device_cnt;
};

/*
 * struct weft_btl_target - memory of a peer
 * @peer:   whose it is
 * @handle: weft_btl_mem_handle() of the peer's registration has given its bytes; WEFT_BTL_HANDLE_MAX may
 *	   be read
 * @addr:   an address of the peer's within the registration
 */
struct weft_btl_target {
	struct weft_btl_peer *peer;
	const void *handle;
	uint64_t addr;
};

/*
 * struct weft_btl_op - an operation under way, in the caller's memory until it has ended
 * @done:  called once when it has ended, from weft_btl_progress(), weft_btl_poll() or weft_btl_flush()
 *	   of its context. It may
 *	   begin operations, this one too. NULL: weft_btl_poll() returns the operation.
 * @arg:   the caller's
 * @status: out: 0, or -FI_E*: it was not carried out, or only in part
 * @reserved, @internal: the transport's
 */
struct weft_btl_op {
	void (*done)(struct weft_btl_op *op);
	void *arg;
	int status;
	uint32_t reserved;
	uint64_t internal[29];
};

/*
 * weft_btl_open - open a transport
 * @attr: NULL: what all zeros mean
 * Returns 0, or -FI_E*: -FI_EINVAL, -FI_ENODATA (no provider has what is needed; FI_LOG_LEVEL=info says
 * why), -FI_ENOMEM,
 * and what the provider's objects return.
 */
int weft_btl_open(const struct weft_btl_attr *attr, struct weft_btl **btl);

/*
 * weft_btl_close - end a transport. Its contexts other than the first, its peers and its memory are
 * closed before.
 * Returns 0; -FI_EBUSY: some are open, and nothing has happened.
 */
int weft_btl_close(struct weft_btl *btl);

/*
 * weft_btl_name - what others need to open this process as a peer
 * @len: in: bytes at @name; out: bytes of the name
 * Returns 0, or -FI_ETOOSMALL with @len set.
 */
int weft_btl_name(struct weft_btl *btl, void *name, size_t *len);

/*
 * weft_btl_peer_open - know another transport, or the own one, by its name
 * Returns 0, or -FI_E*: -FI_EINVAL: no name, or of another version; -FI_EADDRNOTAVAIL: no device of this
 * transport
 * reaches one of the peer's.
 */
int weft_btl_peer_open(struct weft_btl *btl, const void *name, size_t len,
		       struct weft_btl_peer **peer);

/* weft_btl_peer_close - forget a peer; no operation on it is under way */
void weft_btl_peer_close(struct weft_btl_peer *peer);

/*
 * weft_btl_mem_open - register memory, for peers and as the local side of operations
 * @access: what peers may do there: FI_REMOTE_READ, FI_REMOTE_WRITE, both or 0
 * Returns 0, or -FI_E*: -FI_EINVAL, and what fi_mr_reg returns.
 */
int weft_btl_mem_open(struct weft_btl *btl, void *addr, size_t len, uint64_t access,
		      struct weft_btl_mem **mem);

/* weft_btl_mem_close - end a registration: peers' operations with its handle fail. Returns 0 or -FI_E* */
int weft_btl_mem_close(struct weft_btl_mem *mem);

/*
 * weft_btl_mem_handle - what peers need to reach registered memory
 * @handle: out: WEFT_BTL_HANDLE_MAX bytes; those behind the returned number are zero
 * Returns the number of bytes that have to travel.
 */
size_t weft_btl_mem_handle(const struct weft_btl_mem *mem, void *handle);

/*
 * weft_btl_ctx_open - open a context, for the use of one thread at a time
 * Returns 0, or -FI_E* of the provider.
 */
int weft_btl_ctx_open(struct weft_btl *btl, struct weft_btl_ctx **ctx);

/* weft_btl_ctx_close - wait until what is under way has ended, and close. Returns 0 or -FI_E* */
int weft_btl_ctx_close(struct weft_btl_ctx *ctx);

/*
 * weft_btl_put - store @len bytes at a peer
 * @mem: registration of the local bytes; NULL: there is none
 * @op:  ends later, whatever is returned here but an error
 * Returns 0, or -FI_E*, and the operation has not begun: -FI_EAGAIN: the device takes no more for now, or
 * connects; weft_btl_progress() and try again; -FI_EKEYREJECTED: no handle, or not one of this peer's;
 * -FI_EACCES: one that does not allow it; -FI_EFAULT: outside the registration; -FI_EHOSTUNREACH: no device
 * reaches the peer.
 */
int weft_btl_put(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, const void *buf,
		 size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op);

/* weft_btl_get - load @len bytes from a peer; else as weft_btl_put() */
int weft_btl_get(struct weft_btl_ctx *ctx, const struct weft_btl_target *from, void *buf,
		 size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op);

/*
 * weft_btl_atomic - update a value of a peer
 * @fi_op:   FI_SUM, FI_BAND, FI_BOR, FI_BXOR, FI_MIN, FI_MAX or FI_ATOMIC_WRITE
 * @type:    FI_INT32, FI_UINT32, FI_INT64, FI_UINT64, FI_FLOAT or FI_DOUBLE, as far as
 *	   weft_btl_has_atomic() says
 * @operand: read before the call returns
 *
 * All atomics of all contexts and peers on a value are
 * atomic among each other. Those of the processor are not, nor are puts.
 * Returns as weft_btl_put(), and -FI_EOPNOTSUPP; -FI_EINVAL for an address that is no multiple of the
 * type's size.
 */
int weft_btl_atomic(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, enum fi_op fi_op,
		    enum fi_datatype type, const void *operand, struct weft_btl_op *op);

/* weft_btl_fetch_atomic - the same, and get what was there before, at @result when it has ended; NULL: not */
int weft_btl_fetch_atomic(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			  enum fi_op fi_op, enum fi_datatype type, const void *operand,
			  void *result, struct weft_btl_op *op);

/*
 * weft_btl_compare_swap - store @value at a peer if @compare is there, and get what was there before
 * @compare, @value: read before the call returns
 * @result: out, when the operation has ended; NULL: nobody wants it
 * Returns as weft_btl_atomic().
 */
int weft_btl_compare_swap(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			  enum fi_datatype type, const void *compare, const void *value,
			  void *result, struct weft_btl_op *op);

/* weft_btl_has_atomic - whether the devices have an operation on a type; FI_CSWAP is weft_btl_compare_swap() */
int weft_btl_has_atomic(const struct weft_btl *btl, enum fi_op fi_op, enum fi_datatype type);

/* weft_btl_progress - go on with what is under way, and tell what has ended. Returns how many have */
size_t weft_btl_progress(struct weft_btl_ctx *ctx);

/*
 * weft_btl_poll - the same, and take operations that have ended and have no function to be called
 * @ops: out: as many as are returned, @cnt at most
 */
size_t weft_btl_poll(struct weft_btl_ctx *ctx, struct weft_btl_op **ops, size_t cnt);

/*
 * weft_btl_flush - wait until all operations of a context on a peer have ended
 * @peer: NULL: on all peers
 * What fails is said by the operation.
 */
void weft_btl_flush(struct weft_btl_ctx *ctx, struct weft_btl_peer *peer);

#ifdef __cplusplus
}
#endif

#endif
