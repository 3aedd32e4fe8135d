/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libweft-btl: a transport of one-sided operations over the OFI interface. It needs nothing but a
 * libfabric.so.1, Weft's or another, and hides how that one's providers want memory to be
 * registered.
 *
 * A process opens a transport, and gives the others its name. Who has a name opens a peer; who has
 * the handle of registered memory, some bytes that travel as the program likes, puts, gets and
 * updates there, by contexts:
 *
 *	struct weft_btl_target to = { peer, &handle, addr };
 *
 *	weft_btl_put(ctx, &to, buf, len, NULL, &op);
 *	weft_btl_flush(ctx, peer);
 *
 * An operation is complete when it has been carried out in the peer's memory, and everyone sees it
 * there. The peer need not call anything for this.
 *
 * Threads: a context belongs to one thread at a time, and shares no lock with other contexts. Calls
 * that take a transport, a peer or memory and no context may be made on any thread. Nothing here
 * ends the process: what fails is the call, or the operation.
 */
#ifndef WEFT_BTL_H
#define WEFT_BTL_H

#include <rdma/fi_atomic.h>
#include <weft/routes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the largest handle and of the largest name. */
#define WEFT_BTL_HANDLE_MAX 176
#define WEFT_BTL_NAME_MAX   8192

/* Devices that a transport uses at most. */
#define WEFT_BTL_DEVICES_MAX 16

/* Bytes of the longest put that needs no operation. */
#define WEFT_BTL_INJECT_MAX 256

#define WEFT_BTL_ONE_THREAD 1u

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
 * @flags:      WEFT_BTL_ONE_THREAD: all calls, of contexts or not, come from one thread at a time,
 *		which saves locks
 */
struct weft_btl_attr {
	size_t size;
	const char *provider;
	const char *device;
	size_t device_cnt;
	uint64_t flags;
};

/*
 * struct weft_btl_target - memory of a peer
 * @peer:   whose it is
 * @handle: weft_btl_mem_handle() of the peer's registration has given its bytes;
 *	   WEFT_BTL_HANDLE_MAX may be read
 * @addr:   an address of the peer's within the registration
 */
struct weft_btl_target {
	struct weft_btl_peer *peer;
	const void *handle;
	uint64_t addr;
};

/*
 * struct weft_btl_op - an operation under way, in the caller's memory until it has ended
 * @done:  called once when it has ended, from weft_btl_progress(), weft_btl_poll() or
 *	   weft_btl_flush() of its context. It may begin operations, this one too. NULL:
 *	   weft_btl_poll() returns the operation, and until then it is the transport's.
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
 * weft_btl_flushed - does nothing: the function of operations whose end weft_btl_flush() tells
 * Their memory is the program's again when that returns, and their status says what has become of
 * them.
 */
void weft_btl_flushed(struct weft_btl_op *op);

/*
 * weft_btl_open - open a transport
 * @attr: NULL: what all zeros mean
 * Returns 0, or -FI_E*: -FI_EINVAL, -FI_ENODATA (no provider has what is needed; FI_LOG_LEVEL=info
 * says why), -FI_ENOMEM, and what the provider's objects return.
 */
int weft_btl_open(const struct weft_btl_attr *attr, struct weft_btl **btl);

/*
 * weft_btl_close - close a transport, whose contexts, peers and memory have all been closed
 * What was cancelled and has not ended is the program's again.
 * Returns 0; -FI_EBUSY: some are open, and nothing has happened; or -FI_EINVAL.
 */
int weft_btl_close(struct weft_btl *btl);

/*
 * weft_btl_name - what others need to open this process as a peer
 * @len: in: bytes at @name; out: bytes of the name
 * Returns 0, or -FI_ETOOSMALL with @len set.
 */
int weft_btl_name(struct weft_btl *btl, void *name, size_t *len);

/*
 * weft_btl_provider - libfabric's name of the provider that a transport uses, for as long as it is
 * open
 */
const char *weft_btl_provider(const struct weft_btl *btl);

/*
 * weft_btl_routes - what has gone over each wire of a context (weft/routes.h), one device after the
 * other
 * @count: in: room at @routes; out: how many wires there are
 * Returns 0; -FI_ETOOSMALL with @count set; or -FI_ENOSYS: the provider doesn't tell, as Weft's
 * alone do.
 */
int weft_btl_routes(struct weft_btl_ctx *ctx, struct weft_route *routes, size_t *count);

/*
 * weft_btl_peer_open - know another transport, or the own one, by its name
 * Returns 0, or -FI_E*: -FI_EINVAL: no name, or of another version; -FI_EADDRNOTAVAIL: no device of
 * this transport has addresses of the format of one of the peer's.
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

/*
 * weft_btl_mem_close - end a registration: peers' operations with its handle fail
 * No operation of a context that has been given it is under way, but for cancelled ones. Where
 * contexts have registrations of their own, all but the first give theirs up when they next use
 * registered memory, and within some progress.
 * Returns 0 or -FI_E*.
 */
int weft_btl_mem_close(struct weft_btl_mem *mem);

/*
 * weft_btl_mem_handle - what peers need to reach registered memory
 * @handle: out: WEFT_BTL_HANDLE_MAX bytes; those behind the returned number are zero
 * Returns the number of bytes that have to travel.
 */
size_t weft_btl_mem_handle(const struct weft_btl_mem *mem, void *handle);

/*
 * weft_btl_ctx_open - open a context, for the use of one thread at a time
 * The first context that is opened is the one that peers reach, and in which messages arrive. Once
 * it has been closed, the next one that is opened takes its place.
 * Returns 0, or -FI_E* of the provider.
 */
int weft_btl_ctx_open(struct weft_btl *btl, struct weft_btl_ctx **ctx);

/*
 * weft_btl_ctx_close - wait until what is under way has ended, and close
 * Operations that have ended and were not polled are the program's again. Where a provider never
 * ends an operation, as libfabric's shm one on a dead process, and none has ended for 10 s, a
 * context is closed all the same, and nothing is told of it; but for the first one.
 * What was cancelled is not waited for. Where it has not ended the first context is not opened
 * again: the next one is another.
 * Returns 0; -FI_EBUSY: the first context, and an operation does not end (nothing happened;
 * weft_btl_cancel() gives it up); or -FI_EINVAL.
 */
int weft_btl_ctx_close(struct weft_btl_ctx *ctx);

/*
 * weft_btl_put - store @len bytes at a peer
 * @mem: registration of the local bytes; NULL: there is none
 * @op:  ends later, whatever is returned here but an error
 * Returns 0, or -FI_E*, and the operation has not begun: -FI_EAGAIN: the device takes no more for
 * now, or connects; weft_btl_progress() and try again; -FI_EKEYREJECTED: no handle, or not one of
 * this peer's; -FI_EACCES: one that does not allow it; -FI_EFAULT: outside the registration;
 * -FI_EHOSTUNREACH: no device reaches the peer.
 */
int weft_btl_put(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, const void *buf,
		 size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op);

/*
 * weft_btl_put_inject - the same for up to WEFT_BTL_INJECT_MAX bytes, which may be changed at once
 * Whether it has been carried out weft_btl_flush() says.
 * Returns as weft_btl_put(), and -FI_EMSGSIZE.
 */
int weft_btl_put_inject(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			const void *buf, size_t len);

/* weft_btl_get - load @len bytes from a peer; else as weft_btl_put() */
int weft_btl_get(struct weft_btl_ctx *ctx, const struct weft_btl_target *from, void *buf,
		 size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op);

/*
 * struct weft_btl_transfer - a put or a get of several that begin together
 * @target: where to, or from
 * @buf:    the @len local bytes
 * @mem:    registration of them, or NULL
 * @op:     ends later, if it has begun
 */
struct weft_btl_transfer {
	struct weft_btl_target target;
	void *buf;
	size_t len;
	struct weft_btl_mem *mem;
	struct weft_btl_op *op;
};

/*
 * weft_btl_put_batch - begin several puts, which the device may hand on together
 * Returns how many have begun, the first ones of @transfers; or -FI_E* as weft_btl_put(): none has.
 */
ssize_t weft_btl_put_batch(struct weft_btl_ctx *ctx, const struct weft_btl_transfer *transfers,
			   size_t cnt);

/* weft_btl_get_batch - the same with gets */
ssize_t weft_btl_get_batch(struct weft_btl_ctx *ctx, const struct weft_btl_transfer *transfers,
			   size_t cnt);

/*
 * weft_btl_atomic - update a value of a peer
 * @fi_op:   FI_SUM, FI_BAND, FI_BOR, FI_BXOR, FI_MIN, FI_MAX or FI_ATOMIC_WRITE
 * @type:    FI_INT32, FI_UINT32, FI_INT64, FI_UINT64, FI_FLOAT or FI_DOUBLE, as far as
 *	   weft_btl_has_atomic() says
 * @operand: read before the call returns
 *
 * All atomics of all contexts and peers on a value are atomic among each other. Those of the
 * processor are not, nor are puts.
 * Returns as weft_btl_put(), and -FI_EOPNOTSUPP; -FI_EINVAL for an address that is no multiple of
 * the type's size.
 */
int weft_btl_atomic(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, enum fi_op fi_op,
		    enum fi_datatype type, const void *operand, struct weft_btl_op *op);

/*
 * weft_btl_fetch_atomic - the same, and get what was there before
 * @result: out, when the operation has ended; NULL: nobody wants it
 */
int weft_btl_fetch_atomic(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			  enum fi_op fi_op, enum fi_datatype type, const void *operand,
			  void *result, struct weft_btl_op *op);

/*
 * weft_btl_compare_swap - store @value at a peer if @compare is there, and get what was there
 * before
 * @compare, @value: read before the call returns
 * @result: out, when the operation has ended; NULL: nobody wants it
 * Returns as weft_btl_atomic().
 */
int weft_btl_compare_swap(struct weft_btl_ctx *ctx, const struct weft_btl_target *to,
			  enum fi_datatype type, const void *compare, const void *value,
			  void *result, struct weft_btl_op *op);

/*
 * weft_btl_has_atomic - whether the devices have an operation on a type; FI_CSWAP is
 * weft_btl_compare_swap()
 */
int weft_btl_has_atomic(const struct weft_btl *btl, enum fi_op fi_op, enum fi_datatype type);

/*
 * weft_btl_progress - go on with what is under way, tell what has ended, and have messages listened
 * to
 * Returns how many operations have ended and messages arrived.
 */
size_t weft_btl_progress(struct weft_btl_ctx *ctx);

/*
 * weft_btl_poll - the same, and take operations that have ended and have no function to be called
 * @ops: out: as many as are returned, @cnt at most
 */
size_t weft_btl_poll(struct weft_btl_ctx *ctx, struct weft_btl_op **ops, size_t cnt);

/* weft_btl_message_max - bytes of the longest message; 0: the devices have no messages */
size_t weft_btl_message_max(const struct weft_btl *btl);

/*
 * weft_btl_listen - have a function called with each message of an id that arrives
 * @fn: called from progress of the transport's first context, on its thread; @data is its own until
 *	   it returns. It may begin operations, and makes no progress. NULL: messages of that id are
 *	   dropped
 *
 * Called before a peer sends such a message, and not while the first context makes progress on
 * another thread.
 * Returns 0 or -FI_E*: -FI_EOPNOTSUPP: the device has no messages.
 */
int weft_btl_listen(struct weft_btl *btl, uint8_t id,
		    void (*fn)(void *arg, const void *data, size_t len), void *arg);

/*
 * weft_btl_send - send a message to the function that listens for @id at a peer
 * @mem: registration of the bytes; NULL: there is none
 * @op:  ends once @buf may be changed; whether the message has arrived is not told
 *
 * Each message arrives once; two may arrive in another order than they were sent in.
 * Returns 0; 1: it has been sent within the call, and @op is not used; or -FI_E*, and it has not:
 * as weft_btl_put(), and -FI_EMSGSIZE.
 */
int weft_btl_send(struct weft_btl_ctx *ctx, struct weft_btl_peer *peer, uint8_t id,
		  const void *buf, size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op);

/*
 * weft_btl_flush - wait until all operations of a context on a peer have ended
 * @peer: NULL: on all peers
 * What fails is said by the operation.
 * Returns 0, or -FI_E*: the first error of injected puts of the context, on any peer, since the
 * last flush.
 */
int weft_btl_flush(struct weft_btl_ctx *ctx, struct weft_btl_peer *peer);

/*
 * weft_btl_cancel - give up an operation that has begun
 *
 * For those that may never end: the peer is dead, and the provider does not say so. Nothing more of the operation
 * begins, and neither weft_btl_flush() nor weft_btl_ctx_close() waits for it; its peer may be closed, and so may the
 * memory that it names. It still ends, with an error, if the devices ever give back what they have of it. Until
 * then it and its bytes are the transport's; that ends, too, when a context that is not the first closes, and with
 * weft_btl_close().
 * Returns 0; -FI_EALREADY: it has ended, and is yet to be polled; or -FI_EINVAL.
 */
int weft_btl_cancel(struct weft_btl_ctx *ctx, struct weft_btl_op *op);

#ifdef __cplusplus
}
#endif

#endif
