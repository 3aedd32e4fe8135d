/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a running process shows of its registered memory and of its connections, for tools ('weft mem',
 * 'weft tcp'): a page of counters that it writes and others only read. It is a memfd whose size is sealed, with the name WEFT_MEM_STATS_FILE, among
 * the process's descriptors: whoever may read the process's memory opens it through /proc/PID/fd. A process
 * has one for each library with something to show (libfabric.so.1, libweft-mem.so, a loadable provider);
 * their parts add up.
 *
 * Each number is written whole, and none together with another one: a reader may see one that is newer
 * than its neighbour. A reader does not trust them.
 */
#ifndef WEFT_MEM_STATS_H
#define WEFT_MEM_STATS_H

#include <rdma/fi_types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MEM_STATS_FILE    "weft-mem"
#define WEFT_MEM_STATS_MAGIC   0x534d5457u /* "WTMS" */
#define WEFT_MEM_STATS_VERSION 1u
#define WEFT_MEM_STATS_PARTS   63u
#define WEFT_MEM_STATS_COUNTS  31u

/*
 * enum weft_mem_part_kind - what a part of the page is about
 * WEFT_MEM_PART_NONE:  nothing; its counts mean nothing
 * WEFT_MEM_PART_ARENA: the arena (weft/mem.h), enum weft_mem_arena_count
 * WEFT_MEM_PART_PINS:  what one device has registered of the arena, enum weft_mem_pins_count
 * WEFT_MEM_PART_CACHE: its registrations of other memory, enum weft_mem_cache_count
 * WEFT_MEM_PART_SHM:   what moved between processes by loads and stores, enum weft_mem_shm_count
 * WEFT_MEM_PART_TCP:   its connections over tcp, enum weft_mem_tcp_count
 */
enum weft_mem_part_kind {
	WEFT_MEM_PART_NONE,
	WEFT_MEM_PART_ARENA,
	WEFT_MEM_PART_PINS,
	WEFT_MEM_PART_CACHE,
	WEFT_MEM_PART_SHM,
	WEFT_MEM_PART_TCP,
	WEFT_MEM_PART_KINDS,
};

/*
 * enum weft_mem_arena_count - of the arena: ALLOCATIONS, FREES, PUNCHED and SPARED were counted since it
 * began, the others are as they are now
 */
enum weft_mem_arena_count {
	/* chunks now, and their addresses */
	WEFT_MEM_ARENA_CHUNKS,
	WEFT_MEM_ARENA_CHUNK_BYTES,
	/* of those: chunks that peers use no more */
	WEFT_MEM_ARENA_RETIRED,
	WEFT_MEM_ARENA_RETIRED_BYTES,
	/* allocated */
	WEFT_MEM_ARENA_LIVE_BYTES,
	/* freed, with pages that are kept and keys that are valid */
	WEFT_MEM_ARENA_QUARANTINED_BYTES,
	WEFT_MEM_ARENA_ALLOCATIONS,
	WEFT_MEM_ARENA_FREES,
	/* bytes whose pages were taken away, in all */
	WEFT_MEM_ARENA_PUNCHED,
	/* ranges that were to lose their pages, and were in use by a peer or a device */
	WEFT_MEM_ARENA_SPARED,
	/* addresses that nothing but its chunks is mapped at: from BASE on, so many */
	WEFT_MEM_ARENA_BASE,
	WEFT_MEM_ARENA_ADDRESSES,
	WEFT_MEM_ARENA_COUNTS,
};

/* enum weft_mem_pins_count - of a device's registrations of the arena */
enum weft_mem_pins_count {
	/* bytes of a grain */
	WEFT_MEM_PINS_GRAIN_BYTES,
	/* grains that are registered now */
	WEFT_MEM_PINS_GRAINS,
	/* ranges of other memory that are in use now */
	WEFT_MEM_PINS_OTHERS,
	/* grains that were registered */
	WEFT_MEM_PINS_PINNED,
	/* grains that were given up for want of room, and because the arena took pages away */
	WEFT_MEM_PINS_EVICTED,
	WEFT_MEM_PINS_REVOKED,
	WEFT_MEM_PINS_COUNTS,
};

/* enum weft_mem_cache_count - of a device's registrations of other memory than the arena's */
enum weft_mem_cache_count {
	WEFT_MEM_CACHE_HITS,
	WEFT_MEM_CACHE_MISSES,
	/* registrations for one operation, by what prevented another: nothing tells of changes */
	WEFT_MEM_CACHE_ONCE_REFUSED,
	/* something changed just then, or the process forked */
	WEFT_MEM_CACHE_ONCE_CHANGING,
	/* its pages were removed before (MADV_DONTNEED) */
	WEFT_MEM_CACHE_ONCE_REMOVED,
	/* another thread registered memory there just then */
	WEFT_MEM_CACHE_ONCE_BUSY,
	/* what is in use has reached the limits */
	WEFT_MEM_CACHE_ONCE_FULL,
	/* not private anonymous memory, or several mappings */
	WEFT_MEM_CACHE_ONCE_OTHER,
	/* given up for want of room */
	WEFT_MEM_CACHE_EVICTED,
	/* hits on what had changed, which were prevented */
	WEFT_MEM_CACHE_CAUGHT,
	/* given up since memory was unmapped, was moved, lost its pages, changed unseen, or was forked */
	WEFT_MEM_CACHE_UNMAPPED,
	WEFT_MEM_CACHE_MOVED,
	WEFT_MEM_CACHE_REMOVED,
	WEFT_MEM_CACHE_MISSED,
	WEFT_MEM_CACHE_FORKED,
	/* bytes and registrations that are held now */
	WEFT_MEM_CACHE_BYTES,
	WEFT_MEM_CACHE_ENTRIES,
	WEFT_MEM_CACHE_COUNTS,
};

/*
 * enum weft_mem_shm_count - of messages in memory that the peer has mapped. Endpoints add to these now and
 * then, while they are polled
 */
enum weft_mem_shm_count {
	/* regions with a key, which peers may access: now, of domains with endpoints */
	WEFT_MEM_SHM_KEYS,
	/* messages that were lent to peers, which copy them once, and their bytes */
	WEFT_MEM_SHM_LENT,
	WEFT_MEM_SHM_LENT_BYTES,
	/* large ones that were copied once, out of a peer's memory, and their bytes */
	WEFT_MEM_SHM_READ,
	WEFT_MEM_SHM_READ_BYTES,
	/* regions with and without a key, as KEYS: 0 where the writer is older than this count */
	WEFT_MEM_SHM_REGIONS,
	WEFT_MEM_SHM_COUNTS,
};

/*
 * enum weft_mem_tcp_count - of connections over tcp: CONNS, BROKEN, RETAINED_BYTES, PROVED and ENCRYPTED are as
 * they are now, the others were counted since the domain began. Bytes, acknowledgements and what is retained are added now and
 * then, while endpoints are polled
 */
enum weft_mem_tcp_count {
	/* connections that are up, those among them whose sockets are just made again */
	WEFT_MEM_TCP_CONNS,
	/* sockets that broke, and that are not made again yet */
	WEFT_MEM_TCP_BROKEN,
	/* bytes that were sent, and that are kept until the peer has acknowledged them */
	WEFT_MEM_TCP_RETAINED_BYTES,
	/* connections that came up, and those of them that ended by an error */
	WEFT_MEM_TCP_MADE,
	WEFT_MEM_TCP_LOST,
	/* sockets that broke, and those of them that were made again */
	WEFT_MEM_TCP_BREAKS,
	WEFT_MEM_TCP_RESUMES,
	/* acknowledgements */
	WEFT_MEM_TCP_ACKS_SENT,
	WEFT_MEM_TCP_ACKS_RECEIVED,
	/* bytes of the lanes, headers included; what was sent again counts once */
	WEFT_MEM_TCP_SENT_BYTES,
	WEFT_MEM_TCP_RECEIVED_BYTES,
	/* those of CONNS at which both sides have proved that they know the secret, and of these those over TLS */
	WEFT_MEM_TCP_PROVED,
	WEFT_MEM_TCP_ENCRYPTED,
	/* sockets that were refused, by either side: without TLS, since the secrets differ */
	WEFT_MEM_TCP_REFUSED_SECRET,
	/* since one side has a secret, or TLS, and the other has not */
	WEFT_MEM_TCP_REFUSED_NONE,
	/* since the handshake of TLS failed, as of sides whose secrets differ, or later bytes were not the peer's */
	WEFT_MEM_TCP_REFUSED_TLS,
	WEFT_MEM_TCP_COUNTS,
};

/*
 * struct weft_mem_part - a part of the page
 * @kind:   enum weft_mem_part_kind; read before the counts (acquire)
 * @zero:   0
 * @counts: by the enum of the kind; those that the writer does not know are 0
 */
struct weft_mem_part {
	uint32_t kind;
	uint32_t zero;
	uint64_t counts[WEFT_MEM_STATS_COUNTS];
};

/*
 * struct weft_mem_stats - the page
 * @magic:   WEFT_MEM_STATS_MAGIC, written last
 * @version: WEFT_MEM_STATS_VERSION; another one has another layout
 * @pid:     the process, as it is numbered where it runs: another process that has inherited the
 *	     descriptor is not described
 * @hidden:  how many more there were than there is room for in @parts, since the page was made
 * @zero:    0
 * @parts:   in no order; a part that has gone leaves its place to another one
 */
struct weft_mem_stats {
	uint32_t magic;
	uint32_t version;
	uint32_t pid;
	uint32_t hidden;
	uint64_t zero[30];
	struct weft_mem_part parts[WEFT_MEM_STATS_PARTS];
};

/* Processes of different builds share the layout. */
#ifdef __cplusplus
#define WEFT_MEM_STATS_ASSERT(cond) static_assert(cond, #cond)
#else
#define WEFT_MEM_STATS_ASSERT(cond) _Static_assert(cond, #cond)
#endif

WEFT_MEM_STATS_ASSERT(sizeof(struct weft_mem_part) == 256);
WEFT_MEM_STATS_ASSERT(__builtin_offsetof(struct weft_mem_part, counts) == 8);
WEFT_MEM_STATS_ASSERT(sizeof(struct weft_mem_stats) == 16384);
WEFT_MEM_STATS_ASSERT(__builtin_offsetof(struct weft_mem_stats, version) == 4);
WEFT_MEM_STATS_ASSERT(__builtin_offsetof(struct weft_mem_stats, pid) == 8);
WEFT_MEM_STATS_ASSERT(__builtin_offsetof(struct weft_mem_stats, hidden) == 12);
WEFT_MEM_STATS_ASSERT(__builtin_offsetof(struct weft_mem_stats, parts) == 256);
WEFT_MEM_STATS_ASSERT((int)WEFT_MEM_ARENA_COUNTS <= (int)WEFT_MEM_STATS_COUNTS);
WEFT_MEM_STATS_ASSERT((int)WEFT_MEM_PINS_COUNTS <= (int)WEFT_MEM_STATS_COUNTS);
WEFT_MEM_STATS_ASSERT((int)WEFT_MEM_CACHE_COUNTS <= (int)WEFT_MEM_STATS_COUNTS);
WEFT_MEM_STATS_ASSERT((int)WEFT_MEM_SHM_COUNTS <= (int)WEFT_MEM_STATS_COUNTS);
WEFT_MEM_STATS_ASSERT((int)WEFT_MEM_TCP_COUNTS <= (int)WEFT_MEM_STATS_COUNTS);

#undef WEFT_MEM_STATS_ASSERT

#ifdef __cplusplus
}
#endif

#endif
