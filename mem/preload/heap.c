/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The heap; heap.h has the contract. */
#define _GNU_SOURCE
#include "heap.h"
#include "arena.h"
#include "jemalloc.h"
#include "kept.h"
#include "limit.h"
#include "raw.h"
#include "reserve.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * jemalloc keeps to the extents that an arena of it has, and a fork retires their chunks: after
 * it, memory that peers may map comes from another one. An arena in which nothing is allocated any more is
 * destroyed, so that its chunks end. Where something is in so many of them they serve in turn:
 * what one of them has from before an earlier fork is used again too, as memory of this process alone.
 */
#define GENERATIONS 64u

/* Most bytes that are taken from the arena for later, together with what is needed now. */
#define GROW_MAX ((size_t)64 << 20)

/* A freed block that waits for the end of a fork. */
struct waiting {
	struct waiting *next;
};

enum heap_state {
	HEAP_EARLY,
	HEAP_ALLOWED,
	HEAP_STARTED,
	/* there is no arena */
	HEAP_OFF,
};

uintptr_t heap_base;
_Atomic size_t heap_len;

/* Protects the start of the heap. Rank 0: before jemalloc's locks, and those before the arena's. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
/* R:heap.state */
static _Atomic int state;
static struct arena *arena;
/* the arena of jemalloc that allocations come from */
static _Atomic unsigned int current;
/* all of them, 0 where there is none, and the place of that which began last. With the start lock */
static unsigned int made[GENERATIONS], last;
/*
 * Held for reading by who is in jemalloc, whose arenas must not end meanwhile. Rank: after the start lock; for
 * writing it is only tried. The child of a fork begins anew.
 */
static pthread_rwlock_t use_lock = PTHREAD_RWLOCK_INITIALIZER;
/* bytes that jemalloc has taken from the arena */
static _Atomic size_t taken;
static size_t most;
/* heap_allow() */
static size_t wanted;
/* no less than what jemalloc keeps of what is free: what it said last, and what was freed since */
static _Atomic size_t perhaps_kept;
/* bytes that are allocated, and the most of them since the keeper's last look, but for what threads add meanwhile */
static _Atomic size_t live, live_most;

/* This thread is in the heap, or in a fork: what it allocates comes from elsewhere. */
static __thread bool inside __attribute__((tls_model("initial-exec")));
/* What this thread allocates has to be zero. */
static __thread bool zeroing __attribute__((tls_model("initial-exec")));
/* Freed by the thread that forks; belongs to that thread. */
static struct waiting *waiting;

static void *hook_alloc(extent_hooks_t *hooks, void *at, size_t len, size_t align, bool *zero,
			bool *commit, unsigned int idx)
{
	void *addr;

	if (at)
		return NULL;
	if (atomic_fetch_add_explicit(&taken, len, memory_order_relaxed) + len > most)
		goto err;
	inside = true;
	if (arena_alloc(arena, len, align, ARENA_READ, &addr, zero))
		addr = NULL;
	inside = false;
	if (!addr)
		goto err;
	/* hook_commit() is told of each use, of the first one too: extents are joined with those that are alike */
	*commit = false;
	return addr;

err:
	atomic_fetch_sub_explicit(&taken, len, memory_order_relaxed);
	return NULL;
}

/* Refused: the extent stays jemalloc's, until its arena is destroyed. */
static bool hook_dalloc(extent_hooks_t *hooks, void *addr, size_t len, bool committed,
			unsigned int idx)
{
	return true;
}

static void hook_destroy(extent_hooks_t *hooks, void *addr, size_t len, bool committed,
			 unsigned int idx)
{
	kept_take(addr, len, false);
	inside = true;
	if (!arena_free_part(arena, addr, len))
		atomic_fetch_sub_explicit(&taken, len, memory_order_relaxed);
	inside = false;
}

static bool hook_refuse(extent_hooks_t *hooks, void *addr, size_t len, size_t offset,
			size_t part, unsigned int idx)
{
	return true;
}

static bool hook_commit(extent_hooks_t *hooks, void *addr, size_t len, size_t offset,
			size_t part, unsigned int idx)
{
	kept_take((char *)addr + offset, part, zeroing);
	return false;
}

static int purge(void *addr, size_t len)
{
	int err;

	inside = true;
	err = arena_purge(arena, addr, len);
	inside = false;
	return err;
}

static bool hook_purge(extent_hooks_t *hooks, void *addr, size_t len, size_t offset,
		       size_t part, unsigned int idx)
{
	if (purge((char *)addr + offset, part))
		return true;
	kept_gone(part);
	return false;
}

/* jemalloc gives an extent up: it takes it for zero, and commits what it uses of it again. */
static bool hook_decommit(extent_hooks_t *hooks, void *addr, size_t len, size_t offset,
			  size_t part, unsigned int idx)
{
	return !kept_add((char *)addr + offset, part) &&
	       hook_purge(hooks, addr, len, offset, part, idx);
}

static bool hook_split(extent_hooks_t *hooks, void *addr, size_t len, size_t first,
		       size_t second, bool committed, unsigned int idx)
{
	return false;
}

/* What is in one block is in one chunk. */
static bool hook_merge(extent_hooks_t *hooks, void *first, size_t first_len, void *second,
		       size_t second_len, bool committed, unsigned int idx)
{
	uintptr_t a = (uintptr_t)first, b = (uintptr_t)second;

	return arena_slot_chunk(arena_slot_at(arena, a)) !=
	       arena_slot_chunk(arena_slot_at(arena, b));
}

static extent_hooks_t hooks = {
	.alloc = hook_alloc,
	.dalloc = hook_dalloc,
	.destroy = hook_destroy,
	.commit = hook_commit,
	.decommit = hook_decommit,
	.purge_lazy = hook_refuse,
	.purge_forced = hook_purge,
	.split = hook_split,
	.merge = hook_merge,
};

/* Returns the bytes that jemalloc keeps of what is free, as it says. */
static size_t dirty_bytes(void)
{
	size_t pages = 0, len = sizeof(pages);
	uint64_t epoch = 1;

	weft_je_mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
	weft_je_mallctl(JEMALLOC_ALL("stats.arenas", "pdirty"), &pages, &len, NULL, 0);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Takes the pages of all that is free away. */
static void purge_all(void)
{
	weft_je_mallctl(JEMALLOC_ALL("arena", "purge"), NULL, NULL, NULL, 0);
	kept_trim(0);
}

/* jemalloc knows no bound: where more is kept than is allowed, all goes. Returns what is kept then. */
static size_t bound(size_t allowed)
{
	size_t kept;

	pthread_rwlock_rdlock(&use_lock);
	kept = dirty_bytes() + kept_len();
	if (kept > allowed) {
		purge_all();
		kept = dirty_bytes() + kept_len();
	}
	pthread_rwlock_unlock(&use_lock);
	/* Where almost all is kept that may be, not each free asks. */
	allowed -= allowed / 8;
	atomic_store_explicit(&perhaps_kept, kept < allowed ? kept : allowed,
			      memory_order_relaxed);
	return kept;
}

/* Returns the pages that are allocated in an arena of jemalloc, as of the last dirty_bytes(). */
static size_t active_pages(unsigned int idx)
{
	size_t pages = SIZE_MAX, len = sizeof(pages);
	char name[64];

	snprintf(name, sizeof(name), "stats.arenas.%u.pactive", idx);
	weft_je_mallctl(name, &pages, &len, NULL, 0);
	return pages;
}

/*
 * Destroys the arenas from before a fork in which nothing is allocated any more. The start lock is held; where another
 * thread is in jemalloc, the next call does it.
 */
static void generations_end(void)
{
	unsigned int now = atomic_load_explicit(&current, memory_order_relaxed);
	char name[64];

	if (pthread_rwlock_trywrlock(&use_lock))
		return;
	dirty_bytes();
	for (size_t i = 0; i < GENERATIONS; i++) {
		if (!made[i] || made[i] == now || active_pages(made[i]))
			continue;
		snprintf(name, sizeof(name), "arena.%u.destroy", made[i]);
		if (!weft_je_mallctl(name, NULL, NULL, NULL, 0))
			made[i] = 0;
	}
	pthread_rwlock_unlock(&use_lock);
}

/*
 * What was free and kept all the time since the last look: what is now, and was allocated when most was, is the same
 * memory.
 */
static size_t unused(size_t kept)
{
	size_t now = atomic_load_explicit(&live, memory_order_relaxed);
	size_t most_live = atomic_exchange_explicit(&live_most, now, memory_order_relaxed);
	size_t used = most_live > now ? most_live - now : 0;

	return kept > used ? kept - used : 0;
}

/* By itself jemalloc decays when memory is allocated and freed. */
static size_t give(size_t allowed)
{
	size_t dirty;

	pthread_rwlock_rdlock(&use_lock);
	weft_je_mallctl(JEMALLOC_ALL("arena", "decay"), NULL, NULL, NULL, 0);
	dirty = dirty_bytes();
	pthread_rwlock_unlock(&use_lock);
	kept_decay(platform_now_ns(), dirty, unused(dirty + kept_len()));
	if (!pthread_mutex_trylock(&start_lock)) {
		generations_end();
		pthread_mutex_unlock(&start_lock);
	}
	return bound(allowed);
}

/* Some bytes were freed: no more is kept than is allowed, and the keeper gives back what is not used again. */
static void retain(size_t len)
{
	size_t allowed = atomic_load_explicit(&arena->allowed, memory_order_relaxed);
	size_t kept = atomic_fetch_add_explicit(&perhaps_kept, len, memory_order_relaxed) + len;
	size_t were = atomic_fetch_sub_explicit(&live, len, memory_order_relaxed);

	if (were > atomic_load_explicit(&live_most, memory_order_relaxed))
		atomic_store_explicit(&live_most, were, memory_order_relaxed);
	if (kept > allowed)
		bound(allowed);
	arena_keep(arena);
}

/* Returns the place of the next arena of jemalloc: a free one, else that of the one that began first. */
static unsigned int generation_place(void)
{
	for (unsigned int i = 1; i <= GENERATIONS; i++)
		if (!made[(last + i) % GENERATIONS])
			return (last + i) % GENERATIONS;
	return (last + 1) % GENERATIONS;
}

/* Allocations come from another arena of jemalloc from now on. Returns 0 or an errno. */
static int generation_begin(void)
{
	size_t grow = GROW_MAX, len = sizeof(unsigned int);
	ssize_t decay_ms = arena->decay_ms;
	char name[64];
	struct jemalloc_arena with = { .hooks = &hooks };
	unsigned int place = generation_place(), idx = made[place];
	int err = 0;

	if (!idx)
		err = weft_je_mallctl("experimental.arenas_create_ext", &idx, &len, &with,
				      sizeof(with));
	if (err)
		return err;
	made[place] = idx;
	last = place;
	snprintf(name, sizeof(name), "arena.%u.retain_grow_limit", idx);
	weft_je_mallctl(name, NULL, NULL, &grow, sizeof(grow));
	snprintf(name, sizeof(name), "arena.%u.dirty_decay_ms", idx);
	weft_je_mallctl(name, NULL, NULL, &decay_ms, sizeof(decay_ms));
	atomic_store_explicit(&current, idx, memory_order_relaxed);
	return 0;
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&start_lock);
	/* What is free now is not used again: in chunks that the child has too, its pages would stay. */
	if (atomic_load_explicit(&state, memory_order_relaxed) == HEAP_STARTED)
		purge_all();
	inside = true;
	jemalloc_fork_prepare();
	kept_fork_prepare();
}

/* Frees what was freed since fork_prepare(). */
static void fork_over(void)
{
	struct waiting *block;

	inside = false;
	while ((block = waiting)) {
		waiting = block->next;
		heap_free(block);
	}
}

/* Where no other arena can be made, what is allocated goes on as it did. */
static void generation_next(void)
{
	if (atomic_load_explicit(&state, memory_order_relaxed) == HEAP_STARTED) {
		generation_begin();
		generations_end();
	}
	fork_over();
	pthread_mutex_unlock(&start_lock);
}

static void fork_parent(void)
{
	kept_fork_parent();
	jemalloc_fork_parent();
	generation_next();
}

/* The heap goes on in the child, with chunks of the child's own. */
static void fork_child(void)
{
	kept_fork_child();
	jemalloc_fork_child();
	/* The threads that held it are not here. */
	pthread_rwlock_init(&use_lock, NULL);
	generation_next();
}

/* Returns what the heap may take: half of the memory that this process may use. */
static size_t share(void)
{
	struct limit limit;

	limit_process(&limit);
	return limit.most / 2;
}

static bool is_limited(int resource)
{
	struct rlimit limit;

	return !getrlimit(resource, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

/* The start lock is held. */
static int start_locked(void)
{
	/*
	 * A program whose addresses are limited needs them itself; and what a fork makes private counts as
	 * data, of which a program with a limit would have allocated too much before.
	 */
	if (is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA))
		return HEAP_OFF;
	most = wanted < SIZE_MAX ? wanted : share();
	arena = arena_own();
	if (!arena || generation_begin())
		return HEAP_OFF;
	kept_start(purge, arena->decay_ms);
	arena_give_set(arena, give);
	heap_base = arena->base;
	/* R:heap.len  heap_base before it; pairs A:heap.len */
	atomic_store_explicit(&heap_len, arena->len, memory_order_release);
	return HEAP_STARTED;
}

static bool start(void)
{
	int now;

	pthread_mutex_lock(&start_lock);
	inside = true;
	now = atomic_load_explicit(&state, memory_order_relaxed);
	if (now == HEAP_ALLOWED) {
		now = start_locked();
		/* R:heap.state  all of the heap before it; pairs A:heap.state */
		atomic_store_explicit(&state, now, memory_order_release);
	}
	inside = false;
	pthread_mutex_unlock(&start_lock);
	return now == HEAP_STARTED;
}

/* Returns whether this thread may use the heap now. */
static inline bool ready(void)
{
	/* A:heap.state  pairs R:heap.state */
	int now = atomic_load_explicit(&state, memory_order_acquire);

	if (inside)
		return false;
	return now == HEAP_STARTED || (now == HEAP_ALLOWED && start());
}

void heap_allow(size_t limit)
{
	wanted = limit;
	/* The arena's fork handlers are installed before ours, so that ours run around them. */
	platform_forks();
	if (pthread_atfork(fork_prepare, fork_parent, fork_child))
		return;
	/* R:heap.state  the limit before it; pairs A:heap.state */
	atomic_store_explicit(&state, HEAP_ALLOWED, memory_order_release);
}

void heap_shrink(void)
{
	size_t len, keep;

	pthread_mutex_lock(&start_lock);
	len = atomic_load_explicit(&heap_len, memory_order_relaxed);
	keep = len ? arena_shrink(arena) : 0;
	if (keep < len) {
		/* before others can have them, so that nobody takes what is mapped there for the heap's */
		atomic_store_explicit(&heap_len, keep, memory_order_seq_cst);
		sys_reserve_end((void *)(heap_base + keep), len - keep);
	}
	pthread_mutex_unlock(&start_lock);
}

struct arena *heap_memory(void)
{
	/* A:heap.len  the arena; pairs R:heap.len */
	return atomic_load_explicit(&heap_len, memory_order_acquire) ? arena : NULL;
}

struct arena *heap_arena(void)
{
	return ready() ? arena : NULL;
}

static int flags_now(void)
{
	return MALLOCX_ARENA(atomic_load_explicit(&current, memory_order_relaxed)) |
	       MALLOCX_TCACHE_NONE;
}

void *heap_alloc(size_t len, size_t align, bool zero)
{
	int error = errno, flags = zero ? MALLOCX_ZERO : 0;
	void *ptr;

	if (!ready())
		return NULL;
	if (align)
		flags |= MALLOCX_LG_ALIGN(__builtin_ctzl(align));
	pthread_rwlock_rdlock(&use_lock);
	zeroing = zero;
	ptr = weft_je_mallocx(len, flags_now() | flags);
	zeroing = false;
	pthread_rwlock_unlock(&use_lock);
	if (ptr)
		atomic_fetch_add_explicit(&live, weft_je_sallocx(ptr, 0), memory_order_relaxed);
	errno = error;
	return ptr;
}

bool heap_make_even(void *ptr, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t base = ((uintptr_t)ptr + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)ptr + len) & ~(page - 1);

	if (base >= end || !arena_is_uneven(arena, ptr))
		return true;
	raw_madvise((void *)base, end - base, MADV_KEEPONFORK);
	raw_madvise((void *)base, end - base, MADV_GUARD_REMOVE);
	return !raw_mprotect((void *)base, end - base, PROT_READ | PROT_WRITE);
}

/* What is protected does not become a part of what is larger, or of what is free, in place. */
static void *resize_uneven(void *ptr, size_t before, size_t len)
{
	void *to = heap_alloc(len, 0, false);

	if (!to)
		return NULL;
	heap_make_even(ptr, before);
	memcpy(to, ptr, before < len ? before : len);
	heap_free(ptr);
	return to;
}

void *heap_resize(void *ptr, size_t len)
{
	int error = errno;
	void *resized;
	size_t before;

	if (!ready())
		return NULL;
	if (arena_is_uneven(arena, ptr))
		return resize_uneven(ptr, heap_size(ptr), len);
	pthread_rwlock_rdlock(&use_lock);
	before = weft_je_sallocx(ptr, 0);
	resized = weft_je_rallocx(ptr, len, flags_now());
	pthread_rwlock_unlock(&use_lock);
	if (resized) {
		atomic_fetch_add_explicit(&live, weft_je_sallocx(resized, 0),
					  memory_order_relaxed);
		retain(before);
	}
	errno = error;
	return resized;
}

/*
 * What is freed is about to be the next one's, whatever the program has mapped in it: a file must not get what
 * that one stores. Where that may be peers do not use the chunk any more. Returns false: it is not used again.
 */
static bool take_back(void *ptr, size_t len)
{
	struct arena_place place;
	int err = 0;

	if (arena_is_uneven(arena, ptr) && !arena_find(arena, ptr, 1, &place)) {
		inside = true;
		err = arena_purge(arena, ptr, len);
		inside = false;
	}
	return !err && heap_make_even(ptr, len);
}

void heap_free(void *ptr)
{
	int error = errno;
	struct waiting *block = ptr;
	size_t len;

	if (inside) {
		block->next = waiting;
		waiting = block;
		return;
	}
	len = weft_je_sallocx(ptr, 0);
	if (take_back(ptr, len)) {
		pthread_rwlock_rdlock(&use_lock);
		weft_je_dallocx(ptr, MALLOCX_TCACHE_NONE);
		pthread_rwlock_unlock(&use_lock);
		retain(len);
	}
	errno = error;
}

size_t heap_size(const void *ptr)
{
	return weft_je_sallocx(ptr, 0);
}
