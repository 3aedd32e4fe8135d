/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of the storm share. An owner is a pair of threads with addresses of its own: one changes what is
 * mapped there, by one of the kinds of change, while the other one puts new memory there, writes to it,
 * and has the device transfer it. Each page carries its owner, a generation and its number.
 */
#ifndef WEFT_TESTS_STORM_H
#define WEFT_TESTS_STORM_H

#include <pthread.h>
#include <semaphore.h>
#include "cache.h"
#include "uring_device.h"

#define STORM_PAGES 4u

enum storm_kind {
	STORM_MUNMAP,
	STORM_MREMAP,
	STORM_DONTNEED,
	STORM_FREE,
	STORM_REMOVE,
	STORM_MAP_FIXED,
	STORM_BRK, /* of one owner: a process has one heap */
	STORM_KINDS,
};

extern const char *const storm_names[STORM_KINDS];

/* The beginning of each page. */
struct storm_stamp {
	uint64_t owner;
	uint64_t generation;
	uint64_t page;
};

struct storm_owner {
	uint64_t id;
	struct mem_cache *cache;
	struct uring_device *device;
	size_t page;
	size_t len;
	/* addresses that nothing else is mapped at: private, where it is moved to, and shared memory */
	uint8_t *private_at;
	uint8_t *moved_to;
	uint8_t *shared_at;
	/* the end of the heap, where the owner has it; else NULL */
	uint8_t *heap_at;
	/* what the device writes to, and what it has written */
	int pipe[2];
	uint8_t *written;
	uint64_t generation;
	uint64_t seed;

	/* the round that is under way, and where */
	enum storm_kind kind;
	bool raw;
	/* it registers pages that are being removed as often as it can, and leaves its core to nobody */
	bool spins;
	uint8_t *at;
	pthread_t changer;
	sem_t go;
	sem_t gone;
	bool ending;

	uint64_t rounds[STORM_KINDS];
	uint64_t stale[STORM_KINDS];
};

/* storm_owner_init - with its thread that changes memory. @heap: it has the heap too */
void storm_owner_init(struct storm_owner *owner, uint64_t id, struct mem_cache *cache,
		      struct uring_device *device, bool heap);
void storm_owner_fini(struct storm_owner *owner);

/* storm_round - one round of a kind. @told: called before it ends; may be NULL */
void storm_round(struct storm_owner *owner, enum storm_kind kind, bool raw,
		 void (*told)(void *arg), void *arg);

/* storm_random - returns a number below @n */
uint32_t storm_random(struct storm_owner *owner, uint32_t n);

/*
 * What each kind does. place: where its round is. change: on the other thread. await: returns once new
 * memory is there, which the change may still be about. restore: as it was before the round.
 */
uint8_t *storm_place(const struct storm_owner *owner);
void storm_change(struct storm_owner *owner);
void storm_await(struct storm_owner *owner);
void storm_restore(struct storm_owner *owner);

/* storm_touch - register what is there for a moment, whatever it holds */
void storm_touch(struct storm_owner *owner);

/* storm_controls - what goes stale without the cache's rules, one kind after the other. Exits if one does not */
void storm_controls(struct uring_device *device);

/* storm_forks - fork between registering and transferring. Returns how many transfers were stale */
uint64_t storm_forks(struct uring_device *device, bool raw);

#endif
