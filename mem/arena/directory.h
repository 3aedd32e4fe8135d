/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directory of an arena: a sealed memfd that peers map for reading, and in which they find the
 * chunks. Written by the owner of the arena alone. Entries are only added; an entry that is
 * published changes no more but for its state.
 */
#ifndef WEFT_MEM_DIRECTORY_H
#define WEFT_MEM_DIRECTORY_H

#include "platform.h"

#define ARENA_MAGIC  0x414d5457u /* "WTMA" */
#define ARENA_LAYOUT 1u
#define ARENA_CHUNKS 1023u
#define ARENA_NONCE  16u

/* What peers may do with a chunk. */
enum arena_kind {
	/* load: their descriptors are for reading only */
	ARENA_READ,
	/* load and store. Such a chunk holds nothing else than memory that was asked for so */
	ARENA_WRITE,
	ARENA_KINDS,
};

struct arena_directory_head {
	uint32_t magic;
	uint32_t layout;
	uint8_t nonce[ARENA_NONCE];
	/* entries that are published. R:arena.cnt */
	_Atomic uint32_t cnt;
	uint32_t zero[9];
};

struct arena_entry {
	/* address in the owner, and bytes */
	uint64_t base;
	uint64_t len;
	/* number of the file: what a peer opens has to have it */
	uint64_t inode;
	/* descriptor in the owner */
	uint32_t fd;
	/* enum arena_kind */
	uint32_t kind;
	/* 1: peers must not use it any more */
	_Atomic uint32_t retired;
	uint32_t zero;
	uint64_t zero2[3];
};

struct arena_directory {
	struct arena_directory_head head;
	struct arena_entry entries[ARENA_CHUNKS];
};

_Static_assert(sizeof(struct arena_directory_head) == CACHE_LINE, "layout");
_Static_assert(offsetof(struct arena_directory_head, nonce) == 8, "layout");
_Static_assert(offsetof(struct arena_directory_head, cnt) == 24, "layout");
_Static_assert(sizeof(struct arena_entry) == CACHE_LINE, "layout");
_Static_assert(offsetof(struct arena_entry, inode) == 16, "layout");
_Static_assert(offsetof(struct arena_entry, fd) == 24, "layout");
_Static_assert(offsetof(struct arena_entry, retired) == 32, "layout");
_Static_assert(sizeof(struct arena_directory) == 65536, "layout");

#endif
