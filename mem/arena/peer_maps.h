/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The arena of another process as this one has it mapped: its directory, and those of its chunks that
 * somebody here reads, each once, whatever number of readers (reader.h) they have. Their contents are
 * not trusted. Any thread; nothing here is on the path of a message, since a reader keeps what it
 * needs of the chunks that it holds.
 */
#ifndef WEFT_MEM_PEER_MAPS_H
#define WEFT_MEM_PEER_MAPS_H

#include "directory.h"
#include "list.h"

/* Lists of chunks, by index. */
#define ARENA_PEER_LISTS 64u

/*
 * A peer may show anything as its arena, and what it shows costs this process mappings and addresses, of which
 * it has an end. One process gets no more than an arena needs: ARENA_SLOTS of addresses, and a sixteenth of the
 * mappings that this process may have (vm.max_map_count), for ARENA_PEER_ARENAS directories. All together get a
 * quarter of the mappings, and of the addresses (RLIMIT_AS) or ARENA_PEERS_LEN.
 */
#define ARENA_PEER_ARENAS 4u
#define ARENA_PEERS_LEN	  (16ull << 40)

/* Which arena. */
struct arena_peer_id {
	/*
	 * stands for the process, and for no other one while a reader of it is open. Its number does
	 * not: that is given to another process once it has ended
	 */
	const void *process;
	/* number of the process in our /proc */
	uint32_t pid;
	/* of the directory, in the process */
	uint32_t fd;
	/* of the directory: a process has an arena for each library that made one */
	uint8_t nonce[ARENA_NONCE];
};

/*
 * What the kernel maps with the page that is loaded first (fault_around_bytes), and how many such windows of a
 * chunk are told apart: 256 MiB. Of a longer one some share a bit.
 */
#define ARENA_WINDOW  65536u
#define ARENA_WINDOWS 4096u

/* A chunk, mapped. Nothing of it changes but the first two, and the bits of its windows. */
struct arena_peer_chunk {
	/* in arena_peer.chunks */
	struct list link;
	/* readers that hold it */
	uint32_t refs;
	uint32_t idx;
	struct arena_peer *peer;
	/* of the chunk that is mapped: the entry may be another one's by now */
	uint64_t serial;
	char *addr;
	/* in the owner */
	uint64_t base;
	uint64_t len;
	/* we may store */
	bool writable;
	/* a bit for each window that arena_peer_touch() has been called for */
	_Atomic uint64_t touched[ARENA_WINDOWS / 64];
};

/* What is mapped. */
struct arena_peer_usage {
	uint64_t len;
	uint32_t chunks;
	uint32_t directories;
};

struct arena_peer {
	/* in the list of all */
	struct list link;
	/* readers that are open */
	uint32_t refs;
	struct arena_peer_id id;
	const struct arena_directory *directory;
	/* struct arena_peer_chunk, and what they are together */
	struct list chunks[ARENA_PEER_LISTS];
	struct arena_peer_usage usage;
};

/*
 * arena_peers_watch - let forks wait for the lock; called before the first get, and not within a
 * thread's round
 */
void arena_peers_watch(void);

/*
 * arena_peer_get - map the directory of a process, unless that was done
 * Returns 0 and a reference at @peer; -FI_E2BIG: the process has shown as many; or -FI_E* as arena_reader_open().
 */
int arena_peer_get(const struct arena_peer_id *id, struct arena_peer **peer);

/* arena_peer_put - drop a reference; no chunk is held for it any more */
void arena_peer_put(struct arena_peer *peer);

/* arena_peer_serial - returns what an entry of the directory says; what is read after it is not older */
static inline uint64_t arena_peer_serial(const struct arena_directory *directory, uint32_t idx)
{
	/* A:arena.serial  before the entry; pairs R:arena.serial */
	return atomic_load_explicit(&directory->entries[idx].serial, memory_order_acquire);
}

/*
 * arena_peer_map - map a chunk, unless that was done
 * @idx:    below ARENA_CHUNKS
 * @serial: of the chunk
 * Returns 0 and a reference at @chunk; -FI_EAGAIN: the entry is another chunk's by now; -FI_E2BIG: it would be
 * more than a process gets, or all of them; or -FI_E*.
 */
int arena_peer_map(struct arena_peer *peer, uint32_t idx, uint64_t serial,
		   struct arena_peer_chunk **chunk);

/*
 * arena_peer_touch - before a range is used first: have the kernel map what the owner has of it, by windows
 * @at, @len: in the chunk
 * A store maps one page, a load all of a window. What has been touched costs a look at its bit. Returns true if
 * something was not.
 */
bool arena_peer_touch(struct arena_peer_chunk *chunk, const char *at, uint64_t len);

/* arena_peer_unmap - drop a reference to a chunk: it stays mapped while others have one */
void arena_peer_unmap(struct arena_peer_chunk *chunk);

/* arena_peers_unmapped - returns how many chunks were unmapped: where -FI_E2BIG was the answer there may be room since */
uint32_t arena_peers_unmapped(void);

#endif
