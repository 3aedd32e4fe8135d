/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The kinds of change, by the C library and by instructions of the system call. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include "raw_call.h"
#include "storm.h"

#define ANY (PROT_READ | PROT_WRITE)

/* Linux 5.4 */
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

const char *const storm_names[STORM_KINDS] = {
	"munmap", "mremap", "MADV_DONTNEED", "MADV_FREE", "MADV_REMOVE", "MAP_FIXED", "brk",
};

static void need(bool done, const char *what)
{
	if (!done) {
		perror(what);
		abort();
	}
}

uint8_t *storm_place(const struct storm_owner *o)
{
	switch (o->kind) {
	case STORM_REMOVE:
		return o->shared_at;
	case STORM_BRK:
		return o->heap_at;
	default:
		return o->private_at;
	}
}

static void advise(struct storm_owner *o, int advice)
{
	long ret = o->raw ? raw_call(SYS_madvise, (long)o->at, (long)o->len, advice, 0, 0, 0)
			  : madvise(o->at, o->len, advice);

	need(!ret, "madvise");
}

static void map_over(struct storm_owner *o)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	void *p = o->at;

	if (o->raw)
		p = (void *)raw_call(SYS_mmap, (long)o->at, (long)o->len, ANY, flags, -1, 0);
	else
		p = mmap(o->at, o->len, ANY, flags, -1, 0);
	need(p == o->at, "mmap");
}

static void move(struct storm_owner *o)
{
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	void *p;

	if (o->raw)
		p = (void *)raw_call(SYS_mremap, (long)o->at, (long)o->len, (long)o->len, flags,
				     (long)o->moved_to, 0);
	else
		p = mremap(o->at, o->len, o->len, flags, o->moved_to);
	need(p == o->moved_to, "mremap");
}

void storm_change(struct storm_owner *o)
{
	switch (o->kind) {
	case STORM_MUNMAP:
		need(!(o->raw ? raw_call(SYS_munmap, (long)o->at, (long)o->len, 0, 0, 0, 0)
			      : munmap(o->at, o->len)),
		     "munmap");
		break;
	case STORM_MREMAP:
		move(o);
		break;
	case STORM_DONTNEED:
		advise(o, MADV_DONTNEED);
		break;
	case STORM_FREE:
		advise(o, MADV_FREE);
		madvise(o->at, o->len, MADV_PAGEOUT); /* takes what it can */
		break;
	case STORM_REMOVE:
		advise(o, MADV_REMOVE);
		break;
	case STORM_MAP_FIXED:
		map_over(o);
		break;
	case STORM_BRK:
		need(o->raw ? raw_call(SYS_brk, (long)o->at, 0, 0, 0, 0, 0) == (long)o->at
			    : !brk(o->at),
		     "brk");
		break;
	default:
		abort();
	}
}

/* The addresses are taken the moment that they are free: what the program itself needs may be faster. */
static void await_free(struct storm_owner *o)
{
	uint64_t end = platform_now_ns() + 10 * UINT64_C(1000000000);
	void *p;

	do {
		if (platform_now_ns() > end) {
			printf("skip: another mapping of this program has taken the place\n");
			exit(77);
		}
		p = mmap(o->at, o->len, ANY, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			 -1, 0);
		if (p == MAP_FAILED)
			platform_yield();
	} while (p != o->at);
}

/* Zeros are there once the new mapping is: its pages are no others'. */
static void await_zeros(struct storm_owner *o)
{
	const volatile uint64_t *last = (const void *)(o->at + o->len - o->page);

	while (*last)
		platform_yield();
}

/*
 * Pages that go one by one are the program's again when the call has returned, and not once the last one is
 * zero. The kernel takes them out of the page table in order, and has the other cores forget their translations
 * behind that. A core that has none of the last page finds zeros there before, and stores to the others by those
 * that it has: into pages that have gone. The stores are lost to the program itself, with no registration
 * about (40 of 5,884 such rounds of two threads and nothing else). Until the call has returned the pages are
 * registered all the time, so that a registration of that time is found stale later.
 */
static void await_return(struct storm_owner *o)
{
	while (sem_trywait(&o->gone)) {
		storm_touch(o);
		if (!o->spins)
			platform_yield();
	}
	sem_post(&o->gone);
}

static void await_heap(struct storm_owner *o)
{
	uint8_t *end = o->at + o->len;

	while (raw_call(SYS_brk, 0, 0, 0, 0, 0, 0) != (long)o->at)
		platform_yield();
	need(raw_call(SYS_brk, (long)end, 0, 0, 0, 0, 0) == (long)end, "brk");
}

void storm_await(struct storm_owner *o)
{
	switch (o->kind) {
	case STORM_MUNMAP:
	case STORM_MREMAP:
		await_free(o);
		break;
	case STORM_DONTNEED:
	case STORM_FREE:
	case STORM_REMOVE:
		await_return(o);
		break;
	case STORM_MAP_FIXED:
		await_zeros(o);
		break;
	case STORM_BRK:
		await_heap(o);
		break;
	default:
		abort();
	}
}

static void remap(void *at, size_t len, int protection)
{
	need(mmap(at, len, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
	     "mmap");
}

void storm_restore(struct storm_owner *o)
{
	if (o->kind == STORM_MREMAP)
		remap(o->moved_to, o->len, PROT_NONE);
	/* Its addresses are registered per operation until they are unmapped. */
	if (o->kind == STORM_DONTNEED || o->kind == STORM_FREE)
		remap(o->private_at, o->len, ANY);
}
