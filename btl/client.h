/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations that a device does not have: a context sends the peer's server a request for
 * them, a message, and gets an answer. Called by the context's thread.
 */
#ifndef BTL_CLIENT_H
#define BTL_CLIENT_H

#include "ctx.h"
#include "message.h"
#include "request.h"

/* Ids of messages, after those of listeners. */
#define BTL_ID_REQUEST BTL_LISTENERS
#define BTL_ID_ANSWER  (BTL_LISTENERS + 1)

/* A server that has not answered for so long is taken for dead: a device need not tell. */
#ifndef BTL_ANSWER_NS
#define BTL_ANSWER_NS 10000000000u
#endif

/* Bytes that are put or got by one request. */
#define BTL_REQUEST_DATA_MAX (BTL_MESSAGE_MAX - 512)

/*
 * Requests of a context under way; and to one peer, so that one that does not answer leaves some
 * for others.
 */
#define BTL_REQUEST_SLOTS      64u
#define BTL_REQUEST_PEER_SLOTS 16u

/*
 * struct btl_client - the requests of a context
 * @id:      of the context, to servers
 * @mr:      by device, of @slots; NULL where a device wants none
 * @addr, @addr_len: by device, of the context's endpoint
 * @free:    those that nothing is under way of
 * @waiting: how many have no answer yet
 * @rounds:  of progress since the clock was read
 */
struct btl_client {
	uint64_t id;
	struct fid_mr *mr[WEFT_BTL_DEVICES_MAX];
	unsigned char addr[WEFT_BTL_DEVICES_MAX][BTL_ADDR_MAX];
	size_t addr_len[WEFT_BTL_DEVICES_MAX];
	struct btl_tag *free;
	uint32_t waiting, rounds;
	/*
	 * struct btl_request_slot - a place for a request
	 * @tag:    what the device gives back once it has sent the request
	 * @requester: the tag that ends with the answer; NULL: nobody waits
	 * @number: of the request, which the answer has: the slot's index, and above it a count
	 *	    that changes with each use
	 * @route, @serial: the peer's
	 * @since_ns: when it was begun
	 * @is_sent: the device does not use @bytes
	 * @is_late: there has been no answer for too long
	 */
	struct btl_request_slot {
		struct btl_tag tag;
		struct btl_tag *requester;
		uint64_t number;
		size_t route;
		uint64_t serial;
		uint64_t since_ns;
		bool is_sent, is_late;
		unsigned char bytes[BTL_MESSAGE_MAX];
	} slots[BTL_REQUEST_SLOTS];
};

/*
 * btl_client_open - make a context ready for requests, if a device of its transport needs servers
 * Returns 0 or -FI_E*.
 */
int btl_client_open(struct weft_btl_ctx *ctx);

/*
 * btl_client_close - before the context's lanes are closed; nothing is under way, or it is given up
 */
void btl_client_close(struct weft_btl_ctx *ctx);

/*
 * btl_client_request - request an operation of a peer's server
 * @request: but for the client and its number
 * @route:   index of the peer's
 * @tag:     ends with the answer; of a get, tag->buf and tag->len get what was there, of an atomic
 *	     the state's @old
 * Returns 0, -FI_EAGAIN, or -FI_E*.
 */
ssize_t btl_client_request(struct weft_btl_ctx *ctx, struct btl_request *request, size_t route,
			   struct btl_tag *tag);

/*
 * btl_client_sent - the device does not use a request any more
 * Returns how many operations have ended.
 */
size_t btl_client_sent(struct weft_btl_ctx *ctx, struct btl_tag *tag, int status);

/*
 * btl_client_answered - an answer has arrived, of @len bytes
 * Returns how many operations have ended.
 */
size_t btl_client_answered(struct weft_btl_ctx *ctx, const unsigned char *in, size_t len);

/*
 * btl_client_check - end what has had no answer for too long
 * Returns how many operations have ended.
 */
size_t btl_client_check(struct weft_btl_ctx *ctx);

#endif
