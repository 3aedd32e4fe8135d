/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Doors: those of our endpoints, which stand in memory together, and those of others, of which a process
 * maps no more than the one that it was looking for. Called by the wire when an endpoint or a connection
 * is made; ours are shared by the domains of the process, and have a lock.
 */
#include <limits.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "list.h"
#include "memfd.h"
#include "region.h"

/* Memory with doors of ours. */
struct pshm_door_file {
	struct pshm_doors *head;
	size_t len;
	int fd;
	uint32_t used, cnt; /* places that have been taken, of so many */
	uint32_t open;	    /* doors that are not destroyed */
};

/* The one that has places left; NULL: none. Rank 3, nothing of ours is called under it. */
static struct platform_lock lock = { PTHREAD_MUTEX_INITIALIZER };
static struct pshm_door_file *filling;

static void fork_prepare(void)
{
	platform_lock(&lock);
}

static void fork_parent(void)
{
	platform_unlock(&lock);
}

/* The places that are left are the parent's. */
static void fork_child(void)
{
	filling = NULL;
	platform_unlock(&lock);
}

static struct platform_fork fork_watcher = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

void pshm_doors_watch(void)
{
	platform_fork_watch(&fork_watcher);
}

static size_t doors_len(uint32_t cnt)
{
	return PSHM_DOORS_HEAD + (size_t)cnt * PSHM_DOOR_STRIDE;
}

/* How many doors memory of that length has; 0 for a length that it can't have. */
static uint32_t doors_in(size_t len)
{
	size_t cnt = len < PSHM_DOORS_HEAD ? 0 : (len - PSHM_DOORS_HEAD) / PSHM_DOOR_STRIDE;

	return cnt <= PSHM_DOORS && len == doors_len((uint32_t)cnt) ? (uint32_t)cnt : 0;
}

static size_t door_at(uint32_t idx)
{
	return doors_len(idx);
}

/* As many as there may be, under a low limit on files fewer. */
static uint32_t doors_allowed(void)
{
	size_t most = sys_memfd_max();

	if (most >= doors_len(PSHM_DOORS))
		return PSHM_DOORS;
	return most < doors_len(1) ? 1
				   : (uint32_t)((most - PSHM_DOORS_HEAD) / PSHM_DOOR_STRIDE);
}

static void file_free(struct pshm_door_file *file)
{
	sys_memfd_unmap(file->head, file->len);
	if (file->fd >= 0)
		close(file->fd);
	platform_free(file);
}

static int file_create(struct pshm_door_file **out)
{
	struct pshm_door_file *file = platform_alloc(sizeof(*file));
	void *addr;
	int err;

	if (!file)
		return -FI_ENOMEM;
	*file = (struct pshm_door_file){ .cnt = doors_allowed() };
	file->len = doors_len(file->cnt);
	file->fd = sys_memfd_create("weft-doors", file->len, 0600);
	err = file->fd < 0 ? file->fd
			   : sys_memfd_map(file->fd, file->len, SYS_MEMFD_WRITE, &addr);
	if (err) {
		file_free(file);
		return err;
	}
	file->head = addr;
	file->head->magic = PSHM_DOORS_MAGIC;
	file->head->version = PSHM_VERSION;
	*out = file;
	return 0;
}

/* Gives one door back. */
static void file_leave_locked(struct pshm_door_file *file)
{
	if (--file->open)
		return;
	if (file == filling)
		filling = NULL;
	file_free(file);
}

int pshm_door_create(const uint8_t nonce[PSHM_NONCE], struct pshm_own_door *own)
{
	struct pshm_door_file *file;
	struct pshm_door *door;
	uint32_t idx;
	int err = 0;

	platform_lock(&lock);
	if (!filling)
		err = file_create(&filling);
	if (err) {
		platform_unlock(&lock);
		return err;
	}
	file = filling;
	file->open++;
	idx = file->used++;
	if (file->used == file->cnt)
		filling = NULL;
	platform_unlock(&lock);

	door = (struct pshm_door *)((char *)file->head + door_at(idx));
	door->magic = PSHM_DOOR_MAGIC;
	door->version = PSHM_VERSION;
	memcpy(door->nonce, nonce, PSHM_NONCE);
	memcpy(file->head->nonces[idx], nonce, PSHM_NONCE);
	*own = (struct pshm_own_door){ .door = door, .fd = file->fd, .file = file };
	return 0;
}

void pshm_door_destroy(struct pshm_own_door *own)
{
	if (!own->door)
		return;
	platform_lock(&lock);
	file_leave_locked(own->file);
	platform_unlock(&lock);
	own->door = NULL;
}

/* Where the door is, of memory from anywhere. Returns 0 and its index, or -FI_E* */
static int door_find(int fd, const uint8_t nonce[PSHM_NONCE], uint32_t *idx)
{
	struct pshm_doors head;
	uint32_t cnt;
	size_t len;
	int err;

	err = sys_memfd_size(fd, &len);
	if (err)
		return err;
	cnt = doors_in(len);
	if (!cnt)
		return -FI_EINVAL;
	err = sys_memfd_read(fd, &head, sizeof(head));
	if (err)
		return err;
	if (head.magic != PSHM_DOORS_MAGIC || head.version != PSHM_VERSION)
		return -FI_EINVAL;
	for (uint32_t i = 0; i < cnt; i++) {
		if (!pshm_nonce_same(head.nonces[i], nonce))
			continue;
		*idx = i;
		return 0;
	}
	return -FI_EINVAL;
}

int pshm_door_take(int fd, const uint8_t nonce[PSHM_NONCE], struct pshm_region *region)
{
	struct pshm_region found = { .len = sizeof(struct pshm_door), .fd = -1 };
	const struct pshm_door *door;
	uint32_t idx = 0;
	int err;

	err = door_find(fd, nonce, &idx);
	if (!err)
		err = sys_memfd_map_at(fd, door_at(idx), found.len, SYS_MEMFD_WRITE,
				       &found.addr);
	close(fd);
	if (err)
		return pshm_region_error(err);
	door = found.addr;
	if (door->magic != PSHM_DOOR_MAGIC || door->version != PSHM_VERSION ||
	    !pshm_nonce_same(door->nonce, nonce)) {
		pshm_region_close(&found);
		return -FI_EHOSTUNREACH;
	}
	*region = found;
	return 0;
}

int pshm_door_open(uint32_t pid, uint32_t fd, const uint8_t nonce[PSHM_NONCE],
		   struct pshm_region *region)
{
	int opened, err;

	if (!pid || pid > INT_MAX || fd > INT_MAX)
		return -FI_ENOENT;
	opened = sys_memfd_open((pid_t)pid, (int)fd, true);
	if (opened == -FI_ENOENT || opened == -FI_EINVAL)
		return -FI_ENOENT;
	if (opened < 0)
		return pshm_region_error(opened);
	err = pshm_door_take(opened, nonce, region);
	return err == -FI_EHOSTUNREACH ? -FI_ENOENT : err;
}
