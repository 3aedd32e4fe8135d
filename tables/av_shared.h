/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An address table in memory that processes of one host share. A writer changes it under a lock of the
 * caller's; readers take no lock. Each process has its own struct av_table, which a struct av_view keeps equal
 * to the shared one, index for index. The engine calls this and serializes within a process.
 *
 * A process may be killed at any point. An entry is valid from the store of its stamp on; after a writer died,
 * readers look again until the next writer has completed a change. The contents are checked before use, since
 * one of the processes that share them may be faulty.
 *
 * The entries are followed by an array of fi_addr_t with the index of each entry, for programs that read it
 * at the map_addr of fi_av(3).
 */
#ifndef WEFT_AV_SHARED_H
#define WEFT_AV_SHARED_H

#include "av.h"

#define AV_SHARED_MAGIC 0x766174666577ull /* "weftav" */
#define AV_SHARED_NAME	200u		  /* bytes of a name with its NUL */
#define AV_SHARED_MIN	65536u		  /* entries: memory is taken as they are used */
#define AV_SHARED_MAX	(1u << 24)

struct av_shared_entry {
	/* grows with each change; odd: the entry is in use */
	_Atomic uint64_t stamp;
	/* number of insertions; accessed by writers only */
	uint32_t refs;
	/* zero */
	uint32_t reserved;
	struct weft_addr addr;
};

_Static_assert(sizeof(struct av_shared_entry) == 64, "layout");
_Static_assert(offsetof(struct av_shared_entry, addr) == 16, "layout");

struct av_shared {
	uint64_t magic;
	uint32_t version;
	/* entries that follow */
	uint32_t cap;
	/* odd: a writer is changing the table, or died while doing so */
	_Atomic uint64_t change;
	/* no entry from this index on was ever in use */
	_Atomic uint32_t used;
	uint32_t reserved;
	char name[AV_SHARED_NAME];
	uint8_t zero[24];
	/* cap entries, then cap fi_addr_t */
	struct av_shared_entry entries[];
};

_Static_assert(sizeof(struct av_shared) == 256, "layout");
_Static_assert(offsetof(struct av_shared, change) == 16, "layout");
_Static_assert(offsetof(struct av_shared, name) == 32, "layout");

/* The view of one process. */
struct av_view {
	struct av_shared *map;
	/* the array of fi_addr_t in the map, by index */
	fi_addr_t *addrs;
	struct av_table *table;
	/* stamp of each entry as the table has it */
	uint64_t *stamps;
	/* value of change up to which the table is current */
	uint64_t seen;
	uint32_t cap;
};

/* av_shared_len - bytes of a shared table with room for @cnt addresses (at least AV_SHARED_MIN) */
size_t av_shared_len(size_t cnt);

/*
 * av_shared_format - make an empty shared table in zeroed memory that no other process sees yet
 * @len:  bytes, from av_shared_len()
 * @name: shorter than AV_SHARED_NAME
 */
void av_shared_format(void *map, size_t len, const char *name);

/*
 * av_view_init - start to follow a shared table
 * @map:   @len bytes, formatted, possibly by another process of this user
 * @table: the process's own, empty; borrowed until av_view_fini()
 *
 * Returns 0, -FI_EINVAL if the memory is no shared table of that name, or -FI_ENOMEM.
 */
int av_view_init(struct av_view *view, void *map, size_t len, const char *name,
		 struct av_table *table);
/* av_view_fini - stop following; the table stays as it is */
void av_view_fini(struct av_view *view);

/* av_view_stale - returns true if the shared table has changed since the last av_view_pull(); one load */
static inline bool av_view_stale(const struct av_view *view)
{
	/* A:av.change  entries before it; pairs R:av.change */
	return atomic_load_explicit(&view->map->change, memory_order_acquire) != view->seen;
}

/*
 * av_view_pull - make the table equal to the shared one
 * @changed: called for each changed index after the table has changed; @addr is the new address, or
 *	     NULL if it was removed
 *
 * Returns 0, or -FI_ENOMEM: some changes are missing and the view stays stale.
 */
int av_view_pull(struct av_view *view,
		 void (*changed)(void *arg, fi_addr_t index, const struct weft_addr *addr),
		 void *arg);

/*
 * av_view_insert - av_insert() into both
 * The caller holds the writers' lock and has called av_view_pull() under it. Returns as av_insert() does;
 * -FI_ENOMEM also when the shared table is full.
 */
int av_view_insert(struct av_view *view, const struct weft_addr *addr, fi_addr_t *index);

/* av_view_removable - av_removable() by the references of all processes; as av_view_insert() */
int av_view_removable(struct av_view *view, const fi_addr_t *index, size_t cnt);
/* av_view_remove - av_remove() from both; as av_view_insert() */
int av_view_remove(struct av_view *view, fi_addr_t index);

#endif
