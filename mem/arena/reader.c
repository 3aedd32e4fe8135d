/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mapping a peer's chunks. */
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "memfd.h"
#include "reader.h"

struct arena_stale {
	struct arena_stale *next;
	char *addr;
	uint64_t len;
};

static uint32_t entry_cnt(const struct arena_reader *reader)
{
	uint32_t cnt = atomic_load_explicit(&reader->directory->head.cnt, memory_order_relaxed);

	return cnt <= ARENA_CHUNKS ? cnt : ARENA_CHUNKS;
}

static int directory_map(int fd, const uint8_t nonce[ARENA_NONCE], void **addr)
{
	struct arena_directory_head head;
	int err = sys_memfd_map(fd, sizeof(struct arena_directory), 0, addr);

	if (err)
		return err;
	memcpy(&head, *addr, sizeof(head));
	if (head.magic == ARENA_MAGIC && head.layout == ARENA_LAYOUT &&
	    !memcmp(head.nonce, nonce, ARENA_NONCE))
		return 0;
	sys_memfd_unmap(*addr, sizeof(struct arena_directory));
	return -FI_ENOENT;
}

int arena_reader_open(struct arena_reader *reader, uint32_t pid, uint32_t fd,
		      const uint8_t nonce[ARENA_NONCE])
{
	struct arena_mapping *maps;
	void *addr;
	int err, opened;

	if (!pid || pid > INT32_MAX || fd > INT32_MAX)
		return -FI_EINVAL;
	opened = sys_memfd_open((pid_t)pid, (int)fd, false);
	if (opened < 0)
		return opened;
	err = directory_map(opened, nonce, &addr);
	close(opened);
	if (err)
		return err;
	maps = platform_alloc(ARENA_CHUNKS * sizeof(*maps));
	if (!maps) {
		sys_memfd_unmap(addr, sizeof(struct arena_directory));
		return -FI_ENOMEM;
	}
	*reader = (struct arena_reader){ .directory = addr, .pid = pid, .maps = maps };
	return 0;
}

/* Unmaps what was kept for those who may have used it. */
static void stale_end(struct arena_reader *reader)
{
	struct arena_stale *stale;

	while ((stale = reader->stale)) {
		reader->stale = stale->next;
		sys_memfd_unmap(stale->addr, stale->len);
		platform_free(stale);
	}
}

void arena_reader_close(struct arena_reader *reader)
{
	for (uint32_t i = 0; i < reader->cnt; i++)
		sys_memfd_unmap(reader->maps[i].addr, reader->maps[i].len);
	stale_end(reader);
	platform_free(reader->maps);
	sys_memfd_unmap((void *)(uintptr_t)reader->directory, sizeof(*reader->directory));
	*reader = (struct arena_reader){ .cnt = 0 };
}

static uint64_t entry_serial(const struct arena_reader *reader, uint32_t chunk)
{
	/* A:arena.serial  before the entry; pairs R:arena.serial */
	return atomic_load_explicit(&reader->directory->entries[chunk].serial,
				    memory_order_acquire);
}

/* The chunk of a mapping is no more: it is kept until nobody uses it. Returns false: it stays mapped for now, since there is no memory. */
static bool mapping_end(struct arena_reader *reader, struct arena_mapping *map)
{
	struct arena_stale *stale;

	if (map->addr) {
		stale = platform_alloc(sizeof(*stale));
		if (!stale)
			return false;
		*stale = (struct arena_stale){ reader->stale, map->addr, map->len };
		reader->stale = stale;
	}
	*map = (struct arena_mapping){ .addr = NULL };
	return true;
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
	close(opened);
	return err;
}

/* Maps what the entry says. Returns 0; -FI_EAGAIN: it is another chunk's by now; or -FI_E*. */
static int mapping_open(struct arena_reader *reader, uint32_t chunk, uint64_t serial,
			struct arena_mapping *map)
{
	const struct arena_entry *entry = &reader->directory->entries[chunk];
	struct arena_mapping made = { .serial = serial };
	void *addr = NULL;
	int err, opened;

	made.base = *(const volatile uint64_t *)&entry->base;
	made.len = *(const volatile uint64_t *)&entry->len;
	made.writable = *(const volatile uint32_t *)&entry->kind == ARENA_WRITE;
	if (!made.len || made.len > SIZE_MAX)
		return -FI_EINVAL;
	opened = entry_open(reader->pid, entry, made.writable);
	err = opened < 0 ? opened
			 : sys_memfd_map(opened, (size_t)made.len,
					 made.writable ? SYS_MEMFD_WRITE : 0, &addr);
	if (opened >= 0)
		close(opened);
	/* F:arena.serial  the entry before its serial is read again; pairs F:arena.serial */
	platform_fence_acquire();
	if (entry_serial(reader, chunk) != serial) {
		sys_memfd_unmap(addr, made.len);
		return -FI_EAGAIN;
	}
	if (err)
		return err;
	made.addr = addr;
	made.number = ++reader->number;
	*map = made;
	return 0;
}

/* Returns the mapping of a chunk that is there now, or NULL. */
static const struct arena_mapping *mapping_of(struct arena_reader *reader, uint32_t chunk)
{
	struct arena_mapping *map;
	uint64_t serial;
	int err;

	if (chunk >= ARENA_CHUNKS || (chunk >= reader->cnt && chunk >= entry_cnt(reader)))
		return NULL;
	map = &reader->maps[chunk];
	serial = entry_serial(reader, chunk);
	if (likely(map->serial == serial && (map->addr || map->refused)))
		return map->addr ? map : NULL;
	if ((map->serial != serial && !mapping_end(reader, map)) || !serial)
		return NULL;
	err = mapping_open(reader, chunk, serial, map);
	if (!err) {
		if (chunk >= reader->cnt)
			reader->cnt = chunk + 1;
		return map;
	}
	/* descriptors and memory may be there later */
	map->serial = serial;
	map->refused = err != -FI_EMFILE && err != -FI_ENOMEM && err != -FI_EAGAIN;
	return NULL;
}

static bool is_retired(const struct arena_reader *reader, uint32_t chunk)
{
	/* S:arena.used  after what says that we use it; pairs S:arena.retired */
	return atomic_load_explicit(&reader->directory->entries[chunk].retired,
				    memory_order_seq_cst);
}

bool arena_reader_valid(const struct arena_reader *reader, uint32_t chunk, uint64_t number)
{
	const struct arena_mapping *map = &reader->maps[chunk];

	return !is_retired(reader, chunk) && map->number == number &&
	       entry_serial(reader, chunk) == map->serial;
}

/* Returns where a range of a mapping is, or NULL. */
static void *mapping_at(const struct arena_reader *reader, const struct arena_mapping *map,
			uint64_t offset, uint64_t len, bool store)
{
	if (!map || offset > map->len || len > map->len - offset || (store && !map->writable) ||
	    !arena_reader_valid(reader, (uint32_t)(map - reader->maps), map->number))
		return NULL;
	return map->addr + offset;
}

void *arena_reader_at(struct arena_reader *reader, uint32_t chunk, uint64_t offset,
		      uint64_t len, bool store)
{
	return mapping_at(reader, mapping_of(reader, chunk), offset, len, store);
}

/* Returns true if the peer says that it has the address in that chunk. */
static bool entry_has(const struct arena_reader *reader, uint32_t chunk, uint64_t addr)
{
	const struct arena_mapping *map = &reader->maps[chunk];
	const struct arena_entry *entry = &reader->directory->entries[chunk];
	uint64_t serial = entry_serial(reader, chunk);

	if (map->addr && map->serial == serial)
		return addr - map->base < map->len;
	return serial && addr - *(const volatile uint64_t *)&entry->base <
				 *(const volatile uint64_t *)&entry->len;
}

/* Returns the mapping of a chunk if it has the address, else NULL. */
static const struct arena_mapping *mapping_has(struct arena_reader *reader, uint32_t chunk,
					       uint64_t addr)
{
	const struct arena_mapping *map;

	if (!entry_has(reader, chunk, addr))
		return NULL;
	map = mapping_of(reader, chunk);
	return map && addr - map->base < map->len ? map : NULL;
}

void *arena_reader_find(struct arena_reader *reader, uint64_t addr, uint64_t len, bool store)
{
	uint32_t cnt = entry_cnt(reader);
	const struct arena_mapping *map = NULL;

	if (reader->last < cnt)
		map = mapping_has(reader, reader->last, addr);
	for (uint32_t i = 0; !map && i < cnt; i++) {
		map = mapping_has(reader, i, addr);
		if (map)
			reader->last = i;
	}
	return map ? mapping_at(reader, map, addr - map->base, len, store) : NULL;
}

const void *arena_reader_lent(const struct arena_reader *reader, uint32_t chunk,
			      uint32_t serial, uint64_t offset, uint64_t len)
{
	const struct arena_mapping *map;

	if (chunk >= reader->cnt)
		return NULL;
	map = &reader->maps[chunk];
	return map->addr && (uint32_t)map->serial == serial && offset <= map->len &&
			       len <= map->len - offset
		       ? map->addr + offset
		       : NULL;
}

uint64_t arena_reader_map_until(struct arena_reader *reader, uint64_t serial)
{
	uint32_t cnt = entry_cnt(reader);
	uint64_t until = serial;

	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t found = entry_serial(reader, i);

		if (!found || found > until || mapping_of(reader, i))
			continue;
		/* a chunk that has been retired keeps no other one waiting: nothing of it will be lent */
		if (entry_serial(reader, i) == found && !is_retired(reader, i))
			until = found - 1;
	}
	return until;
}

void arena_reader_tidy(struct arena_reader *reader)
{
	/* A:arena.dropped  before the serials; pairs R:arena.dropped */
	uint32_t dropped = atomic_load_explicit(&reader->directory->head.dropped,
						memory_order_acquire);

	if (unlikely(dropped != reader->dropped)) {
		reader->dropped = dropped;
		for (uint32_t i = 0; i < reader->cnt; i++)
			if (reader->maps[i].serial != entry_serial(reader, i))
				mapping_end(reader, &reader->maps[i]);
	}
	stale_end(reader);
}
