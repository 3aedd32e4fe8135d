/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Making and finding what two endpoints share, but for doors (doors.c). Called by the wire when an endpoint or a connection is
 * made, on the thread that holds the domain.
 */
#include <limits.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "memfd.h"
#include "pidfd.h"
#include "region.h"

static size_t area_len(const struct pshm_sizes *sizes)
{
	return sizes->area_len ? PSHM_AREA_HEAD + (size_t)sizes->area_len : 0;
}

/* 0 for sizes that can't be. */
static size_t pair_len(const struct pshm_sizes *sizes)
{
	size_t len = ring_len(sizes->line_cnt, sizes->data_len);

	if (!len || (sizes->area_len && (sizes->area_len <= sizes->data_len ||
					 !ring_len(RING_LINES_MIN, sizes->area_len))))
		return 0;
	return PSHM_PAIR_HEAD + 2 * (len + area_len(sizes));
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

static int region_create(const char *name, size_t len, mode_t mode, struct pshm_region *region)
{
	void *addr;
	int fd, err;

	fd = sys_memfd_create(name, len, mode);
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

int pshm_region_error(int err)
{
	return pshm_scarce(err) ? err : -FI_EHOSTUNREACH;
}

/* Takes @fd: maps all of the memory behind it, which has @min bytes or more. @flags: as sys_memfd_map() */
static int region_map(int fd, size_t min, unsigned int flags, struct pshm_region *region)
{
	void *addr;
	size_t len;
	int err;

	err = sys_memfd_size(fd, &len);
	if (!err && len < min)
		err = -FI_EINVAL;
	if (!err)
		err = sys_memfd_map(fd, len, flags, &addr);
	close(fd);
	if (err)
		return pshm_region_error(err);
	*region = (struct pshm_region){ .addr = addr, .len = len, .fd = -1 };
	return 0;
}

static int region_take(int fd, size_t min, struct pshm_region *region)
{
	return region_map(fd, min, SYS_MEMFD_WRITE, region);
}

/* Could a process and a descriptor of it have these numbers? */
static bool numbers_fit(uint32_t pid, uint32_t number)
{
	return pid && pid <= INT_MAX && number <= INT_MAX;
}

/* A descriptor of our own for one of another process. */
static int region_fd(uint32_t pid, uint32_t number, bool writable)
{
	int fd;

	if (!numbers_fit(pid, number))
		return -FI_EHOSTUNREACH;
	fd = sys_memfd_open((pid_t)pid, (int)number, writable);
	return fd < 0 ? pshm_region_error(fd) : fd;
}

bool pshm_pair_allowed(const struct pshm_sizes *sizes)
{
	return pair_len(sizes) <= sys_memfd_max();
}

int pshm_pair_create(const struct pshm_sizes *sizes, struct pshm_region *region)
{
	size_t len = pair_len(sizes);
	uint8_t nonce[PSHM_NONCE];
	struct pshm_pair *pair;
	int err;

	assert(len);
	err = platform_random(nonce, sizeof(nonce));
	if (err)
		return err;
	err = region_create("weft-pair", len, 0600, region);
	if (err)
		return err;
	pair = region->addr;
	pair->magic = PSHM_PAIR_MAGIC;
	pair->version = PSHM_VERSION;
	pair->line_cnt = sizes->line_cnt;
	pair->data_len = sizes->data_len;
	pair->area_len = sizes->area_len;
	pair->len = len;
	memcpy(pair->nonce, nonce, PSHM_NONCE);
	return 0;
}

int pshm_pair_take(int fd, const uint8_t nonce[PSHM_NONCE], struct pshm_region *region,
		   struct pshm_sizes *out)
{
	struct pshm_region found;
	struct pshm_sizes sizes;
	struct pshm_pair head;
	size_t len;
	int err;

	err = region_take(fd, PSHM_PAIR_HEAD, &found);
	if (err)
		return err;
	memcpy(&head, found.addr, offsetof(struct pshm_pair, hello));
	if (head.magic != PSHM_PAIR_MAGIC || !pshm_nonce_same(head.nonce, nonce)) {
		err = -FI_EHOSTUNREACH;
		goto err_close;
	}
	if (head.version != PSHM_VERSION) {
		err = -FI_ENOPROTOOPT;
		goto err_close;
	}
	sizes = (struct pshm_sizes){ head.line_cnt, head.data_len, head.area_len };
	len = pair_len(&sizes);
	if (!len || head.zero || head.len != len || found.len != len) {
		err = -FI_EPROTO;
		goto err_close;
	}
	*region = found;
	*out = sizes;
	return 0;

err_close:
	pshm_region_close(&found);
	return err;
}

int pshm_pair_open(const struct pshm_offer *offer, struct pshm_region *region,
		   struct pshm_sizes *sizes)
{
	int fd = region_fd(offer->pid, offer->fd, true);

	return fd < 0 ? fd : pshm_pair_take(fd, offer->nonce, region, sizes);
}

int pshm_area_create(uint32_t data_len, struct pshm_region *region)
{
	uint8_t nonce[PSHM_NONCE];
	struct pshm_area *area;
	int err;

	err = platform_random(nonce, sizeof(nonce));
	if (err)
		return err;
	err = region_create("weft-area", PSHM_AREA_HEAD + (size_t)data_len, 0600, region);
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
	int fd, err;

	fd = region_fd(offer->pid, offer->fd, true);
	if (fd < 0)
		return fd;
	err = region_take(fd, PSHM_AREA_HEAD, &found);
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

static size_t table_len(void)
{
	return PSHM_TABLE_HEAD + mr_slab_offset(PSHM_TABLE_SLABS);
}

int pshm_table_create(struct pshm_region *region)
{
	uint8_t nonce[PSHM_NONCE];
	struct pshm_table *table;
	int err;

	err = platform_random(nonce, sizeof(nonce));
	if (err)
		return err;
	err = region_create("weft-table", table_len(), 0400, region);
	if (err)
		return err;
	table = region->addr;
	table->magic = PSHM_TABLE_MAGIC;
	table->version = PSHM_VERSION;
	memcpy(table->nonce, nonce, PSHM_NONCE);
	return 0;
}

/* A descriptor of our own where /proc does not lead to one. */
static int region_fd_take(uint32_t pid, uint32_t number)
{
	int fd;

	if (!numbers_fit(pid, number))
		return -FI_EHOSTUNREACH;
	fd = sys_pidfd_take((pid_t)pid, (int)number);
	return fd < 0 ? pshm_region_error(fd) : fd;
}

int pshm_table_open(const struct pshm_offer *offer, struct pshm_region *region)
{
	struct pshm_region found;
	struct pshm_table head;
	int fd, err;

	fd = region_fd(offer->pid, offer->fd, false);
	if (fd ==
	    -FI_EHOSTUNREACH) /* who may copy from that process, may copy its descriptors */
		fd = region_fd_take(offer->pid, offer->fd);
	if (fd < 0)
		return fd;
	err = region_map(fd, PSHM_TABLE_HEAD, 0, &found);
	if (err)
		return err;
	memcpy(&head, found.addr, sizeof(head));
	if (head.magic != PSHM_TABLE_MAGIC || !pshm_nonce_same(head.nonce, offer->nonce))
		err = -FI_EHOSTUNREACH;
	else if (head.version != PSHM_VERSION)
		err = -FI_ENOPROTOOPT;
	else if (head.zero || found.len != table_len())
		err = -FI_EPROTO;
	if (err) {
		pshm_region_close(&found);
		return err;
	}
	*region = found;
	return 0;
}

void *pshm_pair_ring(const struct pshm_region *region, enum pshm_side side,
		     const struct pshm_sizes *sizes)
{
	return (char *)region->addr + PSHM_PAIR_HEAD +
	       (side == PSHM_ASKED ? 0 : ring_len(sizes->line_cnt, sizes->data_len));
}

struct pshm_region pshm_pair_area(const struct pshm_region *region, enum pshm_side side,
				  const struct pshm_sizes *sizes)
{
	struct pshm_region area = { .len = area_len(sizes), .fd = -1 };

	if (area.len)
		area.addr = (char *)region->addr + PSHM_PAIR_HEAD +
			    2 * ring_len(sizes->line_cnt, sizes->data_len) +
			    (side == PSHM_ASKED ? 0 : area.len);
	return area;
}
