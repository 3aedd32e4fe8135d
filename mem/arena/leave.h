/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Taking memory back from those who use it, ending chunks, and forks: what the child gets, and what the parent
 * keeps. The caller holds the arena's lock.
 */
#ifndef WEFT_MEM_LEAVE_H
#define WEFT_MEM_LEAVE_H

#include "arena.h"

/* arena_reclaim_locked - have all watchers give up a range. Returns 0, or -FI_EBUSY: one keeps it */
int arena_reclaim_locked(struct arena *arena, const struct arena_place *place, size_t len);

/*
 * arena_revoke_locked - let nobody use pages any more, and take them away
 * Returns 0, -FI_EBUSY: somebody keeps them, or -FI_E*.
 */
int arena_revoke_locked(struct arena *arena, uint32_t chunk, uintptr_t base, size_t len);

/* arena_retire_locked - as arena_retire(), of a chunk */
void arena_retire_locked(struct arena *arena, uint32_t chunk);

/*
 * arena_end_locked - end a chunk that is retired, if nothing in it is LIVE any more and nobody uses it
 * arena_end_all_locked - end those that somebody used when they were to end
 * arena_end_empty_locked - end all in which nothing is LIVE, with what they keep. Returns whether any has ended
 */
void arena_end_locked(struct arena *arena, uint32_t chunk);
void arena_end_all_locked(struct arena *arena);
bool arena_end_empty_locked(struct arena *arena);

/*
 * arena_fork_prepare_locked - make ready for fork(2), which copies what is LIVE for the child
 * arena_fork_parent_locked - it has been copied
 * arena_fork_child_locked - what is LIVE is memory of this process alone, as it is in the parent. The other
 *	chunks, their directory, and those who use them are the parent's: new ones are made here when
 *	they are needed
 */
void arena_fork_prepare_locked(struct arena *arena);
void arena_fork_parent_locked(struct arena *arena);
void arena_fork_child_locked(struct arena *arena);

#endif
