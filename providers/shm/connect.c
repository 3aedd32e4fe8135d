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

/* A pair for processes that reach each other through /proc, and for others. */
static const struct pshm_sizes small_pair = { PSHM_LINE_CNT, PSHM_DATA_LEN, 0 };
static const struct pshm_sizes whole_pair = { PSHM_LINE_CNT, PSHM_DATA_LEN, PSHM_AREA_LEN };

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

/* What an endpoint's address says before it has its door. Returns 0 or -FI_E* and why. */
static int address_begin(struct weft_addr *ours, char *why, size_t why_len)
{
	int err;

	if (sys_ns_pid(&ours->pid_ns))
		ours->pid_ns = PSHM_NO_NS; /* found by sockets alone */
	if (sys_ns_host(&ours->host))
		ours->host = 0; /* a hint */
	err = nonce_given(ours->nonce) ? 0 : platform_random(ours->nonce, sizeof(ours->nonce));
	if (!err)
		err = pshm_sockets_name(ours->nonce);
	if (err)
		return open_failed(err, "no random bytes", why, why_len);
	ours->version = ADDR_VERSION;
	ours->kind = ADDR_NONCE;
	ours->pid = (uint32_t)getpid();
	return 0;
}

/* Makes the door, by which the address is whole. */
static int door_make(struct pshm_wire *w, const struct wire_attr *attr, struct weft_addr *ours,
		     char *why, size_t why_len)
{
	int err = pshm_door_create(ours->nonce, &w->door_region);

	if (err)
		return open_failed(err, "can't make shared memory: check memory and ulimit -n",
				   why, why_len);
	w->door = w->door_region.addr;
	ours->fd = (uint32_t)w->door_region.fd;
	if (!attr->bind || !pshm_service_named(attr->bind))
		return 0;
	ours->family = ADDR_FAMILY_LOCAL;
	memcpy(ours->ip, attr->bind->ip, sizeof(ours->ip));
	err = pshm_service_publish(ours, &w->service);
	if (!err)
		return 0;
	pshm_region_close(&w->door_region);
	return open_failed(err, "can't have the service: another process may", why, why_len);
}

/* Lets others find it. Returns 0, or -FI_E* and why when nobody can. */
static int door_show(struct pshm_wire *w, char *why, size_t why_len)
{
	int err = pshm_sockets_join(w);

	if (!err)
		return 0;
	if (w->pid_ns == PSHM_NO_NS)
		return open_failed(err, "no /proc and no socket to be found through", why,
				   why_len);
	FI_INFO(&pshm_provider, FI_LOG_EP_CTRL,
		"can't make a socket: %s; found through /proc alone\n", strerror(-err));
	return 0;
}

static void wire_init(struct pshm_wire *w, struct engine_ep *ep, const struct weft_addr *ours)
{
	w->base.ops = &pshm_wire_ops;
	w->base.ep = ep;
	w->pid = ours->pid;
	w->pid_ns = ours->pid_ns;
	w->host = ours->host;
	memcpy(w->nonce, ours->nonce, PSHM_NONCE);
	w->area_max = PSHM_AREAS_MAX;
	w->bell = w->asleep_on = w->rung = -1;
	w->barriers = !sys_membarrier_all_open();
	list_init(&w->work);
	list_init(&w->connecting);
	list_init(&w->ended);
	list_init(&w->conns);
	pshm_transfers_init(w);
}

int pshm_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	      struct wire **wire, char *why, size_t why_len)
{
	struct weft_addr ours = *addr;
	struct pshm_wire *w;
	int err;

	if (!pshm_pair_allowed(&small_pair))
		return open_failed(-EFBIG,
				   "the limit on files is below the memory of a connection: "
				   "raise 'ulimit -f'",
				   why, why_len);
	err = address_begin(&ours, why, why_len);
	if (err)
		return err;
	w = platform_alloc(sizeof(*w));
	if (!w)
		return open_failed(-FI_ENOMEM, "out of memory", why, why_len);
	wire_init(w, ep, &ours);
	err = door_make(w, attr, &ours, why, why_len);
	if (err)
		goto err_free;
	err = door_show(w, why, why_len);
	if (err)
		goto err_door;

	pthread_once(&fork_once, fork_watch);
	platform_lock(&wires_lock);
	list_push(&wires, &w->all);
	platform_unlock(&wires_lock);

	*addr = ours;
	*wire = &w->base;
	return 0;

err_door:
	sys_shared_close(w->service);
	pshm_region_close(&w->door_region);
err_free:
	pool_fini(&w->transfers);
	platform_free(w);
	return err;
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
	conn->ask.door.fd = -1;
	list_init(&conn->ask.link);
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
	pshm_sockets_drop(&conn->ask);
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
			const struct pshm_sizes *sizes)
{
	enum pshm_side other = conn->side == PSHM_ASKED ? PSHM_ANSWERED : PSHM_ASKED;
	uint32_t line_cnt = sizes->line_cnt, data_len = sizes->data_len;

	conn->region = *region;
	conn->sizes = *sizes;
	conn->pair = region->addr;
	conn->attention = &conn->pair->attention[conn->side];
	atomic_store_explicit(&conn->pair->barriers[conn->side].value, conn->wire->barriers,
			      memory_order_relaxed);
	ring_tx_init(&conn->tx, pshm_pair_ring(region, conn->side, sizes), line_cnt, data_len);
	ring_rx_init(&conn->rx, pshm_pair_ring(region, other, sizes), line_cnt, data_len);
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
	pshm_sockets_drop(&conn->ask);
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
	pshm_sockets_leave(w);
	pshm_bells_close(w);
	pshm_region_close(&w->door_region);
	pool_fini(&w->transfers);
	platform_free(w->up);
	platform_free(w);
}

/* Finds the door through /proc, and leaves a request there. -FI_EHOSTUNREACH: a socket may lead there. */
static int connect_by_proc(struct pshm_conn *conn, const struct hello *hello)
{
	struct pshm_wire *w = conn->wire;
	const struct weft_addr *addr = &conn->addr;
	struct pshm_region region;
	struct pshm_offer offer;
	int err;

	if (addr->pid_ns != w->pid_ns || w->pid_ns == PSHM_NO_NS)
		return -FI_EHOSTUNREACH;
	err = pshm_process_get(addr->pid, &conn->process);
	if (err) /* our host, our pid namespace, and no such process: no other way will find it either */
		return err == -FI_EHOSTUNREACH && w->host && addr->host == w->host
			       ? -FI_ECONNREFUSED
			       : err;
	err = pshm_door_open(addr->pid, addr->fd, addr->nonce, &conn->door);
	if (err)
		goto err_put;
	err = pshm_pair_create(&small_pair, &region);
	if (err)
		goto err_put;
	conn_attach(conn, &region, &small_pair);
	conn->pair->hello[PSHM_ASKED] = *hello;

	offer = (struct pshm_offer){ .pid = w->pid, .fd = (uint32_t)region.fd };
	memcpy(offer.nonce, conn->pair->nonce, PSHM_NONCE);
	err = pshm_mailbox_post(conn->door.addr, &offer, &conn->ticket);
	if (!err)
		pshm_ring(conn);
	return err;

err_put:
	pshm_process_put(conn->process);
	conn->process = NULL;
	return err;
}

/*
 * Asks by a socket. The areas come with the pair, since there is no other way later. A connection that
 * has asked through /proc begins anew.
 */
static int connect_by_socket(struct pshm_conn *conn, const struct hello *hello)
{
	const struct pshm_sizes *sizes = pshm_pair_allowed(&whole_pair) ? &whole_pair
									: &small_pair;
	struct pshm_region region;
	int err;

	err = pshm_pair_create(sizes, &region);
	if (err)
		return err;
	((struct pshm_pair *)region.addr)->hello[PSHM_ASKED] = *hello;
	pshm_mailbox_drop(&conn->ticket);
	pshm_region_close(&conn->door);
	pshm_region_close(&conn->region);
	conn_attach(conn, &region, sizes);
	err = pshm_sockets_ask(conn->wire, conn->addr.nonce, &region, &conn->ask);
	if (err)
		return err;
	if (conn->process)
		pshm_process_put(conn->process);
	conn->process = conn->ask.process;
	if (!conn->process->pid) /* nobody can be asked to read its memory */
		conn->get_refused = -FI_EPERM;
	return 0;
}

int pshm_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		 const struct hello *hello, struct wire_conn **out)
{
	struct pshm_wire *w = (struct pshm_wire *)wire;
	struct weft_addr found;
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
	if (!addr->pid)
		return -FI_EHOSTUNREACH;
	err = up_reserve(w);
	if (err)
		return err;
	conn = conn_new(w, peer, PSHM_ASKED);
	if (!conn)
		return -FI_ENOMEM;
	conn->addr = *addr;
	err = connect_by_proc(conn, hello);
	if (err == -FI_EHOSTUNREACH)
		err = connect_by_socket(conn, hello);
	if (err)
		goto err_free;
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
	pshm_sockets_drop(&conn->ask);
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

/* What came by the socket: the door, or why there is none. */
static int asked_failed(struct pshm_conn *conn)
{
	if (!conn->ask.process)
		return 0;
	return conn->door.addr ? 0 : pshm_sockets_answer(&conn->ask, &conn->door);
}

/* Why nobody will answer, or 0. */
static int connecting_hopeless(struct pshm_conn *conn, bool check_process)
{
	const struct pshm_door *door;
	int err = conn->ticket.slot ? pshm_mailbox_failed(&conn->ticket) : asked_failed(conn);

	if (err)
		return err;
	door = conn->door.addr;
	/* A:pshm_door.closed  pairs R:pshm_door.closed */
	if (door && atomic_load_explicit(&door->closed, memory_order_acquire))
		return -FI_ECONNREFUSED;
	if (!check_process || !pshm_process_dead(conn->process))
		return 0;
	/* the end of a socket may be a neighbour's whim: to ask again shows */
	return conn->ask.process ? -FI_ECONNRESET : -FI_ECONNREFUSED;
}

/* Its owner can't open what we offered. Returns 0 when we ask by a socket now, or the error. */
static int connecting_otherwise(struct pshm_conn *conn, int err)
{
	struct hello hello = conn->pair->hello[PSHM_ASKED];

	return err == -FI_EHOSTUNREACH && conn->ticket.slot ? connect_by_socket(conn, &hello)
							    : err;
}

/* Nobody answers, for that reason. Returns whether the connection went down. */
static bool connecting_failed(struct pshm_conn *conn, int err)
{
	err = connecting_otherwise(conn, err);
	if (!err)
		return false;
	if (pshm_scarce(err))
		starved(conn->wire, "connect to a peer that lacks what it takes", err);
	connecting_done(conn);
	pshm_conn_fail(conn, err);
	return true;
}

/* The answer to what was asked by a socket comes after the door, which may not have been looked at. */
static int accepted_door(struct pshm_conn *conn)
{
	if (!conn->ask.process || conn->door.addr)
		return 0;
	pshm_sockets_look();
	return asked_failed(conn);
}

/* Returns whether the connection came up or went down. */
static bool connecting_step(struct pshm_conn *conn, bool all, bool check_process)
{
	int hopeless = all ? connecting_hopeless(conn, check_process) : 0;
	/* A:pshm_pair.answer  the answer before its hello; pairs R:pshm_pair.answer */
	uint32_t answer = atomic_load_explicit(&conn->pair->answer.value, memory_order_acquire);
	uint32_t refusal = answer >> 8;
	int err;

	switch ((enum pshm_answer)(answer & 0xff)) {
	case PSHM_WAITING:
		/* loaded after hopeless: an answer that came before the end counts */
		return hopeless ? connecting_failed(conn, hopeless) : false;
	case PSHM_ACCEPTED:
		err = accepted_door(conn);
		if (err || (!conn->door.addr && hopeless))
			return connecting_failed(conn, err ? err : hopeless);
		if (!conn->door.addr)
			return false;
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

/* Who made a request: a process, or, by a socket, an endpoint. */
struct asker {
	uint32_t pid;
	const uint8_t *nonce; /* NULL: by pid */
};

/* What a request's hello claims has to agree with who made it. */
static int hello_agrees(const struct pshm_wire *w, const struct hello *hello,
			const struct asker *asker)
{
	int err = hello_check(hello);

	if (err)
		return err;
	if (asker->nonce)
		return pshm_nonce_same(hello->addr.nonce, asker->nonce) ? 0 : -FI_EPROTO;
	return hello->addr.pid == asker->pid && hello->addr.pid_ns == w->pid_ns ? 0
										: -FI_EPROTO;
}

/* The pair is open: ask the engine, and answer in the pair. Takes the conn. */
static void accept_pair(struct pshm_wire *w, struct pshm_conn *conn, const struct asker *asker)
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
	err = hello_agrees(w, &hello, asker);
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

/* A connection that has no process and no memory yet, or NULL and -FI_E* */
static struct pshm_conn *accept_new(struct pshm_wire *w, int *err)
{
	struct pshm_conn *conn;

	*err = up_reserve(w);
	if (*err)
		return NULL;
	conn = conn_new(w, NULL, PSHM_ANSWERED);
	if (!conn)
		*err = -FI_ENOMEM;
	return conn;
}

/* Returns 0 when the answer stands in the pair, or -FI_E* when the pair can't be opened. */
static int accept_offer(struct pshm_wire *w, const struct pshm_offer *offer)
{
	const struct asker asker = { .pid = offer->pid };
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
		conn_free(conn);
		return err;
	}
	if (ring_data_max(sizes.data_len) < PSHM_CLAIM_MAX) {
		pshm_region_close(&region);
		conn_free(conn);
		return -FI_EPROTO;
	}
	conn_attach(conn, &region, &sizes);
	accept_pair(w, conn, &asker);
	return 0;
}

/* The same for one that came by a socket, with everything mapped. Takes the request but for its memory. */
static int accept_request(struct pshm_wire *w, struct pshm_request *request)
{
	const struct asker asker = { .nonce = request->from };
	struct pshm_conn *conn;
	int err = -FI_EPROTO;

	conn = ring_data_max(request->sizes.data_len) < PSHM_CLAIM_MAX ? NULL
								       : accept_new(w, &err);
	if (!conn) {
		pshm_sockets_refuse(request, err);
		pshm_region_close(&request->pair);
		pshm_region_close(&request->door);
		pshm_process_put(request->process);
		return err;
	}
	conn->process = request->process;
	if (!conn->process->pid)
		conn->get_refused = -FI_EPERM;
	conn->door = request->door;
	memcpy(conn->addr.nonce, request->from, PSHM_NONCE);
	conn_attach(conn, &request->pair, &request->sizes);
	accept_pair(w, conn, &asker);
	return 0;
}

/* Those that came by sockets, @most of them. Returns how many. */
static uint32_t accept_requests(struct pshm_wire *w, uint32_t most)
{
	struct pshm_request *request;
	uint32_t taken = 0;
	int err;

	for (; taken < most && (request = pshm_sockets_take(w)); taken++) {
		err = accept_request(w, request);
		if (pshm_scarce(err))
			starved(w, "accept a peer's connection", err);
		platform_free(request);
	}
	return taken;
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
	taken += accept_requests(w, ACCEPT_BATCH - taken);
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
