/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mapping a peer's chunks. */
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "memfd.h"
#include "reader.h"

static uint32_t entry_cnt(const struct arena_reader *reader)
{
	/* A:arena.cnt  before the entries; pairs R:arena.cnt */
	uint32_t cnt = atomic_load_explicit(&reader->directory->head.cnt, memory_order_acquire);

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

void arena_reader_close(struct arena_reader *reader)
{
	for (uint32_t i = 0; i < reader->cnt; i++)
		sys_memfd_unmap(reader->maps[i].addr, reader->maps[i].len);
	platform_free(reader->maps);
	sys_memfd_unmap((void *)(uintptr_t)reader->directory, sizeof(*reader->directory));
	*reader = (struct arena_reader){ .cnt = 0 };
}

/* Maps what the entry says, if it is that file. */
static int mapping_open(uint32_t pid, const struct arena_entry *entry, struct arena_mapping *map)
{
	bool writable = *(const volatile uint32_t *)&entry->kind == ARENA_WRITE;
	uint32_t fd = *(const volatile uint32_t *)&entry->fd;
	uint64_t len = *(const volatile uint64_t *)&entry->len, inode;
	void *addr;
	int err, opened;

	if (!len || len > SIZE_MAX || fd > INT32_MAX)
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
		err = sys_memfd_map(opened, (size_t)len, writable ? SYS_MEMFD_WRITE : 0, &addr);
	close(opened);
	if (err)
		return err;
	map->base = *(const volatile uint64_t *)&entry->base;
	map->len = len;
	map->writable = writable;
	map->addr = addr;
	return 0;
}

/* Returns the mapping of a chunk, or NULL. */
static const struct arena_mapping *mapping_of(struct arena_reader *reader, uint32_t chunk)
{
	struct arena_mapping *map;
	int err;

	if (chunk >= ARENA_CHUNKS || (chunk >= reader->cnt && chunk >= entry_cnt(reader)))
		return NULL;
	map = &reader->maps[chunk];
	if (map->addr || map->refused)
		return map->addr ? map : NULL;
	err = mapping_open(reader->pid, &reader->directory->entries[chunk], map);
	/* descriptors and memory may be there later */
	map->refused = err && err != -FI_EMFILE && err != -FI_ENOMEM;
	if (!err && chunk >= reader->cnt)
		reader->cnt = chunk + 1;
	return err ? NULL : map;
}

bool arena_reader_valid(const struct arena_reader *reader, uint32_t chunk)
{
	/* S:arena.used  after what says that we use it; pairs S:arena.retired */
	return !atomic_load_explicit(&reader->directory->entries[chunk].retired,
				     memory_order_seq_cst);
}

void *arena_reader_at(struct arena_reader *reader, uint32_t chunk, uint64_t offset,
		      uint64_t len, bool store)
{
	const struct arena_mapping *map = mapping_of(reader, chunk);

	if (!map || offset > map->len || len > map->len - offset || (store && !map->writable) ||
	    !arena_reader_valid(reader, chunk))
		return NULL;
	return map->addr + offset;
}

/* Returns true if the peer says that it has the address in that chunk. */
static bool entry_has(const struct arena_reader *reader, uint32_t chunk, uint64_t addr,
		      uint64_t *offset)
{
	const struct arena_mapping *map = &reader->maps[chunk];
	const struct arena_entry *entry = &reader->directory->entries[chunk];
	uint64_t base = map->addr ? map->base : *(const volatile uint64_t *)&entry->base;
	uint64_t len = map->addr ? map->len : *(const volatile uint64_t *)&entry->len;

	*offset = addr - base;
	return *offset < len;
}

void *arena_reader_find(struct arena_reader *reader, uint64_t addr, uint64_t len, bool store)
{
	uint32_t cnt = entry_cnt(reader);
	uint64_t offset;

	if (reader->last < cnt && entry_has(reader, reader->last, addr, &offset))
		return arena_reader_at(reader, reader->last, offset, len, store);
	for (uint32_t i = 0; i < cnt; i++) {
		if (!entry_has(reader, i, addr, &offset))
			continue;
		reader->last = i;
		return arena_reader_at(reader, i, offset, len, store);
	}
	return NULL;
}
