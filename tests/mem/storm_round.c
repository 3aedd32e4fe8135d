/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A round of the storm, and the two threads of an owner. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "raw_call.h"
#include "storm.h"
#include "seeded.h"

/* To ThreadSanitizer a mapping is a store by the function that makes it, and the other thread looks at it. */
#ifdef __SANITIZE_THREAD__
#define ALL_RAW true
#else
#define ALL_RAW false
#endif

static void need(bool done, const char *what)
{
	if (!done) {
		perror(what);
		abort();
	}
}

uint32_t storm_random(struct storm_owner *o, uint32_t n)
{
	return (uint32_t)seeded_below(&o->seed, n);
}

static void stamp(struct storm_owner *o)
{
	o->generation++;
	for (uint64_t i = 0; i < STORM_PAGES; i++)
		*(volatile struct storm_stamp *)(o->at + i * o->page) =
			(struct storm_stamp){ o->id, o->generation, i };
}

static struct mem_cache_ref get(struct storm_owner *o, uint8_t *at)
{
	struct mem_cache_ref ref;
	int ret = mem_cache_get(o->cache, at, o->len, FI_SEND, &ref);

	if (ret) {
		fprintf(stderr, "get: %s\n", strerror(-ret));
		abort();
	}
	return ref;
}

void storm_touch(struct storm_owner *o)
{
	struct mem_cache_ref ref = get(o, o->at);

	mem_cache_put(o->cache, &ref);
}

/* Has the device write the pages at @at to the pipe. Returns true if any is another page than is there now. */
static bool stale(struct storm_owner *o, uint8_t *at)
{
	struct mem_cache_ref ref = get(o, at);
	int ret = uring_device_write(o->device, ref.handle, at, o->len, o->pipe[1], -1);
	bool wrong = false;

	mem_cache_put(o->cache, &ref);
	if (!ret && read(o->pipe[0], o->written, o->len) != (ssize_t)o->len)
		ret = -FI_EIO;
	if (ret) {
		fprintf(stderr, "write: %s\n", strerror(-ret));
		abort();
	}
	for (uint64_t i = 0; i < STORM_PAGES; i++) {
		const struct storm_stamp expected = { o->id, o->generation, i };

		wrong |= memcmp(o->written + i * o->page, &expected, sizeof(expected)) != 0;
	}
	return wrong;
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

void storm_round(struct storm_owner *o, enum storm_kind kind, bool raw, void (*told)(void *arg),
		 void *arg)
{
	bool wrong;

	o->kind = kind;
	o->raw = raw || ALL_RAW;
	o->at = storm_place(o);
	stamp(o);
	wrong = stale(o, o->at);
	stamp(o);
	wrong |= stale(o, o->at);
	sem_post(&o->go);
	storm_await(o);
	if (kind == STORM_MREMAP) /* what was there is elsewhere, with the stamps that it had */
		wrong |= stale(o, o->moved_to);
	stamp(o);
	wrong |= stale(o, o->at);
	wait_for(&o->gone);
	wrong |= stale(o, o->at);
	if (told)
		told(arg);
	storm_restore(o);
	o->rounds[kind]++;
	o->stale[kind] += wrong;
}

static void *changer_main(void *arg)
{
	struct storm_owner *o = arg;

	for (;;) {
		wait_for(&o->go);
		if (o->ending)
			return NULL;
		storm_change(o);
		sem_post(&o->gone);
	}
}

static void *map(size_t len, int protection, int flags, int fd)
{
	void *p = mmap(NULL, len, protection, flags, fd, 0);

	need(p != MAP_FAILED, "mmap");
	return p;
}

/* Its addresses lie in reserved ones, so that nothing else is mapped where memory was unmapped. */
static void map_places(struct storm_owner *o)
{
	uint8_t *p = map(5 * o->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	o->private_at = p + o->len;
	o->moved_to = p + 3 * o->len;
	need(!mprotect(o->private_at, o->len, PROT_READ | PROT_WRITE), "mprotect");
	o->shared_at = map(o->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	o->written = map(o->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	need(!pipe2(o->pipe, O_CLOEXEC), "pipe");
	need(fcntl(o->pipe[1], F_SETPIPE_SZ, (int)o->len) >= (int)o->len, "F_SETPIPE_SZ");
}

/* From here on malloc() has to do with the heap that it has by then. */
static void take_heap(struct storm_owner *o)
{
	uintptr_t end;

	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	free(malloc((1 << 20) - 4096));
	end = (uintptr_t)raw_call(SYS_brk, 0, 0, 0, 0, 0, 0);
	o->heap_at = (uint8_t *)((end + o->page - 1) & ~(o->page - 1));
	need(!brk(o->heap_at + o->len), "brk");
}

void storm_owner_init(struct storm_owner *o, uint64_t id, struct mem_cache *cache,
		      struct uring_device *device, bool heap)
{
	*o = (struct storm_owner){ .id = id, .cache = cache, .device = device, .seed = id };
	o->page = (size_t)sysconf(_SC_PAGESIZE);
	o->len = STORM_PAGES * o->page;
	map_places(o);
	if (heap)
		take_heap(o);
	need(!sem_init(&o->go, 0, 0) && !sem_init(&o->gone, 0, 0), "sem_init");
	need(!pthread_create(&o->changer, NULL, changer_main, o), "pthread_create");
}

void storm_owner_fini(struct storm_owner *o)
{
	o->ending = true;
	sem_post(&o->go);
	pthread_join(o->changer, NULL);
	munmap(o->private_at - o->len, 5 * o->len);
	munmap(o->shared_at, o->len);
	munmap(o->written, o->len);
	if (o->heap_at)
		need(!brk(o->heap_at), "brk");
	close(o->pipe[0]);
	close(o->pipe[1]);
	sem_destroy(&o->go);
	sem_destroy(&o->gone);
}
