/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The matcher: see match.h for what it promises. Called by the engine on the thread that
 * holds the endpoint's domain.
 *
 * Invariants. A receive is the only one, or in the list of all; there the entered ones come first,
 * each in its bin or in the plain list. In both of these, receives are in post order: the first
 * that fits is the earliest of its class, and the earliest of all is the least of at most
 * one per class. A class has entered a prefix of the stored messages, up to and including
 * 'last': what it finds in its bins stands before anything it has not entered yet.
 */
#include <rdma/fi_types.h>
#include "match.h"

#define NO_CLASS   MATCH_CLASS_MAX
#define FRESH	   (MATCH_CLASS_MAX + 1) /* a receive that is not entered */
#define LOOK_FIRST 4u	      /* stored messages compared before the bins of a class */
#define BIN_MAX	   (1u << 20) /* of a class */
#define MISSES	   16u	      /* requests without a class until one changes hands */

static uint32_t bin_cnt(const struct match_bins *b)
{
	return 1u << (64 - b->shift);
}

static struct list *new_heads(uint32_t cnt)
{
	struct list *heads = platform_alloc(cnt * sizeof(*heads));

	for (uint32_t i = 0; heads && i < cnt; i++)
		list_init(&heads[i]);
	return heads;
}

/* @source is MATCH_ANY_SOURCE in a class without; @key has no ignored bits. */
static inline struct list *bin_of(const struct match *m, const struct match_bins *b,
				  uint64_t source, uint64_t key)
{
	uint64_t h = key ^ source * 0x9e3779b97f4a7c15ull;

	return &b->heads[h * m->mult >> b->shift];
}

static inline bool recv_fits(const struct match_recv *r, uint64_t source, uint64_t tag)
{
	return match_fits(r->source, r->tag, r->ignore, source, tag);
}

static inline struct match_recv *recv_of(struct list *node)
{
	return container_of(node, struct match_recv, all);
}

static inline struct match_recv *entered_recv_of(struct list *node)
{
	return container_of(node, struct match_recv, bin);
}

static inline struct match_msg *msg_of(struct list *node)
{
	return container_of(node, struct match_msg, all);
}

/* The message that is linked by its bins[class_idx]. */
static inline struct match_msg *entered_msg_of(struct list *node, uint32_t class_idx)
{
	return container_of(node - class_idx, struct match_msg, bins);
}

struct match *match_create(void)
{
	struct match *m = platform_alloc(sizeof(*m));

	if (!m)
		return NULL;
	/* Without randomness matching is right all the same. */
	if (platform_random(&m->mult, sizeof(m->mult)))
		m->mult = 0xd6e8feb86659fd93ull;
	m->mult |= 1;
	list_init(&m->stored);
	list_init(&m->recvs);
	m->fresh = &m->recvs;
	list_init(&m->plain);
	return m;
}

void match_destroy(struct match *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->class_cnt; i++) {
		platform_free(m->classes[i].recvs.heads);
		platform_free(m->classes[i].msgs.heads);
	}
	platform_free(m);
}

/* Makes class @idx forget the messages it has entered. */
static void class_forget(struct match *m, uint32_t idx)
{
	struct match_class *c = &m->classes[idx];

	while (c->last != &m->stored) {
		msg_of(c->last)->classes &= ~(1u << idx);
		c->last = c->last->prev;
	}
	for (uint32_t i = 0; c->msgs.cnt && i < bin_cnt(&c->msgs); i++)
		list_init(&c->msgs.heads[i]);
	c->msgs.cnt = 0;
}

/* A class for this kind of receive, when none has it yet; or NO_CLASS. */
static __attribute__((noinline)) uint32_t class_make(struct match *m, bool directed,
						     uint64_t ignore)
{
	uint32_t idx = m->class_cnt;
	struct match_class *c;

	if (idx < MATCH_CLASS_MAX) {
		struct list *recvs = new_heads(MATCH_BIN_CNT);
		struct list *msgs = new_heads(MATCH_BIN_CNT);

		if (!recvs || !msgs) {
			platform_free(recvs);
			platform_free(msgs);
			return NO_CLASS;
		}
		c = &m->classes[idx];
		c->recvs.heads = recvs;
		c->msgs.heads = msgs;
		c->recvs.shift = c->msgs.shift = 64 - (uint32_t)__builtin_ctz(MATCH_BIN_CNT);
		c->recvs.full = c->msgs.full = 2 * MATCH_BIN_CNT;
		c->last = &m->stored;
		m->class_cnt++;
	} else {
		/*
		 * A program that goes through many masks must not have messages entered anew for
		 * each of them: most of its requests walk the list instead.
		 */
		if (++m->misses < MISSES)
			return NO_CLASS;
		idx = m->victim;
		m->victim = (m->victim + 1) % MATCH_CLASS_MAX;
		c = &m->classes[idx];
		if (c->recvs.cnt)
			return NO_CLASS;
		m->misses = 0;
		class_forget(m, idx);
	}
	c->directed = directed;
	c->ignore = ignore;
	return idx;
}

static inline uint32_t class_of(struct match *m, bool directed, uint64_t ignore)
{
	for (uint32_t i = 0; i < m->class_cnt; i++) {
		if (m->classes[i].ignore == ignore && m->classes[i].directed == directed)
			return i;
	}
	return class_make(m, directed, ignore);
}

static inline bool bins_full(const struct match_bins *b)
{
	return unlikely(b->cnt > b->full) && bin_cnt(b) < BIN_MAX;
}

/*
 * Twice the bins. The bin is the top of the hash, so bin i is spread over 2i and 2i + 1, each
 * in the order there was.
 */
static __attribute__((noinline)) void recvs_spread(struct match *m, struct match_class *c)
{
	uint32_t cnt = bin_cnt(&c->recvs);
	struct match_bins to = { .heads = new_heads(2 * cnt),
				 .shift = c->recvs.shift - 1,
				 .cnt = c->recvs.cnt,
				 .full = 2 * c->recvs.full };
	struct list *node;

	if (!to.heads)
		return;
	for (uint32_t i = 0; i < cnt; i++) {
		while ((node = list_pop(&c->recvs.heads[i]))) {
			struct match_recv *r = entered_recv_of(node);

			list_add_tail(bin_of(m, &to, r->source, r->tag & ~c->ignore), node);
		}
	}
	platform_free(c->recvs.heads);
	c->recvs = to;
}

static __attribute__((noinline)) void msgs_spread(struct match *m, struct match_class *c,
						  uint32_t idx)
{
	uint32_t cnt = bin_cnt(&c->msgs);
	struct match_bins to = { .heads = new_heads(2 * cnt),
				 .shift = c->msgs.shift - 1,
				 .cnt = c->msgs.cnt,
				 .full = 2 * c->msgs.full };
	struct list *node;

	if (!to.heads)
		return;
	for (uint32_t i = 0; i < cnt; i++) {
		while ((node = list_pop(&c->msgs.heads[i]))) {
			struct match_msg *msg = entered_msg_of(node, idx);
			uint64_t source = c->directed ? msg->source : MATCH_ANY_SOURCE;

			list_add_tail(bin_of(m, &to, source, msg->tag & ~c->ignore), node);
		}
	}
	platform_free(c->msgs.heads);
	c->msgs = to;
}

/* Posts a receive that is not the only one. */
static inline void post_listed(struct match *m, struct match_recv *recv)
{
	recv->class_idx = FRESH;
	list_add_tail(&m->recvs, &recv->all);
	if (m->fresh == &m->recvs)
		m->fresh = &recv->all;
}

static void recv_enter(struct match *m, struct match_recv *recv)
{
	uint32_t idx = class_of(m, recv->source != MATCH_ANY_SOURCE, recv->ignore);
	struct match_class *c;

	recv->class_idx = idx;
	recv->order = m->order++;
	m->entered_cnt++;
	if (unlikely(idx == NO_CLASS)) {
		list_add_tail(&m->plain, &recv->bin);
		return;
	}
	c = &m->classes[idx];
	if (bins_full(&c->recvs))
		recvs_spread(m, c);
	list_add_tail(bin_of(m, &c->recvs, recv->source, recv->tag & ~recv->ignore), &recv->bin);
	c->recvs.cnt++;
}

void match_post_next(struct match *m, struct match_recv *recv)
{
	struct match_recv *only = m->only;

	m->only = NULL;
	if (only)
		post_listed(m, only);
	post_listed(m, recv);
}

void match_unpost_listed(struct match *m, struct match_recv *recv)
{
	if (m->fresh == &recv->all)
		m->fresh = recv->all.next;
	list_remove(&recv->all);
	if (likely(recv->class_idx == FRESH))
		return;
	list_remove(&recv->bin);
	m->entered_cnt--;
	if (likely(recv->class_idx != NO_CLASS))
		m->classes[recv->class_idx].recvs.cnt--;
}

/* The first receive of a class that fits, left in place; or NULL. */
static inline struct match_recv *class_first(const struct match *m, const struct match_class *c,
					     uint64_t source, uint64_t tag)
{
	struct list *bin = bin_of(m, &c->recvs, c->directed ? source : MATCH_ANY_SOURCE,
				  tag & ~c->ignore);

	for (struct list *node = bin->next; node != bin; node = node->next)
		if (likely(recv_fits(entered_recv_of(node), source, tag)))
			return entered_recv_of(node);
	return NULL;
}

/* Receives of several classes are entered, or some without a class. */
static __attribute__((noinline)) struct match_recv *arrive_several(struct match *m,
								   uint64_t source, uint64_t tag)
{
	struct match_recv *first = NULL;
	struct list *node;

	for (struct match_class *c = m->classes; c < m->classes + m->class_cnt; c++) {
		struct match_recv *r = c->recvs.cnt ? class_first(m, c, source, tag) : NULL;

		if (r && (!first || r->order < first->order))
			first = r;
	}

	for (node = m->plain.next; unlikely(node != &m->plain); node = node->next) {
		struct match_recv *r = entered_recv_of(node);

		if (first && r->order > first->order)
			break;
		if (recv_fits(r, source, tag)) {
			first = r;
			break;
		}
	}
	return first;
}

/* The first receive that fits, by the bins. */
static __attribute__((noinline)) struct match_recv *arrive_entered(struct match *m,
								   uint64_t source, uint64_t tag)
{
	struct match_class *c = m->classes;

	for (; m->fresh != &m->recvs; m->fresh = m->fresh->next)
		recv_enter(m, recv_of(m->fresh));
	while (c < m->classes + m->class_cnt && !c->recvs.cnt)
		c++;
	/* Mostly all that are posted are of one class. */
	if (unlikely(c == m->classes + m->class_cnt || c->recvs.cnt != m->entered_cnt))
		return arrive_several(m, source, tag);
	return class_first(m, c, source, tag);
}

struct match_recv *match_arrive_listed(struct match *m, uint64_t source, uint64_t tag)
{
	struct match_recv *first = recv_of(m->recvs.next);

	return likely(recv_fits(first, source, tag)) ? first : arrive_entered(m, source, tag);
}

void match_store(struct match *m, struct match_msg *msg)
{
	msg->classes = 0;
	list_add_tail(&m->stored, &msg->all);
}

/* Enters the message that follows the last one. */
static struct match_msg *class_enter(struct match *m, struct match_class *c, uint32_t idx)
{
	struct match_msg *msg = msg_of(c->last->next);
	uint64_t source = c->directed ? msg->source : MATCH_ANY_SOURCE;

	if (bins_full(&c->msgs))
		msgs_spread(m, c, idx);
	list_add_tail(bin_of(m, &c->msgs, source, msg->tag & ~c->ignore), &msg->bins[idx]);
	c->msgs.cnt++;
	c->last = &msg->all;
	msg->classes |= 1u << idx;
	return msg;
}

/*
 * The rest of match_find_stored(), past the first few messages. @node: the first one that was not
 * compared
 */
static __attribute__((noinline)) struct match_msg *find_far(struct match *m, struct list *node,
							    uint64_t source, uint64_t tag,
							    uint64_t ignore)
{
	uint32_t idx = class_of(m, source != MATCH_ANY_SOURCE, ignore);
	struct match_class *c;
	struct list *bin;

	if (unlikely(idx == NO_CLASS)) {
		for (; node != &m->stored; node = node->next) {
			struct match_msg *msg = msg_of(node);

			if (match_fits(source, tag, ignore, msg->source, msg->tag))
				return msg;
		}
		return NULL;
	}

	c = &m->classes[idx];
	bin = bin_of(m, &c->msgs, source, tag & ~ignore);
	for (node = bin->next; node != bin; node = node->next) {
		struct match_msg *msg = entered_msg_of(node, idx);

		if (match_fits(source, tag, ignore, msg->source, msg->tag))
			return msg;
	}
	while (c->last->next != &m->stored) {
		struct match_msg *msg = class_enter(m, c, idx);

		if (match_fits(source, tag, ignore, msg->source, msg->tag))
			return msg;
	}
	return NULL;
}

struct match_msg *match_find_stored(struct match *m, uint64_t source, uint64_t tag,
				    uint64_t ignore)
{
	struct list *node = m->stored.next;

	for (uint32_t i = 0; i < LOOK_FIRST; i++, node = node->next) {
		struct match_msg *msg = msg_of(node);

		if (node == &m->stored)
			return NULL;
		if (match_fits(source, tag, ignore, msg->source, msg->tag))
			return msg;
	}
	return find_far(m, node, source, tag, ignore);
}

void match_take(struct match *m, struct match_msg *msg)
{
	for (uint32_t left = msg->classes; left; left &= left - 1) {
		uint32_t idx = (uint32_t)__builtin_ctz(left);
		struct match_class *c = &m->classes[idx];

		if (c->last == &msg->all)
			c->last = msg->all.prev;
		list_remove(&msg->bins[idx]);
		c->msgs.cnt--;
	}
	list_remove(&msg->all);
}

void match_rename(struct match *m, struct match_msg *msg, uint64_t source)
{
	/* Where its bin is depends on the source: what has entered that one enters anew, in order. */
	for (uint32_t i = 0; i < m->class_cnt; i++)
		if (m->classes[i].directed)
			class_forget(m, i);
	msg->source = source;
}

struct match_recv *match_next_recv(const struct match *m, const struct match_recv *recv)
{
	const struct list *next;

	if (m->only)
		return recv ? NULL : m->only;
	next = recv ? recv->all.next : m->recvs.next;
	return next == &m->recvs ? NULL : container_of(next, struct match_recv, all);
}

struct match_msg *match_next_msg(struct match *m, struct match_msg *msg)
{
	struct list *next = msg ? msg->all.next : m->stored.next;

	return next == &m->stored ? NULL : container_of(next, struct match_msg, all);
}
