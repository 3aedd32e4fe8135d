/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading a peer's arena: which of its chunks are in use here, and where they are mapped. A chunk that is
 * used stays mapped until the reader is closed, or tidied when the chunk is no more. The mappings themselves
 * are the process's, one for all readers of that arena (peer_maps.h), so that a reader is small and any number of
 * connections to a process cost what one does. What is mapped is not
 * trusted: a faulty owner can make us read or write other bytes of its own chunks, and nothing else. Loads
 * and stores of a chunk do not fault as long as there is memory. A call maps a few chunks at most, and looks at
 * a directory once at most; an owner of which ARENA_READER_FAILURES chunks could not be mapped is given up.
 *
 * One thread at a time uses a reader; those of different readers need nothing of each other.
 */
#ifndef WEFT_MEM_READER_H
#define WEFT_MEM_READER_H

#include "peer_maps.h"

#define ARENA_READER_FAILURES 1024u

/* A chunk that is mapped, until nobody uses it. */
struct arena_held;

/* A chunk of the peer. Its first four are those of the chunk as all have it mapped (peer_maps.h). */
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
	/* NULL as addr is */
	struct arena_held *held;
	/* we may store */
	bool writable;
	/* it can't be mapped: it is not tried again, */
	bool refused;
	/* or only once something was unmapped: arena_peers_unmapped() when it would have been too much */
	bool beyond;
	uint32_t unmapped;
};

/* A look at all entries, some in each call. */
struct arena_pass {
	/* the next one; 0: it begins */
	uint32_t idx;
	/* serial up to which none is missing, of those that were looked at */
	uint64_t until;
};

struct arena_reader {
	/* with a reference; NULL: closed */
	struct arena_peer *peer;
	/* the peer's */
	const struct arena_directory *directory;
	/* entries of maps in use */
	uint32_t cnt;
	/* index of the chunk that was found last by an address */
	uint32_t last;
	/* number of the mapping that was made last */
	uint64_t number;
	/* head.dropped when the mappings were compared with it last */
	uint32_t dropped;
	/* chunks that this call may still try to map */
	uint32_t trials;
	/* chunks that could not be mapped, and not for want of what others may give back at any time */
	uint32_t failures;
	/* there were more of them than we map, or than may fail */
	bool beyond;
	struct arena_pass pass;
	/* what the caller may still use, until arena_reader_tidy() */
	struct arena_held *stale;
	/* by index of the chunk */
	struct arena_mapping *maps;
	/* entries of maps that there are; 0 if it is closed */
	uint32_t room;
};

/*
 * arena_reader_open - begin to read the arena of a process; its directory is mapped, unless another reader
 * has it
 * Returns 0; -FI_EPERM or -FI_EACCES without the right; -FI_ENOENT: nothing of that kind is there;
 * or another -FI_E*.
 */
int arena_reader_open(struct arena_reader *reader, const struct arena_peer_id *id);

/*
 * arena_reader_close - let go of all of it, which unmaps what no other reader has; without effect on one that
 * is zero
 */
void arena_reader_close(struct arena_reader *reader);

/*
 * arena_reader_find - returns where @len bytes of the owner are mapped here, or NULL: no chunk has them all,
 * the peer does not let us use it (any more), or it can't be mapped
 * @addr: in the owner
 * @store: we want to store there
 * Maps the chunk when it is asked for first: the process that the reader was opened for exists. What is
 * mapped stays so until arena_reader_tidy().
 */
void *arena_reader_find(struct arena_reader *reader, uint64_t addr, uint64_t len, bool store);

/*
 * arena_reader_lent - the same by its place, of what was lent to us, also if the chunk was retired since; it maps nothing
 * @serial: the lower half of the chunk's
 */
const void *arena_reader_lent(const struct arena_reader *reader, uint32_t chunk,
			      uint32_t serial, uint64_t offset, uint64_t len);

/*
 * arena_reader_map_until - map some of the chunks up to a serial that the peer lets us use
 * Returns the serial up to which none is missing, or 0: call it again to go on.
 */
uint64_t arena_reader_map_until(struct arena_reader *reader, uint64_t serial);

/*
 * arena_reader_valid - returns true if the peer lets us use what arena_reader_find() has returned
 * @number: of the mapping then: maps[chunk].number
 */
bool arena_reader_valid(const struct arena_reader *reader, uint32_t chunk, uint64_t number);

/*
 * arena_reader_touch - called before a longer copy: maps what is used first by this process, as far as the owner has
 * it, with few faults
 * @at, @len: as arena_reader_find() has returned it, and is still mapped
 * Returns true if something of it is used first.
 */
bool arena_reader_touch(const struct arena_reader *reader, uint32_t chunk, const char *at,
			uint64_t len);

/*
 * arena_reader_tidy - let go of chunks that are no more; cheap where there are none
 * The caller uses nothing that is mapped, but for what it asks for again or arena_reader_valid() allows.
 */
void arena_reader_tidy(struct arena_reader *reader);

#endif
