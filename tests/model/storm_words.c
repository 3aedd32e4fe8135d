/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations of all members on the same words: what each of them is, chosen so that the
 * end is exact in whatever order they come, and what has to stand there then. storm.h has the
 * contract; called by the members.
 */
#include "storm.h"

#define WORDS	   4
#define OPS	   (STORM_SANITIZED ? 16 : 40)
#define OPS_MAX	   40
#define KINDS	   3
#define STORMS_MAX 600

enum kind {
	BASE,
	FETCH,
	COMPARE,
};

/* One operation on one type, by all members, on the words of one of them. */
struct storm {
	enum kind kind;
	enum fi_datatype type;
	enum fi_op op;
	size_t size; /* of an element */
	uint64_t salt;
};

struct element {
	uint8_t bytes[ELEMENT_MAX];
};

/* One operation's buffers. */
struct slot {
	struct storm_op op;
	uint8_t operand[WORDS * ELEMENT_MAX], compare[WORDS * ELEMENT_MAX];
};

/* What was fetched, by target and initiator: elements one behind the other. */
struct fetched {
	uint8_t result[STORM_MEMBERS][STORM_MEMBERS][OPS_MAX][WORDS * ELEMENT_MAX];
};

const size_t storm_words_shared = sizeof(struct fetched);

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t dice(const struct storm *s, int rank, int i, int w)
{
	return mix(mix(s->salt + (uint64_t)rank) + (uint64_t)i * WORDS + (uint64_t)w);
}

/* Each fourth operation is on all words, the others on one of them. */
static int first_of(int i)
{
	return i % 4 == 3 ? 0 : (i + i / 4) % WORDS;
}

static int cnt_of(int i)
{
	return i % 4 == 3 ? WORDS : 1;
}

static bool hits(int i, int w)
{
	return w >= first_of(i) && w < first_of(i) + cnt_of(i);
}

static int hits_cnt(int w)
{
	int cnt = 0;

	for (int i = 0; i < OPS; i++)
		cnt += hits(i, w);
	return cnt * STORM_MEMBERS;
}

/* Readers need a writer. */
static bool writes_for_readers(const struct storm *s, int rank)
{
	return s->op == FI_ATOMIC_READ && rank % 2 == 0;
}

static void word_before(const struct storm *s, int w, void *at)
{
	uint64_t number = 0;

	switch (s->op) {
	case FI_BAND:
		memset(at, 0xff, s->size);
		return;
	case FI_PROD:
	case FI_LAND:
		number = 1;
		break;
	case FI_DIFF:
		number = (uint64_t)hits_cnt(w);
		break;
	case FI_MIN:
	case FI_MAX:
	case FI_ATOMIC_WRITE:
	case FI_CSWAP_LT:
	case FI_CSWAP_GT:
	case FI_MSWAP:
		element_draw(s->type, s->op, dice(s, -1, 0, w), at);
		return;
	default:
		break;
	}
	element_small(s->type, number, at);
}

static void bit(const struct storm *s, uint64_t random, bool others, void *at)
{
	uint8_t *byte = at;
	size_t which = (random >> 8) % (s->size * 8);

	memset(at, others ? 0xff : 0, s->size);
	if (random % 4 == 0)
		byte[which / 8] ^= (uint8_t)(1u << which % 8);
}

static void operand_of(const struct storm *s, int rank, int i, int w, void *at)
{
	uint64_t random = dice(s, rank, i, w);

	switch (s->op) {
	case FI_SUM:
	case FI_DIFF:
		/* Ones: what is fetched covers the range. */
		if (s->kind == FETCH || s->op == FI_DIFF)
			element_small(s->type, 1, at);
		else
			element_draw(s->type, s->op, random, at);
		break;
	case FI_LOR:
		element_small(s->type, w % 2 && random % 16 == 0, at);
		break;
	case FI_LAND:
		element_small(s->type, w % 2 && random % 16 == 0 ? 0 : 3, at);
		break;
	case FI_LXOR:
		element_small(s->type, random % 2 ? 0 : 1 + random % 5, at);
		break;
	case FI_BOR:
	case FI_BAND:
		bit(s, random, s->op == FI_BAND, at);
		break;
	case FI_CSWAP:
		element_small(s->type, random % 4, at);
		break;
	case FI_ATOMIC_READ:
		element_small(s->type, 1 + random % 1000, at);
		break;
	default:
		element_draw(s->type, s->op, random, at);
	}
}

static void compare_of(const struct storm *s, int rank, int i, int w, void *at)
{
	uint64_t random = dice(s, rank, i, w + WORDS * OPS_MAX);
	uint8_t *byte = at;

	if (s->op == FI_CSWAP) {
		element_small(s->type, random % 4, at);
	} else if (s->op == FI_MSWAP) {
		/* A bit of each byte for each member. */
		for (size_t k = 0; k < s->size; k++)
			byte[k] = (uint8_t)(1u << (k + (size_t)rank) % 8);
	} else if (w % 2) {
		element_draw(s->type, s->op, random, at);
	} else {
		operand_of(s, rank, i, w, at);
	}
}

/*
 * Returns true if the order does not matter. On even words the conditional swaps are FI_MIN and
 * FI_MAX.
 */
static bool order_free(const struct storm *s, int w)
{
	switch (s->op) {
	case FI_ATOMIC_READ:
	case FI_ATOMIC_WRITE:
	case FI_CSWAP:
	case FI_CSWAP_NE:
		return false;
	case FI_CSWAP_LT:
	case FI_CSWAP_LE:
	case FI_CSWAP_GT:
	case FI_CSWAP_GE:
		return w % 2 == 0;
	default:
		return true;
	}
}

/* Returns true if the final value is one that a member wrote last. */
static bool last_stays(const struct storm *s, int w)
{
	return s->op == FI_ATOMIC_WRITE || s->op == FI_ATOMIC_READ ||
	       (s->op == FI_CSWAP_NE && w % 2 == 0);
}

/* All that the provider has. */
static int storms_list(struct member *m, struct storm *list)
{
	static const uint64_t flags[KINDS] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };
	struct fi_atomic_attr attr;
	int cnt = 0;

	for (int type = 0; type <= FI_FLOAT8_E5M2; type++)
		for (int kind = 0; kind < KINDS; kind++)
			for (int op = 0; op <= FI_DIFF; op++) {
				if (fi_query_atomic(m->domain, type, op, &attr, flags[kind]))
					continue;
				CHECK(m, cnt < STORMS_MAX);
				CHECK(m, attr.size && attr.size == element_size(type));
				CHECK(m, attr.count >= WORDS);
				list[cnt] = (struct storm){
					.kind = kind,
					.type = type,
					.op = op,
					.size = attr.size,
					.salt = mix(m->attr->seed * STORMS_MAX + (uint64_t)cnt)
				};
				cnt++;
			}
	/* Ten types of integers, three of reals, three complex ones. */
	CHECK(m, cnt >= 10 * (12 + 13 + 7) + 3 * (9 + 10 + 6) + 3 * (7 + 8 + 2));
	return cnt;
}

/* Posting */

/* The same elements in two pieces, or in one. */
struct pieces {
	struct fi_ioc ioc[2];
	size_t cnt;
};

static struct pieces cut(void *at, int cnt, size_t size)
{
	size_t first = cnt > 2 ? 1 : (size_t)cnt;
	struct pieces p = { { { at, first },
			      { (uint8_t *)at + first * size, (size_t)cnt - first } },
			    cnt > 2 ? 2 : 1 };

	return p;
}

static ssize_t post_base(struct member *m, const struct storm *s, enum fi_op op, int i, int to,
			 struct slot *slot)
{
	int cnt = cnt_of(i);
	uint64_t at = (uint64_t)first_of(i) * s->size;
	struct pieces from = cut(slot->operand, cnt, s->size);
	struct fi_rma_ioc rma[2] = { { at, (size_t)cnt - 1, STORM_KEY },
				     { at + ((size_t)cnt - 1) * s->size, 1, STORM_KEY } };
	struct fi_msg_atomic msg = { .msg_iov = from.ioc,
				     .iov_count = from.cnt,
				     .addr = m->addrs[to],
				     .rma_iov = cnt > 1 ? rma : rma + 1,
				     .rma_iov_count = cnt > 1 ? 2 : 1,
				     .datatype = s->type,
				     .op = op,
				     .context = &slot->op };
	ssize_t ret;

	if (i % 3 == 1) {
		m->writes++;
		STORM_POST(m, ret,
			   fi_inject_atomic(m->rma, slot->operand, (size_t)cnt, m->addrs[to],
					    at, STORM_KEY, s->type, op));
		return ret;
	}
	storm_begin(m, &slot->op, to, FI_ATOMIC | FI_WRITE);
	if (i % 3 == 2)
		STORM_POST(m, ret,
			   fi_atomicmsg(m->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	else
		STORM_POST(m, ret,
			   fi_atomic(m->rma, slot->operand, (size_t)cnt, NULL, m->addrs[to], at,
				     STORM_KEY, s->type, op, &slot->op));
	return ret;
}

static ssize_t post_fetch(struct member *m, const struct storm *s, int i, int to,
			  struct slot *slot, void *result)
{
	int cnt = cnt_of(i);
	uint64_t at = (uint64_t)first_of(i) * s->size;
	struct pieces into = cut(result, cnt, s->size);
	struct pieces from = cut(slot->operand, cnt, s->size);
	ssize_t ret;

	storm_begin(m, &slot->op, to, FI_ATOMIC | FI_READ);
	if (i % 2)
		STORM_POST(m, ret,
			   fi_fetch_atomicv(m->ep, from.ioc, NULL, from.cnt, into.ioc, NULL,
					    into.cnt, m->addrs[to], at, STORM_KEY, s->type,
					    s->op, &slot->op));
	else
		STORM_POST(m, ret,
			   fi_fetch_atomic(m->ep, slot->operand, (size_t)cnt, NULL, result,
					   NULL, m->addrs[to], at, STORM_KEY, s->type, s->op,
					   &slot->op));
	return ret;
}

static ssize_t post_compare(struct member *m, const struct storm *s, int i, int to,
			    struct slot *slot, void *result)
{
	int cnt = cnt_of(i);
	uint64_t at = (uint64_t)first_of(i) * s->size;
	struct pieces into = cut(result, cnt, s->size);
	struct pieces than = cut(slot->compare, cnt, s->size);
	struct pieces from = cut(slot->operand, cnt, s->size);
	ssize_t ret;

	storm_begin(m, &slot->op, to, FI_ATOMIC | FI_READ);
	if (i % 2)
		STORM_POST(m, ret,
			   fi_compare_atomicv(m->ep, from.ioc, NULL, from.cnt, than.ioc, NULL,
					      than.cnt, into.ioc, NULL, into.cnt, m->addrs[to],
					      at, STORM_KEY, s->type, s->op, &slot->op));
	else
		STORM_POST(m, ret,
			   fi_compare_atomic(m->ep, slot->operand, (size_t)cnt, NULL,
					     slot->compare, NULL, result, NULL, m->addrs[to],
					     at, STORM_KEY, s->type, s->op, &slot->op));
	return ret;
}

static void storm_post(struct member *m, const struct storm *s, int i, int to, struct slot *slot)
{
	struct fetched *all = (struct fetched *)m->shared->room;
	void *result = all->result[to][m->rank][i];
	int first = first_of(i);
	ssize_t ret;

	for (int k = 0; k < cnt_of(i); k++) {
		operand_of(s, m->rank, i, first + k, slot->operand + (size_t)k * s->size);
		if (s->kind == COMPARE)
			compare_of(s, m->rank, i, first + k,
				   slot->compare + (size_t)k * s->size);
	}
	if (writes_for_readers(s, m->rank))
		ret = post_base(m, s, FI_ATOMIC_WRITE, i, to, slot);
	else if (s->kind == BASE)
		ret = post_base(m, s, s->op, i, to, slot);
	else if (s->kind == FETCH)
		ret = post_fetch(m, s, i, to, slot, result);
	else
		ret = post_compare(m, s, i, to, slot, result);
	CHECK(m, !ret);
}

/* Looking at what has become of the words */

static void say(struct member *m, const struct storm *s, int w, const char *what)
{
	char op[64], type[64];

	snprintf(op, sizeof(op), "%s", fi_tostr(&s->op, FI_TYPE_ATOMIC_OP));
	snprintf(type, sizeof(type), "%s", fi_tostr(&s->type, FI_TYPE_ATOMIC_TYPE));
	fprintf(stderr, "member %d: word %d of %s, kind %d, on %s: %s\n", m->rank, w, op,
		s->kind, type, what);
	atomic_store(&m->shared->failed, 1);
	exit(1);
}

static void fetched_of(const struct member *m, const struct storm *s, int rank, int i, int w,
		       struct element *e)
{
	const struct fetched *all = (const struct fetched *)m->shared->room;

	memset(e, 0, sizeof(*e));
	memcpy(e, all->result[m->rank][rank][i] + (size_t)(w - first_of(i)) * s->size, s->size);
	element_canonical(s->type, e);
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct element));
}

/*
 * Every value but the last one was found by exactly one, and every one but the first was left by
 * exactly one: the operations form a chain.
 */
static void check_chain(struct member *m, const struct storm *s, int w,
			const struct element *end)
{
	struct element found[STORM_MEMBERS * OPS_MAX + 1], left[STORM_MEMBERS * OPS_MAX + 1];
	struct element v, than;
	size_t cnt = 0;

	memset(found, 0, sizeof(found));
	memset(left, 0, sizeof(left));
	for (int rank = 0; rank < STORM_MEMBERS; rank++)
		for (int i = 0; i < OPS; i++) {
			if (!hits(i, w))
				continue;
			operand_of(s, rank, i, w, &v);
			if (s->kind == COMPARE)
				compare_of(s, rank, i, w, &than);
			fetched_of(m, s, rank, i, w, &found[cnt]);
			element_next(s->type, s->op, &found[cnt], &v, &than, &left[cnt]);
			cnt++;
		}
	found[cnt] = *end;
	word_before(s, w, &left[cnt]);
	element_canonical(s->type, &left[cnt++]);
	qsort(found, cnt, sizeof(found[0]), by_bytes);
	qsort(left, cnt, sizeof(left[0]), by_bytes);
	if (memcmp(found, left, cnt * sizeof(found[0])))
		say(m, s, w, "what was fetched is no chain");
}

static void check_fold(struct member *m, const struct storm *s, int w, const struct element *end)
{
	struct element is = { 0 }, v, than;

	word_before(s, w, &is);
	for (int rank = 0; rank < STORM_MEMBERS; rank++)
		for (int i = 0; i < OPS; i++) {
			if (!hits(i, w))
				continue;
			operand_of(s, rank, i, w, &v);
			if (s->kind == COMPARE)
				compare_of(s, rank, i, w, &than);
			element_next(s->type, s->op, &is, &v, &than, &is);
		}
	if (memcmp(&is, end, sizeof(is)))
		say(m, s, w, "the result is not exact");
}

static void operand_canonical(const struct storm *s, int rank, int i, int w, struct element *e)
{
	memset(e, 0, sizeof(*e));
	operand_of(s, rank, i, w, e);
	element_canonical(s->type, e);
}

static void check_last(struct member *m, const struct storm *s, int w, const struct element *end)
{
	struct element last;

	for (int rank = 0; rank < STORM_MEMBERS; rank++) {
		int i = OPS - 1;

		if (s->op == FI_ATOMIC_READ && !writes_for_readers(s, rank))
			continue;
		while (!hits(i, w))
			i--;
		operand_canonical(s, rank, i, w, &last);
		if (!memcmp(&last, end, sizeof(last)))
			return;
	}
	say(m, s, w, "it is not what anybody wrote last");
}

static bool was_written(const struct storm *s, int w, const struct element *e)
{
	struct element one = { 0 };

	word_before(s, w, &one);
	element_canonical(s->type, &one);
	if (!memcmp(&one, e, sizeof(one)))
		return true;
	for (int rank = 0; rank < STORM_MEMBERS; rank++)
		for (int i = 0; i < OPS; i++) {
			if (!hits(i, w) || !writes_for_readers(s, rank))
				continue;
			operand_canonical(s, rank, i, w, &one);
			if (!memcmp(&one, e, sizeof(one)))
				return true;
		}
	return false;
}

static void check_reads(struct member *m, const struct storm *s, int w)
{
	struct element e;

	for (int rank = 0; rank < STORM_MEMBERS; rank++)
		for (int i = 0; i < OPS; i++) {
			if (!hits(i, w) || writes_for_readers(s, rank))
				continue;
			fetched_of(m, s, rank, i, w, &e);
			if (!was_written(s, w, &e))
				say(m, s, w, "what was read was never written");
		}
}

static void storm_check(struct member *m, const struct storm *s)
{
	struct element end;

	for (int w = 0; w < WORDS; w++) {
		memset(&end, 0, sizeof(end));
		memcpy(&end, m->region + (size_t)w * s->size, s->size);
		element_canonical(s->type, &end);
		if (order_free(s, w))
			check_fold(m, s, w, &end);
		if (last_stays(s, w))
			check_last(m, s, w, &end);
		if (s->op == FI_ATOMIC_READ)
			check_reads(m, s, w);
		else if (s->kind != BASE)
			check_chain(m, s, w, &end);
	}
}

/* How many operations of a storm count as writes at its target. */
static uint64_t writes_of(const struct storm *s)
{
	uint64_t cnt = 0;

	for (int rank = 0; rank < STORM_MEMBERS; rank++)
		cnt += s->kind == BASE || writes_for_readers(s, rank) ? (uint64_t)OPS : 0;
	return cnt;
}

/* Storms from @at on, one for each target; these are rotated from round to round. */
struct step {
	const struct storm *list;
	int cnt, at, stride, round;
};

/* The storm at a target, or NULL */
static const struct storm *storm_at(const struct step *step, int target)
{
	int n = step->at + step->stride * ((target + step->round) % STORM_MEMBERS);

	return n < step->cnt ? &step->list[n] : NULL;
}

static void step_run(struct member *m, const struct step *step)
{
	static struct slot slots[STORM_MEMBERS][OPS_MAX];
	const struct storm *mine = storm_at(step, m->rank);

	for (int w = 0; w < WORDS && mine; w++)
		word_before(mine, w, m->region + (size_t)w * mine->size);
	storm_meet(m);
	for (int i = 0; i < OPS; i++)
		for (int to = 0; to < STORM_MEMBERS; to++)
			if (storm_at(step, to))
				storm_post(m, storm_at(step, to), i, to, &slots[to][i]);
	storm_finish(m);
	storm_meet(m);
	if (mine)
		storm_check(m, mine);
}

/* Every @stride'th storm. */
static void all_storms(struct member *m, int stride, int turns)
{
	static struct storm list[STORMS_MAX];
	uint64_t written = 0, was_read = 0, fetched = 0;
	struct step step = { .list = list, .stride = stride };

	step.cnt = storms_list(m, list);
	for (; step.round < turns; step.round++) {
		step.at = (int)((m->attr->seed + (uint64_t)step.round) % (uint64_t)stride);
		for (; step.at < step.cnt; step.at += stride * STORM_MEMBERS) {
			const struct storm *mine = storm_at(&step, m->rank);

			step_run(m, &step);
			if (mine) {
				uint64_t reads = (uint64_t)OPS * STORM_MEMBERS - writes_of(mine);

				written += writes_of(mine);
				was_read += reads;
				fetched += mine->op == FI_ATOMIC_READ ? 0 : reads;
			}
			storm_counted(m, written, was_read, fetched);
		}
		for (int i = 0; i < step.cnt; i++)
			list[i].salt = mix(list[i].salt);
	}
}

void storm_all_words(struct member *m)
{
	all_storms(m, 1, STORM_SANITIZED ? 1 : m->attr->rounds);
}

void storm_some_words(struct member *m)
{
	all_storms(m, 7, STORM_SANITIZED ? 2 : 2 * m->attr->rounds);
}

/* Each adds by FI_CSWAP, and again when another one was first. */
void storm_swaps_in_turn(struct member *m)
{
	static struct storm list[STORMS_MAX];
	int cnt = storms_list(m, list), turns = STORM_SANITIZED ? 10 : 30, to = 0;
	struct element is, than, found;
	struct storm_op op;
	uint64_t number;
	ssize_t ret;

	for (int n = 0; n < cnt; n++) {
		struct storm *s = &list[n];

		if (s->op != FI_CSWAP)
			continue;
		to = (to + 1) % STORM_MEMBERS;
		if (m->rank == to)
			element_small(s->type, 0, m->region);
		storm_meet(m);
		number = 0;
		for (int done = 0; done < turns;) {
			element_small(s->type, number, &than);
			element_small(s->type, number + 1, &is);
			storm_begin(m, &op, to, FI_ATOMIC | FI_READ);
			STORM_POST(m, ret,
				   fi_compare_atomic(m->ep, &is, 1, NULL, &than, NULL, &found,
						     NULL, m->addrs[to], 0, STORM_KEY, s->type,
						     s->op, &op));
			CHECK(m, !ret);
			storm_finish(m);
			if (!memcmp(&found, &than, s->size)) {
				done++;
				number++;
			} else {
				CHECK(m, element_is_small(s->type, &found, &number));
			}
		}
		storm_meet(m);
		element_small(s->type, (uint64_t)(turns * STORM_MEMBERS), &than);
		CHECK(m, m->rank != to || !memcmp(m->region, &than, s->size));
	}
}
