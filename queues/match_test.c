/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of the matcher: sentences, a comparison with a model that is nothing but two
 * lists walked from the front, and bounds on the time of what must not be quadratic.
 *
 * usage: match_test [SEED]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>
#include "match.h"
#include "seeded.h"
#include <cmocka.h>

/* Memory runs out when a test says so: the linker leads platform_alloc() here. */
void *__real_platform_alloc(size_t len);
void *__wrap_platform_alloc(size_t len);
static bool no_memory;

void *__wrap_platform_alloc(size_t len)
{
	return no_memory ? NULL : __real_platform_alloc(len);
}

static uint64_t seed = 0x5eed0003;

static uint32_t below(uint32_t n)
{
	return (uint32_t)seeded_below(&seed, n);
}

static struct match_recv *post(struct match *m, struct match_recv *r, uint64_t source,
			       uint64_t tag, uint64_t ignore)
{
	*r = (struct match_recv){ .source = source, .tag = tag, .ignore = ignore };
	match_post(m, r);
	return r;
}

/* A message that takes the receive it fits. */
static struct match_recv *arrive(struct match *m, uint64_t source, uint64_t tag)
{
	struct match_recv *r = match_arrive(m, source, tag);

	if (r)
		match_unpost(m, r);
	return r;
}

static void store(struct match *m, struct match_msg *msg, uint64_t source, uint64_t tag)
{
	*msg = (struct match_msg){ .source = source, .tag = tag };
	match_store(m, msg);
}

static int create(void **state)
{
	*state = match_create();
	return *state ? 0 : -1;
}

static int destroy(void **state)
{
	match_destroy(*state);
	return 0;
}

static void match_keeps_post_order(void **state)
{
	struct match *m = *state;
	struct match_recv any, directed, exact;

	post(m, &any, MATCH_ANY_SOURCE, 0, UINT64_MAX);
	post(m, &directed, 7, 0, UINT64_MAX);
	post(m, &exact, 7, 5, 0);
	assert_ptr_equal(arrive(m, 7, 5), &any);
	assert_ptr_equal(arrive(m, 7, 5), &directed);
	assert_ptr_equal(arrive(m, 7, 5), &exact);
	assert_null(arrive(m, 7, 5));

	post(m, &exact, 7, 5, 0);
	post(m, &directed, 7, 0, UINT64_MAX);
	post(m, &any, MATCH_ANY_SOURCE, 0, UINT64_MAX);
	assert_ptr_equal(arrive(m, 7, 5), &exact);
	assert_ptr_equal(arrive(m, 7, 5), &directed);
	assert_ptr_equal(arrive(m, 7, 5), &any);
}

static void receive_that_takes_more_keeps_its_place(void **state)
{
	struct match *m = *state;
	struct match_recv r[3];

	for (int i = 0; i < 3; i++)
		post(m, &r[i], 7, 5, 0);
	assert_ptr_equal(arrive(m, 7, 5), &r[0]);
	assert_ptr_equal(match_arrive(m, 7, 5), &r[1]);
	assert_ptr_equal(arrive(m, 7, 5), &r[1]);
	assert_ptr_equal(match_arrive(m, 7, 5), &r[2]);
	assert_ptr_equal(arrive(m, 7, 5), &r[2]);
	assert_null(match_arrive(m, 7, 5));
}

static void the_only_receive_comes_before_those_posted_after_it(void **state)
{
	struct match *m = *state;
	struct match_recv any, exact, again;

	for (int round = 0; round < 3; round++) {
		post(m, &any, MATCH_ANY_SOURCE, 0, UINT64_MAX);
		post(m, &exact, 7, 5, 0);
		assert_ptr_equal(arrive(m, 7, 5), &any);
		/* one is left, among several that were */
		assert_null(arrive(m, 7, 6));
		post(m, &again, 7, 5, 0);
		assert_ptr_equal(arrive(m, 7, 5), &exact);
		assert_ptr_equal(arrive(m, 7, 5), &again);
		assert_null(arrive(m, 7, 5));
	}
}

static void the_only_receive_is_cancelled_before_and_after_it_is_one_of_several(void **state)
{
	struct match *m = *state;
	struct match_recv a, b;

	match_unpost(m, post(m, &a, 3, 1, 0));
	assert_null(arrive(m, 3, 1));
	post(m, &a, 3, 1, 0);
	post(m, &b, MATCH_ANY_SOURCE, 1, 0);
	match_unpost(m, &a);
	assert_ptr_equal(match_next_recv(m, NULL), &b);
	match_unpost(m, &b);
	assert_null(arrive(m, 3, 1));
	post(m, &b, MATCH_ANY_SOURCE, 1, 0);
	assert_ptr_equal(arrive(m, 3, 1), &b);
}

static void posted_receives_are_walked_in_post_order(void **state)
{
	struct match *m = *state;
	struct match_recv r[4], *at;

	for (int cnt = 0; cnt <= 4; cnt++) {
		for (int i = 0; i < cnt; i++)
			post(m, &r[i], i % 2 ? 7 : MATCH_ANY_SOURCE, 4 - (uint64_t)i, 0);
		at = NULL;
		for (int i = 0; i < cnt; i++) {
			at = match_next_recv(m, at);
			assert_ptr_equal(at, &r[i]);
		}
		assert_null(match_next_recv(m, at));
		for (int i = 0; i < cnt; i++)
			match_unpost(m, &r[i]);
	}
}

static void renamed_message_keeps_its_place(void **state)
{
	struct match *m = *state;
	struct match_msg msg[12];

	for (uint64_t i = 0; i < 12; i++)
		store(m, &msg[i], i == 8 ? 3 : 7, 5);
	assert_ptr_equal(match_find(m, 9, 5, 0), NULL); /* all are entered */
	match_rename(m, &msg[8], 9);
	assert_ptr_equal(match_find(m, 9, 5, 0), &msg[8]);
	match_rename(m, &msg[10], 9);
	assert_ptr_equal(match_find(m, 9, 5, 0), &msg[8]);
	match_take(m, &msg[8]);
	assert_ptr_equal(match_find(m, 9, 5, 0), &msg[10]);
	assert_ptr_equal(match_find(m, 3, 5, 0), NULL);
	assert_ptr_equal(match_find(m, 7, 5, 0), &msg[0]);
}

static void equal_receives_match_in_post_order(void **state)
{
	struct match *m = *state;
	struct match_recv r[10];

	for (int i = 0; i < 10; i++)
		post(m, &r[i], 3, 9, 0);
	for (int i = 0; i < 10; i++)
		assert_ptr_equal(arrive(m, 3, 9), &r[i]);
}

static void receive_gets_only_what_fits(void **state)
{
	struct match *m = *state;
	struct match_recv r;

	post(m, &r, 3, 0xab00, 0xff);
	assert_null(arrive(m, 4, 0xab00));
	assert_null(arrive(m, 3, 0xac00));
	assert_ptr_equal(arrive(m, 3, 0xab42), &r);

	post(m, &r, MATCH_ANY_SOURCE, 0xab77, 0xff); /* ignored bits are of no account */
	assert_null(arrive(m, 3, 0xac77));
	assert_ptr_equal(arrive(m, UINT64_MAX, 0xab42), &r);

	post(m, &r, UINT64_MAX, UINT64_MAX, 0);
	assert_null(arrive(m, UINT64_MAX, 0));
	assert_ptr_equal(arrive(m, UINT64_MAX, UINT64_MAX), &r);
}

static void cancelled_receive_gets_nothing(void **state)
{
	struct match *m = *state;
	struct match_recv a, b;

	post(m, &a, 3, 1, 0);
	post(m, &b, 3, 1, 0);
	match_unpost(m, &a);
	assert_ptr_equal(arrive(m, 3, 1), &b);
	assert_null(arrive(m, 3, 1));
	assert_null(match_next_recv(m, NULL));
}

static void stored_messages_are_found_in_order_of_arrival(void **state)
{
	struct match *m = *state;
	struct match_msg msgs[20];

	for (int i = 0; i < 20; i++)
		store(m, &msgs[i], 1 + (uint64_t)(i % 2), 5);
	assert_ptr_equal(match_find(m, 2, 5, 0), &msgs[1]);
	assert_ptr_equal(match_find(m, 2, 5, 0), &msgs[1]); /* left in place */
	assert_ptr_equal(match_find(m, MATCH_ANY_SOURCE, 5, 0), &msgs[0]);
	match_take(m, &msgs[0]);
	assert_ptr_equal(match_find(m, MATCH_ANY_SOURCE, 0, UINT64_MAX), &msgs[1]);
	for (int i = 1; i < 20; i += 2) {
		assert_ptr_equal(match_find(m, 2, 4, 1), &msgs[i]);
		match_take(m, &msgs[i]);
	}
	assert_null(match_find(m, 2, 5, 0));
	for (int i = 2; i < 20; i += 2) {
		assert_ptr_equal(match_find(m, 1, 5, 0), &msgs[i]);
		match_take(m, &msgs[i]);
	}
	assert_null(match_find(m, MATCH_ANY_SOURCE, 0, UINT64_MAX));
	assert_null(match_next_msg(m, NULL));
}

static void masks_beyond_the_classes_keep_post_order(void **state)
{
	enum { MASKS = 64 };
	struct match *m = *state;
	struct match_recv r[MASKS];

	for (uint32_t i = 0; i < MASKS; i++)
		post(m, &r[i], i % 2 ? 9 : MATCH_ANY_SOURCE, 0, 1ull << i);
	for (uint32_t i = 0; i < MASKS; i++)
		assert_ptr_equal(arrive(m, 9, 0), &r[i]);
	/* Again from the other end, now that classes change hands. */
	for (uint32_t i = 0; i < MASKS; i++)
		post(m, &r[i], 9, 0, 1ull << (MASKS - 1 - i));
	for (uint32_t i = 0; i < MASKS; i++)
		assert_ptr_equal(arrive(m, 9, 0), &r[i]);
	assert_null(arrive(m, 9, 0));
}

static void teardown_meets_everything(void **state)
{
	enum { CNT = 200 };
	struct match *m = *state;
	static struct match_recv r[CNT];
	static struct match_msg msgs[CNT];
	uint32_t recvs = 0, stored = 0;
	struct match_recv *recv;
	struct match_msg *msg;

	for (uint32_t i = 0; i < CNT; i++) {
		post(m, &r[i], i % 5, i, i % 9);
		store(m, &msgs[i], 77, i);
	}
	for (; (recv = match_next_recv(m, NULL)); recvs++)
		match_unpost(m, recv);
	assert_int_equal(recvs, CNT);
	for (; (msg = match_next_msg(m, NULL)); stored++)
		match_take(m, msg);
	assert_int_equal(stored, CNT);
}

/*
 * The model: receives in post order, messages in order of arrival, both walked from the
 * front. Each object carries its index, which is what both must agree on.
 */
struct model_recv {
	struct match_recv recv;
	uint64_t source;
	uint64_t tag;
	uint64_t ignore;
};

struct model_msg {
	struct match_msg msg;
	uint64_t source;
	uint64_t tag;
};

enum { MODEL_MAX = 400 };

struct model {
	struct match *m;
	struct model_recv recvs[MODEL_MAX];
	struct model_recv *recv_list[MODEL_MAX];
	struct model_recv *recv_free[MODEL_MAX];
	struct model_msg msgs[MODEL_MAX];
	struct model_msg *msg_list[MODEL_MAX];
	struct model_msg *msg_free[MODEL_MAX];
	uint32_t recv_cnt;
	uint32_t msg_cnt;
	/* variety of the present phase */
	uint32_t mask_cnt;
	uint32_t tag_cnt;
	uint32_t source_cnt;
	/* percent of operations that receive */
	uint32_t post_share;
};

static bool model_fits(const struct model_recv *r, uint64_t source, uint64_t tag)
{
	return (!r->source || r->source == source) &&
	       (r->tag & ~r->ignore) == (tag & ~r->ignore);
}

static struct model_recv *model_remove_recv(struct model *x, uint32_t at)
{
	struct model_recv *r = x->recv_list[at];

	x->recv_cnt--;
	memmove(&x->recv_list[at], &x->recv_list[at + 1], (x->recv_cnt - at) * sizeof(r));
	x->recv_free[x->recv_cnt] = r;
	return r;
}

static struct model_msg *model_remove_msg(struct model *x, uint32_t at)
{
	struct model_msg *msg = x->msg_list[at];

	x->msg_cnt--;
	memmove(&x->msg_list[at], &x->msg_list[at + 1], (x->msg_cnt - at) * sizeof(msg));
	x->msg_free[x->msg_cnt] = msg;
	return msg;
}

static uint64_t model_mask(const struct model *x)
{
	static const uint64_t masks[] = {
		0, 3ull << 60, 0xffffffff, UINT64_MAX, 0xff, 1,
		2, 4,	       6,	   1ull << 63, 0xf0, 0xff00,
	};

	return masks[below(x->mask_cnt)];
}

/* Few low bits, few high ones: tags as programs lay them out. */
static uint64_t model_tag(const struct model *x)
{
	return (uint64_t)below(4) << 60 | (uint64_t)below(2) << 32 | below(x->tag_cnt);
}

static uint64_t model_source(const struct model *x)
{
	return 0x7f0000001000 + 4096 * (uint64_t)below(x->source_cnt);
}

static void random_recv(struct model *x, bool peek)
{
	struct model_recv want = { .tag = model_tag(x), .ignore = model_mask(x) };
	struct match_msg *got;
	struct model_recv *r;
	uint32_t at = 0;

	want.source = below(3) ? model_source(x) : MATCH_ANY_SOURCE;
	while (at < x->msg_cnt &&
	       !model_fits(&want, x->msg_list[at]->source, x->msg_list[at]->tag))
		at++;

	got = match_find(x->m, want.source, want.tag, want.ignore);
	assert_ptr_equal(got, at < x->msg_cnt ? &x->msg_list[at]->msg : NULL);
	if (peek)
		return;
	if (got) {
		match_take(x->m, got);
		memset(got, 0xdd, sizeof(*got));
		model_remove_msg(x, at);
	} else if (x->recv_cnt < MODEL_MAX) {
		r = x->recv_free[x->recv_cnt];
		r->source = want.source;
		r->tag = want.tag;
		r->ignore = want.ignore;
		x->recv_list[x->recv_cnt++] = r;
		post(x->m, &r->recv, want.source, want.tag, want.ignore);
	}
}

static void random_arrival(struct model *x)
{
	uint64_t source = model_source(x), tag = model_tag(x);
	struct match_recv *got;
	struct model_msg *msg;
	uint32_t at = 0;

	if (x->msg_cnt == MODEL_MAX)
		return;
	while (at < x->recv_cnt && !model_fits(x->recv_list[at], source, tag))
		at++;
	got = match_arrive(x->m, source, tag);
	assert_ptr_equal(got, at < x->recv_cnt ? &x->recv_list[at]->recv : NULL);
	if (got && !below(4)) /* it takes more */
		return;
	if (got) {
		match_unpost(x->m, got);
		memset(got, 0xdd, sizeof(*got));
		model_remove_recv(x, at);
		return;
	}
	msg = x->msg_free[x->msg_cnt];
	msg->source = source;
	msg->tag = tag;
	x->msg_list[x->msg_cnt++] = msg;
	store(x->m, &msg->msg, source, tag);
}

/* A stored message gets another source, whose receives may be posted. */
static void random_rename(struct model *x)
{
	uint32_t which = below(x->msg_cnt), at = 0;
	struct model_msg *msg = x->msg_list[which];
	struct match_recv *got;

	msg->source = model_source(x);
	match_rename(x->m, &msg->msg, msg->source);
	while (at < x->recv_cnt && !model_fits(x->recv_list[at], msg->source, msg->tag))
		at++;
	got = match_arrive(x->m, msg->source, msg->tag);
	assert_ptr_equal(got, at < x->recv_cnt ? &x->recv_list[at]->recv : NULL);
	if (!got)
		return;
	match_unpost(x->m, got);
	match_take(x->m, &msg->msg);
	model_remove_msg(x, which);
	model_remove_recv(x, at);
}

static void random_removal(struct model *x)
{
	if (x->msg_cnt && !below(16)) {
		random_rename(x);
		return;
	}
	if (x->recv_cnt && below(2)) {
		struct match_recv *r = &model_remove_recv(x, below(x->recv_cnt))->recv;

		match_unpost(x->m, r);
		memset(r, 0xdd, sizeof(*r));
	} else if (x->msg_cnt) {
		struct match_msg *msg = &model_remove_msg(x, below(x->msg_cnt))->msg;

		match_take(x->m, msg);
		memset(msg, 0xdd, sizeof(*msg));
	}
}

static void new_phase(struct model *x)
{
	static const uint32_t shares[] = { 10, 35, 48, 65, 90 };
	static const uint32_t tags[] = { 1, 4, 40, 4000 };

	x->mask_cnt = 1 + below(12);
	x->tag_cnt = tags[below(4)];
	x->source_cnt = 1 + below(6);
	x->post_share = shares[below(5)];
}

static void random_use_agrees_with_two_plain_lists(void **state)
{
	enum { OPERATIONS = 400000, PHASE = 2000 };
	static struct model x;
	uint32_t most_recvs = 0, most_msgs = 0;

	printf("seed %#llx\n", (unsigned long long)seed);
	x.m = *state;
	for (uint32_t i = 0; i < MODEL_MAX; i++) {
		x.recv_free[i] = &x.recvs[i];
		x.msg_free[i] = &x.msgs[i];
	}
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		uint32_t what = below(100);

		if (i % PHASE == 0)
			new_phase(&x);
		if (what < 4)
			random_removal(&x);
		else if (what < 8)
			random_recv(&x, true);
		else if (below(100) < x.post_share)
			random_recv(&x, false);
		else
			random_arrival(&x);
		assert_int_equal(match_next_recv(x.m, NULL) != NULL, x.recv_cnt != 0);
		assert_ptr_equal(match_next_msg(x.m, NULL),
				 x.msg_cnt ? &x.msg_list[0]->msg : NULL);
		most_recvs = x.recv_cnt > most_recvs ? x.recv_cnt : most_recvs;
		most_msgs = x.msg_cnt > most_msgs ? x.msg_cnt : most_msgs;
	}
	/* The comparison is worth something only if both lists were long at times. */
	assert_true(most_recvs > 200);
	assert_true(most_msgs > 200);
	while (x.recv_cnt)
		match_unpost(x.m, &model_remove_recv(&x, 0)->recv);
	while (x.msg_cnt)
		match_take(x.m, &model_remove_msg(&x, 0)->msg);
	assert_null(match_next_recv(x.m, NULL));
	assert_null(match_next_msg(x.m, NULL));
}

enum { MANY = 100000 };

static uint64_t tag_of(uint32_t i)
{
	return (uint64_t)1 << 60 | i;
}

/* One way to drain what is stored: which message, and how it is asked for. */
struct drain {
	const char *name;
	uint64_t ignore;
	bool directed;
	bool backwards;
	bool same_tag;
};

/*
 * A walk of 100,000 messages per receive takes over ten seconds in all; what is bounded here
 * takes some hundredths. That is the thread's own time, whatever else the machine does.
 */
#define BOUND_NS 5000000000u

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void many_stored_messages_are_drained_in_linear_time(void **state)
{
	static const struct drain drains[] = {
		{ "exact, in order", 0, true, false, false },
		{ "exact, backwards", 0, true, true, false },
		{ "masked, in order", 3ull << 60, true, false, false },
		{ "masked, backwards", 3ull << 60, true, true, false },
		{ "masked, any source, backwards", 3ull << 60, false, true, false },
		{ "any tag", UINT64_MAX, true, false, false },
		{ "anything", UINT64_MAX, false, false, false },
		{ "equal tags", 3ull << 60, true, false, true },
	};
	struct match_msg *msgs = calloc(MANY, sizeof(*msgs));
	struct match *m = *state;

	assert_non_null(msgs);
	for (size_t d = 0; d < sizeof(drains) / sizeof(drains[0]); d++) {
		uint64_t source = drains[d].directed ? 42 : MATCH_ANY_SOURCE;
		uint64_t began = cpu_ns(), took;

		for (uint32_t i = 0; i < MANY; i++)
			store(m, &msgs[i], 42, drains[d].same_tag ? 1 : tag_of(i));
		for (uint32_t i = 0; i < MANY; i++) {
			uint32_t at = drains[d].backwards ? MANY - 1 - i : i;
			uint64_t tag = drains[d].same_tag ? 1 : tag_of(at);

			assert_ptr_equal(match_find(m, source, tag, drains[d].ignore),
					 &msgs[at]);
			match_take(m, &msgs[at]);
		}
		took = cpu_ns() - began;
		printf("%d messages, %s: %u ns each\n", MANY, drains[d].name,
		       (unsigned int)(took / MANY));
		assert_true(took < BOUND_NS);
	}
	free(msgs);
}

static void the_message_that_matters_is_found_behind_many_others(void **state)
{
	struct match_msg *msgs = calloc(MANY, sizeof(*msgs));
	struct match *m = *state;
	struct match_recv r;
	struct match_msg late;
	uint64_t began = cpu_ns();

	assert_non_null(msgs);
	for (uint32_t i = 0; i < MANY; i++) {
		/* A receive that waits while others arrive asks again and again. */
		store(m, &msgs[i], 42, tag_of(i));
		assert_null(match_find(m, 42, tag_of(MANY), 3ull << 60));
	}
	store(m, &late, 42, tag_of(MANY));
	assert_ptr_equal(match_find(m, 42, tag_of(MANY), 3ull << 60), &late);
	post(m, &r, 43, 0, 0);
	assert_null(arrive(m, 42, 0));
	assert_ptr_equal(arrive(m, 43, 0), &r);
	assert_true(cpu_ns() - began < BOUND_NS);
	free(msgs);
}

static void many_posted_receives_are_matched_in_linear_time(void **state)
{
	struct match_recv *recvs = calloc(MANY, sizeof(*recvs));
	struct match *m = *state;
	uint64_t began, took;

	assert_non_null(recvs);
	for (int backwards = 0; backwards < 2; backwards++) {
		began = cpu_ns();
		for (uint32_t i = 0; i < MANY; i++)
			post(m, &recvs[i], 42, tag_of(i), 3ull << 60);
		for (uint32_t i = 0; i < MANY; i++) {
			uint32_t at = backwards ? MANY - 1 - i : i;

			assert_ptr_equal(arrive(m, 42, at), &recvs[at]);
		}
		took = cpu_ns() - began;
		printf("%d receives, %s: %u ns each\n", MANY,
		       backwards ? "backwards" : "in order", (unsigned int)(took / MANY));
		assert_true(took < BOUND_NS);
	}
	free(recvs);
}

static void stored_messages_are_walked_in_order_of_arrival(void **state)
{
	struct match *m = *state;
	struct match_msg msgs[3], *at = NULL;

	assert_null(match_next_msg(m, NULL));
	for (int i = 0; i < 3; i++)
		store(m, &msgs[i], 1, 5);
	for (int i = 0; i < 3; i++) {
		at = match_next_msg(m, at);
		assert_ptr_equal(at, &msgs[i]);
	}
	assert_null(match_next_msg(m, at));
}

static void without_memory_matching_is_slower_and_still_right(void **state)
{
	enum { CNT = 1000 };
	static struct match_recv recvs[CNT];
	static struct match_msg msgs[CNT];
	struct match *m = *state;

	no_memory = true;
	assert_null(match_create());
	/* First without any class, then with one that can't grow. */
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < CNT; i++)
			post(m, &recvs[i], 42, tag_of(i), 0);
		for (uint32_t i = 0; i < CNT; i++) {
			assert_ptr_equal(arrive(m, 42, tag_of(i)), &recvs[i]);
			store(m, &msgs[i], 42, tag_of(i));
		}
		for (uint32_t i = CNT; i-- > 0;) {
			assert_ptr_equal(match_find(m, 42, tag_of(i), 0), &msgs[i]);
			match_take(m, &msgs[i]);
		}
		no_memory = false;
		match_unpost(m, post(m, &recvs[0], 42, 0, 0));
		no_memory = true;
	}
	no_memory = false;
}

#define test(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test(match_keeps_post_order),
		test(receive_that_takes_more_keeps_its_place),
		test(the_only_receive_comes_before_those_posted_after_it),
		test(the_only_receive_is_cancelled_before_and_after_it_is_one_of_several),
		test(posted_receives_are_walked_in_post_order),
		test(renamed_message_keeps_its_place),
		test(equal_receives_match_in_post_order),
		test(receive_gets_only_what_fits),
		test(cancelled_receive_gets_nothing),
		test(stored_messages_are_found_in_order_of_arrival),
		test(masks_beyond_the_classes_keep_post_order),
		test(teardown_meets_everything),
		test(random_use_agrees_with_two_plain_lists),
		test(many_stored_messages_are_drained_in_linear_time),
		test(the_message_that_matters_is_found_behind_many_others),
		test(many_posted_receives_are_matched_in_linear_time),
		test(stored_messages_are_walked_in_order_of_arrival),
		test(without_memory_matching_is_slower_and_still_right),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	match_destroy(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
