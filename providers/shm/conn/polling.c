/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which rings are polled. An endpoint with a thousand peers has messages from few of them at a
 * time: their rings are hot, and polled in each call of poll(). A ring that was empty for a while
 * becomes cold: its producer has to ring its doorbell, a bit in this endpoint's inbox, with each
 * publication. One load shows whether any doorbell was rung; a ring whose doorbell was rung is hot
 * again.
 *
 * A producer that publishes while its ring cools may not have read yet that it has to ring its
 * doorbell. So the ring is polled for another sweep after the mode was set. Cold rings are polled
 * as well, a few at a time: a doorbell is only a hint, and a faulty peer that sets bits at random,
 * or never, delays its own messages alone. An endpoint that is about to sleep takes more care:
 * arm.c. On the thread that holds the domain.
 */
#include "polling.h"
#include "conn.h"
#include "wake.h"

/* Number of rings that stay hot even if they are empty. */
#define HOT_MIN 2u
/* Sweeps between two polls of a cold ring: each costs some cache lines, and a page walk. */
#define COLD_SWEEPS 4u
/* Sweeps that find nothing new in a ring before it cools. */
#define IDLE_SWEEPS 64u

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

void pshm_polling_heat(struct pshm_conn *conn)
{
	struct pshm_wire *w = conn->wire;

	conn->idle_sweeps = 0;
	if (conn->up_idx >= w->hot_cnt)
		swap(w, conn->up_idx, w->hot_cnt++);
	else if (!conn->cooling)
		return;
	conn->cooling = false;
	/* while a thread sleeps, all producers have to ring */
	if (!w->armed)
		pshm_polling_set_mode(conn, pshm_polling_hot_mode(conn));
}

/*
 * A ring cools in two steps. It is polled until the next sweep: by then what its producer
 * published before it could see that it has to ring is there. Else that would lie there until its
 * turn among the cold ones.
 */
static void cool(struct pshm_conn *conn)
{
	struct pshm_wire *w = conn->wire;

	if (conn->cooling) {
		swap(w, conn->up_idx, --w->hot_cnt);
		return;
	}
	conn->cooling = true;
	pshm_polling_set_mode(conn, PSHM_RING_DOORBELL);
}

void pshm_polling_begin(struct pshm_conn *conn)
{
	enum pshm_side other = pshm_other(conn);
	struct pshm_wire *w = conn->wire;

	conn->doorbell = w->doorbell_next++ % PSHM_DOORBELLS;
	conn->next_on_doorbell = w->doorbell_conns[conn->doorbell];
	w->doorbell_conns[conn->doorbell] = conn;
	atomic_store_explicit(&conn->pair->polling[other].doorbell, conn->doorbell,
			      memory_order_relaxed);
	pshm_polling_set_mode(conn, pshm_polling_hot_mode(conn));
	conn->up_idx = w->up_cnt;
	w->up[w->up_cnt++] = conn;
	swap(w, conn->up_idx, w->hot_cnt++);
}

void pshm_polling_end(struct pshm_conn *conn)
{
	struct pshm_conn **at = &conn->wire->doorbell_conns[conn->doorbell];

	while (*at != conn)
		at = &(*at)->next_on_doorbell;
	*at = conn->next_on_doorbell;
	conn->wire->up[conn->up_idx] = NULL;
	conn->wire->holes = true;
}

void pshm_polling_take_doorbells(struct pshm_wire *w)
{
	uint64_t words = atomic_load_explicit(&w->inbox->rung, memory_order_relaxed) &
			 PSHM_DOORBELL_WORDS;

	/*
	 * These bits are set until they are cleared here: a difference clears them alone.
	 * A:pshm_inbox.doorbell_words  before the doorbells; pairs R:pshm_inbox.doorbell_words
	 */
	atomic_fetch_sub_explicit(&w->inbox->rung, words, memory_order_acquire);
	for (uint32_t i = 0; i < PSHM_DOORBELLS / 64; i++) {
		uint64_t rung;

		if (!(words & 1ull << i))
			continue;
		/* A:pshm_inbox.doorbells  before the rings; pairs R:pshm_inbox.doorbells */
		rung = atomic_exchange_explicit(&w->inbox->doorbells[i], 0,
						memory_order_acquire);
		for (; rung; rung &= rung - 1) {
			uint32_t doorbell = i * 64 + (uint32_t)__builtin_ctzll(rung);

			for (struct pshm_conn *c = w->doorbell_conns[doorbell]; c;
			     c = c->next_on_doorbell)
				pshm_polling_heat(c);
		}
	}
}

/* Sweeps the hot rings, from the last one on: a ring that cools changes places with that. */
static void sweep_hot(struct pshm_wire *w)
{
	/* rings that began to cool now, and leave in the next sweep */
	uint32_t begun = 0;

	for (uint32_t i = w->hot_cnt; i-- > 0;) {
		struct pshm_conn *conn = w->up[i];

		if (!conn)
			continue;
		if (conn->rx.tail != conn->swept_tail) {
			conn->swept_tail = conn->rx.tail;
			pshm_polling_heat(conn);
		} else if (++conn->idle_sweeps > IDLE_SWEEPS && w->hot_cnt - begun > HOT_MIN) {
			begun += !conn->cooling;
			cool(conn);
		}
	}
}

bool pshm_polling_pending(const struct pshm_conn *conn)
{
	enum pshm_side other = pshm_other(conn);
	uint32_t note;

	return ring_next(&conn->rx, &note) || conn->tx.broken ||
	       atomic_load_explicit(&conn->pair->ended[other].value, memory_order_relaxed);
}

/* Prefetches what the next two sweeps will read of the cold rings behind up[@i]. */
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

/* Polls the next cold ring. Returns 1 if it has a line, else 0. */
static int sweep_cold(struct pshm_wire *w)
{
	struct pshm_conn *conn;

	if (w->cold_next < w->hot_cnt || w->cold_next >= w->up_cnt)
		w->cold_next = w->hot_cnt;
	expect_cold(w, w->cold_next);
	conn = w->up[w->cold_next++];
	if (!conn || !pshm_polling_pending(conn))
		return 0;
	pshm_polling_heat(conn);
	return 1;
}

int pshm_polling_sweep(struct pshm_wire *w)
{
	int found = 0;

	if (!(++w->sweeps % COLD_SWEEPS) && w->up_cnt > w->hot_cnt)
		found = sweep_cold(w);
	sweep_hot(w);
	return found;
}

struct pshm_inbox *pshm_peer_inbox(struct pshm_conn *conn)
{
	if (!conn->inbox.addr && !conn->inbox_unreachable) {
		int err = pshm_inbox_open(conn->addr.pid, conn->addr.fd, conn->addr.nonce,
					  &conn->inbox);

		/* What lacks now may be there the next time. */
		conn->inbox_unreachable = err && !pshm_is_shortage(err);
		if (!err)
			pshm_peer_set_no_wake(conn, false);
	}
	return conn->inbox.addr;
}

void pshm_doorbell_ring(struct pshm_conn *conn)
{
	struct pshm_polling *polling = conn->polling;
	struct pshm_inbox *inbox;
	uint32_t doorbell;

	if (atomic_load_explicit(&polling->mode, memory_order_relaxed) != PSHM_RING_DOORBELL) {
		/* F:pshm_polling.mode  what we published before its mode; pairs F:pshm_arm */
		platform_fence();
		if (atomic_load_explicit(&polling->mode, memory_order_relaxed) !=
		    PSHM_RING_DOORBELL)
			return;
	}
	inbox = pshm_peer_inbox(conn);
	if (!inbox) {
		pshm_peer_set_no_wake(conn, true); /* it finds the line in a sweep */
		return;
	}
	doorbell = atomic_load_explicit(&polling->doorbell, memory_order_relaxed) %
		   PSHM_DOORBELLS;
	/* R:pshm_inbox.doorbells  what we published before the bit; pairs A:pshm_inbox.doorbells */
	atomic_fetch_or_explicit(&inbox->doorbells[doorbell / 64], 1ull << doorbell % 64,
				 memory_order_release);
	/*
	 * R:pshm_inbox.doorbell_words  the bit before that; pairs A:pshm_inbox.doorbell_words
	 * F:pshm_inbox.doorbell_words  before reading whether the owner sleeps; pairs
	 * F:pshm_inbox.armed
	 */
	atomic_fetch_or_explicit(&inbox->rung, 1ull << doorbell / 64, memory_order_seq_cst);
	pshm_peer_wake(conn);
}

void pshm_peer_notify(struct pshm_conn *conn)
{
	struct pshm_inbox *inbox = pshm_peer_inbox(conn);

	if (!inbox) {
		pshm_peer_set_no_wake(conn, true);
		return;
	}
	pshm_inbox_notify(inbox);
	pshm_peer_wake(conn);
}
