/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How shm endpoints and connections begin and end. Called by the engine, and by poll() for
 * requests, answers and broken connections; on the thread that holds the domain.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "conn.h"
#include "membarrier.h"
#include "ns.h"

#define ACCEPT_BATCH  8u       /* requests looked at in one poll() */
#define WAIT_CHECK_NS 1000000u /* how often connecting[] is checked for dead processes */

/*
 * All endpoints of the process and their lists of connections, for the child of a fork, which
 * has to find them whole. Taken where these change; rank 3, nothing is called under it.
 */
static struct platform_lock wires_lock = { PTHREAD_MUTEX_INITIALIZER };
static struct list wires = { &wires, &wires };
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void fork_prepare(void)
{
	platform_lock(&wires_lock);
}

static void fork_parent(void)
{
	platform_unlock(&wires_lock);
}

/*
 * The child has the parent's rings mapped: a packet that it took or sent would be lost or doubled
 * for the parent. Nothing can be claimed any more, and poll() ends the connections.
 */
static void fork_child(void)
{
	struct list *wire, *wire_after, *node, *after;

	list_for_each(wire, wire_after, &wires) {
		struct pshm_wire *w = container_of(wire, struct pshm_wire, all);

		w->forked = true;
		list_for_each(node, after, &w->conns) {
			struct pshm_conn *conn = container_of(node, struct pshm_conn, all);

			ring_tx_shut(&conn->tx);
			conn->ticket.slot = NULL;
		}
	}
	platform_unlock(&wires_lock);
}

static void fork_watch(void)
{
	static struct platform_fork watcher = {
		.prepare = fork_prepare,
		.parent = fork_parent,
		.child = fork_child,
	};

	platform_fork_watch(&watcher);
}

static bool nonce_given(const uint8_t nonce[PSHM_NONCE])
{
	static const uint8_t none[PSHM_NONCE];

	return !pshm_nonce_same(nonce, none);
}

static int open_failed(int err, const char *what, char *why, size_t why_len)
{
	if (why_len)
		snprintf(why, why_len, "%s (error %d)", what, -err);
	return err;
}

int pshm_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	      struct wire **wire, char *why, size_t why_len)
{
	struct weft_addr ours = *addr;
	struct pshm_wire *w;
	int err;

	err = sys_ns_pid(&ours.pid_ns);
	if (err)
		return open_failed(err, "the process has no /proc to be found through", why,
				   why_len);
	if (!pshm_pair_allowed(PSHM_LINE_CNT, PSHM_DATA_LEN))
		return open_failed(-EFBIG,
				   "the limit on files is below the memory of a connection: "
				   "raise 'ulimit -f'",
				   why, why_len);
	if (sys_ns_host(&ours.host))
		ours.host = 0; /* a hint */
	if (!nonce_given(ours.nonce)) {
		err = platform_random(ours.nonce, sizeof(ours.nonce));
		if (err)
			return open_failed(err, "no random bytes", why, why_len);
	}
	w = platform_alloc(sizeof(*w));
	if (!w)
		return open_failed(-FI_ENOMEM, "out of memory", why, why_len);
	err = pshm_door_create(ours.nonce, &w->door_region);
	if (err) {
		platform_free(w);
		return open_failed(err, "can't make shared memory: check memory and ulimit -n",
				   why, why_len);
	}
	ours.version = ADDR_VERSION;
	ours.kind = ADDR_NONCE;
	ours.pid = (uint32_t)getpid();
	ours.fd = (uint32_t)w->door_region.fd;
	if (attr->bind && pshm_service_named(attr->bind)) {
		ours.family = ADDR_FAMILY_LOCAL;
		memcpy(ours.ip, attr->bind->ip, sizeof(ours.ip));
		err = pshm_service_publish(&ours, &w->service);
		if (err) {
			pshm_region_close(&w->door_region);
			platform_free(w);
			return open_failed(err, "can't have the service: another process may",
					   why, why_len);
		}
	}
	w->base.ops = &pshm_wire_ops;
	w->base.ep = ep;
	w->door = w->door_region.addr;
	w->pid = ours.pid;
	w->pid_ns = ours.pid_ns;
	w->host = ours.host;
	w->area_max = PSHM_AREAS_MAX;
	w->bell = w->rung = -1;
	w->barriers = !sys_membarrier_all_open();
	list_init(&w->work);
	list_init(&w->connecting);
	list_init(&w->ended);
	list_init(&w->conns);
	pshm_transfers_init(w);

	pthread_once(&fork_once, fork_watch);
	platform_lock(&wires_lock);
	list_push(&wires, &w->all);
	platform_unlock(&wires_lock);

	*addr = ours;
	*wire = &w->base;
	return 0;
}

void pshm_local(struct wire *wire, char *buf, size_t len)
{
	if (len)
		snprintf(buf, len, "pid %u", ((struct pshm_wire *)wire)->pid);
}

/*
 * The engine tries again for as long as it takes, so that nothing else would tell the program's
 * user why its sends wait: say so once, until a connection is made again.
 */
static void starved(struct pshm_wire *w, const char *what, int err)
{
	if (w->starved)
		return;
	w->starved = true;
	FI_WARN(&pshm_provider, FI_LOG_EP_CTRL,
		"can't %s: %s; what is sent waits until there are some (raise 'ulimit -n')\n",
		what, strerror(-err));
}

static struct pshm_conn *conn_new(struct pshm_wire *w, struct engine_peer *peer,
				  enum pshm_side side)
{
	struct pshm_conn *conn = platform_alloc(sizeof(*conn));

	if (!conn)
		return NULL;
	conn->base.wire = &w->base;
	conn->base.peer = peer;
	conn->wire = w;
	conn->side = side;
	conn->done_end = &conn->done;
	conn->region.fd = conn->door.fd = -1;
	conn->tx_area.fd = conn->rx_area.fd = -1;
	list_init(&conn->sends);
	list_init(&conn->gets);
	list_init(&conn->work);
	list_init(&conn->slow);
	platform_lock(&wires_lock);
	list_push(&w->conns, &conn->all);
	platform_unlock(&wires_lock);
	w->conn_cnt++;
	return conn;
}

static void conn_free(struct pshm_conn *conn)
{
	list_remove(&conn->slow);
	platform_lock(&wires_lock);
	list_remove(&conn->all);
	platform_unlock(&wires_lock);
	conn->wire->conn_cnt--;
	pshm_grow_drop(conn);
	pshm_region_close(&conn->door);
	pshm_region_close(&conn->region);
	if (conn->process)
		pshm_process_put(conn->process);
	platform_free(conn);
}

/* Takes the region: both ends of this side over it. */
static void conn_attach(struct pshm_conn *conn, const struct pshm_region *region,
			uint32_t line_cnt, uint32_t data_len)
{
	enum pshm_side other = conn->side == PSHM_ASKED ? PSHM_ANSWERED : PSHM_ASKED;

	conn->region = *region;
	conn->pair = region->addr;
	conn->attention = &conn->pair->attention[conn->side];
	atomic_store_explicit(&conn->pair->barriers[conn->side].value, conn->wire->barriers,
			      memory_order_relaxed);
	ring_tx_init(&conn->tx, pshm_pair_ring(region, conn->side, line_cnt, data_len),
		     line_cnt, data_len);
	ring_rx_init(&conn->rx, pshm_pair_ring(region, other, line_cnt, data_len), line_cnt,
		     data_len);
}

/* Room in up[] for all connections and one more, so that coming up can't fail. */
static int up_reserve(struct pshm_wire *w)
{
	uint32_t cap = w->up_cap ? 2 * w->up_cap : 16;
	struct pshm_conn **up;

	if (w->up_cap > w->conn_cnt)
		return 0;
	up = platform_alloc(cap * sizeof(struct pshm_conn *));
	if (!up)
		return -FI_ENOMEM;
	if (w->up_cnt)
		memcpy(up, w->up, w->up_cnt * sizeof(struct pshm_conn *));
	platform_free(w->up);
	w->up = up;
	w->up_cap = cap;
	return 0;
}

static void conn_up(struct pshm_conn *conn, const struct hello *hello)
{
	struct pshm_wire *w = conn->wire;

	assert(w->up_cnt < w->up_cap);
	pshm_attend(conn);
	w->starved = false;
	conn->base.up = true;
	engine_conn_up(&conn->base, hello);
}

/* Tells the other side, which may not be polling. */
static void end_tell(struct pshm_conn *conn, enum pshm_end how)
{
	/* R:pshm_pair.ended  everything published before; pairs A:pshm_pair.ended */
	atomic_store_explicit(&conn->pair->ended[conn->side].value, how, memory_order_release);
	if (conn->base.up &&
	    atomic_load_explicit(&conn->attention->how, memory_order_relaxed) != PSHM_POLLED)
		pshm_call(conn);
}

/* Takes a connection out of everything but wire->ended, and tells the other side. */
static void conn_end(struct pshm_conn *conn, enum pshm_end how)
{
	struct pshm_wire *w = conn->wire;

	pshm_transfers_drop(conn);
	pshm_mailbox_drop(&conn->ticket);
	if (!w->forked)
		end_tell(conn, how);
	if (conn->base.up) {
		pshm_ignore(conn);
		conn->base.up = false;
	}
	conn->ended = true;
	list_remove(&conn->slow);
	list_push(&w->ended, &conn->slow);
}

void pshm_conn_reap(struct pshm_wire *w)
{
	uint32_t kept = 0, hot = 0;

	if (w->holes) {
		for (uint32_t i = 0; i < w->up_cnt; i++) {
			struct pshm_conn *conn = w->up[i];

			if (!conn)
				continue;
			hot += i < w->hot_cnt;
			conn->up_idx = kept;
			w->up[kept++] = conn;
		}
		w->up_cnt = kept;
		w->hot_cnt = hot;
		w->holes = false;
	}
	while (!list_empty(&w->ended))
		conn_free(container_of(w->ended.next, struct pshm_conn, slow));
}

void pshm_disconnect(struct wire_conn *base)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct pshm_wire *w = conn->wire;

	conn_end(conn, PSHM_CLOSED);
	if (!w->polling)
		pshm_conn_reap(w);
}

void pshm_conn_fail(struct pshm_conn *conn, int err)
{
	conn_end(conn, err ? PSHM_BROKEN : PSHM_CLOSED);
	engine_conn_down(&conn->base, err);
}

void pshm_close(struct wire *wire)
{
	struct pshm_wire *w = (struct pshm_wire *)wire;
	struct list *node, *after;

	platform_lock(&wires_lock);
	list_remove(&w->all);
	platform_unlock(&wires_lock);

	/* what was published stays in memory that the peer has mapped too */
	list_for_each(node, after, &w->conns) {
		struct pshm_conn *conn = container_of(node, struct pshm_conn, all);

		if (!conn->ended)
			conn_end(conn, PSHM_CLOSED);
	}
	pshm_conn_reap(w);
	/* R:pshm_door.closed  our last look at the mailbox before it; pairs A:pshm_door.closed */
	if (!w->forked)
		atomic_store_explicit(&w->door->closed, 1, memory_order_release);
	sys_shared_close(w->service);
	pshm_bells_close(w);
	pshm_region_close(&w->door_region);
	pool_fini(&w->transfers);
	platform_free(w->up);
	platform_free(w);
}

int pshm_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		 const struct hello *hello, struct wire_conn **out)
{
	struct pshm_wire *w = (struct pshm_wire *)wire;
	struct weft_addr found;
	struct pshm_region region;
	struct pshm_offer offer;
	struct pshm_conn *conn;
	int err;

	if (w->forked)
		return -FI_EOPBADSTATE;
	if (addr->kind == ADDR_SERVICE && pshm_service_named(addr)) {
		err = pshm_service_find(addr, &found);
		if (err)
			return err;
		addr = &found;
	}
	if (!addr->pid || addr->pid_ns != w->pid_ns)
		return -FI_EHOSTUNREACH;
	err = up_reserve(w);
	if (err)
		return err;
	conn = conn_new(w, peer, PSHM_ASKED);
	if (!conn)
		return -FI_ENOMEM;
	err = pshm_process_get(addr->pid, &conn->process);
	/* our host, our pid namespace, and no such process: no other wire will find it either */
	if (err == -FI_EHOSTUNREACH && w->host && addr->host == w->host)
		err = -FI_ECONNREFUSED;
	if (err)
		goto err_free;
	err = pshm_door_open(addr->pid, addr->fd, addr->nonce, &conn->door);
	if (err)
		goto err_free;
	err = pshm_pair_create(PSHM_LINE_CNT, PSHM_DATA_LEN, &region);
	if (err)
		goto err_free;
	conn_attach(conn, &region, PSHM_LINE_CNT, PSHM_DATA_LEN);
	conn->pair->hello[PSHM_ASKED] = *hello;
	conn->addr = *addr;

	offer = (struct pshm_offer){ .pid = w->pid, .fd = (uint32_t)region.fd };
	memcpy(offer.nonce, conn->pair->nonce, PSHM_NONCE);
	err = pshm_mailbox_post(conn->door.addr, &offer, &conn->ticket);
	if (err)
		goto err_free;
	pshm_ring(conn);
	list_push(&w->connecting, &conn->slow);
	pshm_rouse(w);
	*out = &conn->base;
	return 0;

err_free:
	conn_free(conn);
	/* descriptors come back as connections under way are answered */
	if (err == -FI_EMFILE && !list_empty(&w->connecting))
		return -FI_EAGAIN;
	if (pshm_scarce(err))
		starved(w, "connect to a peer", err);
	return err;
}

/* A request that was answered one way or the other needs its descriptor and slot no more. */
static void connecting_done(struct pshm_conn *conn)
{
	list_remove(&conn->slow);
	pshm_mailbox_drop(&conn->ticket);
	pshm_region_close_fd(&conn->region);
}

/* The owner of the door said yes. */
static void connecting_accepted(struct pshm_conn *conn)
{
	struct hello hello = conn->pair->hello[PSHM_ANSWERED];
	int err;

	err = hello_check(&hello);
	if (!err && !pshm_nonce_same(hello.addr.nonce, conn->addr.nonce))
		err = -FI_EPROTO;
	connecting_done(conn);
	if (err)
		pshm_conn_fail(conn, err);
	else
		conn_up(conn, &hello);
}

/* Why nobody will answer, or 0. */
static int connecting_hopeless(const struct pshm_conn *conn, bool check_process)
{
	const struct pshm_door *door = conn->door.addr;
	int err = pshm_mailbox_failed(&conn->ticket);

	if (err)
		return err;
	/* A:pshm_door.closed  pairs R:pshm_door.closed */
	if (atomic_load_explicit(&door->closed, memory_order_acquire))
		return -FI_ECONNREFUSED;
	if (check_process && pshm_process_dead(conn->process))
		return -FI_ECONNREFUSED;
	return 0;
}

/* Returns whether the connection came up or went down. */
static bool connecting_step(struct pshm_conn *conn, bool all, bool check_process)
{
	int hopeless = all ? connecting_hopeless(conn, check_process) : 0;
	/* A:pshm_pair.answer  the answer before its hello; pairs R:pshm_pair.answer */
	uint32_t answer = atomic_load_explicit(&conn->pair->answer.value, memory_order_acquire);
	uint32_t refusal = answer >> 8;

	switch ((enum pshm_answer)(answer & 0xff)) {
	case PSHM_WAITING:
		/* loaded after hopeless: an answer that came before the end counts */
		if (!hopeless)
			return false;
		if (pshm_scarce(hopeless))
			starved(conn->wire, "connect to a peer that lacks what it takes",
				hopeless);
		connecting_done(conn);
		pshm_conn_fail(conn, hopeless);
		return true;
	case PSHM_ACCEPTED:
		connecting_accepted(conn);
		return true;
	default:
		connecting_done(conn);
		pshm_conn_fail(conn, refusal && refusal < 2 * FI_ERRNO_OFFSET ? -(int)refusal
									      : -FI_EPROTO);
		return true;
	}
}

int pshm_connecting(struct pshm_wire *w, bool all)
{
	uint64_t now = all ? platform_now_ns() : 0;
	bool check_process = all && now - w->wait_ns >= WAIT_CHECK_NS;
	struct list todo, *node;
	int moved = 0;

	if (check_process)
		w->wait_ns = now;
	/* the engine may end any of them, or begin others */
	list_init(&todo);
	while ((node = list_pop(&w->connecting)))
		list_push(&todo, node);
	while ((node = list_pop(&todo))) {
		struct pshm_conn *conn = container_of(node, struct pshm_conn, slow);

		if (connecting_step(conn, all, check_process))
			moved++;
		else
			list_push(&w->connecting, node);
	}
	return moved;
}

static void answer_give(struct pshm_pair *pair, enum pshm_answer answer, int err)
{
	/* R:pshm_pair.answer  the hello before the answer; pairs A:pshm_pair.answer */
	atomic_store_explicit(&pair->answer.value, (uint32_t)answer | (uint32_t)-err << 8,
			      memory_order_release);
}

/* What a request's hello claims has to agree with who made it. */
static int hello_agrees(const struct pshm_wire *w, const struct hello *hello, uint32_t pid)
{
	int err = hello_check(hello);

	if (err)
		return err;
	return hello->addr.pid == pid && hello->addr.pid_ns == w->pid_ns ? 0 : -FI_EPROTO;
}

/* The pair is open: ask the engine, and answer in the pair. Takes the conn. */
static void accept_pair(struct pshm_wire *w, struct pshm_conn *conn, uint32_t pid)
{
	struct pshm_pair *pair = conn->pair;
	struct hello hello, answer;
	int err;

	/* A:pshm_pair.ended  given up before we came; pairs R:pshm_pair.ended */
	if (atomic_load_explicit(&pair->ended[PSHM_ASKED].value, memory_order_acquire)) {
		conn_free(conn);
		return;
	}
	hello = pair->hello[PSHM_ASKED];
	err = hello_agrees(w, &hello, pid);
	if (!err) {
		conn->addr = hello.addr;
		err = engine_accept(&w->base, &hello, &conn->base.peer, &answer);
	}
	if (err) {
		answer_give(pair, PSHM_REFUSED, err);
		pshm_knock(conn);
		conn_free(conn);
		return;
	}
	pair->hello[PSHM_ANSWERED] = answer;
	answer_give(pair, PSHM_ACCEPTED, 0);
	pshm_knock(conn);
	conn_up(conn, &hello);
}

/* Returns 0 when the answer stands in the pair, or -FI_E* when the pair can't be opened. */
static int accept_offer(struct pshm_wire *w, const struct pshm_offer *offer)
{
	uint32_t line_cnt, data_len;
	struct pshm_region region;
	struct pshm_conn *conn;
	int err;

	err = up_reserve(w);
	if (err)
		return err;
	conn = conn_new(w, NULL, PSHM_ANSWERED);
	if (!conn)
		return -FI_ENOMEM;
	err = pshm_process_get(offer->pid, &conn->process);
	if (!err)
		err = pshm_pair_open(offer, &region, &line_cnt, &data_len);
	if (err) {
		conn_free(conn);
		return err;
	}
	if (ring_data_max(data_len) < PSHM_CLAIM_MAX) {
		pshm_region_close(&region);
		conn_free(conn);
		return -FI_EPROTO;
	}
	conn_attach(conn, &region, line_cnt, data_len);
	accept_pair(w, conn, offer->pid);
	return 0;
}

int pshm_accept(struct pshm_wire *w)
{
	/* A:pshm_door.knocks  the count before the slots; pairs R:pshm_door.knocks */
	uint32_t knocks = atomic_load_explicit(&w->door->knocks, memory_order_acquire);
	uint32_t taken = 0, idx = 0;
	struct pshm_offer offer;
	uint64_t word;
	int err;

	for (; taken < ACCEPT_BATCH && pshm_mailbox_take(w->door, &idx, &offer, &word);
	     taken++) {
		err = accept_offer(w, &offer);
		if (pshm_scarce(err))
			starved(w, "accept a peer's connection", err);
		/* no way through memory: another wire may lead there */
		if (err && !pshm_scarce(err) && err != -FI_ENOPROTOOPT && err != -FI_EPROTO)
			err = -FI_EHOSTUNREACH;
		pshm_mailbox_finish(w->door, idx, word, err);
	}
	if (taken < ACCEPT_BATCH)
		w->knocks = knocks;
	return (int)taken;
}

int pshm_check(struct wire_conn *base)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	enum pshm_side other = conn->side == PSHM_ASKED ? PSHM_ANSWERED : PSHM_ASKED;
	uint32_t note;

	if (conn->wire->forked)
		return -FI_EOPBADSTATE;
	if (!pshm_process_dead(conn->process))
		return 0;
	if (!conn->base.up)
		return 0; /* poll() finds it, and whether it had answered */
	/* what it left is delivered first, and an orderly close reported as such: by poll() */
	if (ring_next(&conn->rx, &note) ||
	    atomic_load_explicit(&conn->pair->ended[other].value, memory_order_relaxed))
		return 0;
	return -FI_ECONNRESET;
}
