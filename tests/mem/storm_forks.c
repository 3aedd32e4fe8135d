/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Forks between registering and transferring. While the child lives it shares the parent's pages, and a store of the
 * parent copies one: the device must reach the parent's. Once by fork(), and once by the system call, of
 * which the cache knows nothing.
 */
#include <rdma/fabric.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "raw_call.h"
#include "storm.h"

#define ROUNDS 100u

static void need(bool done, const char *what)
{
	if (!done) {
		fprintf(stderr, "fork: %s\n", what);
		exit(1);
	}
}

/* The child makes no call of the C library: its locks may be held by threads that are gone. */
static pid_t child_until_killed(bool raw)
{
	pid_t pid = raw ? (pid_t)raw_call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0) : fork();

	while (!pid)
		raw_call(SYS_ppoll, 0, 0, 0, 0, 8, 0);
	need(pid > 0, "no child");
	return pid;
}

static uint64_t transferred(struct uring_device *device, struct mem_cache *cache, uint64_t *at,
			    const int *ends)
{
	struct mem_cache_ref ref;
	uint64_t got = 0;

	need(!mem_cache_get(cache, at, sizeof(*at), FI_SEND, &ref), "no registration");
	need(!uring_device_write(device, ref.handle, at, sizeof(*at), ends[1], -1), "no write");
	mem_cache_put(cache, &ref);
	need(read(ends[0], &got, sizeof(got)) == sizeof(got), "no bytes");
	return got;
}

uint64_t storm_forks(struct uring_device *device, bool raw)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), stale = 0;
	uint64_t *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	struct mem_cache *cache;
	int ends[2];

	need(at != MAP_FAILED && !pipe(ends), "no memory");
	need(!mem_cache_create(&uring_device_ops, device, NULL, &cache), "no cache");
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		pid_t pid;

		*at = 2 * i;
		stale += transferred(device, cache, at, ends) != 2 * i;
		pid = child_until_killed(raw);
		*at = 2 * i + 1;
		stale += transferred(device, cache, at, ends) != 2 * i + 1;
		kill(pid, SIGKILL);
		need(waitpid(pid, NULL, 0) == pid, "no child to wait for");
		stale += transferred(device, cache, at, ends) != 2 * i + 1;
	}
	printf("%-13s %9u rounds, %lu stale\n", raw ? "fork, raw" : "fork", ROUNDS,
	       (unsigned long)stale);
	mem_cache_destroy(cache);
	munmap(at, page);
	close(ends[0]);
	close(ends[1]);
	return stale;
}
