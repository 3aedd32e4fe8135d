/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Making and finding doors and pairs. Called by the wire when an endpoint or a connection is
 * made, on the thread that holds the domain.
 */
#include <limits.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "memfd.h"
#include "region.h"

static size_t pair_len(uint32_t line_cnt, uint32_t data_len)
{
	size_t len = ring_len(line_cnt, data_len);

	return len ? SHM_PAIR_HEAD + 2 * len : 0;
}

void shm_region_close_fd(struct shm_region *region)
{
	if (region->fd >= 0)
		close(region->fd);
	region->fd = -1;
}

void shm_region_close(struct shm_region *region)
{
	shm_region_close_fd(region);
	sys_memfd_unmap(region->addr, region->len);
	region->addr = NULL;
}

static int region_create(const char *name, size_t len, struct shm_region *region)
{
	void *addr;
	int fd, err;

	fd = sys_memfd_create(name, len, 0600);
	if (fd < 0)
		return fd;
	err = sys_memfd_map(fd, len, SYS_MEMFD_WRITE, &addr);
	if (err) {
		close(fd);
		return err;
	}
	*region = (struct shm_region){ .addr = addr, .len = len, .fd = fd };
	return 0;
}

/* What lacks here is lacking for every wire; whatever else is wrong, there is no way through memory. */
static int not_found(int err)
{
	return err == -FI_EMFILE || err == -ENFILE || err == -FI_ENOMEM ? err : -FI_EHOSTUNREACH;
}

/* Maps a region of another process: all of it, when @len is 0 on entry. */
static int region_open(uint32_t pid, uint32_t number, size_t min, struct shm_region *region)
{
	void *addr;
	size_t len;
	int fd, err;

	if (!pid || pid > INT_MAX || number > INT_MAX)
		return -FI_EHOSTUNREACH;
	fd = sys_memfd_open((pid_t)pid, (int)number, true);
	if (fd < 0)
		return not_found(fd);
	err = sys_memfd_size(fd, &len);
	if (!err && len < min)
		err = -FI_EINVAL;
	if (!err)
		err = sys_memfd_map(fd, len, SYS_MEMFD_WRITE, &addr);
	close(fd);
	if (err)
		return not_found(err);
	*region = (struct shm_region){ .addr = addr, .len = len, .fd = -1 };
	return 0;
}

int shm_door_create(const uint8_t nonce[SHM_NONCE], struct shm_region *region)
{
	struct shm_door *door;
	int err;

	err = region_create("weft-door", sizeof(*door), region);
	if (err)
		return err;
	door = region->addr;
	door->magic = SHM_DOOR_MAGIC;
	door->version = SHM_VERSION;
	memcpy(door->nonce, nonce, SHM_NONCE);
	return 0;
}

int shm_door_open(uint32_t pid, uint32_t fd, const uint8_t nonce[SHM_NONCE], struct shm_region *region)
{
	struct shm_region found;
	const struct shm_door *door;
	int err;

	err = region_open(pid, fd, sizeof(*door), &found);
	if (err)
		return err;
	door = found.addr;
	if (found.len != sizeof(*door) || door->magic != SHM_DOOR_MAGIC || door->version != SHM_VERSION ||
	    memcmp(door->nonce, nonce, SHM_NONCE)) {
		shm_region_close(&found);
		return -FI_EHOSTUNREACH;
	}
	*region = found;
	return 0;
}

int shm_pair_create(uint32_t line_cnt, uint32_t data_len, struct shm_region *region)
{
	size_t len = pair_len(line_cnt, data_len);
	uint8_t nonce[SHM_NONCE];
	struct shm_pair *pair;
	int err;

	assert(len);
	err = platform_random(nonce, sizeof(nonce));
	if (err)
		return err;
	err = region_create("weft-pair", len, region);
	if (err)
		return err;
	pair = region->addr;
	pair->magic = SHM_PAIR_MAGIC;
	pair->version = SHM_VERSION;
	pair->line_cnt = line_cnt;
	pair->data_len = data_len;
	pair->len = len;
	memcpy(pair->nonce, nonce, SHM_NONCE);
	return 0;
}

int shm_pair_open(const struct shm_offer *offer, struct shm_region *region, uint32_t *line_cnt,
		  uint32_t *data_len)
{
	struct shm_region found;
	struct shm_pair head;
	size_t len;
	int err;

	err = region_open(offer->pid, offer->fd, SHM_PAIR_HEAD, &found);
	if (err)
		return err;
	memcpy(&head, found.addr, offsetof(struct shm_pair, hello));
	if (head.magic != SHM_PAIR_MAGIC || memcmp(head.nonce, offer->nonce, SHM_NONCE)) {
		err = -FI_EHOSTUNREACH;
		goto err_close;
	}
	if (head.version != SHM_VERSION) {
		err = -FI_ENOPROTOOPT;
		goto err_close;
	}
	len = pair_len(head.line_cnt, head.data_len);
	if (!len || head.zero || head.len != len || found.len != len) {
		err = -FI_EPROTO;
		goto err_close;
	}
	*region = found;
	*line_cnt = head.line_cnt;
	*data_len = head.data_len;
	return 0;

err_close:
	shm_region_close(&found);
	return err;
}

void *shm_pair_ring(const struct shm_region *region, enum shm_side side, uint32_t line_cnt, uint32_t data_len)
{
	return (char *)region->addr + SHM_PAIR_HEAD + (side == SHM_ASKED ? 0 : ring_len(line_cnt, data_len));
}
