/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * storm - change memory while a device that really pins transfers it through the cache of registrations
 *
 * usage: storm [ROUNDS [SEED [KIND]]]
 *
 * Half of ROUNDS run with SEED, the others with one that is new each time; both are printed. The kinds of
 * change take turns by chance, by the C library and by the system call instruction, for two owners
 * at once, unless one KIND is named. Ends with 77 where there is no io_uring.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include "storm.h"
#include "uffd_watch.h"

#define OWNERS 2u

struct run {
	struct storm_owner owner;
	uint64_t rounds;
	/* STORM_KINDS: any */
	enum storm_kind kind;
};

static enum storm_kind any_kind(struct storm_owner *owner)
{
	return storm_random(owner, owner->heap_at ? STORM_KINDS : STORM_BRK);
}

static void *run_main(void *arg)
{
	struct run *run = arg;

	for (uint64_t i = 0; i < run->rounds; i++) {
		enum storm_kind kind = run->kind == STORM_KINDS ? any_kind(&run->owner)
								: run->kind;

		run->owner.spins = !storm_random(&run->owner, 128);
		storm_round(&run->owner, kind, storm_random(&run->owner, 2), NULL, NULL);
	}
	return NULL;
}

static void print_stats(struct mem_cache *cache)
{
	struct mem_cache_stats s;

	mem_cache_stats(cache, &s);
	printf("hits %lu, misses %lu, caught %lu, unmapped %lu, moved %lu, removed %lu, missed %lu; once:"
	       " refused %lu, changing %lu, removed %lu, busy %lu, full %lu, other %lu\n",
	       (unsigned long)s.hits, (unsigned long)s.misses, (unsigned long)s.caught,
	       (unsigned long)s.unmapped, (unsigned long)s.moved, (unsigned long)s.removed,
	       (unsigned long)s.missed, (unsigned long)s.once[MEM_ONCE_REFUSED],
	       (unsigned long)s.once[MEM_ONCE_CHANGING],
	       (unsigned long)s.once[MEM_ONCE_REMOVED], (unsigned long)s.once[MEM_ONCE_BUSY],
	       (unsigned long)s.once[MEM_ONCE_FULL], (unsigned long)s.once[MEM_ONCE_OTHER]);
}

/* Returns the number of stale rounds. */
static uint64_t storm(struct uring_device *device, uint64_t rounds, uint32_t seed,
		      enum storm_kind kind)
{
	struct run runs[OWNERS];
	pthread_t threads[OWNERS];
	struct mem_cache *cache;
	uint32_t owners = kind == STORM_BRK ? 1 : OWNERS;
	uint64_t begin = platform_now_ns(), stale = 0;

	printf("seed %u, %lu rounds\n", seed, (unsigned long)rounds);
	fflush(stdout);
	if (mem_cache_create(&uring_device_ops, device, NULL, &cache))
		abort();
	if (mem_cache_refused(cache))
		printf("all is registered per operation: %s\n",
		       strerror(-mem_cache_refused(cache)));
	for (uint32_t i = 0; i < owners; i++) {
		runs[i].rounds = rounds / owners;
		runs[i].kind = kind;
		storm_owner_init(&runs[i].owner, i + 1, cache, device, i == 0);
		runs[i].owner.seed += seed;
	}
	/* From here on nothing is mapped but by the owners, each at its addresses. */
	for (uint32_t i = 0; i < owners; i++) {
		if (pthread_create(&threads[i], NULL, run_main, &runs[i]))
			abort();
	}
	for (uint32_t i = 0; i < owners; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t k = 0; k < STORM_KINDS; k++) {
		uint64_t done = 0, wrong = 0;

		for (uint32_t i = 0; i < owners; i++) {
			done += runs[i].owner.rounds[k];
			wrong += runs[i].owner.stale[k];
		}
		printf("%-13s %9lu rounds, %lu stale\n", storm_names[k], (unsigned long)done,
		       (unsigned long)wrong);
		stale += wrong;
	}
	print_stats(cache);
	printf("%.1f us a round\n", (double)(platform_now_ns() - begin) / 1e3 / (double)rounds);
	for (uint32_t i = owners; i--;)
		storm_owner_fini(&runs[i].owner);
	mem_cache_destroy(cache);
	return stale;
}

static enum storm_kind kind_of(const char *name)
{
	for (uint32_t k = 0; k < STORM_KINDS; k++) {
		if (!strcmp(name, storm_names[k]))
			return (enum storm_kind)k;
	}
	fprintf(stderr, "storm: no such kind of change: %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 200000;
	uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 1;
	enum storm_kind kind = argc > 3 ? kind_of(argv[3]) : STORM_KINDS;
	static struct uring_device device;
	struct mem_watch *watch;
	uint64_t stale;
	int err = uring_device_open(&device);

	if (err) {
		printf("SKIP: no io_uring: %s\n", strerror(-err));
		return 77;
	}
	if (mem_uffd_watch_open(&watch)) {
		printf("controls are left out: no userfaultfd\n");
	} else {
		watch->ops->close(watch);
		storm_controls(&device);
	}
	stale = storm_forks(&device, false) + storm_forks(&device, true);
	stale += storm(&device, rounds / 2, seed, kind);
	stale += storm(&device, rounds - rounds / 2, (uint32_t)platform_now_ns(), kind);
	uring_device_close(&device);
	return stale != 0;
}
