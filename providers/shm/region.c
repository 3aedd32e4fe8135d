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

	return len ? PSHM_PAIR_HEAD + 2 * len : 0;
}

void pshm_region_close_fd(struct pshm_region *region)
{
	if (region->fd >= 0)
		close(region->fd);
	region->fd = -1;
}

void pshm_region_close(struct pshm_region *region)
{
	pshm_region_close_fd(region);
	sys_memfd_unmap(region->addr, region->len);
	region->addr = NULL;
}

static int region_create(const char *name, size_t len, struct pshm_region *region)
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
	*region = (struct pshm_region){ .addr = addr, .len = len, .fd = fd };
	return 0;
}

bool pshm_scarce(int err)
{
	return err == -FI_EMFILE || err == -ENFILE || err == -FI_ENOMEM;
}

/* What lacks may come back; whatever else is wrong, there is no way through memory. */
static int not_found(int err)
{
	return pshm_scarce(err) ? err : -FI_EHOSTUNREACH;
}

/* Maps all of a region of another process, which has @min bytes or more. */
static int region_open(uint32_t pid, uint32_t number, size_t min, struct pshm_region *region)
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
	*region = (struct pshm_region){ .addr = addr, .len = len, .fd = -1 };
	return 0;
}

int pshm_door_create(const uint8_t nonce[PSHM_NONCE], struct pshm_region *region)
{
	struct pshm_door *door;
	int err;

	err = region_create("weft-door", sizeof(*door), region);
	if (err)
		return err;
	door = region->addr;
	door->magic = PSHM_DOOR_MAGIC;
	door->version = PSHM_VERSION;
	memcpy(door->nonce, nonce, PSHM_NONCE);
	return 0;
}

int pshm_door_open(uint32_t pid, uint32_t fd, const uint8_t nonce[PSHM_NONCE],
		   struct pshm_region *region)
{
	struct pshm_region found;
	const struct pshm_door *door;
	int err;

	err = region_open(pid, fd, sizeof(*door), &found);
	if (err)
		return err;
	door = found.addr;
	if (found.len != sizeof(*door) || door->magic != PSHM_DOOR_MAGIC ||
	    door->version != PSHM_VERSION || !pshm_nonce_same(door->nonce, nonce)) {
		pshm_region_close(&found);
		return -FI_EHOSTUNREACH;
	}
	*region = found;
	return 0;
}

bool pshm_pair_allowed(uint32_t line_cnt, uint32_t data_len)
{
	return pair_len(line_cnt, data_len) <= sys_memfd_max();
}

int pshm_pair_create(uint32_t line_cnt, uint32_t data_len, struct pshm_region *region)
{
	size_t len = pair_len(line_cnt, data_len);
	uint8_t nonce[PSHM_NONCE];
	struct pshm_pair *pair;
	int err;

	assert(len);
	err = platform_random(nonce, sizeof(nonce));
	if (err)
		return err;
	err = region_create("weft-pair", len, region);
	if (err)
		return err;
	pair = region->addr;
	pair->magic = PSHM_PAIR_MAGIC;
	pair->version = PSHM_VERSION;
	pair->line_cnt = line_cnt;
	pair->data_len = data_len;
	pair->len = len;
	memcpy(pair->nonce, nonce, PSHM_NONCE);
	return 0;
}

int pshm_pair_open(const struct pshm_offer *offer, struct pshm_region *region,
		   uint32_t *line_cnt, uint32_t *data_len)
{
	struct pshm_region found;
	struct pshm_pair head;
	size_t len;
	int err;

	err = region_open(offer->pid, offer->fd, PSHM_PAIR_HEAD, &found);
	if (err)
		return err;
	memcpy(&head, found.addr, offsetof(struct pshm_pair, hello));
	if (head.magic != PSHM_PAIR_MAGIC || !pshm_nonce_same(head.nonce, offer->nonce)) {
		err = -FI_EHOSTUNREACH;
		goto err_close;
	}
	if (head.version != PSHM_VERSION) {
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
	pshm_region_close(&found);
	return err;
}

int pshm_area_create(uint32_t data_len, struct pshm_region *region)
{
	uint8_t nonce[PSHM_NONCE];
	struct pshm_area *area;
	int err;

	err = platform_random(nonce, sizeof(nonce));
	if (err)
		return err;
	err = region_create("weft-area", PSHM_AREA_HEAD + (size_t)data_len, region);
	if (err)
		return err;
	area = region->addr;
	area->magic = PSHM_AREA_MAGIC;
	area->version = PSHM_VERSION;
	area->data_len = data_len;
	memcpy(area->nonce, nonce, PSHM_NONCE);
	return 0;
}

int pshm_area_open(const struct pshm_offer *offer, struct pshm_region *region,
		   uint32_t *data_len)
{
	struct pshm_region found;
	struct pshm_area head;
	int err;

	err = region_open(offer->pid, offer->fd, PSHM_AREA_HEAD, &found);
	if (err)
		return err;
	memcpy(&head, found.addr, sizeof(head));
	if (head.magic != PSHM_AREA_MAGIC || !pshm_nonce_same(head.nonce, offer->nonce))
		err = -FI_EHOSTUNREACH;
	else if (head.version != PSHM_VERSION)
		err = -FI_ENOPROTOOPT;
	else if (!ring_len(RING_LINES_MIN, head.data_len) || head.zero || head.zero2 ||
		 found.len != PSHM_AREA_HEAD + (size_t)head.data_len)
		err = -FI_EPROTO;
	if (err) {
		pshm_region_close(&found);
		return err;
	}
	*region = found;
	*data_len = head.data_len;
	return 0;
}

void *pshm_pair_ring(const struct pshm_region *region, enum pshm_side side, uint32_t line_cnt,
		     uint32_t data_len)
{
	return (char *)region->addr + PSHM_PAIR_HEAD +
	       (side == PSHM_ASKED ? 0 : ring_len(line_cnt, data_len));
}
