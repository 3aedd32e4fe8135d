/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Accepting connections to an endpoint: requests in its mailbox, and requests that were received
 * over a socket. Called by poll(), on the thread that holds the domain.
 */
#include <rdma/fi_errno.h>
#include "accept.h"
#include "polling.h"
#include "conn.h"
#include "connect.h"
#include "socket.h"

#define ACCEPT_BATCH 8u /* requests handled in one poll() */

/* The origin of a request: a process, or, over a socket, an endpoint. */
struct request_origin {
	uint32_t pid;
	/* NULL: pid says it */
	const uint8_t *nonce;
};

/* Checks that a request's hello is of the request's origin. Returns 0 or -FI_EPROTO. */
static int hello_agrees(const struct pshm_wire *w, const struct hello *hello,
			const struct request_origin *origin)
{
	int err = hello_check(hello);

	if (err)
		return err;
	if (origin->nonce)
		return pshm_nonce_same(hello->addr.nonce, origin->nonce) ? 0 : -FI_EPROTO;
	return hello->addr.pid == origin->pid && hello->addr.ns_hash == w->ns_hash ? 0
										   : -FI_EPROTO;
}

/* Refuses a request and frees it: for the engine, or before the engine has received it. */
static void refuse(struct pshm_conn *conn, int err, const struct hello_data *data)
{
	struct hello hello = { .data = data ? *data : (struct hello_data){ .len = 0 } };

	if (!conn->wire->forked) {
		pshm_hello_put(conn->pair, PSHM_ACCEPTOR, &hello);
		pshm_answer_put(conn->pair, PSHM_REFUSED, err);
		pshm_peer_notify(conn);
	}
	pshm_conn_free(conn);
}

void pshm_conn_refuse(struct wire_conn *base, int err, const struct hello_data *data)
{
	refuse(pshm_conn_of(base), err, data);
}

void pshm_conn_accept(struct wire_conn *base, const struct hello *hello)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct pshm_wire *w = conn->wire;

	conn->requested = false;
	if (!w->forked)
		pshm_hello_put(conn->pair, PSHM_ACCEPTOR, hello);
	list_add_tail(&w->accepted, &conn->slow);
	w->busy = true;
	pshm_wake(w);
}

/* Returns true if the requester has given the request up. */
static bool given_up(const struct pshm_conn *conn)
{
	/* A:pshm_pair.ended  what the requester did before it; pairs R:pshm_pair.ended */
	return atomic_load_explicit(&conn->pair->ended[PSHM_REQUESTER].value,
				    memory_order_acquire) != PSHM_OPEN;
}

/*
 * Publishes the acceptance and reports the connection as up; or as down, if the request was given
 * up.
 */
static void come_up(struct pshm_conn *conn)
{
	if (given_up(conn)) {
		pshm_conn_fail(conn, -FI_ECONNRESET);
		return;
	}
	pshm_answer_put(conn->pair, PSHM_ACCEPTED, 0);
	pshm_peer_notify(conn);
	pshm_conn_up(conn, &conn->hello);
}

int pshm_accepted(struct pshm_wire *w)
{
	struct list *node;
	int moved = 0;

	for (; (node = list_pop(&w->accepted)); moved++)
		come_up(container_of(node, struct pshm_conn, slow));
	return moved;
}

/* Passes a request with its pair to the engine, which answers now or later. Takes the conn. */
static void accept_pair(struct pshm_wire *w, struct pshm_conn *conn,
			const struct request_origin *origin)
{
	int err;

	if (given_up(conn)) {
		pshm_conn_free(conn);
		return;
	}
	pshm_hello_get(conn->pair, PSHM_REQUESTER, &conn->hello);
	err = hello_agrees(w, &conn->hello, origin);
	if (err) {
		refuse(conn, err, NULL);
		return;
	}
	conn->addr = conn->hello.addr;
	pshm_connecting_yield(w, conn->hello.addr.nonce);
	conn->requested = true;
	engine_conn_request(&conn->base, &conn->hello);
	pshm_accepted(w);
}

/* A connection that has no process and no memory yet, or NULL and -FI_E* */
static struct pshm_conn *accept_new(struct pshm_wire *w, int *err)
{
	struct pshm_conn *conn;

	*err = pshm_up_reserve(w);
	if (*err)
		return NULL;
	conn = pshm_conn_new(w, NULL, PSHM_ACCEPTOR);
	if (!conn)
		*err = -FI_ENOMEM;
	return conn;
}

/* Returns 0 if the answer was written to the pair, or -FI_E* if the pair can't be opened. */
static int accept_offer(struct pshm_wire *w, const struct pshm_offer *offer)
{
	const struct request_origin origin = { .pid = offer->pid };
	struct pshm_region region;
	struct pshm_sizes sizes;
	struct pshm_conn *conn;
	int err;

	conn = accept_new(w, &err);
	if (!conn)
		return err;
	err = pshm_process_get(offer->pid, &conn->process);
	if (!err)
		err = pshm_pair_open(offer, &region, &sizes);
	if (err) {
		pshm_conn_free(conn);
		return err;
	}
	if (ring_data_max(sizes.data_len) < PSHM_CLAIM_MAX) {
		pshm_region_close(&region);
		pshm_conn_free(conn);
		return -FI_EPROTO;
	}
	pshm_conn_attach(conn, &region, &sizes);
	accept_pair(w, conn, &origin);
	return 0;
}

/*
 * The same for a request that came over a socket, with everything mapped. Takes what it holds, not
 * itself.
 */
static int accept_request(struct pshm_wire *w, struct pshm_request *request)
{
	const struct request_origin origin = { .nonce = request->from };
	struct pshm_conn *conn;
	int err = -FI_EPROTO;

	conn = ring_data_max(request->sizes.data_len) < PSHM_CLAIM_MAX ? NULL
								       : accept_new(w, &err);
	if (!conn) {
		pshm_answer_put(request->pair.addr, PSHM_REFUSED, err);
		pshm_region_close(&request->pair);
		pshm_region_close(&request->inbox);
		pshm_process_put(request->process);
		return err;
	}
	conn->process = request->process;
	if (!conn->process->pid)
		conn->get_refused = -FI_EPERM;
	conn->inbox = request->inbox;
	memcpy(conn->addr.nonce, request->from, PSHM_NONCE);
	pshm_conn_attach(conn, &request->pair, &request->sizes);
	accept_pair(w, conn, &origin);
	return 0;
}

/* Accepts requests that came over sockets, @most of them. Returns how many. */
static uint32_t accept_requests(struct pshm_wire *w, uint32_t most)
{
	struct pshm_request *request;
	uint32_t taken = 0;
	int err;

	for (; taken < most && (request = pshm_sockets_take(w)); taken++) {
		err = accept_request(w, request);
		if (pshm_is_shortage(err))
			pshm_log_shortage(w, PSHM_SHORTAGE_ACCEPT, err);
		platform_free(request);
	}
	return taken;
}

int pshm_accept(struct pshm_wire *w)
{
	/*
	 * A:pshm_inbox.request_doorbell  the count before the slots; pairs
	 * R:pshm_inbox.request_doorbell
	 */
	uint64_t rung = atomic_load_explicit(&w->inbox->rung, memory_order_acquire);
	uint32_t taken = 0, idx = 0;
	struct pshm_offer offer;
	uint64_t word;
	int err;

	for (; taken < ACCEPT_BATCH && pshm_mailbox_take(w->inbox, &idx, &offer, &word);
	     taken++) {
		err = accept_offer(w, &offer);
		if (pshm_is_shortage(err))
			pshm_log_shortage(w, PSHM_SHORTAGE_ACCEPT, err);
		/* no way through memory: another wire may lead there */
		if (err && !pshm_is_shortage(err) && err != -FI_ENOPROTOOPT && err != -FI_EPROTO)
			err = -FI_EHOSTUNREACH;
		pshm_mailbox_finish(w->inbox, idx, word, err);
	}
	taken += accept_requests(w, ACCEPT_BATCH - taken);
	if (taken < ACCEPT_BATCH)
		w->requests_seen = pshm_inbox_requests(rung);
	return (int)taken;
}
