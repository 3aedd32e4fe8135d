/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that this process receives over its sockets, and requests that it sends. All under one
 * lock, without waiting; on the thread of whichever endpoint polls, connects or is about to sleep.
 *
 * A faulty process of the same user may send anything: an invalid note ends the socket, and the
 * requests that wait for their endpoints are bounded and hold no descriptors.
 */
#include <rdma/fi_errno.h>
#include "channel.h"
#include "conn.h"
#include "epoll.h"
#include "watcher.h"
#include "socket.h"

/* Between two reads of the sockets. */
#define LOOK_NS 1000000u
/*
 * Requests to one process under way at a time: each has descriptors on its way. One that the process
 * has received, and not answered yet, is not.
 */
#define ASKS_MAX 4u
/* Requests that wait for poll(), of all endpoints. */
#define REQUESTS_MAX 1024u

/* Rank 3; nothing is called under it but system calls that do not wait. */
static struct platform_lock lock = { PTHREAD_MUTEX_INITIALIZER };

/* Protected by the lock, like all of channel.c. */
static struct list wires = { &wires, &wires }; /* struct pshm_wire.sockets */
static struct list asks = { &asks, &asks };
/* nonce of the last endpoint; valid if numbered */
static uint8_t own[PSHM_NONCE];
static bool numbered;
static uint32_t request_cnt;
/* time of the next read; 0: there are no sockets */
static _Atomic uint64_t look_ns;
/* descriptor that is readable when a socket has input; -1: read the sockets without checking */
static _Atomic int watched = -1;

/* Notes that come */

static struct pshm_wire *wire_find_locked(const uint8_t nonce[PSHM_NONCE])
{
	struct pshm_wire *w;

	list_for_each_entry(w, &wires, sockets.link) {
		if (pshm_nonce_same(w->nonce, nonce))
			return w;
	}
	return NULL;
}

/* Makes an endpoint of this process, whose domain another thread may hold, check its requests. */
static void wire_notify_locked(struct pshm_wire *w)
{
	pshm_inbox_notify(w->inbox);
	pshm_watcher_wake(&w->sockets);
}

/*
 * Maps the memory whose descriptors were received with a request. Takes them. Returns 0 or the
 * error to answer.
 */
static int request_map(const struct pshm_note *note, const struct sys_local_received *received,
		       struct pshm_request *r)
{
	int err = pshm_inbox_take(received->fds[1], note->from, &r->inbox);

	if (err) {
		sys_local_close(received->fds[0]);
		return err;
	}
	err = pshm_pair_take(received->fds[0], note->pair, &r->pair, &r->sizes);
	if (err)
		pshm_region_close(&r->inbox);
	return err;
}

/*
 * Returns 0 when the request waits for its endpoint, or the error to answer. Takes the
 * descriptors.
 */
static int ask_take_locked(struct pshm_channel *c, const struct pshm_note *note,
			   struct sys_local_received *received)
{
	struct pshm_wire *w = wire_find_locked(note->to);
	struct pshm_note answer = pshm_note_of(PSHM_NOTE_INBOX);
	struct pshm_request *r;
	int err;

	err = received->cnt < SYS_LOCAL_FDS ? received->err : 0; /* we have no room for them */
	if (!err && !w)
		err = -FI_ECONNREFUSED;
	if (!err && request_cnt >= REQUESTS_MAX)
		err = -FI_EAGAIN;
	r = err ? NULL : platform_alloc(sizeof(*r));
	if (!r) {
		pshm_received_close(received);
		return err ? err : -FI_ENOMEM;
	}
	err = request_map(note, received, r);
	if (err) {
		platform_free(r);
		return err;
	}
	memcpy(answer.pair, note->pair, PSHM_NONCE);
	err = pshm_note_send(c, &answer, &w->own_inbox.fd, 1);
	if (err) {
		pshm_region_close(&r->pair);
		pshm_region_close(&r->inbox);
		platform_free(r);
		return pshm_is_shortage(err) ? err : -FI_EAGAIN;
	}
	memcpy(r->from, note->from, PSHM_NONCE);
	r->process = &c->process;
	pshm_channel_hold(c);
	request_cnt++;
	list_add_tail(&w->sockets.requests, &r->link);
	wire_notify_locked(w);
	return 0;
}

/* The other process has received the descriptors of a request, or the request is given up. */
static void ask_received_locked(struct pshm_ask *ask)
{
	pshm_channel_of(ask->process)->ask_cnt -= ask->under_way;
	ask->under_way = false;
}

/* An inbox or a refusal, for one of our connections. */
static void answer_take_locked(struct pshm_channel *c, const struct pshm_note *note,
			       struct sys_local_received *received)
{
	struct pshm_ask *ask;

	list_for_each_entry(ask, &asks, link) {
		if (!ask->under_way || ask->process != &c->process ||
		    !pshm_nonce_same(ask->pair, note->pair))
			continue;
		ask_received_locked(ask);
		if (note->type == PSHM_NOTE_REFUSED) {
			ask->err = -(int)note->error;
		} else if (!received->cnt) {
			ask->err = received->err;
		} else {
			received->cnt = 0;
			ask->err = pshm_inbox_take(received->fds[0], ask->to, &ask->inbox);
		}
		break;
	}
	pshm_received_close(received);
}

/*
 * Returns true if the other end may send it: requests come over accepted sockets, answers over our
 * own.
 */
static bool note_expected(const struct pshm_channel *c, const struct pshm_note *note)
{
	return note->type == PSHM_NOTE_WAKE || c->asked == (note->type != PSHM_NOTE_ASK);
}

/* Takes the descriptors. Returns 0, or -FI_E* to end the socket. */
int pshm_note_take(struct pshm_channel *c, const struct pshm_note *note,
		   struct sys_local_received *received)
{
	struct pshm_wire *w;
	int err;

	if (!pshm_note_valid(note, received) || !note_expected(c, note)) {
		pshm_received_close(received);
		return -FI_EPROTO;
	}
	switch (note->type) {
	case PSHM_NOTE_ASK:
		err = ask_take_locked(c, note, received);
		return err ? pshm_note_refuse(c, note->pair, err) : 0;
	case PSHM_NOTE_WAKE:
		w = wire_find_locked(note->to);
		if (w && w->sockets.bell >= 0)
			sys_fifo_ring(w->sockets.bell);
		return 0;
	default:
		answer_take_locked(c, note, received);
		return 0;
	}
}

/* To be called when sockets may have been paused or resumed. */
static void watch_locked(void)
{
	pshm_watcher_choose();
	atomic_store_explicit(&watched, pshm_channels_paused() ? -1 : pshm_channels_watch(),
			      memory_order_relaxed);
}

void pshm_sockets_look(void)
{
	if (!atomic_load_explicit(&look_ns, memory_order_relaxed))
		return;
	platform_lock(&lock);
	if (pshm_channels_open_now()) {
		if (pshm_channels_look())
			pshm_watcher_replace();
		watch_locked();
		atomic_store_explicit(&look_ns, platform_now_ns() + LOOK_NS,
				      memory_order_relaxed);
	}
	platform_unlock(&lock);
}

/*
 * Takes the lock, which threads of other domains may hold, only if a socket has input. The
 * descriptor may have been closed meanwhile and mean another file: it is only checked for being
 * readable.
 */
void pshm_sockets_sweep(void)
{
	uint64_t next = atomic_load_explicit(&look_ns, memory_order_relaxed), now;
	int fd;

	if (!next)
		return;
	now = platform_now_ns();
	if (now < next ||
	    !atomic_compare_exchange_strong_explicit(
		    &look_ns, &next, now + LOOK_NS, memory_order_relaxed, memory_order_relaxed))
		return;
	fd = atomic_load_explicit(&watched, memory_order_relaxed);
	if (fd < 0 || sys_epoll_ready(fd))
		pshm_sockets_look();
}

void pshm_sockets_release(struct pshm_process *process)
{
	platform_lock(&lock);
	pshm_channel_put(pshm_channel_of(process));
	platform_unlock(&lock);
}

/* Endpoints of ours */

/*
 * The child of a fork must not keep the parent's sockets open: their end shows peers that the
 * parent is dead. Its own endpoints are found by another number.
 */
static void fork_child_locked(void)
{
	struct list *node;

	pshm_channels_forget();
	numbered = false;
	pshm_watcher_forget();
	while ((node = list_pop(&wires))) {
		list_init(node);
		pshm_watcher_join(&container_of(node, struct pshm_wire, sockets.link)->sockets);
	}
	while ((node = list_pop(&asks)))
		list_init(node);
	request_cnt = 0;
	atomic_store_explicit(&look_ns, 0, memory_order_relaxed);
}

static void fork_prepare(void)
{
	platform_lock(&lock);
}

static void fork_parent(void)
{
	platform_unlock(&lock);
}

static void fork_child(void)
{
	fork_child_locked();
	platform_unlock(&lock);
}

static struct platform_fork fork_watcher = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

/* Advances own to the next nonce of the process. */
static void count_locked(void)
{
	for (size_t i = PSHM_NUMBER_LEN; i < PSHM_NONCE && !++own[i]; i++)
		;
}

int pshm_sockets_name(uint8_t nonce[PSHM_NONCE])
{
	int err;

	platform_fork_watch(&fork_watcher);
	platform_lock(&lock);
	err = numbered ? 0 : platform_random(own, sizeof(own));
	if (!err) {
		numbered = true;
		do
			count_locked();
		while (pshm_nonce_none(own) || wire_find_locked(own));
		memcpy(nonce, own, PSHM_NONCE);
	}
	platform_unlock(&lock);
	return err;
}

int pshm_sockets_join(struct pshm_wire *w)
{
	int err;

	list_init(&w->sockets.link);
	list_init(&w->sockets.requests);
	pshm_watcher_join(&w->sockets);
	platform_lock(&lock);
	err = pshm_channels_open(pshm_sockets_number(own));
	if (!err) {
		atomic_store_explicit(&look_ns, 1, memory_order_relaxed);
		watch_locked();
		list_add_tail(&wires, &w->sockets.link);
		w->sockets.joined = true;
	}
	platform_unlock(&lock);
	return err;
}

static void request_drop_locked(struct list *node)
{
	struct pshm_request *r = container_of(node, struct pshm_request, link);

	pshm_region_close(&r->pair);
	pshm_region_close(&r->inbox);
	pshm_channel_put(pshm_channel_of(r->process));
	platform_free(r);
}

void pshm_sockets_leave(struct pshm_wire *w)
{
	struct list *node;

	if (!w->sockets.joined)
		return;
	platform_lock(&lock);
	list_remove(&w->sockets.link);
	pshm_watcher_leave(&w->sockets);
	while ((node = list_pop(&w->sockets.requests))) {
		request_cnt -= !w->forked;
		request_drop_locked(node);
	}
	if (list_empty(&wires)) {
		pshm_channels_close();
		atomic_store_explicit(&look_ns, 0, memory_order_relaxed);
	}
	platform_unlock(&lock);
	w->sockets.joined = false;
}

void pshm_sockets_bell(struct pshm_wire *w, int bell, int poll_set)
{
	if (!w->sockets.joined)
		return;
	platform_lock(&lock);
	pshm_watcher_bell(&w->sockets, bell, poll_set);
	platform_unlock(&lock);
}

uint64_t pshm_sockets_sleep(struct pshm_wire *w)
{
	uint64_t ns;

	if (!w->sockets.joined)
		return UINT64_MAX;
	platform_lock(&lock);
	ns = pshm_watcher_sleep(&w->sockets);
	platform_unlock(&lock);
	return ns;
}

void pshm_sockets_woken(struct pshm_wire *w)
{
	if (!w->sockets.joined)
		return;
	platform_lock(&lock);
	pshm_watcher_woken(&w->sockets);
	platform_unlock(&lock);
}

struct pshm_request *pshm_sockets_take(struct pshm_wire *w)
{
	struct list *node = NULL;

	if (!w->sockets.joined)
		return NULL;
	platform_lock(&lock);
	node = list_pop(&w->sockets.requests);
	request_cnt -= node != NULL;
	platform_unlock(&lock);
	return node ? container_of(node, struct pshm_request, link) : NULL;
}

/* Asking */

bool pshm_sockets_room(const uint8_t to[PSHM_NONCE])
{
	const struct pshm_channel *c;
	bool room;

	platform_lock(&lock);
	c = pshm_channel_find(pshm_sockets_number(to));
	room = !c || c->ask_cnt < ASKS_MAX;
	platform_unlock(&lock);
	return room;
}

int pshm_sockets_ask(struct pshm_wire *w, const uint8_t to[PSHM_NONCE],
		     const struct pshm_region *pair, struct pshm_ask *ask)
{
	const int fds[SYS_LOCAL_FDS] = { pair->fd, w->own_inbox.fd };
	struct pshm_note note = pshm_note_of(PSHM_NOTE_ASK);
	struct pshm_channel *c;
	int err;

	if (!w->sockets.joined)
		return -FI_EHOSTUNREACH;
	memcpy(note.to, to, PSHM_NONCE);
	memcpy(note.from, w->nonce, PSHM_NONCE);
	memcpy(note.pair, ((struct pshm_pair *)pair->addr)->nonce, PSHM_NONCE);
	platform_lock(&lock);
	c = pshm_channel_connect(pshm_sockets_number(to), &err);
	if (!c)
		goto out;
	err = -FI_EAGAIN;
	if (c->ask_cnt >= ASKS_MAX)
		goto out;
	pshm_channel_hold(c);
	err = pshm_note_send(c, &note, fds, SYS_LOCAL_FDS);
	if (err) {
		pshm_channel_put(c);
		/* -ETOOMANYREFS: as many descriptors as we may have are on their way */
		err = pshm_is_shortage(err) ? err : -FI_EAGAIN;
		goto out;
	}
	*ask = (struct pshm_ask){ .process = &c->process, .inbox.fd = -1, .under_way = true };
	memcpy(ask->to, to, PSHM_NONCE);
	memcpy(ask->pair, note.pair, PSHM_NONCE);
	list_add_tail(&asks, &ask->link);
	c->ask_cnt++;
out:
	platform_unlock(&lock);
	return err;
}

int pshm_sockets_answer(struct pshm_ask *ask, struct pshm_region *inbox)
{
	int err;

	platform_lock(&lock);
	err = ask->err;
	if (ask->inbox.addr) {
		*inbox = ask->inbox;
		ask->inbox = (struct pshm_region){ .fd = -1 };
	}
	platform_unlock(&lock);
	return err;
}

void pshm_sockets_drop(struct pshm_ask *ask)
{
	if (!ask->process)
		return;
	platform_lock(&lock);
	list_remove(&ask->link);
	ask_received_locked(ask);
	platform_unlock(&lock);
	pshm_region_close(&ask->inbox);
	ask->process = NULL;
}

void pshm_sockets_wake(struct pshm_process *process, const uint8_t to[PSHM_NONCE])
{
	struct pshm_note note = pshm_note_of(PSHM_NOTE_WAKE);

	memcpy(note.to, to, PSHM_NONCE);
	/* a socket without room holds something unread, which wakes the process as well */
	pshm_note_send(pshm_channel_of(process), &note, NULL, 0);
}
