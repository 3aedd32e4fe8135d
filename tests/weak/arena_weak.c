/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The arena (mem/arena) in all executions that C11 allows: who finds a chunk, by an address in this process
 * or in the directory that peers map, finds it whole; and what a peer was told is stored in a chunk is there
 * when the owner has taken the chunk back. System calls of the chunk are answered here; memory that
 * peers store to is one atomic word without order, since the owner may read it at once.
 */
#include <sys/types.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "chunk.h"
#include "conn.h"
#include "descriptor.h"
#include "maps.h"
#include "membarrier.h"
#include "memfd.h"
#include "mutex.h"
#include "peer_arena.h"
#include "provider.h"
#include "reader.h"
#include "reserve.h"
#include "weak.h"

#define BASE  ((uintptr_t)1 << 40)
#define INODE 77

static struct arena arena;
static struct arena_directory directory;
static struct arena_mapping maps[1];
static struct arena_peer peer;
static struct arena_reader reader;
static _Alignas(CACHE_LINE) char memory[2][1024]; /* of a reader and of its peer, for a chunk */
static uint32_t memory_cnt;
static struct pshm_pair pair;
static struct pshm_wire wire;
static struct pshm_conn conn, lender;
static struct pshm_place lent_place;
static _Atomic uint32_t line; /* of the ring: it carries the place */
static _Atomic uint32_t word; /* of the chunk's memory */
static uint32_t left;	      /* it, as the owner has it once the chunk is its own */
static bool told;
static uint32_t
	forbidden; /* 1: membarrier(2), since the peer relies on it. In no word with what threads store */
static uint32_t clock_reads;
static char mapping[64];

/* The system */

size_t sys_memfd_max(void)
{
	return SIZE_MAX;
}

int sys_memfd_create(const char *name, size_t len, mode_t mode)
{
	return 5;
}

int sys_memfd_create_huge(const char *name, size_t len, mode_t mode)
{
	return -FI_ENOMEM;
}

int sys_memfd_fix(int fd)
{
	return -FI_ENOSYS;
}

int sys_memfd_inode(int fd, uint64_t *inode)
{
	*inode = INODE;
	return 0;
}

int sys_memfd_identify(int fd, struct sys_memfd_id *id)
{
	*id = (struct sys_memfd_id){ .inode = INODE };
	return 0;
}

int sys_memfd_dup(int fd, const struct sys_memfd_id *id)
{
	return 7;
}

bool sys_memfd_is(int fd, const struct sys_memfd_id *id)
{
	return true;
}

void sys_memfd_close(int fd, const struct sys_memfd_id *id)
{
}

int sys_memfd_punch(int fd, const struct sys_memfd_id *id, uint64_t offset, size_t len)
{
	return 0;
}

int sys_reserve_remove(void *addr, size_t len, const struct sys_memfd_id *id)
{
	return 0;
}

int sys_reserve_map(void *addr, size_t len, int fd)
{
	return 0;
}

/* A peer opens what its entry says. */
int sys_memfd_open(pid_t pid, int fd, bool writable)
{
	weak_require(fd == 5 && !writable);
	return 6;
}

int sys_memfd_map(int fd, size_t len, unsigned int flags, void **addr)
{
	weak_require(len == ARENA_SLOT);
	*addr = mapping;
	return 0;
}

void sys_memfd_unmap(void *addr, size_t len)
{
}

int sys_reserve_zeros(void *addr, size_t len)
{
	return 0;
}

int sys_reserve_again(void *addr, size_t len)
{
	return 0;
}

int sys_reserve_clear(void *addr, size_t len)
{
	return 0;
}

int sys_reserve_discard(void *addr, size_t len, const struct sys_memfd_id *id)
{
	return 0;
}

int sys_memfd_is_writable(pid_t pid, int fd, uint64_t inode)
{
	return 0;
}

int sys_memfd_data(int fd, uint64_t *offset, uint64_t *len)
{
	return -FI_ENOENT;
}

int sys_reserve_take(void *addr, size_t len)
{
	return 0;
}

uint64_t sys_reserve_limit(void)
{
	return UINT64_MAX;
}

uint64_t sys_maps_max(void)
{
	return 65530;
}

/* One thread maps one chunk, once. */
void *platform_alloc(size_t len)
{
	weak_require(memory_cnt < 2 && len <= sizeof(memory[0]));
	return memory[memory_cnt++];
}

void platform_free(void *addr)
{
}

void sys_descriptor_close(int fd)
{
}

int platform_random(void *buf, size_t len)
{
	memset(buf, 0, len);
	return 0;
}

/* The peer lives, and has what it needs. */
bool pshm_process_dead(const struct pshm_process *process)
{
	return false;
}

bool pshm_is_shortage(int err)
{
	return false;
}

/* It reaches those who take part. */
int sys_membarrier_all(void)
{
	if (!wire.barriers || forbidden)
		return -FI_EINVAL;
	weak_fence_name("arena.stored");
	weak_barrier();
	weak_fence_name(NULL);
	return 0;
}

/* Once platform_settle() has waited, what others have stored is visible; that is for who relies on a barrier. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	*now = (struct timespec){ .tv_sec = clock_reads++ };
	if (clock_reads < 2 || !forbidden)
		return 0;
	weak_fence_name("arena.settle");
	weak_barrier();
	weak_fence_name(NULL);
	return 0;
}

void platform_yield(void)
{
	weak_assume(false);
}

/* From here on the owner has pages of its own, with what these hold. */
int sys_reserve_leave(void *addr, size_t len, int fd, const struct sys_memfd_id *id,
		      const uint64_t *offset)
{
	atomic_thread_fence(memory_order_seq_cst); /* as changing a mapping is */
	left = atomic_load_explicit(&word, memory_order_relaxed);
	return 0;
}

int sys_maps_each(const void *addr, size_t len,
		  int (*each)(const struct sys_map *mapping, void *arg), void *arg)
{
	return 0;
}

/* The log is not needed. */

struct fi_provider pshm_provider;

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	return 0;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int at, const char *fmt, ...)
{
}

/* No thread waits in a loop. */
void weak_relax(void)
{
}

static void set_up(void)
{
	memset(arena.chunks, 0, sizeof(arena.chunks[0]));
	memset(&directory.head, 0, sizeof(directory.head));
	memset(directory.entries, 0, sizeof(directory.entries[0]));
	memset(maps, 0, sizeof(maps[0]));
	atomic_init(&arena.slots[0], 0);
	arena.base = BASE;
	arena.len = arena.usable = 8 * ARENA_SLOT;
	arena.chunk_cnt = 0;
	arena.serial = 0;
	arena.directory = &directory;
	peer = (struct arena_peer){ .refs = 1, .id.pid = 1, .directory = &directory };
	for (uint32_t i = 0; i < ARENA_PEER_LISTS; i++)
		list_init(&peer.chunks[i]);
	reader = (struct arena_reader){
		.peer = &peer, .directory = &directory, .maps = maps, .room = 1
	};
	memory_cnt = 0;
	mutex_init();
	weak_name("arena.slots", &arena.slots[0], sizeof(arena.slots[0]));
	weak_name("arena.serial", &directory.entries[0].serial,
		  sizeof(directory.entries[0].serial));
	weak_name("arena.retired", &directory.entries[0].retired,
		  sizeof(directory.entries[0].retired));
}

static void adder(void)
{
	uint32_t idx;

	weak_require(!arena_chunk_add(&arena, 1, ARENA_READ, &idx) && !idx);
}

static void finder(void)
{
	struct arena_place at;

	if (arena_find(&arena, (void *)(BASE + 4096), ARENA_SLOT - 4096, &at))
		weak_require(!at.chunk && at.offset == 4096 &&
			     atomic_load_explicit(&arena.chunks[0].serial,
						  memory_order_relaxed) == 1);
}

static void peer_finder(void)
{
	void *at = arena_reader_find(&reader, BASE + 16, 16, false);

	weak_require(!at || at == mapping + 16);
}

static const struct weak_test found = {
	"a chunk that is found is whole", set_up, { adder, finder }, NULL
};

static const struct weak_test peer_found = {
	"so is one that a peer finds", set_up, { adder, peer_finder }, NULL
};

/* Lending */

struct arena *arena_started(void)
{
	return &arena;
}

static void set_up_lent(void)
{
	set_up();
	memset(&pair, 0, sizeof(pair));
	memset(&wire, 0, sizeof(wire));
	memset(&conn, 0, sizeof(conn));
	memset(&lender, 0, sizeof(lender));
	atomic_init(&line, 0);
	conn.side = PSHM_REQUESTER;
	lender.side = PSHM_ACCEPTOR;
	conn.wire = lender.wire = &wire;
	conn.pair = lender.pair = &pair;
	conn.arena = &reader;
	list_init(&conn.gets);
	list_init(&conn.directs);
	weak_name("pshm_shown.wanted", &pair.shown[PSHM_ACCEPTOR].arena_wanted,
		  sizeof(pair.shown[PSHM_ACCEPTOR].arena_wanted));
}

static void lending(void)
{
	adder();
	if (!pshm_arena_lends(&lender, (void *)(BASE + 16), 16, &lent_place) &&
	    pshm_arena_lends(&lender, (void *)(BASE + 16), 16, &lent_place))
		atomic_store_explicit(&line, 1, memory_order_release);
}

static void borrower(void)
{
	pshm_peer_map(&conn);
	if (atomic_load_explicit(&line, memory_order_acquire))
		weak_require(pshm_peer_place(&conn, &lent_place, 16) == mapping + 16);
}

static const struct weak_test lent = {
	"what is lent is mapped", set_up_lent, { lending, borrower }, NULL
};

/* Taking a chunk back */

static void set_up_store(bool barriers)
{
	set_up();
	adder();
	memset(&pair, 0, sizeof(pair));
	memset(&wire, 0, sizeof(wire));
	memset(&conn, 0, sizeof(conn));
	atomic_init(&word, 0);
	left = 0;
	told = false;
	forbidden = 0;
	clock_reads = 0;
	wire.barriers = barriers;
	atomic_init(&pair.barriers[PSHM_ACCEPTOR].value, barriers);
	conn.side = PSHM_REQUESTER;
	conn.wire = &wire;
	conn.pair = &pair;
	conn.arena = &reader;
	maps[0] = (struct arena_mapping){ .addr = mapping, .serial = 1, .number = 1 };
}

static void set_up_barriers(void)
{
	set_up_store(true);
}

static void set_up_fences(void)
{
	set_up_store(false);
}

static void set_up_forbidden(void)
{
	set_up_store(true);
	forbidden = 1;
}

static void storer(void)
{
	static const struct pshm_peer_chunk chunk = { .idx = 0, .number = 1 };

	weak_fence_name("pshm_peer_stored");
	if (!pshm_peer_lets(&conn, &chunk))
		return;
	atomic_store_explicit(&word, 1, memory_order_relaxed);
	told = pshm_peer_stored(&conn, &chunk);
}

static void taker(void)
{
	arena_chunk_retire(&arena, 0);
	arena_chunks_settle();
	arena_chunk_leave(&arena, 0, 0, ARENA_SLOT);
}

static void what_was_told_is_there(void)
{
	weak_require(!told || left);
}

static const struct weak_test stored = { "what a peer was told is stored is there",
					 set_up_barriers,
					 { storer, taker },
					 what_was_told_is_there };

static const struct weak_test fenced = { "so it is where the peer makes the fence",
					 set_up_fences,
					 { storer, taker },
					 what_was_told_is_there };

static const struct weak_test late = { "so it is where the barrier is forbidden later",
				       set_up_forbidden,
				       { storer, taker },
				       what_was_told_is_there };

int main(void)
{
	static const struct weak_test *const tests[] = { &found,  &peer_found, &lent, &stored,
							 &fenced, &late,       NULL };
	static const struct weak_ordering orderings[] = {
		{ "R:arena.slots", &found },	   { "A:arena.slots", &found },
		{ "R:arena.serial", &peer_found }, { "A:arena.serial", &peer_found },
		{ "R:pshm_shown.wanted", &lent },  { "A:pshm_shown.wanted", &lent },
		{ "F:arena.stored", &stored },	   { "F:pshm_peer_stored", &fenced },
		{ "F:arena.settle", &late },	   { NULL, NULL },
	};

	return weak_main(tests, orderings);
}
