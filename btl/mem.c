/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registering memory. Any thread. */
#include <stdatomic.h>
#include <stdlib.h>
#include "ctx.h"
#include "mem.h"
#include "mr.h"

/* How many keys are tried where the program chooses them and others have taken some. */
#define KEY_TRIES 65536u

static uint64_t next_key(struct weft_btl *btl, const struct btl_device *device)
{
	size_t bytes = device->info->domain_attr->mr_key_size;
	uint64_t key = __atomic_add_fetch(&btl->key_last, 1, __ATOMIC_RELAXED);

	return bytes && bytes < sizeof(key) ? key & ((1ULL << 8 * bytes) - 1) : key;
}

/* The call, with keys of our choice until one is free. */
static int reg(struct weft_btl *btl, const struct btl_device *device, struct fid_domain *domain,
	       const struct iovec *range, uint64_t access, struct fid_mr **mr)
{
	uint64_t flags = device->mr_mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0;
	int ret;

	if (device->mr_mode & FI_MR_PROV_KEY)
		return fi_mr_reg(domain, range->iov_base, range->iov_len, access, 0, 0, flags,
				 mr, NULL);
	for (uint32_t i = 0; i < KEY_TRIES; i++) {
		ret = fi_mr_reg(domain, range->iov_base, range->iov_len, access, 0,
				next_key(btl, device), flags, mr, NULL);
		if (ret != -FI_ENOKEY && ret != -FI_EBUSY)
			return ret;
	}
	return -FI_ENOKEY;
}

int btl_mr_open(struct weft_btl *btl, const struct btl_device *device,
		struct fid_domain *domain, struct fid_ep *ep, const struct iovec *range,
		uint64_t access, struct fid_mr **out)
{
	struct fid_mr *mr;
	int ret;

	if (device->mr_mode & FI_MR_ALLOCATED)
		fabric_mr_populate(range);
	ret = reg(btl, device, domain, range, access, &mr);
	if (ret)
		return ret;
	if (device->mr_mode & FI_MR_ENDPOINT)
		ret = fi_mr_bind(mr, &ep->fid, 0);
	if (!ret && device->mr_mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT))
		ret = fi_mr_enable(mr);
	if (!ret && device->mr_mode & FI_MR_MMU_NOTIFY)
		ret = fi_mr_refresh(mr, range, 1, 0);
	if (ret) {
		fi_close(&mr->fid);
		return ret;
	}
	*out = mr;
	return 0;
}

/* Closes the regions of the devices before @end. Returns the first error. */
static int close_regions(struct weft_btl_mem *mem, uint32_t end)
{
	int first = 0;

	for (uint32_t i = 0; i < end; i++) {
		int ret = mem->mr[i] ? fi_close(&mem->mr[i]->fid) : 0;

		if (!ret)
			mem->mr[i] = NULL;
		first = first ? first : ret;
	}
	return first;
}

static int open_regions(struct weft_btl_mem *mem, const struct iovec *range, uint64_t access)
{
	struct weft_btl *btl = mem->btl;

	for (uint32_t i = 0; i < btl->device_cnt; i++) {
		struct btl_lane *lane = &btl->home->lanes[i];
		int ret;

		if (!btl->devices[i].has_rma)
			continue;
		ret = btl_mr_open(btl, &btl->devices[i], lane->domain, lane->ep, range,
				  access | BTL_LOCAL_ACCESS, &mem->mr[i]);
		if (ret) {
			close_regions(mem, i);
			return ret;
		}
		mem->handle.keys[i] = fi_mr_key(mem->mr[i]);
		if (!(btl->devices[i].mr_mode & FI_MR_VIRT_ADDR))
			mem->handle.offset |= 1u << i;
	}
	return 0;
}

static struct weft_btl_mem **mem_list(struct weft_btl *btl, uint64_t id)
{
	return &btl->mems[id % BTL_MEM_BINS];
}

const struct btl_handle *btl_mem_find_locked(const struct weft_btl *btl, uint64_t id)
{
	const struct weft_btl_mem *mem = btl->mems[id % BTL_MEM_BINS];

	while (mem && mem->handle.mem != id)
		mem = mem->next;
	return mem ? &mem->handle : NULL;
}

int weft_btl_mem_open(struct weft_btl *btl, void *addr, size_t len, uint64_t access,
		      struct weft_btl_mem **out)
{
	struct iovec range = { addr, len };
	struct weft_btl_mem *mem, **list;
	int ret;

	if (!btl || !out || !len || (uintptr_t)addr + (len - 1) < (uintptr_t)addr ||
	    access & ~(uint64_t)(FI_REMOTE_READ | FI_REMOTE_WRITE))
		return -FI_EINVAL;
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -FI_ENOMEM;
	mem->btl = btl;
	mem->handle = (struct btl_handle){
		.id = btl->id,
		.addr = (uintptr_t)addr,
		.len = len,
		.access = access,
		.cnt = btl->device_cnt,
	};
	ret = btl_random(&mem->handle.mem);
	if (!ret)
		ret = open_regions(mem, &range, access);
	if (ret) {
		free(mem);
		return ret;
	}
	pthread_mutex_lock(&btl->lock);
	btl->mem_cnt++;
	mem->serial = ++btl->mem_last;
	list = mem_list(btl, mem->handle.mem);
	mem->next = *list;
	*list = mem;
	pthread_mutex_unlock(&btl->lock);
	*out = mem;
	return 0;
}

/* Peers ask for it in vain from here on. */
static void mem_unlist_locked(struct weft_btl_mem *mem)
{
	struct weft_btl_mem **at = mem_list(mem->btl, mem->handle.mem);

	while (*at && *at != mem)
		at = &(*at)->next;
	if (*at)
		*at = mem->next;
	/* contexts give up what they keep of it themselves */
	atomic_fetch_add_explicit(&mem->btl->mem_closes, 1, memory_order_relaxed);
}

int weft_btl_mem_close(struct weft_btl_mem *mem)
{
	struct weft_btl *btl;
	int ret;

	if (!mem)
		return -FI_EINVAL;
	btl = mem->btl;
	pthread_mutex_lock(&btl->lock);
	mem_unlist_locked(mem);
	pthread_mutex_unlock(&btl->lock);
	ret = close_regions(mem, btl->device_cnt);
	if (ret)
		return ret;
	pthread_mutex_lock(&btl->lock);
	btl->mem_cnt--;
	pthread_mutex_unlock(&btl->lock);
	free(mem);
	return 0;
}

size_t weft_btl_mem_handle(const struct weft_btl_mem *mem, void *handle)
{
	return btl_handle_write(&mem->handle, handle);
}
