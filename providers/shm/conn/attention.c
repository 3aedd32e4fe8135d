/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which rings are polled. An endpoint with a thousand peers hears from few of them at a time: those are
 * hot and polled every time. A ring from which nothing came for a while becomes cold: its producer is
 * told to call, that is to set the bit it was given at our inbox, where one load shows whether anybody
 * did. Who calls is hot again.
 *
 * A producer that publishes while its ring cools may not see yet that it should call. So the ring is
 * polled for another sweep when it has been told. The cold rings are looked at too, a few at a time: a
 * bit at the inbox is nothing but a hint, and a neighbour that scribbles there, or never calls, delays
 * its own messages. Who is about to sleep takes more care: arm.c. On the thread that holds the domain.
 */
#include "attention.h"
#include "conn.h"
#include "doorbell.h"

#define HOT_MIN 2u /* rings that are polled whatever comes from them */
#define COLD_SWEEPS \
	4u /* between looks at a cold ring: each costs some cache lines, and a page walk */
#define STILL_SWEEPS 64u /* without anything new before a ring cools */

static void swap(struct pshm_wire *w, uint32_t i, uint32_t j)
{
	struct pshm_conn *one = w->up[i], *other = w->up[j];

	w->up[i] = other;
	w->up[j] = one;
	if (one)
		one->up_idx = j;
	if (other)
		other->up_idx = i;
}

void pshm_warm(struct pshm_conn *conn)
{
	struct pshm_wire *w = conn->wire;

	conn->still = 0;
	if (conn->up_idx >= w->hot_cnt)
		swap(w, conn->up_idx, w->hot_cnt++);
	else if (!conn->cooling)
		return;
	conn->cooling = false;
	/* while somebody sleeps all have been told to call */
	if (!w->armed)
		pshm_attend_how(conn, pshm_hot_how(conn));
}

/*
 * In two steps: it is polled until the next sweep, when what was published before the producer could see
 * that it has to call is there. Else that would lie there until its turn among the cold ones.
 */
static void cool(struct pshm_conn *conn)
{
	struct pshm_wire *w = conn->wire;

	if (conn->cooling) {
		swap(w, conn->up_idx, --w->hot_cnt);
		return;
	}
	conn->cooling = true;
	pshm_attend_how(conn, PSHM_CALL);
}

void pshm_attend(struct pshm_conn *conn)
{
	enum pshm_side other = pshm_other(conn);
	struct pshm_wire *w = conn->wire;

	conn->call = w->call_next++ % PSHM_CALLS;
	conn->next_caller = w->callers[conn->call];
	w->callers[conn->call] = conn;
	atomic_store_explicit(&conn->pair->attention[other].call, conn->call,
			      memory_order_relaxed);
	pshm_attend_how(conn, pshm_hot_how(conn));
	conn->up_idx = w->up_cnt;
	w->up[w->up_cnt++] = conn;
	swap(w, conn->up_idx, w->hot_cnt++);
}

void pshm_ignore(struct pshm_conn *conn)
{
	struct pshm_conn **at = &conn->wire->callers[conn->call];

	while (*at != conn)
		at = &(*at)->next_caller;
	*at = conn->next_caller;
	conn->wire->up[conn->up_idx] = NULL;
	conn->wire->holes = true;
}

void pshm_answer_calls(struct pshm_wire *w)
{
	/* A:pshm_inbox.called  before the calls; pairs R:pshm_inbox.called */
	uint32_t called = atomic_exchange_explicit(&w->inbox->called, 0, memory_order_acquire);

	for (uint32_t i = 0; i < PSHM_CALLS / 64; i++) {
		uint64_t calls;

		if (!(called & 1u << i))
			continue;
		/* A:pshm_inbox.calls  before the rings; pairs R:pshm_inbox.calls */
		calls = atomic_exchange_explicit(&w->inbox->calls[i], 0, memory_order_acquire);
		for (; calls; calls &= calls - 1) {
			uint32_t call = i * 64 + (uint32_t)__builtin_ctzll(calls);

			for (struct pshm_conn *c = w->callers[call]; c; c = c->next_caller)
				pshm_warm(c);
		}
	}
}

/* The hot ones, from the last, with which one that cools is exchanged. */
static void sweep_hot(struct pshm_wire *w)
{
	uint32_t begun = 0; /* to cool: they leave in the next sweep */

	for (uint32_t i = w->hot_cnt; i-- > 0;) {
		struct pshm_conn *conn = w->up[i];

		if (!conn)
			continue;
		if (conn->rx.tail != conn->swept) {
			conn->swept = conn->rx.tail;
			pshm_warm(conn);
		} else if (++conn->still > STILL_SWEEPS && w->hot_cnt - begun > HOT_MIN) {
			begun += !conn->cooling;
			cool(conn);
		}
	}
}

bool pshm_has_something(const struct pshm_conn *conn)
{
	enum pshm_side other = pshm_other(conn);
	uint32_t note;

	return ring_next(&conn->rx, &note) || conn->tx.broken ||
	       atomic_load_explicit(&conn->pair->ended[other].value, memory_order_relaxed);
}

/* The cold ones after that: what the next sweeps will look at is fetched by then. */
static void expect_cold(const struct pshm_wire *w, uint32_t i)
{
	const struct pshm_conn *next = i + 1 < w->up_cnt ? w->up[i + 1] : NULL;

	if (i + 2 < w->up_cnt && w->up[i + 2])
		__builtin_prefetch(&w->up[i + 2]->rx);
	if (!next)
		return;
	__builtin_prefetch(&next->rx.lines[next->rx.tail & next->rx.mask]);
	__builtin_prefetch(&next->pair->ended[pshm_other(next)]);
}

/* One of those, each in its turn. */
static int sweep_cold(struct pshm_wire *w)
{
	struct pshm_conn *conn;

	if (w->cold_next < w->hot_cnt || w->cold_next >= w->up_cnt)
		w->cold_next = w->hot_cnt;
	expect_cold(w, w->cold_next);
	conn = w->up[w->cold_next++];
	if (!conn || !pshm_has_something(conn))
		return 0;
	pshm_warm(conn);
	return 1;
}

int pshm_sweep(struct pshm_wire *w)
{
	int found = 0;

	if (!(++w->sweeps % COLD_SWEEPS) && w->up_cnt > w->hot_cnt)
		found = sweep_cold(w);
	sweep_hot(w);
	return found;
}

struct pshm_inbox *pshm_peer_inbox(struct pshm_conn *conn)
{
	if (!conn->inbox.addr && !conn->inbox_unreachable)
		conn->inbox_unreachable = pshm_inbox_open(conn->addr.pid, conn->addr.fd,
							  conn->addr.nonce, &conn->inbox) != 0;
	return conn->inbox.addr;
}

void pshm_call(struct pshm_conn *conn)
{
	struct pshm_attention *attention = conn->attention;
	struct pshm_inbox *inbox;
	uint32_t call;

	if (atomic_load_explicit(&attention->how, memory_order_relaxed) != PSHM_CALL) {
		/* F:pshm_attention.how  what we published before how we are heard; pairs F:pshm_arm */
		platform_fence();
		if (atomic_load_explicit(&attention->how, memory_order_relaxed) != PSHM_CALL)
			return;
	}
	inbox = pshm_peer_inbox(conn);
	if (!inbox) {
		pshm_mute(conn, true); /* it will find us, in a while */
		return;
	}
	call = atomic_load_explicit(&attention->call, memory_order_relaxed) % PSHM_CALLS;
	/* R:pshm_inbox.calls  what we published before the call; pairs A:pshm_inbox.calls */
	atomic_fetch_or_explicit(&inbox->calls[call / 64], 1ull << call % 64,
				 memory_order_release);
	/*
	 * R:pshm_inbox.called  the call before that; pairs A:pshm_inbox.called
	 * F:pshm_inbox.called  before we look whether the owner sleeps; pairs F:pshm_inbox.armed
	 */
	atomic_fetch_or_explicit(&inbox->called, 1u << call / 64, memory_order_seq_cst);
	pshm_ring(conn);
}

void pshm_knock(struct pshm_conn *conn)
{
	struct pshm_inbox *inbox = pshm_peer_inbox(conn);

	if (!inbox) {
		pshm_mute(conn, true);
		return;
	}
	pshm_inbox_knock(inbox);
	pshm_ring(conn);
}
