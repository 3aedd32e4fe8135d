/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer's arena: its directory, mapped, and those of its chunks that were needed so far. What a chunk
 * maps stays mapped until the reader is closed. The contents of both are not trusted: a faulty owner
 * can make us read or write other bytes of its own chunks, and nothing else. Loads and stores of a
 * chunk do not fault as long as there is memory.
 *
 * One thread at a time uses a reader.
 */
#ifndef WEFT_MEM_READER_H
#define WEFT_MEM_READER_H

#include "directory.h"

/* A chunk of the peer. */
struct arena_mapping {
	/* NULL: not mapped yet */
	char *addr;
	/* in the owner */
	uint64_t base;
	uint64_t len;
	/* we may store */
	bool writable;
	/* it can't be mapped: it is not tried again */
	bool refused;
};

struct arena_reader {
	const struct arena_directory *directory;
	/* number of the owner in our /proc */
	uint32_t pid;
	/* entries of maps in use */
	uint32_t cnt;
	/* index of the chunk that was found last by an address */
	uint32_t last;
	/* ARENA_CHUNKS of them, or NULL */
	struct arena_mapping *maps;
};

/*
 * arena_reader_open - map the directory of a process
 * @pid, @fd: the process in our /proc, and its descriptor
 * @nonce:    of the directory
 * Returns 0; -FI_EPERM or -FI_EACCES without the right; -FI_ENOENT: nothing of that kind is there;
 * or another -FI_E*.
 */
int arena_reader_open(struct arena_reader *reader, uint32_t pid, uint32_t fd,
		      const uint8_t nonce[ARENA_NONCE]);

/* arena_reader_close - unmap all of it; without effect on one that is zero */
void arena_reader_close(struct arena_reader *reader);

/*
 * arena_reader_at - returns where @len bytes of a chunk are mapped here, or NULL: it has no such bytes,
 * the peer does not let us use it (any more), or it can't be mapped
 * @store: we want to store there
 * Maps the chunk when it is asked for first: the process that the reader was opened for exists.
 */
void *arena_reader_at(struct arena_reader *reader, uint32_t chunk, uint64_t offset,
		      uint64_t len, bool store);

/*
 * arena_reader_find - the same by the address in the owner
 */
void *arena_reader_find(struct arena_reader *reader, uint64_t addr, uint64_t len, bool store);

/* arena_reader_valid - returns true if the peer lets us use what arena_reader_at() has returned */
bool arena_reader_valid(const struct arena_reader *reader, uint32_t chunk);

#endif
