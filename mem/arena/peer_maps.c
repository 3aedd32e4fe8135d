/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mapping a peer's directory and chunks, once in the process. */
#include <rdma/fi_errno.h>
#include "chunk.h"
#include "descriptor.h"
#include "maps.h"
#include "memfd.h"
#include "peer_maps.h"
#include "reserve.h"

#define PEER_LEN (ARENA_SLOTS * ARENA_SLOT)

/*
 * Protects the list of peers, their references and their chunks'. Rank 3, and nothing is called under it
 * but the system: not the allocator, whose own locks a fork takes as well.
 */
static struct platform_lock lock = { PTHREAD_MUTEX_INITIALIZER };
static struct list peers = { &peers, &peers };
/* mappings that this process may have; 0: not known yet */
static uint64_t maps_max;
/* Chunks that were unmapped. */
static _Atomic uint32_t unmapped;

static void fork_prepare(void)
{
	platform_lock(&lock);
}

static void fork_over(void)
{
	platform_unlock(&lock);
}

/* A child has what is mapped, and its copies of the readers hold it. */
static struct platform_fork fork_watcher = {
	.prepare = fork_prepare,
	.parent = fork_over,
	.child = fork_over,
};

void arena_peers_watch(void)
{
	platform_fork_watch(&fork_watcher);
}

/* Returns what is mapped of a process; NULL: of all. */
static struct arena_peer_usage usage_locked(const void *process)
{
	struct arena_peer_usage usage = { 0 };
	const struct arena_peer *peer;

	list_for_each_entry(peer, &peers, link) {
		if (process && peer->id.process != process)
			continue;
		usage.len += peer->usage.len;
		usage.chunks += peer->usage.chunks;
		usage.directories++;
	}
	return usage;
}

/* Returns 0 if a chunk of so many bytes may be mapped too, or -FI_E2BIG. */
static int room_locked(const struct arena_peer *peer, uint64_t len)
{
	struct arena_peer_usage one = usage_locked(peer->id.process), all = usage_locked(NULL);
	uint64_t most = sys_reserve_limit() / 4;

	most = most < ARENA_PEERS_LEN ? most : ARENA_PEERS_LEN;
	maps_max = maps_max ? maps_max : sys_maps_max();
	if (len > PEER_LEN || one.len > PEER_LEN - len || one.chunks >= maps_max / 16)
		return -FI_E2BIG;
	return len > most || all.len > most - len || all.chunks >= maps_max / 4 ? -FI_E2BIG : 0;
}

static int directory_map(const struct arena_peer_id *id, void **addr)
{
	struct arena_directory_head head;
	int err, fd = sys_memfd_open((pid_t)id->pid, (int)id->fd, false);

	if (fd < 0)
		return fd;
	err = sys_memfd_map(fd, sizeof(struct arena_directory), 0, addr);
	sys_descriptor_close(fd);
	if (err)
		return err;
	memcpy(&head, *addr, sizeof(head));
	if (head.magic == ARENA_MAGIC && head.layout == ARENA_LAYOUT &&
	    !memcmp(head.nonce, id->nonce, ARENA_NONCE))
		return 0;
	sys_memfd_unmap(*addr, sizeof(struct arena_directory));
	return -FI_ENOENT;
}

/* Returns the peer with a reference more, or NULL. */
static struct arena_peer *find_locked(const struct arena_peer_id *id)
{
	struct arena_peer *peer;

	list_for_each_entry(peer, &peers, link) {
		if (peer->id.process == id->process &&
		    !memcmp(peer->id.nonce, id->nonce, ARENA_NONCE)) {
			peer->refs++;
			return peer;
		}
	}
	return NULL;
}

/* Takes @made, where the peer is to be. Returns 0 or -FI_E*: it is not taken. */
static int add_locked(struct arena_peer *made, const struct arena_peer_id *id)
{
	void *addr;
	int err = usage_locked(id->process).directories < ARENA_PEER_ARENAS
			  ? directory_map(id, &addr)
			  : -FI_E2BIG;

	if (err)
		return err;
	made->refs = 1;
	made->id = *id;
	made->directory = addr;
	for (uint32_t i = 0; i < ARENA_PEER_LISTS; i++)
		list_init(&made->chunks[i]);
	list_add_tail(&peers, &made->link);
	return 0;
}

int arena_peer_get(const struct arena_peer_id *id, struct arena_peer **peer)
{
	struct arena_peer *made, *found;
	int err = 0;

	if (!id->pid || id->pid > INT32_MAX || id->fd > INT32_MAX)
		return -FI_EINVAL;
	made = platform_alloc(sizeof(*made));
	if (!made)
		return -FI_ENOMEM;
	platform_lock(&lock);
	found = find_locked(id);
	if (!found)
		err = add_locked(made, id);
	platform_unlock(&lock);
	if (found || err)
		platform_free(made);
	if (!err)
		*peer = found ? found : made;
	return err;
}

void arena_peer_put(struct arena_peer *peer)
{
	platform_lock(&lock);
	if (--peer->refs) {
		platform_unlock(&lock);
		return;
	}
	list_remove(&peer->link);
	platform_unlock(&lock);
	sys_memfd_unmap((void *)(uintptr_t)peer->directory, sizeof(*peer->directory));
	platform_free(peer);
}

/* Opens what the entry says. Returns the descriptor if it is that file, or -FI_E*. */
static int entry_open(uint32_t pid, const struct arena_entry *entry, bool writable)
{
	uint32_t fd = *(const volatile uint32_t *)&entry->fd;
	uint64_t inode;
	int err, opened;

	if (fd > INT32_MAX)
		return -FI_EINVAL;
	opened = sys_memfd_open((pid_t)pid, (int)fd, writable);
	if (opened < 0)
		return opened;
	err = sys_memfd_inode(opened, &inode);
	if (!err && inode != *(const volatile uint64_t *)&entry->inode)
		err = -FI_ENOENT;
	if (!err && writable)
		err = sys_memfd_is_writable((pid_t)pid, (int)fd, inode);
	if (!err)
		return opened;
	sys_descriptor_close(opened);
	return err;
}

/* Maps what the entry says. @chunk: has its index and serial. Returns 0; -FI_EAGAIN; or -FI_E*. */
static int entry_map(const struct arena_peer *peer, struct arena_peer_chunk *chunk)
{
	const struct arena_entry *entry = &peer->directory->entries[chunk->idx];
	void *addr = NULL;
	int err, opened;

	chunk->base = *(const volatile uint64_t *)&entry->base;
	chunk->len = *(const volatile uint64_t *)&entry->len;
	chunk->writable = *(const volatile uint32_t *)&entry->kind == ARENA_WRITE;
	if (!chunk->len || chunk->len > SIZE_MAX)
		return -FI_EINVAL;
	err = room_locked(peer, chunk->len);
	if (err)
		return err;
	opened = entry_open(peer->id.pid, entry, chunk->writable);
	err = opened < 0 ? opened
			 : sys_memfd_map(opened, (size_t)chunk->len,
					 chunk->writable ? SYS_MEMFD_WRITE : 0, &addr);
	if (opened >= 0)
		sys_descriptor_close(opened);
	/* F:arena.serial  the entry before its serial is read again; pairs F:arena.serial */
	platform_fence_acquire();
	if (arena_peer_serial(peer->directory, chunk->idx) != chunk->serial) {
		sys_memfd_unmap(addr, chunk->len);
		return -FI_EAGAIN;
	}
	chunk->addr = addr;
	return err;
}

/* Returns the chunk with a reference more, or NULL. */
static struct arena_peer_chunk *chunk_find_locked(struct list *chunks, uint32_t idx,
						  uint64_t serial)
{
	struct arena_peer_chunk *chunk;

	list_for_each_entry(chunk, chunks, link) {
		if (chunk->idx == idx && chunk->serial == serial) {
			chunk->refs++;
			return chunk;
		}
	}
	return NULL;
}

int arena_peer_map(struct arena_peer *peer, uint32_t idx, uint64_t serial,
		   struct arena_peer_chunk **chunk)
{
	struct list *chunks = &peer->chunks[idx % ARENA_PEER_LISTS];
	struct arena_peer_chunk *made = platform_alloc(sizeof(*made)), *found;
	int err = 0;

	if (!made)
		return -FI_ENOMEM;
	*made = (struct arena_peer_chunk){
		.refs = 1, .idx = idx, .peer = peer, .serial = serial
	};
	platform_lock(&lock);
	found = chunk_find_locked(chunks, idx, serial);
	if (!found)
		err = entry_map(peer, made);
	if (!found && !err) {
		list_add_tail(chunks, &made->link);
		peer->usage.chunks++;
		peer->usage.len += made->len;
	}
	platform_unlock(&lock);
	if (found || err)
		platform_free(made);
	if (!err)
		*chunk = found ? found : made;
	return err;
}

bool arena_peer_touch(struct arena_peer_chunk *chunk, const char *at, uint64_t len)
{
	const char *end = at + len, *next;
	bool first = false;

	for (; at < end; at = next) {
		uintptr_t window = (uintptr_t)at / ARENA_WINDOW % ARENA_WINDOWS;
		_Atomic uint64_t *word = &chunk->touched[window / 64];
		uint64_t bit = 1ull << window % 64;

		next = at + (ARENA_WINDOW - (uintptr_t)at % ARENA_WINDOW);
		if (likely(atomic_load_explicit(word, memory_order_relaxed) & bit))
			continue;
		atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
		(void)*(const volatile char *)at;
		first = true;
	}
	return first;
}

uint32_t arena_peers_unmapped(void)
{
	return atomic_load_explicit(&unmapped, memory_order_relaxed);
}

void arena_peer_unmap(struct arena_peer_chunk *chunk)
{
	platform_lock(&lock);
	if (--chunk->refs) {
		platform_unlock(&lock);
		return;
	}
	list_remove(&chunk->link);
	chunk->peer->usage.chunks--;
	chunk->peer->usage.len -= chunk->len;
	atomic_fetch_add_explicit(&unmapped, 1, memory_order_relaxed);
	platform_unlock(&lock);
	sys_memfd_unmap(chunk->addr, chunk->len);
	platform_free(chunk);
}
