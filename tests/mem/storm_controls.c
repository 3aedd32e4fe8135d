/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The controls of the storm: each kind of change makes something stale where one rule is left out.
 *
 *	munmap, mremap, MAP_FIXED, brk	a cache whose hits are not checked
 *	MADV_DONTNEED			a cache that registers removed pages anew as soon as it is told
 *	MADV_REMOVE			a registration of shared memory that is kept
 *	MADV_FREE			a page that is not pinned: one that is pinned is not taken away
 */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "late_watch.h"
#include "storm.h"

#define ROUNDS	  200
#define RACES_MAX 20000

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

static void need(bool done, const char *what)
{
	if (!done) {
		fprintf(stderr, "control: %s\n", what);
		exit(1);
	}
}

static void tell(void *arg)
{
	late_watch_tell(arg);
}

static void unchecked(struct uring_device *device, enum storm_kind kind)
{
	struct mem_watch *watch;
	struct storm_owner owner;
	struct mem_cache *cache;

	need(!late_watch_open(LATE_TOLD, &watch), "no watch");
	need(!mem_cache_create_watched(&uring_device_ops, device, NULL, watch, &cache),
	     "no cache");
	storm_owner_init(&owner, 1, cache, device, kind == STORM_BRK);
	for (int i = 0; i < ROUNDS; i++)
		storm_round(&owner, kind, i & 1, tell, watch);
	printf("control %-13s %5u of %5u stale: hits are not checked\n", storm_names[kind],
	       (unsigned)owner.stale[kind], ROUNDS);
	need(owner.stale[kind], "nothing was stale");
	storm_owner_fini(&owner);
	mem_cache_destroy(cache);
}

/* The threads share a core, and the one that removes pages has it only now and then: the event is early. */
static void share_a_core(struct storm_owner *owner)
{
	struct sched_param none = { 0 };
	cpu_set_t cpus;
	int cpu = sched_getcpu();

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	pthread_setaffinity_np(owner->changer, sizeof(cpus), &cpus);
	pthread_setschedparam(owner->changer, SCHED_IDLE, &none);
}

static void forgetful(struct uring_device *device)
{
	struct mem_watch *watch;
	struct storm_owner owner;
	struct mem_cache *cache;
	cpu_set_t before;
	unsigned rounds = 0;

	need(!late_watch_open(LATE_GONE, &watch), "no watch");
	need(!mem_cache_create_watched(&uring_device_ops, device, NULL, watch, &cache),
	     "no cache");
	storm_owner_init(&owner, 1, cache, device, false);
	pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
	share_a_core(&owner);
	owner.spins = true;
	while (owner.stale[STORM_DONTNEED] < 3 && rounds < RACES_MAX)
		storm_round(&owner, STORM_DONTNEED, rounds++ & 1, NULL, NULL);
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	printf("control %-13s %5u of %5u stale: registered anew before the pages went\n",
	       storm_names[STORM_DONTNEED], (unsigned)owner.stale[STORM_DONTNEED], rounds);
	need(owner.stale[STORM_DONTNEED], "nothing was stale");
	storm_owner_fini(&owner);
	mem_cache_destroy(cache);
}

static void kept(struct uring_device *device)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), handle, got = 0;
	uint64_t *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			    0);
	int file = memfd_create("storm", MFD_CLOEXEC);
	unsigned stale = 0;

	need(at != MAP_FAILED && file >= 0, "no memory");
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		*at = i;
		need(!uring_device_ops.pin(device, at, page, FI_SEND, &handle), "no pin");
		need(!madvise(at, page, MADV_REMOVE), "no MADV_REMOVE");
		*at = ~i;
		need(!uring_device_write(device, handle, at, sizeof(got), file, 0), "no write");
		need(pread(file, &got, sizeof(got), 0) == sizeof(got), "no bytes");
		stale += got != ~i;
		uring_device_ops.unpin(device, handle);
	}
	printf("control %-13s %5u of %5u stale: shared memory stays registered\n",
	       storm_names[STORM_REMOVE], stale, ROUNDS);
	need(stale, "nothing was stale");
	close(file);
	munmap(at, page);
}

/* Returns how many of ROUNDS pages were taken away by MADV_FREE, and are zero. */
static unsigned freed_pages(struct uring_device *device, bool pinned)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned gone = 0;
	uint64_t handle;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t *at = mmap(NULL, page, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		need(at != MAP_FAILED, "no memory");
		*at = 1;
		if (pinned)
			need(!uring_device_ops.pin(device, at, page, FI_SEND, &handle),
			     "no pin");
		need(!madvise(at, page, MADV_FREE), "no MADV_FREE");
		madvise(at, page, MADV_PAGEOUT);
		gone += *(volatile uint64_t *)at == 0;
		if (pinned)
			uring_device_ops.unpin(device, handle);
		munmap(at, page);
	}
	return gone;
}

static void not_pinned(struct uring_device *device)
{
	unsigned without = freed_pages(device, false), with = freed_pages(device, true);

	printf("control %-13s %5u of %5u stale: pages are not pinned (pinned: %u)\n",
	       storm_names[STORM_FREE], without, ROUNDS, with);
	/* The kernel need not take them; where it can't be asked to (before 5.4) none goes. */
	if (!without)
		printf("control %-13s left out: the kernel took no page\n",
		       storm_names[STORM_FREE]);
	need(!with, "a pinned page was taken away");
}

void storm_controls(struct uring_device *device)
{
	unchecked(device, STORM_MUNMAP);
	unchecked(device, STORM_MREMAP);
	unchecked(device, STORM_MAP_FIXED);
	unchecked(device, STORM_BRK);
	forgetful(device);
	kept(device);
	not_pinned(device);
}
