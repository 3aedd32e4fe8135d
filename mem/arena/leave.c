/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who uses memory of the arena beyond this process gives it up here, or does not: see leave.h. Any thread, with the
 * arena's lock.
 *
 * Before a fork, what is LIVE becomes private memory of this process, and the kernel copies a page of it when
 * one of the two processes stores to it. The first one that does gets the copy: that can't be done
 * to pages that a device has. What somebody holds therefore stays shared, its pages are the parent's, and
 * the child gets a copy that is made before the fork. So does all of a chunk whose descriptor the program has
 * closed, since it can't be mapped anew.
 */
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "leave.h"
#include "ranges.h"
#include "reserve.h"
#include "retain.h"
#include "snapshot.h"

/* Held or not is found out for so many bytes at a time: wires register no less, or parts of it. */
#define PIECE RETAIN_GRAIN

_Static_assert(ARENA_SLOT % PIECE == 0, "chunks consist of pieces");

/* What the child of the fork under way gets as copies. With the lock of the only arena that forks here. */
static struct sys_snapshot snapshot;

int arena_reclaim_locked(struct arena *arena, const struct arena_place *place, size_t len)
{
	struct arena_watcher *watcher;
	int err = 0;

	list_for_each_entry(watcher, &arena->watchers, link)
		if (watcher->revoke(watcher, place, len))
			err = -FI_EBUSY;
	return err;
}

int arena_revoke_locked(struct arena *arena, uint32_t chunk, uintptr_t base, size_t len)
{
	const struct arena_chunk *c = &arena->chunks[chunk];
	struct arena_place place = { .chunk = chunk, .offset = base - c->base };
	int err = arena_reclaim_locked(arena, &place, len);

	if (!err)
		err = arena_chunk_punch(c, place.offset, len);
	if (!err)
		arena->shown[WEFT_MEM_ARENA_PUNCHED] += len;
	return err;
}

void arena_retire_locked(struct arena *arena, uint32_t chunk)
{
	arena_chunk_retire(arena, chunk);
	ranges_retire(arena, chunk);
	arena_show_chunks_locked(arena);
}

/* Returns index + 1 of the chunk that has an address, which is uneven now, or 0. */
static uint32_t uneven_locked(struct arena *arena, const void *addr)
{
	uint32_t idx = arena_slot_chunk(arena_slot_at(arena, (uintptr_t)addr));

	if (idx)
		atomic_store_explicit(&arena->chunks[idx - 1].uneven, true,
				      memory_order_relaxed);
	return idx;
}

void arena_protect(struct arena *arena, const void *addr)
{
	platform_lock(&arena->lock);
	uneven_locked(arena, addr);
	platform_unlock(&arena->lock);
}

void arena_retire(struct arena *arena, const void *addr)
{
	uint32_t idx;

	platform_lock(&arena->lock);
	idx = uneven_locked(arena, addr);
	if (idx)
		arena_retire_locked(arena, idx - 1);
	platform_unlock(&arena->lock);
}

/* Takes the contents of a part of a chunk away, or has the program get other pages. */
static int discard_locked(struct arena *arena, uint64_t word, void *addr, size_t len)
{
	struct arena_place place = { .chunk = arena_slot_chunk(word) - 1,
				     .offset = arena_slot_offset(word, (uintptr_t)addr) };
	bool held;

	if (!(word & ARENA_SLOT_OPEN)) {
		held = arena_reclaim_locked(arena, &place, len) != 0;
	} else {
		if (!arena_revoke_locked(arena, place.chunk, (uintptr_t)addr, len))
			return 0;
		held = true;
		uneven_locked(arena, addr);
		arena_retire_locked(arena, place.chunk);
	}
	return arena_chunk_discard(&arena->chunks[place.chunk], place.offset, len, held);
}

int arena_discard(struct arena *arena, void *addr, size_t len)
{
	int err = -FI_EINVAL;
	uint64_t word;

	platform_lock(&arena->lock);
	word = arena_slot_at(arena, (uintptr_t)addr);
	if (word && len <= arena_slot_room(word, (uintptr_t)addr))
		err = discard_locked(arena, word, addr, len);
	arena_show_locked(arena);
	platform_unlock(&arena->lock);
	return err;
}

/* Ending chunks */

void arena_end_locked(struct arena *arena, uint32_t chunk)
{
	const struct arena_chunk *c = &arena->chunks[chunk];
	struct arena_place place = { .chunk = chunk };

	if (!c->len || !c->retired || c->live || arena_reclaim_locked(arena, &place, c->len))
		return;
	ranges_drop_chunk(arena, chunk);
	if (arena_chunk_drop(arena, chunk))
		/* it keeps its addresses, and is tried again */
		ranges_add_chunk(arena, chunk);
	arena_show_chunks_locked(arena);
}

void arena_end_all_locked(struct arena *arena)
{
	for (uint32_t i = 0; i < arena->chunk_cnt; i++)
		arena_end_locked(arena, i);
}

bool arena_end_empty_locked(struct arena *arena)
{
	bool ended = false;

	for (uint32_t i = 0; i < arena->chunk_cnt; i++) {
		const struct arena_chunk *c = &arena->chunks[i];

		if (!c->len || c->live || c->retired)
			continue;
		arena_retire_locked(arena, i);
		arena_end_locked(arena, i);
		ended |= !c->len;
	}
	return ended;
}

/* Cutting off */

/*
 * Cuts peers off the part of a range that one slot or chunk has. Where peers may store to nothing, there is nothing to do:
 * what they read is theirs to drop. @len: in: bytes of the range; out: of the part
 */
static int cut_locked(struct arena *arena, uintptr_t at, size_t *len)
{
	struct arena_place place = { 0 };
	uint64_t word = arena_slot_at(arena, at);
	uint64_t room = word ? arena_slot_room(word, at) : ARENA_SLOT - (at & (ARENA_SLOT - 1));
	int err;

	if (*len > room)
		*len = room;
	if (!word)
		return 0;
	place.chunk = arena_slot_chunk(word) - 1;
	if (arena->chunks[place.chunk].kind != ARENA_WRITE)
		return 0;
	place.offset = arena_slot_offset(word, at);
	arena_retire_locked(arena, place.chunk);
	/* The pages of a device can't be taken away from a peer without taking them away from the device. */
	err = arena_reclaim_locked(arena, &place, *len);
	if (err)
		return err;
	arena_chunks_settle();
	err = arena_chunk_leave(arena, place.chunk, place.offset, *len);
	/* also pages without data, which a peer could still give some */
	return err ? err : sys_reserve_own((void *)at, *len);
}

int arena_cut(struct arena *arena, const void *addr, size_t len)
{
	size_t page = arena->ranges->page;
	uintptr_t at = (uintptr_t)addr, before;
	int ret = 0;

	/* the part that is in the arena, in whole pages */
	before = at < arena->base ? arena->base - at : 0;
	if (len <= before || at + before - arena->base >= arena->len)
		return 0;
	at += before;
	len -= before;
	if (len > arena->base + arena->len - at)
		len = arena->base + arena->len - at;
	before = at & (page - 1);
	at -= before;
	len = (len + before + page - 1) & ~(page - 1);
	platform_lock(&arena->lock);
	while (len && !ret) {
		size_t part = len;

		ret = cut_locked(arena, at, &part);
		at += part;
		len -= part;
	}
	platform_unlock(&arena->lock);
	return ret;
}

/* Forks */

/* Returns the bytes from @at on, whole pieces, all of which are held, or none of them. */
static size_t run_of(struct arena *arena, uint32_t idx, uint64_t at, bool *held)
{
	struct arena_place place = { .chunk = idx, .offset = at };
	size_t len = 0;

	for (; place.offset < arena->chunks[idx].len; place.offset += PIECE, len += PIECE) {
		bool busy = arena_reclaim_locked(arena, &place, PIECE) != 0;

		if (len && busy != *held)
			break;
		*held = busy;
	}
	return len;
}

/* Copies what is LIVE in a part of a chunk, and shared. Returns 0 or -FI_E*. */
static int copy_live(struct arena *arena, uint32_t idx, uint64_t at, size_t len)
{
	const struct arena_chunk *chunk = &arena->chunks[idx];
	uintptr_t base = chunk->base + at, end = base + len;
	int err = sys_snapshot_add(&snapshot, (void *)base, len, &chunk->id);
	const struct arena_range *range = arena->ranges->starts[idx][0];

	for (; range && !err; range = range->after) {
		uintptr_t from = range->base > base ? range->base : base;
		uintptr_t to = range->base + range->len < end ? range->base + range->len : end;

		if (range->state == RANGE_LIVE && from < to)
			err = sys_snapshot_copy(&snapshot, (void *)from, to - from);
	}
	return err;
}

/* Leaves a chunk, which is retired, to the child, and copies what can't be left. */
static void leave(struct arena *arena, uint32_t idx)
{
	struct arena_chunk *chunk = &arena->chunks[idx];
	struct arena_place place = { .chunk = idx };
	bool held = false;
	size_t len;
	int err;

	if (!arena_reclaim_locked(arena, &place, chunk->len) &&
	    !arena_chunk_leave(arena, idx, 0, chunk->len))
		return;
	chunk->copied = true;
	for (uint64_t at = 0; at < chunk->len; at += len) {
		len = run_of(arena, idx, at, &held);
		err = held ? -FI_EAGAIN : arena_chunk_leave(arena, idx, at, len);
		/* No copy helps against stores that a peer takes for lost: the child is to have none of it. */
		if (err && (copy_live(arena, idx, at, len) || err == -FI_EBUSY))
			chunk->copied = false;
	}
}

/*
 * The child has nothing of a chunk where nothing is LIVE, and the parent goes on with it. The pool may have no
 * pages for copies: a child has none of them.
 */
static bool is_for_the_child(const struct arena_chunk *chunk)
{
	return !chunk->left && chunk->live && chunk->kind != ARENA_HUGE;
}

void arena_fork_prepare_locked(struct arena *arena)
{
	bool stored_to = false;

	arena_end_all_locked(arena);
	for (uint32_t i = 0; i < arena->chunk_cnt; i++) {
		if (!is_for_the_child(&arena->chunks[i]))
			continue;
		arena_retire_locked(arena, i);
		stored_to |= arena->chunks[i].kind == ARENA_WRITE;
	}
	if (stored_to)
		arena_chunks_settle();
	for (uint32_t i = 0; i < arena->chunk_cnt; i++)
		if (is_for_the_child(&arena->chunks[i]))
			leave(arena, i);
	sys_snapshot_shut(&snapshot);
}

void arena_fork_parent_locked(struct arena *arena)
{
	sys_snapshot_drop(&snapshot);
}

/* What could not be left of a chunk is there as a copy (@put), or it is the parent's. */
static void child_chunk(struct arena *arena, uint32_t idx, bool put)
{
	struct arena_chunk *chunk = &arena->chunks[idx];

	if (chunk->kind == ARENA_HUGE && chunk->live) {
		arena->lost |= arena_chunk_lack(arena, idx) != 0;
		ranges_retire(arena, idx);
		return;
	}
	if (chunk->live && chunk->copied && put) {
		arena_chunk_left(chunk);
		return;
	}
	if (chunk->live) {
		/* what is not there must not be taken for zeros, or for memory of others */
		arena_chunk_lack(arena, idx);
		arena->lost = true;
		return;
	}
	ranges_drop_chunk(arena, idx);
	arena->lost |= arena_chunk_drop(arena, idx) != 0;
}

static void say_lost(void)
{
	static const char text[] =
		"weft: the child of this fork lacks memory of its parent, and an access ends it: "
		"fork() needs /proc, a descriptor, and address space (docs/mem.md)\n";

	sys_descriptor_write(STDERR_FILENO, text, sizeof(text) - 1);
}

void arena_fork_child_locked(struct arena *arena)
{
	bool put = !sys_snapshot_put(&snapshot);
	struct arena_watcher *watcher;

	arena_directory_drop(arena);
	arena->part = NULL;
	list_for_each_entry(watcher, &arena->watchers, link)
		list_remove(&watcher->link);
	for (uint32_t i = 0; i < arena->chunk_cnt; i++) {
		struct arena_chunk *chunk = &arena->chunks[i];

		atomic_store_explicit(&chunk->serial, 0, memory_order_relaxed);
		if (chunk->len && !chunk->left)
			child_chunk(arena, i, put);
	}
	if (!arena->lost)
		return;
	arena->len = 0;
	say_lost();
}
