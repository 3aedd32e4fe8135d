/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directory of an arena: a sealed memfd that peers map for reading, and in which they find the
 * chunks. Written by the owner of the arena alone.
 *
 * An entry is that of one chunk from when it gets its serial until the serial is 0 again, and nothing
 * else of it changes meanwhile but its state. It may then become that of another chunk, with another
 * serial: who has mapped a chunk compares the serial, and takes no chunk for another one.
 */
#ifndef WEFT_MEM_DIRECTORY_H
#define WEFT_MEM_DIRECTORY_H

#include "platform.h"

#define ARENA_MAGIC  0x414d5457u /* "WTMA" */
#define ARENA_LAYOUT 2u
#define ARENA_CHUNKS 32767u
#define ARENA_NONCE  16u

/* What peers may do with a chunk. */
enum arena_kind {
	/* load: their descriptors are for reading only */
	ARENA_READ,
	/* load and store. Such a chunk holds nothing else than memory that was asked for so */
	ARENA_WRITE,
	/*
	 * load, of huge pages of the host's pool. None of them is ever missing, since a peer that touches one that
	 * is would end where the pool is empty: they go when all of the chunk is free
	 */
	ARENA_HUGE,
	ARENA_KINDS,
};

struct arena_directory_head {
	uint32_t magic;
	uint32_t layout;
	uint8_t nonce[ARENA_NONCE];
	/* entries from this one on were never used */
	_Atomic uint32_t cnt;
	/* chunks that there were, and are no more, modulo 2^32: a hint to look for mappings of them */
	_Atomic uint32_t dropped;
	uint32_t zero[8];
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
	/* 1: peers must not use it any more, but for what was lent to them before */
	_Atomic uint32_t retired;
	uint32_t zero;
	/*
	 * Number of the chunk: later ones have higher numbers, and none is used twice. 0: the entry is
	 * that of no chunk. R:arena.serial
	 */
	_Atomic uint64_t serial;
	uint64_t zero2[2];
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
_Static_assert(offsetof(struct arena_entry, serial) == 40, "layout");
_Static_assert(sizeof(struct arena_directory) == (size_t)2 << 20, "layout");

#endif
