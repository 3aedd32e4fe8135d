/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the private jemalloc finds in the place of some functions of the C library. Called by
 * jemalloc alone, on any thread.
 */
#define _GNU_SOURCE
#include "jemalloc.h"
#include "raw.h"

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

int weft_je_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
char *weft_je_getenv(const char *name);
ssize_t weft_je_readlink(const char *path, char *buf, size_t len);
void *weft_je_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int weft_je_munmap(void *addr, size_t len);
int weft_je_mprotect(void *addr, size_t len, int prot);
int weft_je_madvise(void *addr, size_t len, int advice);

/*
 * Without oversize_threshold:0 jemalloc purges large extents as soon as they are free. With retain it asks for
 * more than it needs, and more each time; else it goes on to new pages where it could take those
 * that were freed last. Only the arenas of heap.c are used: narenas.
 */
extern const char *weft_je_malloc_conf;
const char *weft_je_malloc_conf =
	"oversize_threshold:0,retain:true,muzzy_decay_ms:0,narenas:1,tcache:false,"
	"background_thread:false";

static void (*fork_prepare)(void);
static void (*fork_parent)(void);
static void (*fork_child)(void);

int weft_je_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	fork_prepare = prepare;
	fork_parent = parent;
	fork_child = child;
	return 0;
}

void jemalloc_fork_prepare(void)
{
	if (fork_prepare)
		fork_prepare();
}

void jemalloc_fork_parent(void)
{
	if (fork_parent)
		fork_parent();
}

void jemalloc_fork_child(void)
{
	if (fork_child)
		fork_child();
}

/* MALLOC_CONF and /etc/malloc.conf are for the program's own jemalloc. */
char *weft_je_getenv(const char *name)
{
	return NULL;
}

ssize_t weft_je_readlink(const char *path, char *buf, size_t len)
{
	errno = ENOENT;
	return -1;
}

void *weft_je_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return raw_mmap(addr, len, prot, flags, fd, offset);
}

int weft_je_munmap(void *addr, size_t len)
{
	return raw_munmap(addr, len);
}

int weft_je_mprotect(void *addr, size_t len, int prot)
{
	return raw_mprotect(addr, len, prot);
}

int weft_je_madvise(void *addr, size_t len, int advice)
{
	return raw_madvise(addr, len, advice);
}
