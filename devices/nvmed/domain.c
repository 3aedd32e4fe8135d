/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Windows of domains: checking what is to be mapped, mapping it, and unmapping it once nobody is in it. */
#define _GNU_SOURCE
#include "domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvme/spec.h"
#include "slot/file.h"
#include "slot/slot.h"

/* The number of windows that begin at or below @addr */
static uint32_t domain_rank(const struct domain *d, uint64_t addr)
{
	uint32_t low = 0, high = d->cnt;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (d->windows[mid]->addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct window *domain_search(struct domain *d, uint64_t addr)
{
	uint32_t rank = domain_rank(d, addr);
	struct window *w = rank ? d->windows[rank - 1] : NULL;

	if (!w || addr - w->addr >= w->len)
		return NULL;
	d->last = w;
	return w;
}

/* Returns false where others are to have what the window would take. */
static bool charge(struct domain *d, struct window *w, struct budget_use use)
{
	if (!d->budget)
		return true;
	if (!budget_take(d->budget, &d->use, use))
		return false;
	w->use = use;
	return true;
}

static void uncharge(struct domain *d, struct window *w)
{
	if (d->budget)
		budget_give(d->budget, &d->use, w->use);
}

static void window_free(struct window *w)
{
	if (w->hooks && !w->hooks->go(w->hooks->arg, w))
		return;
	uncharge(w->home, w);
	for (uint32_t i = 0; i < w->file_cnt; i++) {
		if (w->files[i].fd < 0)
			continue;
		if (!w->files[i].named)
			munmap(w->files[i].base, w->len);
		close(w->files[i].fd);
	}
	free(w);
}

static int request_check(const struct domain *d, const struct domain_request *req)
{
	uint64_t end;

	if (!req->len || (req->addr | req->len | req->offset) % NVME_PAGE ||
	    __builtin_add_overflow(req->addr, req->len - 1, &end) ||
	    __builtin_add_overflow(req->offset, req->len, &end) || end > INT64_MAX)
		return -EINVAL;
	if (!req->access || req->access & ~(SLOT_DMA_READ | SLOT_DMA_WRITE))
		return -EINVAL;
	if (!req->fd_cnt || req->fd_cnt > SLOT_FDS_MAX)
		return -EINVAL;
	if (d->cnt == DOMAIN_WINDOWS_MAX)
		return -ENOMEM;
	return 0;
}

static bool domain_overlaps(const struct domain *d, uint64_t addr, uint64_t len)
{
	uint32_t rank = domain_rank(d, addr + len - 1);
	const struct window *w = rank ? d->windows[rank - 1] : NULL;

	return w && (w->addr >= addr || addr - w->addr < w->len);
}

static int domain_insert(struct domain *d, struct window *w)
{
	uint32_t rank = domain_rank(d, w->addr);

	if (d->cnt == d->room) {
		uint32_t room = d->room ? 2 * d->room : 8;
		struct window **more = reallocarray(d->windows, room, sizeof(struct window *));

		if (!more)
			return -ENOMEM;
		d->windows = more;
		d->room = room;
	}
	memmove(d->windows + rank + 1, d->windows + rank, (d->cnt - rank) * sizeof(w));
	d->windows[rank] = w;
	d->cnt++;
	w->domain = d;
	w->home = d;
	return 0;
}

static struct window *window_new(uint64_t addr, uint64_t len, uint32_t file_cnt)
{
	struct window *w = calloc(1, sizeof(*w) + file_cnt * sizeof(w->files[0]));

	if (!w)
		return NULL;
	w->addr = addr;
	w->len = len;
	return w;
}

/* Map each file of a request; @w has those that are mapped, also on error. */
static int window_fill(struct window *w, const struct domain_request *req)
{
	int prot = (req->access & SLOT_DMA_READ ? PROT_READ : 0) |
		   (req->access & SLOT_DMA_WRITE ? PROT_WRITE : 0);

	for (uint32_t i = 0; i < req->fd_cnt; i++) {
		int ret = slot_file_check(req->fds[i], req->offset + req->len);
		void *base;

		if (ret)
			return ret;
		base = mmap(NULL, req->len, prot, MAP_SHARED, req->fds[i], (off_t)req->offset);
		if (base == MAP_FAILED)
			return errno == ENOMEM ? -ENOMEM : -EBADF;
		w->files[w->file_cnt++] = (struct window_file){ .base = base,
								.fd = req->fds[i] };
	}
	return 0;
}

int domain_map(struct domain *d, const struct domain_request *req)
{
	int ret = request_check(d, req);
	struct window *w;
	struct budget_use use = { .files = req->fd_cnt };

	if (ret)
		return ret;
	if (__builtin_mul_overflow(req->len, req->fd_cnt, &use.bytes))
		return -ENOMEM;
	if (domain_overlaps(d, req->addr, req->len))
		return -EEXIST;
	w = window_new(req->addr, req->len, req->fd_cnt);
	if (!w)
		return -ENOMEM;
	w->offset = req->offset;
	w->access = req->access;
	ret = charge(d, w, use) ? window_fill(w, req) : -ENOMEM;
	if (!ret && d->hooks)
		ret = d->hooks->come(d->hooks->arg, w);
	if (!ret) {
		w->hooks = d->hooks;
		ret = domain_insert(d, w);
	}
	if (!ret)
		return 0;
	if (w->hooks && !w->hooks->go(w->hooks->arg, w))
		return ret;
	for (uint32_t i = 0; i < w->file_cnt; i++)
		munmap(w->files[i].base, w->len);
	uncharge(d, w);
	free(w);
	return ret;
}

int domain_map_own(struct domain *d, uint64_t addr, uint64_t len, uint8_t *base,
		   uint64_t device_addr)
{
	struct window *w;
	int ret;

	if (domain_overlaps(d, addr, len))
		return -EEXIST;
	w = window_new(addr, len, 1);
	if (!w)
		return -ENOMEM;
	w->access = SLOT_DMA_READ | SLOT_DMA_WRITE;
	w->file_cnt = 1;
	w->files[0] = (struct window_file){ .base = base, .fd = -1 };
	w->device_addr = device_addr;
	ret = domain_insert(d, w);
	if (ret)
		free(w);
	return ret;
}

int domain_map_named(struct domain *d, const struct domain_request *req, uint8_t *base,
		     uint64_t len, uint64_t device_addr, const struct window_hooks *hooks)
{
	struct window *w;
	int ret = request_check(d, req);

	if (ret)
		return ret;
	if (req->fd_cnt != 1)
		return -EBADF;
	if (req->offset || req->len != len)
		return -EINVAL;
	ret = domain_map_own(d, req->addr, len, base, device_addr);
	if (ret)
		return ret;
	w = domain_search(d, req->addr);
	if (!charge(d, w, (struct budget_use){ .files = 1 })) {
		domain_unmap(d, req->addr, req->len);
		return -ENOMEM;
	}
	w->access = req->access;
	w->files[0].fd = req->fds[0];
	w->files[0].named = true;
	w->hooks = hooks;
	return 0;
}

static void window_leave(struct domain *d, struct window *w)
{
	w->domain = NULL;
	if (!w->users) {
		window_free(w);
		return;
	}
	w->next = d->leaving;
	d->leaving = w;
}

int domain_unmap(struct domain *d, uint64_t addr, uint64_t len)
{
	uint32_t rank = domain_rank(d, addr);
	struct window *w = rank ? d->windows[rank - 1] : NULL;

	if (!w || w->addr != addr || w->len != len)
		return -ENOENT;
	d->cnt--;
	memmove(d->windows + rank - 1, d->windows + rank,
		(d->cnt - (rank - 1)) * sizeof(struct window *));
	if (d->last == w)
		d->last = NULL;
	window_leave(d, w);
	return 0;
}

bool domain_leaves(const struct domain *d, uint64_t addr, uint64_t len)
{
	const struct window *w = d->leaving;

	while (w && (w->addr != addr || w->len != len))
		w = w->next;
	return w;
}

bool domain_unmap_named(struct domain *d, const uint8_t *base)
{
	bool any = false;
	uint32_t i = 0;

	while (i < d->cnt) {
		const struct window *w = d->windows[i];

		if (!w->files[0].named || w->files[0].base != base) {
			i++;
			continue;
		}
		domain_unmap(d, w->addr, w->len);
		any = true;
	}
	return any;
}

void domain_clear(struct domain *d)
{
	for (uint32_t i = 0; i < d->cnt; i++)
		window_leave(d, d->windows[i]);
	free(d->windows);
	d->windows = NULL;
	d->last = NULL;
	d->cnt = d->room = 0;
}

void window_put(struct window *w)
{
	struct window **at = &w->home->leaving;

	if (--w->users || w->domain)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	window_free(w);
}
