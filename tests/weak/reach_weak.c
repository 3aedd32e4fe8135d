/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that stores to a region of ours (providers/shm/transfer: peer_keys.c, share.c) in all executions that
 * C11 allows: once the key was invalidated and nobody is seen inside, or the connection has ended so, the
 * memory is the owner's alone; what the peer stored before is there. Both store plain bytes: where they may
 * do so at the same time it is a data race.
 */
#include <rdma/fi_errno.h>
#include "arena.h"
#include "conn.h"
#include "lists.h"
#include "memfd.h"
#include "moved.h"
#include "peer_keys.h"
#include "polling.h"
#include "share.h"
#include "shown.h"
#include "weak.h"
#include "write_guard.h"

static _Alignas(64) unsigned char memory[32768];
static size_t used;
static _Alignas(64) unsigned char table_memory[PSHM_TABLE_HEAD + MR_SLAB_FIRST * 64];
static struct mr_table table;
static struct mr_memory slabs;
static struct wire_share *share;
static struct pshm_pair pair;
static struct pshm_wire wire;
static struct pshm_process process;
static struct pshm_conn ours, theirs;
static struct pshm_reading reading;
static struct mr_view view;
static uint32_t bytes; /* of the region */
static uint32_t line;
static char object;

void *platform_alloc(size_t len)
{
	void *at = memory + used;

	used += (len + 63) & ~(size_t)63;
	weak_require(used <= sizeof(memory));
	return at;
}

void platform_free(void *ptr)
{
}

/* No thread waits in a loop. */
void weak_relax(void)
{
}

/* Rooms that have no part in it */

struct arena *arena_started(void)
{
	return NULL;
}

int arena_cut(struct arena *a, const void *addr, size_t len)
{
	return -FI_ENOMEM;
}

bool pshm_process_dead(const struct pshm_process *p)
{
	return false;
}

void pshm_process_put(struct pshm_process *p)
{
}

void pshm_fork_watch(void)
{
}

void pshm_fork_also(void (*forked)(void))
{
}

void sys_memfd_forget(void *addr, size_t len)
{
}

void pshm_lists_lock(void)
{
}

void pshm_lists_unlock(void)
{
}

void mem_shown_start(void)
{
}

void pshm_moved_share_end(const struct pshm_share_counts *told)
{
}

void pshm_region_close(struct pshm_region *region)
{
}

void pshm_region_close_fd(struct pshm_region *region)
{
}

void pshm_mailbox_drop(struct pshm_ticket *ticket)
{
}

void pshm_polling_end(struct pshm_conn *conn)
{
}

void engine_conns_change(struct wire *w)
{
}

void pshm_doorbell_ring(struct pshm_conn *conn)
{
}

int sys_write_guard_open(void **write_guard)
{
	*write_guard = &object;
	return 0;
}

int pshm_table_create(struct pshm_region *region)
{
	region->addr = table_memory;
	region->fd = 9;
	return 0;
}

static void ended(struct pshm_conn *conn, bool wait)
{
}

static const struct pshm_conn_ops conn_ops = { .ended = ended };

static void set_up_conns(void)
{
	const struct wire_attr attr = { .share = share };

	memset(&pair, 0, sizeof(pair));
	memset(&wire, 0, sizeof(wire));
	memset(&ours, 0, sizeof(ours));
	memset(&theirs, 0, sizeof(theirs));
	wire.conn_ops = &conn_ops;
	list_init(&wire.ended);
	list_init(&wire.conns);
	pshm_share_join(&wire, &attr);
	list_init(&ours.slow);
	list_add_tail(&wire.conns, &ours.all);
	process.pid = 1;
	theirs.wire = ours.wire = &wire;
	theirs.pair = ours.pair = &pair;
	theirs.process = ours.process = &process;
	ours.region.addr = &pair;
	ours.side = PSHM_ACCEPTOR;
	theirs.side = PSHM_REQUESTER;
	weak_name("pshm_pair.inside", &pair.inside[PSHM_REQUESTER].line, 4);
	weak_name("pshm_pair.ended", &pair.ended[PSHM_ACCEPTOR].value,
		  sizeof(pair.ended[0].value));
}

static void set_up(void)
{
	struct iovec iov = { &bytes, sizeof(bytes) };
	struct mr_spec spec = { .iov = &iov,
				.iov_cnt = 1,
				.access = FI_REMOTE_WRITE,
				.object = &object,
				.live = true };

	static _Atomic uint32_t regions;

	memset(memory, 0, sizeof(memory));
	memset(table_memory, 0, sizeof(table_memory));
	memset(&reading, 0, sizeof(reading));
	used = 0;
	bytes = 0;
	weak_require(!pshm_share_open(&share, &slabs, &regions));
	set_up_conns();
	mr_init(&table, MR_KEYS_ISSUED, &slabs);
	weak_require(!mr_insert(&table, &spec, &line));
	weak_require(!mr_reader_init(&reading.reader, table_memory + PSHM_TABLE_HEAD));
	weak_require(!mr_reader_find(&reading.reader, mr_at(&table, line)->key, &view));
	theirs.reading = &reading;
	weak_name("mr_line.seq", table_memory + PSHM_TABLE_HEAD + (size_t)line * 64, 8);
}

static void storer(void)
{
	pshm_enter(&theirs, line | PSHM_INSIDE_MAPPED);
	if (pshm_key_open(&theirs, &view))
		bytes = 1;
	pshm_leave(&theirs);
}

static void closer(void)
{
	mr_invalidate(&table, line);
	if (!pshm_share_used(share, line))
		bytes = 2;
}

/* Nobody looks at the pair any more once the connection has ended, unless it is kept. */
static void ender(void)
{
	pshm_conn_end(&ours, PSHM_CLOSED, false);
	if (!pshm_share_keep(&ours))
		bytes = 2;
}

static const struct weak_test closed = {
	"memory whose key was closed is the owner's", set_up, { storer, closer }, NULL
};

static const struct weak_test left = {
	"so it is when the connection has ended", set_up, { storer, ender }, NULL
};

int main(void)
{
	static const struct weak_test *const tests[] = { &closed, &left, NULL };
	static const struct weak_ordering orderings[] = {
		{ "F:pshm_pair.inside", &closed }, { "F:mr_line.seq", &closed },
		{ "R:pshm_pair.inside", &closed }, { "A:pshm_pair.inside", &closed },
		{ "F:pshm_pair.ended", &left },	   { NULL, NULL },
	};

	return weak_main(tests, orderings);
}
