/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The keeper: a thread that gives back what was freed and not used again, also in a program that has
 * stopped allocating, which no call of the program would do. It exists only while something is kept:
 * the call that frees something starts it, and it ends when nothing has been kept for a second. It runs
 * a few times a second, and when the kernel says that memory is short.
 */
#ifndef WEFT_MEM_KEEPER_H
#define WEFT_MEM_KEEPER_H

#include "arena.h"

/*
 * keeper_init - prepare the keeper of an arena, whose thread begins when something is kept, and read FI_MEM_DECAY
 * The thread runs the code of the caller's library, which is not to be unloaded.
 */
void keeper_init(struct arena *arena);

/* keeper_fork_child - the thread is gone: the next call that frees something starts another one */
void keeper_fork_child(struct arena *arena);

#endif
