/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs in a BAR; relay.h has the contract. */
#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "bar.h"
#include "bridge.h"
#include "nvmed/nvmed.h"
#include "nvmed/remote.h"

#define NS_PER_MS 1000000u

/*
 * struct pair - a slice of the BAR
 * @sq_tail, @cq_head: doorbells as they were passed on last
 * @over: its queues have ended; it goes once nothing of its lease is under way
 */
struct pair {
	struct pair *next;
	struct bridge_words *words;
	uint64_t offset;
	uint64_t len;
	uint32_t lease;
	uint16_t qid;
	bool over;
	uint32_t sq_tail;
	uint32_t cq_head;
};

/*
 * struct relay
 * @whole: the window by which the backend's device reaches all of the BAR, as long as it is open; NULL: there is none
 * @pairs: by offset
 * @beat_ns: when the head was written last
 */
struct relay {
	struct remote remote;
	struct nvmed *c;
	struct bar bar;
	struct window *whole;
	struct pair *pairs;
	uint64_t key;
	uint64_t beat_ns;
};

static struct relay *relay_of(const struct remote *r)
{
	return (struct relay *)r;
}

static struct bridge_head *head_of(const struct relay *b)
{
	return (struct bridge_head *)b->bar.mem;
}

static struct domain *domain_of(const struct relay *b, uint32_t lease)
{
	return &b->c->leases.each[lease].domain;
}

/* Room in the BAR, and which pair comes after it. Returns whether there is some */
static bool room_find(struct relay *b, uint64_t len, uint64_t *offset, struct pair ***at)
{
	*offset = sizeof(struct bridge_head);
	for (*at = &b->pairs; **at; *at = &(**at)->next) {
		if ((**at)->offset - *offset >= len)
			return true;
		*offset = (**at)->offset + (**at)->len;
	}
	return b->bar.len - *offset >= len;
}

static void pair_free(struct relay *b, struct pair *p)
{
	struct pair **at = &b->pairs;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

static int pair_make(struct relay *b, struct pair *p, uint32_t depth)
{
	struct bridge_parts parts = bridge_parts(depth, BRIDGE_DATA_PAGES);
	uint8_t *mem = b->bar.mem + p->offset;
	uint64_t device = b->whole ? b->whole->device_addr + p->offset : 0;
	int err;

	/* What another lease has had there is not for this one. */
	memset(mem, 0, p->len);
	p->words = (struct bridge_words *)mem;
	err = domain_map_own(domain_of(b, p->lease), REMOTE_ADDR(p->qid), p->len, mem, device);
	if (err)
		return err;
	err = remote_queues_make(b->c, p->lease, p->qid, depth + 1, parts.sq, parts.cq);
	if (err && !p->over)
		domain_unmap(domain_of(b, p->lease), REMOTE_ADDR(p->qid), p->len);
	return err;
}

static int open_pair(struct remote *r, uint32_t lease, uint16_t qid, uint32_t depth,
		     void *place, uint32_t *len)
{
	struct bridge_place answer = { .magic = BRIDGE_MAGIC, .version = BRIDGE_VERSION };
	struct relay *b = relay_of(r);
	int err = remote_refusal(b->c, lease, qid, depth, BRIDGE_DEPTH_MAX);
	struct pair *p, **at;

	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct pair){ .qid = qid, .lease = lease };
	p->len = bridge_parts(depth, BRIDGE_DATA_PAGES).len;
	if (*len < sizeof(answer) || !room_find(b, p->len, &p->offset, &at)) {
		free(p);
		return -ENOSPC;
	}
	p->next = *at;
	*at = p;
	err = pair_make(b, p, depth);
	if (err) {
		pair_free(b, p);
		return err;
	}
	answer.depth = depth;
	answer.key = b->key;
	answer.offset = p->offset;
	answer.len = p->len;
	answer.addr = REMOTE_ADDR(qid);
	answer.pages = BRIDGE_DATA_PAGES;
	memcpy(place, &answer, sizeof(answer));
	*len = sizeof(answer);
	return 0;
}

/* Pass the doorbells of a pair on. Returns whether one was rung */
static bool pass_on(struct relay *b, struct pair *p)
{
	struct slot_doorbells *page = b->c->bells[p->qid].page;
	/* A:doorbell  entries before it; pairs R:doorbell of the borrower */
	uint32_t tail = doorbell_load(&p->words->sq_tail);
	uint32_t head = doorbell_load(&p->words->cq_head);
	bool rung = tail != p->sq_tail || head != p->cq_head;

	doorbell_store(&p->words->pong, doorbell_peek(&p->words->ping));
	if (!rung || !page)
		return false;
	doorbell_store(&page->cq_head, p->cq_head = head);
	doorbell_store(&page->sq_tail, p->sq_tail = tail);
	return true;
}

static void beat(struct relay *b)
{
	uint64_t *at = &head_of(b)->beat;

	if (b->c->now - b->beat_ns < (uint64_t)BRIDGE_BEAT_MS * NS_PER_MS)
		return;
	b->beat_ns = b->c->now;
	__atomic_store_n(at, *at + 1, __ATOMIC_RELAXED);
}

static bool poll_all(struct remote *r)
{
	struct relay *b = relay_of(r);
	struct pair *p, *next;
	bool moved = false;

	for (p = b->pairs; p; p = next) {
		next = p->next;
		if (!p->over)
			moved |= pass_on(b, p);
		else if (!domain_of(b, p->lease)->leaving)
			pair_free(b, p);
	}
	if (b->pairs)
		beat(b);
	return moved;
}

/* Nothing of another machine wakes this one. */
static bool may_sleep(struct remote *r)
{
	return !relay_of(r)->pairs;
}

static void pair_ended(struct remote *r, uint16_t qid)
{
	struct relay *b = relay_of(r);
	struct pair *p = b->pairs;

	while (p && (p->qid != qid || p->over))
		p = p->next;
	if (!p)
		return;
	p->over = true;
	/* R:bridge.ended  completions before it; pairs A:bridge.ended of the borrower */
	__atomic_store_n(&p->words->ended, 1, __ATOMIC_RELEASE);
	remote_window_end(b->c, p->lease, qid, p->len);
}

static const struct remote_ops relay_ops = {
	.open = open_pair,
	.poll = poll_all,
	.sleep = may_sleep,
	.ended = pair_ended,
};

/* The device reaches the BAR as a whole: which of it is whose is checked with each command. */
static int whole_map(struct relay *b)
{
	const struct window_hooks *hooks = b->c->backend->hooks;
	int err;

	if (!hooks)
		return 0;
	b->whole = calloc(1, sizeof(*b->whole) + sizeof(b->whole->files[0]));
	if (!b->whole)
		return -ENOMEM;
	b->whole->len = b->bar.len;
	b->whole->access = SLOT_DMA_READ | SLOT_DMA_WRITE;
	b->whole->file_cnt = 1;
	b->whole->files[0] = (struct window_file){ .base = b->bar.mem, .fd = -1 };
	err = hooks->come(hooks->arg, b->whole);
	if (err) {
		free(b->whole);
		b->whole = NULL;
	}
	return err;
}

static void head_make(struct relay *b)
{
	struct bridge_head *head = head_of(b);

	__atomic_store_n(&head->key, 0, __ATOMIC_RELAXED);
	memset(head, 0, sizeof(*head));
	head->magic = BRIDGE_MAGIC;
	head->version = BRIDGE_VERSION;
	/* R:key  the head before its key; pairs A:key */
	__atomic_store_n(&head->key, b->key, __ATOMIC_RELEASE);
}

int relay_create(struct nvmed *c, const char *name, struct remote **r)
{
	struct relay *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->remote.ops = &relay_ops;
	b->c = c;
	err = bar_open(&b->bar, name);
	if (!err && getrandom(&b->key, sizeof(b->key), 0) != sizeof(b->key))
		err = -EIO;
	if (!err)
		err = whole_map(b);
	if (err) {
		bar_close(&b->bar);
		free(b);
		return err;
	}
	head_make(b);
	*r = &b->remote;
	return 0;
}

void relay_destroy(struct remote *r)
{
	struct relay *b = relay_of(r);
	struct pair *p;

	__atomic_store_n(&head_of(b)->key, 0, __ATOMIC_RELEASE);
	while ((p = b->pairs)) {
		b->pairs = p->next;
		free(p);
	}
	bar_close(&b->bar);
	free(b->whole);
	free(b);
}
