/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload of kofi_ibverbs (link.h): memory of callers as devices see it, windows that a peer writes, and writes to those of
 * a peer. A window is a registration of its own, with a key that none of the 255 accesses before it had; all of them are
 * the same peer's, whose protection domain it is. Of devices' keys for all memory, the local one alone is used, which
 * no peer can name.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "verbs.h"

/* Maps */

/* The page of an address of the kernel, or NULL: no memory */
static struct page *page_at(const void *at)
{
	unsigned long addr = (unsigned long)at;
	bool mapped = is_vmalloc_addr(at);
	struct page *page;

#ifdef MODULES_VADDR
	mapped |= addr >= MODULES_VADDR && addr < MODULES_END;
#endif
	if (!mapped)
		return virt_addr_valid(addr) ? virt_to_page(at) : NULL;
	page = vmalloc_to_page(at);
	return page && pfn_valid(page_to_pfn(page)) ? page : NULL;
}

/* Adds the pages of a range; what is one stretch of memory is one entry. Returns 0 or -FI_EFAULT. */
static int map_add(struct kib_map *map, const u8 *at, size_t len)
{
	struct page *last = NULL;

	while (len) {
		u32 offset = offset_in_page(at), part = min_t(size_t, len, PAGE_SIZE - offset);
		struct page *page = page_at(at);

		if (!page)
			return -FI_EFAULT;
		if (last && page_to_pfn(page) == page_to_pfn(last) + 1) {
			map->sg[map->cnt - 1].length += part;
		} else {
			if (map->cnt == KIB_MAP_MAX)
				return -FI_EINVAL;
			sg_set_page(&map->sg[map->cnt++], page, part, offset);
		}
		last = page;
		at += part;
		len -= part;
	}
	return 0;
}

static int map_begin(struct kib_map *map, enum dma_data_direction direction)
{
	if (!map->sg)
		map->sg = kmalloc_array(KIB_MAP_MAX, sizeof(*map->sg), GFP_KERNEL);
	if (!map->sg)
		return -FI_EAGAIN;
	sg_init_table(map->sg, KIB_MAP_MAX);
	map->cnt = 0;
	map->direction = direction;
	return 0;
}

static int map_end(struct kib_link *link, struct kib_map *map)
{
	sg_mark_end(&map->sg[map->cnt - 1]);
	map->mapped = ib_dma_map_sg(link->device, map->sg, map->cnt, map->direction);
	return map->mapped > 0 ? 0 : -FI_EAGAIN;
}

static void map_undo(struct kib_link *link, struct kib_map *map)
{
	if (map->mapped > 0)
		ib_dma_unmap_sg(link->device, map->sg, map->cnt, map->direction);
	map->mapped = 0;
}

void kib_maps_free(struct kib_link *link)
{
	u32 i;

	for (i = 0; i < KIB_WINDOWS; i++) {
		struct kib_window *window = &link->windows[i];

		map_undo(link, &window->map);
		if (window->mr)
			ib_dereg_mr(window->mr);
		window->mr = NULL;
		kfree(window->map.sg);
		window->map.sg = NULL;
		window->open = false;
	}
	for (i = 0; i < KIB_WRITES; i++) {
		struct kib_write *write = &link->writes[i];

		map_undo(link, &write->map);
		kfree(write->map.sg);
		write->map.sg = NULL;
		write->left = 0;
	}
}

/* Windows */

static int window_prepare(struct kib_link *link, struct kib_window *window)
{
	struct ib_mr *mr;

	if (window->mr)
		return 0;
	mr = ib_alloc_mr(link->pd, IB_MR_TYPE_MEM_REG, KIB_WINDOW_MAX / PAGE_SIZE + 1);
	if (IS_ERR(mr))
		return -FI_EAGAIN;
	window->mr = mr;
	window->link = link;
	window->registers.kind = KIB_OF_REGISTRATION;
	window->ends.kind = KIB_OF_INVALIDATION;
	return 0;
}

static int window_register(struct kib_link *link, struct kib_window *window)
{
	struct ib_reg_wr reg = {
		.wr = { .opcode = IB_WR_REG_MR,
			.wr_id = (uintptr_t)&window->registers,
			.send_flags = IB_SEND_SIGNALED },
		.mr = window->mr,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	int n = ib_map_mr_sg(window->mr, window->map.sg, window->map.mapped, NULL, PAGE_SIZE);

	if (n != window->map.mapped)
		return n < 0 ? kib_error(n) : -FI_EINVAL;
	/* One that was used is not valid again. */
	ib_update_fast_reg_key(window->mr, ib_inc_rkey(window->mr->rkey));
	reg.key = window->mr->rkey;
	return kib_error(ib_post_send(link->qp, &reg.wr, NULL));
}

static int window_open(struct kib_link *link, struct kib_window *window,
		       const struct kib_range *range)
{
	int ret = window_prepare(link, window);

	if (!ret)
		ret = map_begin(&window->map, DMA_FROM_DEVICE);
	if (!ret)
		ret = map_add(&window->map, range->addr, range->len);
	if (!ret)
		ret = map_end(link, &window->map);
	if (ret)
		return ret;
	ret = window_register(link, window);
	if (ret)
		map_undo(link, &window->map);
	return ret;
}

static struct kib_window *window_find(struct kib_link *link)
{
	u32 i;

	for (i = 0; i < KIB_WINDOWS; i++)
		if (!link->windows[i].open)
			return &link->windows[i];
	return NULL;
}

int kib_window_open(struct kib_link *link, const struct kib_range *range, void *cookie,
		    struct kib_window **out, uint32_t *key, uint64_t *at)
{
	struct kib_window *window;
	int ret = -FI_ENOTCONN;

	mutex_lock(&link->lock);
	window = window_find(link);
	if (!window)
		ret = -FI_EAGAIN;
	else if (link->qp && !link->broken)
		ret = window_open(link, window, range);
	if (!ret) {
		window->open = true;
		window->cookie = cookie;
		*key = window->mr->rkey;
		*at = window->mr->iova;
		*out = window;
	}
	mutex_unlock(&link->lock);
	return ret;
}

static void window_over(struct kib_link *link, struct kib_window *window)
{
	map_undo(link, &window->map);
	window->open = false;
}

static int window_invalidate(struct kib_link *link, struct kib_window *window)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV,
		.wr_id = (uintptr_t)&window->ends,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = window->mr->rkey,
	};

	return kib_error(ib_post_send(link->qp, &wr, NULL));
}

int kib_window_shut(struct kib_window *window, uint32_t given_up)
{
	struct kib_link *link = window->link;
	int ret = -FI_ENOTCONN;

	mutex_lock(&link->lock);
	if (link->qp && !link->broken && given_up == window->mr->rkey) {
		window_over(link, window);
		ret = 1;
	} else if (link->qp && !link->broken) {
		ret = window_invalidate(link, window);
	}
	mutex_unlock(&link->lock);
	return ret;
}

void kib_window_ended(struct kib_link *link, struct kib_window *window, struct kib_done *done)
{
	window_over(link, window);
	done->what = KIB_SHUT;
	done->cookie = window->cookie;
}

/* Writes */

/* How a write is cut into work requests: of as many entries as the device gathers. */
struct kib_cut {
	struct scatterlist *sg;
	int left;
	u64 at;
	u32 key;
};

static int write_post(struct kib_link *link, struct kib_write *write, struct kib_cut *cut)
{
	struct ib_sge sge[KIB_SGE_MAX];
	struct ib_rdma_wr rdma = {
		.wr = { .opcode = IB_WR_RDMA_WRITE,
			.wr_id = (uintptr_t)&write->work,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = sge },
		.remote_addr = cut->at,
		.rkey = cut->key,
	};
	int n;

	for (n = 0; n < (int)link->sge_max && n < cut->left; n++, cut->sg = sg_next(cut->sg)) {
		sge[n].addr = sg_dma_address(cut->sg);
		sge[n].length = sg_dma_len(cut->sg);
		sge[n].lkey = link->pd->local_dma_lkey;
		cut->at += sge[n].length;
	}
	cut->left -= n;
	rdma.wr.num_sge = n;
	return kib_error(ib_post_send(link->qp, &rdma.wr, NULL));
}

static int write_map(struct kib_link *link, struct kib_write *write,
		     const struct kib_range *ranges, u32 cnt)
{
	int ret = map_begin(&write->map, DMA_TO_DEVICE);
	u32 i;

	for (i = 0; i < cnt && !ret; i++)
		ret = map_add(&write->map, ranges[i].addr, ranges[i].len);
	return ret ? ret : map_end(link, &write->map);
}

static int write_begin(struct kib_link *link, struct kib_write *write,
		       const struct kib_range *ranges, u32 cnt, struct kib_cut *cut)
{
	int ret = write_map(link, write, ranges, cnt);
	u32 requests;

	if (ret)
		return ret;
	requests = DIV_ROUND_UP(write->map.mapped, link->sge_max);
	if (requests > link->sq_room) {
		map_undo(link, &write->map);
		return -FI_EAGAIN;
	}
	cut->sg = write->map.sg;
	cut->left = write->map.mapped;
	write->work.kind = KIB_OF_WRITE;
	/* All of it is undone with the link's other memory where one of them can't be posted. */
	while (cut->left && !ret) {
		ret = write_post(link, write, cut);
		write->left++;
		link->sq_room--;
	}
	link->broken |= ret;
	return ret;
}

static struct kib_write *write_find(struct kib_link *link)
{
	u32 i;

	for (i = 0; i < KIB_WRITES; i++)
		if (!link->writes[i].left)
			return &link->writes[i];
	return NULL;
}

int kib_link_write(struct kib_link *link, const struct kib_range *ranges, uint32_t cnt,
		   uint64_t at, uint32_t key, void *cookie)
{
	struct kib_cut cut = { .at = at, .key = key };
	struct kib_write *write;
	int ret = -FI_ENOTCONN;

	mutex_lock(&link->lock);
	write = write_find(link);
	if (!write)
		ret = -FI_EAGAIN;
	else if (link->qp && !link->broken)
		ret = write_begin(link, write, ranges, cnt, &cut);
	if (!ret)
		write->cookie = cookie;
	mutex_unlock(&link->lock);
	return ret;
}

bool kib_write_ended(struct kib_link *link, struct kib_write *write, struct kib_done *done)
{
	link->sq_room++;
	if (--write->left)
		return false;
	map_undo(link, &write->map);
	done->what = KIB_WRITTEN;
	done->cookie = write->cookie;
	return true;
}
