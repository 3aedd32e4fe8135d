/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs over a bridge; bridged.h has the contract. */
#define _GNU_SOURCE
#include "bridged.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bar.h"
#include "bridge.h"
#include "nvme.h"

/* Pages of a command's data at most: the first one, and those of a list that is one page */
#define PAGES_MAX 256u

/* struct carried - the data of a command; @reads: it goes to @buf when the command has ended */
struct carried {
	uint8_t *buf;
	size_t len;
	uint32_t cnt;
	bool reads;
	uint16_t pages[PAGES_MAX];
};

/*
 * struct bridge_pair
 * @data, @data_addr: pages for data, for this process and for the device
 * @free: those that no command has
 * @carried: by command
 * @beat, @beat_ms: what the controller has counted to, and when that was new
 * @ended: it was seen to be over, and stays so
 */
struct bridge_pair {
	struct bar bar;
	struct bridge_head *head;
	struct bridge_words *words;
	uint64_t key;
	uint8_t *data;
	uint64_t data_addr;
	uint32_t free_cnt;
	uint16_t free[BRIDGE_DATA_PAGES];
	struct carried *carried;
	uint64_t beat;
	uint64_t beat_ms;
	bool ended;
};

bool bridge_is_place(const void *answer, uint32_t len)
{
	struct bridge_place place;

	if (len != sizeof(place))
		return false;
	memcpy(&place, answer, sizeof(place));
	return place.magic == BRIDGE_MAGIC;
}

/* A place as a lender may have it */
static bool is_sound(const struct bridge_place *place, const struct weft_nvme *qp)
{
	return place->version == BRIDGE_VERSION && place->depth == qp->depth &&
	       place->pages == BRIDGE_DATA_PAGES && place->offset % NVME_PAGE == 0 &&
	       place->addr % NVME_PAGE == 0 &&
	       place->len == bridge_parts(place->depth, place->pages).len &&
	       place->addr <= UINT64_MAX - place->len;
}

static void lay_out(struct weft_nvme *qp, const struct bridge_place *place)
{
	struct bridge_parts parts = bridge_parts(place->depth, place->pages);
	struct bridge_pair *b = qp->bridge;
	uint8_t *mem = b->bar.mem + place->offset;

	b->head = (struct bridge_head *)b->bar.mem;
	b->words = (struct bridge_words *)mem;
	b->key = place->key;
	b->data = mem + parts.data;
	b->data_addr = place->addr + parts.data;
	qp->sq = (struct nvme_sqe *)(mem + parts.sq);
	qp->cq = (struct nvme_cqe *)(mem + parts.cq);
	qp->lists = (uint64_t(*)[NVME_PAGE / 8])(mem + parts.lists);
	qp->lists_addr = place->addr + parts.lists;
	qp->sq_bell = &b->words->sq_tail;
	qp->cq_bell = &b->words->cq_head;
	for (uint32_t i = 0; i < BRIDGE_DATA_PAGES; i++)
		b->free[b->free_cnt++] = (uint16_t)(BRIDGE_DATA_PAGES - 1 - i);
}

int bridge_open(struct weft_nvme *qp, const struct bridge_place *place)
{
	struct bridge_pair *b;
	int err;

	if (!is_sound(place, qp))
		return -ENOPROTOOPT;
	if (qp->blocking)
		return -EOPNOTSUPP;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	qp->bridge = b;
	b->carried = calloc(qp->depth, sizeof(*b->carried));
	if (!b->carried)
		return -ENOMEM;
	err = bar_find(&b->bar, getenv("WEFT_BRIDGE"), place->key);
	if (err)
		return err;
	if (place->offset > b->bar.len || place->len > b->bar.len - place->offset)
		return -ENOPROTOOPT;
	lay_out(qp, place);
	return 0;
}

void bridge_close(struct weft_nvme *qp)
{
	bar_close(&qp->bridge->bar);
	free(qp->bridge->carried);
	free(qp->bridge);
	qp->bridge = NULL;
}

static uint8_t *page_at(const struct bridge_pair *b, uint16_t page)
{
	return b->data + (size_t)page * NVME_PAGE;
}

static uint64_t page_addr(const struct bridge_pair *b, uint16_t page)
{
	return b->data_addr + (uint64_t)page * NVME_PAGE;
}

/* Between the program's memory and a command's pages */
static void carry(const struct bridge_pair *b, const struct carried *c, bool in)
{
	for (uint32_t i = 0; i < c->cnt; i++) {
		size_t at = (size_t)i * NVME_PAGE;
		size_t len = c->len - at < NVME_PAGE ? c->len - at : NVME_PAGE;

		if (in)
			memcpy(page_at(b, c->pages[i]), c->buf + at, len);
		else
			memcpy(c->buf + at, page_at(b, c->pages[i]), len);
	}
}

static void point(struct weft_nvme *qp, struct nvme_sqe *sqe, uint16_t cid,
		  const struct carried *c)
{
	const struct bridge_pair *b = qp->bridge;

	sqe->prp1 = page_addr(b, c->pages[0]);
	for (uint32_t i = 1; i < c->cnt; i++)
		qp->lists[cid][i - 1] = page_addr(b, c->pages[i]);
	if (c->cnt == 2)
		sqe->prp2 = page_addr(b, c->pages[1]);
	else if (c->cnt > 2)
		sqe->prp2 = qp->lists_addr + (uint64_t)cid * NVME_PAGE;
}

int bridge_point(struct weft_nvme *qp, struct nvme_sqe *sqe, uint16_t cid, void *buf,
		 size_t len, uint32_t access)
{
	struct bridge_pair *b = qp->bridge;
	struct carried *c = &b->carried[cid];
	size_t cnt = (len + NVME_PAGE - 1) / NVME_PAGE;
	int err;

	if (!nvme_span(qp, buf, len, access, &err))
		return err;
	if (cnt > PAGES_MAX)
		return -EMSGSIZE;
	if (cnt > b->free_cnt)
		return -EAGAIN;
	c->buf = buf;
	c->len = len;
	c->reads = access & WEFT_WINDOW_WRITE;
	for (c->cnt = 0; c->cnt < cnt; c->cnt++)
		c->pages[c->cnt] = b->free[--b->free_cnt];
	if (!c->reads)
		carry(b, c, true);
	point(qp, sqe, cid, c);
	return 0;
}

void bridge_done(struct weft_nvme *qp, uint16_t cid, bool good)
{
	struct bridge_pair *b = qp->bridge;
	struct carried *c = &b->carried[cid];

	if (good && c->reads)
		carry(b, c, false);
	for (uint32_t i = 0; i < c->cnt; i++)
		b->free[b->free_cnt++] = c->pages[i];
	c->cnt = 0;
	c->len = 0;
}

int bridge_ended(struct weft_nvme *qp, bool look)
{
	struct bridge_pair *b = qp->bridge;
	uint64_t beat, now;

	/* A:bridge.ended  what the controller did before it said so; pairs R:bridge.ended */
	if (__atomic_load_n(&b->words->ended, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&b->head->key, __ATOMIC_RELAXED) != b->key)
		b->ended = true;
	if (b->ended || !look)
		return b->ended ? -ESTALE : 0;
	beat = __atomic_load_n(&b->head->beat, __ATOMIC_RELAXED);
	now = client_now_ms();
	if (beat != b->beat || !b->beat_ms) {
		b->beat = beat;
		b->beat_ms = now;
	}
	b->ended = now - b->beat_ms > BRIDGE_SILENT_MS;
	return b->ended ? -ESTALE : 0;
}
