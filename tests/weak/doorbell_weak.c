/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How shm's endpoints sleep and are woken (providers/shm/paths/arm.c, conn/polling.c, conn/wake.c)
 * in all executions that C11 allows: a sleeping endpoint is woken for every publication, and finds
 * it. Pipes and the barrier are the kernel's; here they are an atomic word and weak_barrier().
 */
#include "conn.h"
#include "polling.h"
#include "shm_endpoint.h"
#include "socket.h"
#include "wake.h"
#include "weak.h"

#include "fifo.h"
#include "membarrier.h"

#define LINES RING_LINES_MIN
#define DATA  RING_DATA_MIN

static _Alignas(64) unsigned char memory[sizeof(struct ring_credit) +
					 LINES * sizeof(struct ring_line) + DATA];
static struct pshm_pair pair;
static struct pshm_inbox inbox;
static struct pshm_wire owner, producer;
static struct pshm_conn to_owner, from_producer, *up[2];
static struct pshm_process process;
static _Atomic int pipe_word; /* 1: it can be read */
static bool slept;

/* The kernel */

int sys_fifo_create(struct sys_fifo_id *id)
{
	*id = (struct sys_fifo_id){ 1, 2 };
	return 3;
}

int sys_fifo_open(pid_t pid, int fd, const struct sys_fifo_id *id)
{
	weak_require(pid == 4 && fd == 3 && id->dev == 1 && id->ino == 2);
	return 5;
}

void sys_fifo_ring(int fd)
{
	atomic_exchange_explicit(&pipe_word, 1, memory_order_acq_rel);
}

void sys_fifo_clear(int fd)
{
	atomic_exchange_explicit(&pipe_word, 0, memory_order_acq_rel);
}

void sys_fifo_close(int fd)
{
}

int sys_membarrier_all(void)
{
	weak_barrier();
	return 0;
}

/* No thread waits in a loop. */
void weak_relax(void)
{
}

/* Rooms that have no part in it */

void pshm_sockets_look(void)
{
}

void pshm_sockets_bell(struct pshm_wire *wire, int bell, int nest)
{
}

uint64_t pshm_sockets_sleep(struct pshm_wire *wire)
{
	return UINT64_MAX;
}

void pshm_sockets_woken(struct pshm_wire *wire)
{
}

struct pshm_conn *pshm_conn_copy(const struct pshm_wire *wire)
{
	return NULL;
}

int pshm_inbox_open(uint32_t pid, uint32_t fd, const uint8_t nonce[PSHM_NONCE],
		    struct pshm_region *out)
{
	return -1;
}

bool pshm_is_shortage(int err)
{
	return false;
}

/* What both begin with: a connection that is up, a ring that is hot, a bell. */
static void set_up(bool barriers)
{
	memset(memory, 0, sizeof(memory));
	memset(&pair, 0, sizeof(pair));
	memset(&inbox, 0, sizeof(inbox));
	memset(&owner, 0, sizeof(owner));
	memset(&producer, 0, sizeof(producer));
	memset(&to_owner, 0, sizeof(to_owner));
	memset(&from_producer, 0, sizeof(from_producer));
	memset(&process, 0, sizeof(process));
	atomic_init(&pipe_word, 0);
	slept = false;
	process.pid = 4;

	list_init(&owner.work);
	list_init(&owner.connecting);
	owner.inbox = &inbox;
	owner.bell = -1;
	owner.barriers = barriers;
	owner.up = up;
	list_init(&owner.accepted);
	up[0] = up[1] = NULL;
	from_producer.wire = &owner;
	from_producer.pair = &pair;
	from_producer.side = PSHM_ACCEPTOR;
	ring_rx_init(&from_producer.rx, memory, LINES, DATA);
	atomic_init(&pair.barriers[PSHM_REQUESTER].value, barriers);
	pshm_polling_begin(&from_producer);

	producer.wake_fd = -1;
	to_owner.wire = &producer;
	to_owner.pair = &pair;
	to_owner.side = PSHM_REQUESTER;
	to_owner.polling = &pair.polling[PSHM_REQUESTER];
	to_owner.process = &process;
	to_owner.inbox.addr = &inbox;
	ring_tx_init(&to_owner.tx, memory, LINES, DATA);

	weak_name("ring_line.word", memory + sizeof(struct ring_credit),
		  LINES * sizeof(struct ring_line));
	weak_name("pshm_inbox.armed", &inbox.armed, 4);
	weak_name("pshm_inbox.bell", &inbox.bell, 4);
	weak_name("pshm_inbox.doorbell_words", &inbox.rung, sizeof(inbox.rung));
	weak_name("pshm_inbox.doorbells", &inbox.doorbells, sizeof(inbox.doorbells));
	weak_name("pshm_inbox.request_doorbell", &inbox.rung, sizeof(inbox.rung));
}

static void set_up_barriers(void)
{
	set_up(true);
	pshm_bell(&owner.base, -1);
}

static void set_up_fences(void)
{
	set_up(false);
	pshm_bell(&owner.base, -1);
}

static void publish(void)
{
	struct ring_line *line = ring_claim(&to_owner.tx);

	line->header[0] = 1;
	pshm_line_publish(&to_owner, line, PSHM_PACKET);
}

static void publisher(void)
{
	weak_fence_name("pshm_polling.mode");
	publish();
}

static void sleeper(void)
{
	weak_fence_name("pshm_arm");
	slept = pshm_arm(&owner.base) != 0;
}

/* A sleeping endpoint has been woken, and finds the publication. */
static void is_woken(void)
{
	uint32_t note;

	weak_require(!slept || atomic_load_explicit(&pipe_word, memory_order_relaxed));
	weak_require(ring_next(&from_producer.rx, &note));
}

static const struct weak_test barriers = {
	"who sleeps is woken, by barriers", set_up_barriers, { sleeper, publisher }, is_woken
};

static const struct weak_test fences = {
	"who sleeps is woken, by fences", set_up_fences, { sleeper, publisher }, is_woken
};

/*
 * An endpoint that polls, and a ring that is cold: an endpoint that takes a doorbell finds the line
 * for which it was rung.
 */
static void set_up_cold(void)
{
	set_up(true);
	owner.hot_cnt = 0;
	atomic_store_explicit(&pair.polling[PSHM_REQUESTER].mode, PSHM_RING_DOORBELL,
			      memory_order_relaxed);
}

static void poller(void)
{
	uint32_t note;

	/* poll() looks at the word first */
	weak_assume(atomic_load_explicit(&inbox.rung, memory_order_relaxed));
	pshm_polling_take_doorbells(&owner);
	weak_require(owner.hot_cnt == 1);
	weak_require(ring_next(&from_producer.rx, &note));
	weak_require(up[0]->rx.lines[0].header[0] == 1);
}

static const struct weak_test doorbells = {
	"doorbells lead to what they were rung for", set_up_cold, { poller, publisher }, NULL
};

/* A second producer, whose doorbell is in the same word; the poller takes both by the first one's. */
static _Alignas(64) unsigned char memory2[sizeof(memory)];
static struct pshm_pair pair2;
static struct pshm_wire producer2;
static struct pshm_conn to_owner2, from_producer2;

static void set_up_two(void)
{
	set_up(true);
	memset(memory2, 0, sizeof(memory2));
	memset(&pair2, 0, sizeof(pair2));
	memset(&producer2, 0, sizeof(producer2));
	from_producer2 = from_producer;
	from_producer2.pair = &pair2;
	ring_rx_init(&from_producer2.rx, memory2, LINES, DATA);
	pshm_polling_begin(&from_producer2);
	to_owner2 = to_owner;
	producer2.wake_fd = -1;
	to_owner2.wire = &producer2;
	to_owner2.pair = &pair2;
	to_owner2.polling = &pair2.polling[PSHM_REQUESTER];
	ring_tx_init(&to_owner2.tx, memory2, LINES, DATA);
	owner.hot_cnt = 0;
	pshm_polling_set_mode(&from_producer, PSHM_RING_DOORBELL);
	pshm_polling_set_mode(&from_producer2, PSHM_RING_DOORBELL);
}

static void publisher2(void)
{
	struct ring_line *line = ring_claim(&to_owner2.tx);

	line->header[0] = 1;
	pshm_line_publish(&to_owner2, line, PSHM_PACKET);
}

static void poller_of_two(void)
{
	uint32_t note;

	weak_assume(atomic_load_explicit(&inbox.rung, memory_order_relaxed));
	pshm_polling_take_doorbells(&owner);
	weak_require(owner.hot_cnt >= 1);
	for (uint32_t i = 0; i < owner.hot_cnt; i++)
		weak_require(ring_next(&up[i]->rx, &note));
}

static const struct weak_test two_producers = {
	"two doorbells of one word", set_up_two, { poller_of_two, publisher, publisher2 }, NULL
};

/* The bell is made during a publication. */
static void bell_maker(void)
{
	weak_fence_name("pshm_arm");
	pshm_bell(&owner.base, -1);
	slept = pshm_arm(&owner.base) != 0;
}

static void set_up_bare(void)
{
	set_up(false);
}

static const struct weak_test late_bell = { "a bell is there before who sleeps on it",
					    set_up_bare,
					    { bell_maker, publisher },
					    is_woken };

/* Requests are counted by the process that has written one. */
static uint32_t request;

static void set_up_request(void)
{
	set_up_fences();
	request = 0;
}

static void asker(void)
{
	request = 1;
	pshm_peer_notify(&to_owner);
}

static void answerer(void)
{
	sleeper();
	if (slept)
		return;
	/* as pshm_accept() does */
	weak_require(pshm_inbox_requests(atomic_load_explicit(
			     &inbox.rung, memory_order_acquire)) == PSHM_REQUEST_DOORBELL);
	weak_require(request == 1);
}

static void asker_has_woken(void)
{
	weak_require(!slept || atomic_load_explicit(&pipe_word, memory_order_relaxed));
}

static const struct weak_test requests = {
	"requests wake who sleeps", set_up_request, { answerer, asker }, asker_has_woken
};

int main(void)
{
	static const struct weak_test *const tests[] = {
		&barriers, &fences, &doorbells, &two_producers, &late_bell, &requests, NULL
	};
	static const struct weak_ordering orderings[] = {
		{ "F:pshm_polling.mode", &fences },
		{ "F:pshm_arm", &fences },
		{ "R:pshm_inbox.doorbells", &two_producers },
		{ "A:pshm_inbox.doorbells", &two_producers },
		{ "F:pshm_inbox.doorbell_words", &fences },
		{ "R:pshm_inbox.armed", &late_bell },
		{ "A:pshm_inbox.armed", &late_bell },
		{ "R:pshm_inbox.request_doorbell", &requests },
		{ "F:pshm_inbox.request_doorbell", &requests },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
