/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer's arena: its directory, mapped, and those of its chunks that were needed so far. What a chunk
 * maps stays mapped until the reader is closed, or tidied when the chunk is no more. The contents of both are not
 * trusted: a faulty owner can make us read or write other bytes of its own chunks, and nothing else. Loads
 * and stores of a chunk do not fault as long as there is memory.
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
	/* arena_entry.serial of the chunk that addr, or refused, is about */
	uint64_t serial;
	/* no two mappings of a reader have the same one */
	uint64_t number;
	/* we may store */
	bool writable;
	/* it can't be mapped: it is not tried again */
	bool refused;
};

/* What was mapped of a chunk that is no more. */
struct arena_stale;

struct arena_reader {
	const struct arena_directory *directory;
	/* number of the owner in our /proc */
	uint32_t pid;
	/* entries of maps in use */
	uint32_t cnt;
	/* index of the chunk that was found last by an address */
	uint32_t last;
	/* number of the mapping that was made last */
	uint64_t number;
	/* head.dropped when the mappings were compared with it last */
	uint32_t dropped;
	/* what the caller may still use, until arena_reader_tidy() */
	struct arena_stale *stale;
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
 * Maps the chunk when it is asked for first: the process that the reader was opened for exists. What is
 * mapped stays so until arena_reader_tidy().
 */
void *arena_reader_at(struct arena_reader *reader, uint32_t chunk, uint64_t offset,
		      uint64_t len, bool store);

/*
 * arena_reader_find - the same by the address in the owner
 */
void *arena_reader_find(struct arena_reader *reader, uint64_t addr, uint64_t len, bool store);

/*
 * arena_reader_lent - the same of what was lent to us, also if the chunk was retired since; it maps nothing
 * @serial: the lower half of the chunk's
 */
const void *arena_reader_lent(const struct arena_reader *reader, uint32_t chunk,
			      uint32_t serial, uint64_t offset, uint64_t len);

/*
 * arena_reader_map_until - map all chunks up to a serial that the peer lets us use
 * Returns the serial up to which none is missing.
 */
uint64_t arena_reader_map_until(struct arena_reader *reader, uint64_t serial);

/*
 * arena_reader_valid - returns true if the peer lets us use what arena_reader_at() has returned
 * @number: of the mapping then: maps[chunk].number
 */
bool arena_reader_valid(const struct arena_reader *reader, uint32_t chunk, uint64_t number);

/*
 * arena_reader_tidy - unmap chunks that are no more; cheap where there are none
 * The caller uses nothing that is mapped, but for what it asks for again or arena_reader_valid() allows.
 */
void arena_reader_tidy(struct arena_reader *reader);

#endif
