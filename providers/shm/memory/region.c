/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Making and mapping what two endpoints share, except inboxes (inbox.c). Called by the wire when
 * an endpoint or a connection is made, on the thread that holds the domain.
 */
#include <limits.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "memfd.h"
#include "pidfd.h"
#include "region.h"

/* A kind of memory. */
struct kind {
	const char *name;
	mode_t mode;
	uint32_t magic;
	/* bytes: offset of the nonce, and of what follows the head */
	size_t nonce_at, head_len;
};

static const struct kind pair_kind = { "weft-pair", 0600, PSHM_PAIR_MAGIC,
				       offsetof(struct pshm_pair, nonce), PSHM_PAIR_HEAD };
static const struct kind area_kind = { "weft-area", 0600, PSHM_AREA_MAGIC,
				       offsetof(struct pshm_area, nonce), PSHM_AREA_HEAD };
static const struct kind table_kind = { "weft-table", 0400, PSHM_TABLE_MAGIC,
					offsetof(struct pshm_table, nonce), PSHM_TABLE_HEAD };

/* The first members of every kind. */
struct head {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
};

static size_t area_len(const struct pshm_sizes *sizes)
{
	return sizes->area_len ? PSHM_AREA_HEAD + (size_t)sizes->area_len : 0;
}

/* Returns 0 for sizes that can't be. */
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
		sys_descriptor_close(region->fd);
	region->fd = -1;
}

void pshm_region_close(struct pshm_region *region)
{
	pshm_region_close_fd(region);
	sys_memfd_unmap(region->addr, region->len);
	region->addr = NULL;
}

/* Makes memory with the nonce and the members of struct head filled. */
static int region_create(const struct kind *kind, size_t len, struct pshm_region *region)
{
	uint8_t nonce[PSHM_NONCE];
	void *addr;
	int fd, err;

	err = platform_random(nonce, sizeof(nonce));
	if (err)
		return err;
	fd = sys_memfd_create(kind->name, len, kind->mode);
	if (fd < 0)
		return fd;
	err = sys_memfd_map(fd, len, SYS_MEMFD_WRITE, &addr);
	if (err) {
		sys_descriptor_close(fd);
		return err;
	}
	*(struct head *)addr = (struct head){ .magic = kind->magic, .version = PSHM_VERSION };
	memcpy((char *)addr + kind->nonce_at, nonce, PSHM_NONCE);
	*region = (struct pshm_region){ .addr = addr, .len = len, .fd = fd };
	return 0;
}

bool pshm_is_shortage(int err)
{
	return err == -FI_EMFILE || err == -ENFILE || err == -FI_ENOMEM;
}

int pshm_region_error(int err)
{
	return pshm_is_shortage(err) ? err : -FI_EHOSTUNREACH;
}

/* Checks that it is memory of this kind and version with this nonce. Returns 0 or -FI_E*. */
static int head_check(const struct kind *kind, const void *addr, const uint8_t nonce[PSHM_NONCE])
{
	struct head head;

	memcpy(&head, addr, sizeof(head));
	if (head.magic != kind->magic ||
	    !pshm_nonce_same((const uint8_t *)addr + kind->nonce_at, nonce))
		return -FI_EHOSTUNREACH;
	if (head.version != PSHM_VERSION)
		return -FI_ENOPROTOOPT;
	return head.zero ? -FI_EPROTO : 0;
}

/*
 * Takes @fd: maps the memory behind it. Of its head no more than struct head and the nonce is
 * checked.
 */
static int region_take(int fd, const struct kind *kind, const uint8_t nonce[PSHM_NONCE],
		       struct pshm_region *region)
{
	unsigned int flags = kind->mode & 0200 ? SYS_MEMFD_WRITE : 0;
	struct pshm_region found = { .fd = -1 };
	int err;

	err = sys_memfd_size(fd, &found.len);
	if (!err && found.len < kind->head_len)
		err = -FI_EINVAL;
	if (!err)
		err = sys_memfd_map(fd, found.len, flags, &found.addr);
	sys_descriptor_close(fd);
	if (err)
		return pshm_region_error(err);
	err = head_check(kind, found.addr, nonce);
	if (err) {
		pshm_region_close(&found);
		return err;
	}
	*region = found;
	return 0;
}

/* Returns true if a process and a descriptor of it can have these numbers. */
static bool numbers_fit(uint32_t pid, uint32_t number)
{
	return pid && pid <= INT_MAX && number <= INT_MAX;
}

/*
 * Opens what another process has at a descriptor, through /proc. Returns a descriptor, owned, or
 * -FI_E*.
 */
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
	struct pshm_pair *pair;
	int err;

	assert(len);
	err = region_create(&pair_kind, len, region);
	if (err)
		return err;
	pair = region->addr;
	pair->line_cnt = sizes->line_cnt;
	pair->data_len = sizes->data_len;
	pair->area_len = sizes->area_len;
	pair->len = len;
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

	err = region_take(fd, &pair_kind, nonce, &found);
	if (err)
		return err;
	memcpy(&head, found.addr, offsetof(struct pshm_pair, hello));
	sizes = (struct pshm_sizes){ head.line_cnt, head.data_len, head.area_len };
	len = pair_len(&sizes);
	if (!len || head.len != len || found.len != len) {
		pshm_region_close(&found);
		return -FI_EPROTO;
	}
	*region = found;
	*out = sizes;
	return 0;
}

int pshm_pair_open(const struct pshm_offer *offer, struct pshm_region *region,
		   struct pshm_sizes *sizes)
{
	int fd = region_fd(offer->pid, offer->fd, true);

	return fd < 0 ? fd : pshm_pair_take(fd, offer->nonce, region, sizes);
}

int pshm_area_create(uint32_t data_len, struct pshm_region *region)
{
	int err = region_create(&area_kind, PSHM_AREA_HEAD + (size_t)data_len, region);

	if (!err)
		((struct pshm_area *)region->addr)->data_len = data_len;
	return err;
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
	err = region_take(fd, &area_kind, offer->nonce, &found);
	if (err)
		return err;
	memcpy(&head, found.addr, sizeof(head));
	if (!ring_len(RING_LINES_MIN, head.data_len) || head.zero2 ||
	    found.len != PSHM_AREA_HEAD + (size_t)head.data_len) {
		pshm_region_close(&found);
		return -FI_EPROTO;
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
	return region_create(&table_kind, table_len(), region);
}

/* The same where /proc does not lead there: pidfd_getfd(2). */
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
	int fd, err;

	fd = region_fd(offer->pid, offer->fd, false);
	/* a process that may read that one's memory may copy its descriptors */
	if (fd == -FI_EHOSTUNREACH)
		fd = region_fd_take(offer->pid, offer->fd);
	if (fd < 0)
		return fd;
	err = region_take(fd, &table_kind, offer->nonce, &found);
	if (err)
		return err;
	if (found.len != table_len()) {
		pshm_region_close(&found);
		return -FI_EPROTO;
	}
	*region = found;
	return 0;
}

void *pshm_pair_ring(const struct pshm_region *region, enum pshm_side side,
		     const struct pshm_sizes *sizes)
{
	return (char *)region->addr + PSHM_PAIR_HEAD +
	       (side == PSHM_REQUESTER ? 0 : ring_len(sizes->line_cnt, sizes->data_len));
}

struct pshm_region pshm_pair_area(const struct pshm_region *region, enum pshm_side side,
				  const struct pshm_sizes *sizes)
{
	struct pshm_region area = { .len = area_len(sizes), .fd = -1 };

	if (area.len)
		area.addr = (char *)region->addr + PSHM_PAIR_HEAD +
			    2 * ring_len(sizes->line_cnt, sizes->data_len) +
			    (side == PSHM_REQUESTER ? 0 : area.len);
	return area;
}

void pshm_hello_put(struct pshm_pair *pair, enum pshm_side side, const struct hello *hello)
{
	memcpy(pair->hello[side], hello, PSHM_HELLO_LEN);
	if (hello->data.len)
		memcpy(pair->hello_data[side], hello->data.bytes, hello->data.len);
	pair->hello_data_len[side] = hello->data.len;
}

void pshm_hello_get(const struct pshm_pair *pair, enum pshm_side side, struct hello *hello)
{
	uint32_t len = *(const volatile uint32_t *)&pair->hello_data_len[side];

	*hello = (struct hello){ .data.len = len };
	memcpy(hello, pair->hello[side], PSHM_HELLO_LEN);
	if (len && len <= HELLO_DATA_MAX) /* the checks refuse more */
		memcpy(hello->data.bytes, pair->hello_data[side], len);
}
