/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connecting to another endpoint: through its inbox, or by a socket. Called by the engine, and by
 * poll() for the answers; on the thread that holds the domain.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "connect.h"
#include "descriptor.h"
#include "wake.h"
#include "service.h"
#include "socket.h"

#define WAIT_CHECK_NS \
	1000000u /* how often connecting[] is checked for dead processes and free slots */
#define WAIT_CHECK_CNT 16u /* ... and longer, by as much, for each so many */
#define WAIT_CHECK_MAX 32u /* ... but not by more */

/* Sizes of a pair of processes that reach each other through /proc, and of others. */
const struct pshm_sizes pshm_small_pair = { PSHM_LINE_CNT, PSHM_DATA_LEN, 0 };
static const struct pshm_sizes whole_pair = { PSHM_LINE_CNT, PSHM_DATA_LEN, PSHM_AREA_LEN };

/*
 * The memory of a request, whose descriptor is held until it is answered. Who answers opens two more for a moment: if requests
 * had them all, endpoints of this process would wait for each other. Returns 0 or -FI_E*.
 */
static int pair_create(const struct pshm_wire *w, const struct pshm_sizes *sizes,
		       struct pshm_region *region)
{
	return sys_descriptor_room(w->own_inbox.fd) ? pshm_pair_create(sizes, region)
						    : -FI_EMFILE;
}

/*
 * Writes a request to the peer's mailbox, if it has a free slot. The other requests wait, and hold
 * nothing but the open inbox. Returns 0, -FI_EAGAIN to wait, or -FI_E*.
 */
static int offer_pair(struct pshm_conn *conn)
{
	struct pshm_wire *w = conn->wire;
	struct pshm_region region;
	struct pshm_offer offer;
	int err;

	err = pshm_mailbox_claim(conn->inbox.addr, w->pid, &conn->ticket);
	if (err)
		return err;
	err = pair_create(w, &pshm_small_pair, &region);
	if (err)
		goto err_drop;
	pshm_conn_attach(conn, &region, &pshm_small_pair);
	pshm_hello_put(conn->pair, PSHM_REQUESTER, &conn->hello);

	offer = (struct pshm_offer){ .pid = w->pid, .fd = (uint32_t)region.fd };
	memcpy(offer.nonce, conn->pair->nonce, PSHM_NONCE);
	err = pshm_mailbox_post(conn->inbox.addr, &offer, &conn->ticket);
	if (err)
		goto err_close;
	pshm_peer_wake(conn);
	return 0;

err_close:
	pshm_conns_change(w);
	pshm_region_close(&conn->region);
	conn->pair = NULL;
err_drop:
	pshm_mailbox_drop(&conn->ticket);
	return err;
}

/* Returns true if the address says that the peer is on our host, in our pid namespace. */
static bool in_our_ns(const struct pshm_conn *conn)
{
	return conn->wire->host_known && conn->addr.ns_hash == conn->wire->ns_hash;
}

/*
 * Finds the inbox through /proc, and writes the request there. Returns -FI_EHOSTUNREACH if a socket
 * may reach the peer.
 * @absent: out: the process's files could be read, and it has no such inbox
 */
static int connect_by_proc(struct pshm_conn *conn, bool *absent)
{
	struct pshm_wire *w = conn->wire;
	const struct weft_addr *addr = &conn->addr;
	int err;

	*absent = false;
	if (addr->ns_hash != w->ns_hash || w->ns_hash == ADDR_NO_NS)
		return -FI_EHOSTUNREACH;
	err = pshm_process_get(addr->pid, &conn->process);
	if (err) /* our host, our pid namespace, and no such process: no other way will find it either */
		return err == -FI_EHOSTUNREACH && in_our_ns(conn) ? -FI_ECONNREFUSED : err;
	err = pshm_inbox_open(addr->pid, addr->fd, addr->nonce, &conn->inbox);
	if (!err)
		err = offer_pair(conn);
	if (!err || err == -FI_EAGAIN)
		return 0;
	if (err == -FI_ENOENT) {
		*absent = conn->process->how == PSHM_BY_IMAGE;
		err = -FI_EHOSTUNREACH;
	}
	pshm_process_put(conn->process);
	conn->process = NULL;
	return err;
}

/*
 * Sends the request over a socket. Returns 0, -FI_EAGAIN to wait, or -FI_E*. The areas are in the
 * pair's memory, since there is no way to send them later. A connection that was requested through
 * /proc begins anew.
 */
static int connect_by_socket(struct pshm_conn *conn)
{
	const struct pshm_sizes *sizes = pshm_pair_allowed(&whole_pair) ? &whole_pair
									: &pshm_small_pair;
	struct pshm_region region;
	int err;

	if (!pshm_sockets_room(conn->addr.nonce))
		return -FI_EAGAIN;
	err = pair_create(conn->wire, sizes, &region);
	if (err)
		return err;
	pshm_hello_put(region.addr, PSHM_REQUESTER, &conn->hello);
	pshm_mailbox_drop(&conn->ticket);
	pshm_region_close(&conn->inbox);
	pshm_conns_change(conn->wire);
	pshm_region_close(&conn->region);
	pshm_conn_attach(conn, &region, sizes);
	err = pshm_sockets_ask(conn->wire, conn->addr.nonce, &region, &conn->ask);
	if (err) {
		pshm_region_close(&conn->region);
		conn->pair = NULL;
		return err;
	}
	if (conn->process)
		pshm_process_put(conn->process);
	conn->process = conn->ask.process;
	if (!conn->process->pid) /* without its number there is no reading its memory */
		conn->get_refused = -FI_EPERM;
	return 0;
}

/*
 * Sends the request over a socket from now on. Returns 0, also if it has to wait for that, or
 * -FI_E*
 */
static int connect_otherwise(struct pshm_conn *conn)
{
	int err;

	conn->by_socket = true;
	err = connect_by_socket(conn);
	return err == -FI_EAGAIN ? 0 : err;
}

/*
 * Sends the request through /proc or over a socket. Returns 0, also if it has to wait for that, or
 * -FI_E*
 */
static int connect_begin(struct pshm_conn *conn)
{
	bool absent;
	int err = connect_by_proc(conn, &absent);

	if (err == -FI_EHOSTUNREACH)
		err = connect_otherwise(conn);
	/*
	 * it was closed, or its process has begun another program: no other endpoint has its
	 * address
	 */
	if (err == -FI_EHOSTUNREACH && absent && in_our_ns(conn))
		err = -FI_ECONNREFUSED;
	return err;
}

/* The address of the endpoint to connect to; a service is looked up. Returns 0 or -FI_E* */
static int connect_target(const struct weft_addr *addr, struct weft_addr *target)
{
	int err;

	*target = *addr;
	if (addr->kind == ADDR_SERVICE && pshm_service_named(addr)) {
		err = pshm_service_find(addr, target);
		if (err)
			return err;
	}
	return target->pid ? 0 : -FI_EHOSTUNREACH;
}

/* What pshm_connect() returns of @err: -FI_EAGAIN where waiting brings what it lacked. */
static int connect_failed(struct pshm_wire *w, int err)
{
	/* descriptors become free as connections under way are answered */
	if (err == -FI_EMFILE && !list_empty(&w->connecting))
		return -FI_EAGAIN;
	if (pshm_is_shortage(err))
		pshm_log_shortage(w, PSHM_SHORTAGE_CONNECT, err);
	return err;
}

int pshm_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		 const struct hello *hello, struct wire_conn **out)
{
	struct pshm_wire *w = (struct pshm_wire *)wire;
	struct pshm_conn *conn;
	struct weft_addr target;
	int err;

	if (w->forked)
		return -FI_EOPBADSTATE;
	err = connect_target(addr, &target);
	if (!err)
		err = pshm_up_reserve(w);
	if (err)
		return err;
	conn = pshm_conn_new(w, peer, PSHM_REQUESTER);
	if (!conn)
		return -FI_ENOMEM;
	conn->addr = target;
	conn->hello = *hello;
	err = connect_begin(conn);
	if (err) {
		pshm_conn_free(conn);
		return connect_failed(w, err);
	}
	list_add_tail(&w->connecting, &conn->slow);
	w->busy = true;
	pshm_wake(w);
	*out = &conn->base;
	return 0;
}

/* A request that was answered one way or the other needs its descriptor and slot no more. */
static void connecting_done(struct pshm_conn *conn)
{
	list_remove(&conn->slow);
	pshm_mailbox_drop(&conn->ticket);
	pshm_sockets_drop(&conn->ask);
	pshm_region_close_fd(&conn->region);
}

static void connecting_end(struct pshm_conn *conn, int err)
{
	connecting_done(conn);
	pshm_conn_fail(conn, err);
}

/* The owner of the inbox has accepted. */
static void connecting_accepted(struct pshm_conn *conn)
{
	struct hello hello;
	int err;

	pshm_hello_get(conn->pair, PSHM_ACCEPTOR, &hello);
	err = hello_check(&hello);
	if (!err && !pshm_nonce_same(hello.addr.nonce, conn->addr.nonce))
		err = -FI_EPROTO;
	if (err) {
		connecting_end(conn, err);
		return;
	}
	connecting_done(conn);
	pshm_conn_up(conn, &hello);
}

/* The owner of the inbox has refused, with the private data of its program. */
static void connecting_refused(struct pshm_conn *conn, int err)
{
	struct hello hello;

	pshm_hello_get(conn->pair, PSHM_ACCEPTOR, &hello);
	if (hello_data_check(&hello.data)) {
		connecting_end(conn, -FI_EPROTO);
		return;
	}
	connecting_done(conn);
	pshm_conn_end(conn, PSHM_BROKEN, true);
	engine_conn_refused(&conn->base, err, &hello.data);
}

/*
 * Takes the inbox that was received over the socket. Returns 0, also if none has arrived yet, or
 * -FI_E* if none will.
 */
static int asked_failed(struct pshm_conn *conn)
{
	int err;

	if (!conn->ask.process || conn->inbox.addr)
		return 0;
	err = pshm_sockets_answer(&conn->ask, &conn->inbox);
	if (conn->inbox.addr) /* the peer has the pair's descriptor, too */
		pshm_region_close_fd(&conn->region);
	return err;
}

/* Returns the error for which no answer will come, or 0. */
static int connecting_hopeless(struct pshm_conn *conn, bool check_process)
{
	const struct pshm_inbox *inbox;
	int err = conn->ticket.slot ? pshm_mailbox_failed(&conn->ticket) : asked_failed(conn);

	if (err)
		return err;
	inbox = conn->inbox.addr;
	/* A:pshm_inbox.closed  pairs R:pshm_inbox.closed */
	if (inbox && atomic_load_explicit(&inbox->closed, memory_order_acquire))
		return -FI_ECONNREFUSED;
	if (!check_process || !conn->process || !pshm_process_dead(conn->process))
		return 0;
	/* the peer may have closed the socket and be alive: requesting again shows that */
	return conn->ask.process ? -FI_ECONNRESET : -FI_ECONNREFUSED;
}

/*
 * The owner could not open the pair. Returns 0 if the request is sent over a socket now, or @err.
 */
static int connecting_otherwise(struct pshm_conn *conn, int err)
{
	return err == -FI_EHOSTUNREACH && conn->ticket.slot ? connect_otherwise(conn) : err;
}

/* No answer will come, by that error. Returns true if the connection went down. */
static bool connecting_failed(struct pshm_conn *conn, int err)
{
	err = connecting_otherwise(conn, err);
	if (!err)
		return false;
	if (pshm_is_shortage(err))
		pshm_log_shortage(conn->wire, PSHM_SHORTAGE_PEER, err);
	connecting_end(conn, err);
	return true;
}

/*
 * Over a socket the inbox is sent before the answer is written to the pair, and may not have been
 * read yet. Returns 0 or -FI_E*.
 */
static int accepted_inbox(struct pshm_conn *conn)
{
	if (!conn->ask.process || conn->inbox.addr)
		return 0;
	pshm_sockets_look();
	return asked_failed(conn);
}

/* A connection that waits for a free slot. Returns true if it went down. */
static bool waiting_step(struct pshm_conn *conn, bool check_process)
{
	int err = connecting_hopeless(conn, check_process);

	if (!err && conn->by_socket)
		err = connect_by_socket(conn);
	else if (!err && check_process)
		err = offer_pair(conn);
	if (!err || err == -FI_EAGAIN)
		return false;
	if (!pshm_is_shortage(err))
		return connecting_failed(conn, err);
	pshm_log_shortage(conn->wire, PSHM_SHORTAGE_CONNECT, err);
	return false;
}

/* Returns true if the connection came up or went down. */
static bool connecting_step(struct pshm_conn *conn, bool all, bool check_process)
{
	uint32_t answer, refusal;
	int hopeless, err;

	if (!conn->pair)
		return all && waiting_step(conn, check_process);
	hopeless = all ? connecting_hopeless(conn, check_process) : 0;
	/* A:pshm_pair.answer  the answer before its hello; pairs R:pshm_pair.answer */
	answer = atomic_load_explicit(&conn->pair->answer, memory_order_acquire);
	refusal = answer >> 8;
	switch ((enum pshm_answer)(answer & 0xff)) {
	case PSHM_WAITING:
		/* loaded after hopeless: an answer that was written before the end counts */
		return hopeless ? connecting_failed(conn, hopeless) : false;
	case PSHM_ACCEPTED:
		err = accepted_inbox(conn);
		if (err || (!conn->inbox.addr && hopeless))
			return connecting_failed(conn, err ? err : hopeless);
		if (!conn->inbox.addr)
			return false;
		connecting_accepted(conn);
		return true;
	default:
		err = refusal && refusal < 2 * FI_ERRNO_OFFSET ? -(int)refusal : -FI_EPROTO;
		if (pshm_is_shortage(err))
			pshm_log_shortage(conn->wire, PSHM_SHORTAGE_PEER, err);
		connecting_refused(conn, err);
		return true;
	}
}

/* Returns the ns between checks, each of which costs a system call per connection that is not up. */
static uint64_t check_interval(const struct pshm_wire *w)
{
	uint32_t times = 1 + (w->conn_cnt - w->up_cnt) / WAIT_CHECK_CNT;

	return (uint64_t)WAIT_CHECK_NS * (times < WAIT_CHECK_MAX ? times : WAIT_CHECK_MAX);
}

int pshm_connecting(struct pshm_wire *w, bool all)
{
	uint64_t now = all ? platform_now_ns() : 0;
	bool check_process = all && now - w->wait_ns >= check_interval(w);
	struct list todo, *node;
	int moved = 0;

	if (check_process)
		w->wait_ns = now;
	/* the engine may end any of them, or begin others */
	list_init(&todo);
	while ((node = list_pop(&w->connecting)))
		list_add_tail(&todo, node);
	while ((node = list_pop(&todo))) {
		struct pshm_conn *conn = container_of(node, struct pshm_conn, slow);

		if (connecting_step(conn, all, check_process))
			moved++;
		else
			list_add_tail(&w->connecting, node);
	}
	return moved;
}

void pshm_connecting_yield(struct pshm_wire *w, const uint8_t nonce[PSHM_NONCE])
{
	struct list *node, *after;

	list_for_each(node, after, &w->connecting) {
		struct pshm_conn *conn = container_of(node, struct pshm_conn, slow);

		if (conn->pair || !pshm_nonce_same(conn->addr.nonce, nonce))
			continue;
		pshm_conn_fail(conn, -FI_EALREADY);
		return;
	}
}
