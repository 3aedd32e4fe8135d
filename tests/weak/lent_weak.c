/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that is lent (providers/shm/transfer/peer_arena.c, conn/conn.c) in all executions that C11
 * allows: a peer that has read what the program stored there after its connection ended finds that
 * it has ended. The bytes are one atomic word here, without order, since both may access it at once.
 */
#include "conn.h"
#include "peer_arena.h"
#include "polling.h"
#include "weak.h"

static struct pshm_pair pair;
static struct pshm_wire wire;
static struct pshm_conn sender, receiver;
static _Atomic uint32_t lent; /* 1: as it was sent, 2: used again */

/* Rooms that have no part in it */

void pshm_mailbox_drop(struct pshm_ticket *ticket)
{
}

void pshm_polling_end(struct pshm_conn *conn)
{
}

void pshm_doorbell_ring(struct pshm_conn *conn)
{
}

/* No thread waits in a loop. */
void weak_relax(void)
{
}

static void ended(struct pshm_conn *conn, bool wait)
{
}

static const struct pshm_conn_ops conn_ops = { .ended = ended };

static void set_up(void)
{
	memset(&pair, 0, sizeof(pair));
	memset(&wire, 0, sizeof(wire));
	memset(&sender, 0, sizeof(sender));
	memset(&receiver, 0, sizeof(receiver));
	atomic_init(&lent, 1);
	wire.conn_ops = &conn_ops;
	list_init(&wire.ended);
	list_init(&sender.slow);
	sender.wire = &wire;
	sender.pair = receiver.pair = &pair;
	sender.side = PSHM_REQUESTER;
	receiver.side = PSHM_ACCEPTOR;
}

static void lender(void)
{
	weak_fence_name("pshm_pair.lent");
	pshm_conn_end(&sender, PSHM_CLOSED, false);
	atomic_store_explicit(&lent, 2, memory_order_relaxed);
}

static void reader(void)
{
	uint32_t copied;

	weak_fence_name("pshm_pair.lent");
	copied = atomic_load_explicit(&lent, memory_order_relaxed);
	if (pshm_peer_copied(&receiver))
		weak_require(copied == 1);
}

static const struct weak_test used_again = {
	"what was used again is no success", set_up, { lender, reader }, NULL
};

int main(void)
{
	static const struct weak_test *const tests[] = { &used_again, NULL };
	static const struct weak_ordering orderings[] = {
		{ "F:pshm_pair.lent", &used_again },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
