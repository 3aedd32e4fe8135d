/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of completion queue storage. */
#include <setjmp.h>
#include <stdarg.h>
#include "cq.h"
#include <cmocka.h>

/* Memory runs out when a test says so: the linker leads platform_alloc() here. */
void *__real_platform_alloc(size_t len);
void *__wrap_platform_alloc(size_t len);
static bool no_memory;

void *__wrap_platform_alloc(size_t len)
{
	return no_memory ? NULL : __real_platform_alloc(len);
}

#define NEWEST FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

static void push(struct cq *q, uint64_t n)
{
	struct cq_entry *e = cq_slot(q);

	assert_non_null(e);
	*e = (struct cq_entry){
		.context = (void *)(uintptr_t)n,
		.flags = FI_RECV | FI_TAGGED,
		.len = n + 1,
		.buf = (void *)(uintptr_t)(n + 2),
		.data = n + 3,
		.tag = n + 4,
		.src = n + 5,
	};
	cq_push(q);
}

static void push_error(struct cq *q, uint64_t n, int code)
{
	struct fi_cq_err_entry err = {
		.op_context = (void *)(uintptr_t)n,
		.flags = FI_RECV,
		.len = 1,
		.olen = 2,
		.tag = 3,
		.err = code,
		.prov_errno = 99,
		.src_addr = n + 5,
	};

	cq_push_error(q, &err);
}

static void expect(const struct fi_cq_tagged_entry *e, uint64_t n)
{
	assert_int_equal((uintptr_t)e->op_context, n);
	assert_int_equal(e->flags, FI_RECV | FI_TAGGED);
	assert_int_equal(e->len, n + 1);
	assert_int_equal((uintptr_t)e->buf, n + 2);
	assert_int_equal(e->data, n + 3);
	assert_int_equal(e->tag, n + 4);
}

static void empty_queue_says_again(void **state)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { .err = 5 };
	struct cq q;

	assert_int_equal(cq_init(&q, 0), 0);
	assert_true(cq_empty(&q));
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, &e, 1, NULL), -FI_EAGAIN);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, NULL, 0, NULL), -FI_EAGAIN);
	assert_int_equal(cq_take_error(&q, &err, NEWEST), -FI_EAGAIN);
	assert_int_equal(err.err, 5);
	/* Asked for and not pushed. */
	assert_non_null(cq_slot(&q));
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, &e, 1, NULL), -FI_EAGAIN);
	cq_fini(&q);
}

static void each_format_gets_its_layout(void **state)
{
	static const struct {
		enum fi_cq_format format;
		size_t len;
	} formats[] = {
		{ FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
		{ FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
		{ FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
		{ FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
	};

	for (size_t f = 0; f < 4; f++) {
		struct fi_cq_tagged_entry whole[3];
		unsigned char buf[3 * sizeof(whole[0]) + 8];
		struct cq q;

		assert_int_equal(cq_init(&q, 0), 0);
		memset(buf, 0xee, sizeof(buf));
		for (uint64_t n = 0; n < 3; n++)
			push(&q, n * 10);
		assert_int_equal(cq_take(&q, formats[f].format, buf, 3, NULL), 3);
		for (uint64_t n = 0; n < 3; n++) {
			push(&q, n * 10);
			cq_take(&q, FI_CQ_FORMAT_TAGGED, &whole[n], 1, NULL);
			expect(&whole[n], n * 10);
			assert_memory_equal(buf + n * formats[f].len, &whole[n], formats[f].len);
		}
		for (size_t at = 3 * formats[f].len; at < sizeof(buf); at++)
			assert_int_equal(buf[at], 0xee);
		cq_fini(&q);
	}
}

static void the_only_entry_is_taken_like_one_of_several(void **state)
{
	static const size_t lens[] = { 0, sizeof(struct fi_cq_entry),
				       sizeof(struct fi_cq_msg_entry),
				       sizeof(struct fi_cq_data_entry),
				       sizeof(struct fi_cq_tagged_entry) };
	struct fi_cq_tagged_entry entry[2];
	struct fi_cq_err_entry err;
	fi_addr_t src = 77;
	struct cq q;

	assert_int_equal(cq_init(&q, 0), 0);
	for (enum fi_cq_format f = FI_CQ_FORMAT_CONTEXT; f <= FI_CQ_FORMAT_TAGGED; f++) {
		memset(entry, 0xee, sizeof(entry));
		push(&q, 8);
		assert_int_equal(cq_take(&q, f, entry, 0, &src), 0);
		assert_int_equal(src, 77);
		assert_int_equal(cq_take(&q, f, entry, 2, f % 2 ? &src : NULL), 1);
		assert_int_equal((uintptr_t)entry[0].op_context, 8);
		for (size_t at = lens[f]; at < sizeof(entry); at++)
			assert_int_equal(((unsigned char *)entry)[at], 0xee);
		assert_int_equal(src, f % 2 ? 13 : 77);
		src = 77;
		assert_true(cq_empty(&q));
	}
	expect(&entry[0], 8);

	/* An error is no entry, and what was lent with it is released by the next read of one. */
	push_error(&q, 3, FI_EIO);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, entry, 1, NULL), -FI_EAVAIL);
	err.err_data_size = 0;
	assert_int_equal(cq_take_error(&q, &err, NEWEST), 1);
	assert_non_null(q.lent);
	push(&q, 9);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, entry, 1, NULL), 1);
	expect(&entry[0], 9);
	assert_null(q.lent);
	cq_fini(&q);
}

static void sources_go_to_their_own_array(void **state)
{
	struct fi_cq_tagged_entry e[4];
	fi_addr_t src[4] = { 0, 0, 0, 77 };
	struct cq q;

	assert_int_equal(cq_init(&q, 0), 0);
	for (uint64_t n = 0; n < 3; n++)
		push(&q, n);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, e, 4, src), 3);
	for (uint64_t n = 0; n < 3; n++)
		assert_int_equal(src[n], n + 5);
	assert_int_equal(src[3], 77);
	cq_fini(&q);
}

static void queue_grows_while_wrapped(void **state)
{
	struct fi_cq_tagged_entry e;
	uint64_t in = 0, out = 0;
	struct cq q;

	assert_int_equal(cq_init(&q, 16), 0);
	assert_int_equal(q.mask, 15);
	q.head = q.tail = UINT32_MAX - 20; /* the counters wrap too */
	for (int i = 0; i < 11; i++) {
		push(&q, in++);
		assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, &e, 1, NULL), 1);
		expect(&e, out++);
	}
	while (in < 5000) {
		push(&q, in++);
		if (in % 3)
			continue;
		assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, &e, 1, NULL), 1);
		expect(&e, out++);
	}
	while (cq_take(&q, FI_CQ_FORMAT_TAGGED, &e, 1, NULL) == 1)
		expect(&e, out++);
	assert_int_equal(out, 5000);
	assert_false(q.overrun);
	cq_fini(&q);
}

static void error_is_met_at_its_place(void **state)
{
	struct fi_cq_tagged_entry e[8];
	struct fi_cq_err_entry err = { 0 };
	struct cq q;

	assert_int_equal(cq_init(&q, 0), 0);
	push(&q, 1);
	push(&q, 2);
	push_error(&q, 3, FI_ECANCELED);
	push_error(&q, 4, FI_ETRUNC);
	push(&q, 5);

	assert_int_equal(cq_take_error(&q, &err, NEWEST), -FI_EAGAIN);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, e, 8, NULL), 2);
	expect(&e[1], 2);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, e, 8, NULL), -FI_EAVAIL);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, NULL, 0, NULL), -FI_EAVAIL);
	assert_int_equal(cq_take_error(&q, &err, NEWEST), 1);
	assert_int_equal((uintptr_t)err.op_context, 3);
	assert_int_equal(err.flags, FI_RECV); /* our own mark does not show */
	assert_int_equal(err.err, FI_ECANCELED);
	assert_int_equal(err.prov_errno, 99);
	assert_int_equal(err.olen, 2);
	assert_int_equal(err.tag, 3);
	assert_int_equal(err.src_addr, 8);
	assert_null(err.err_data);
	assert_int_equal(err.err_data_size, 0);
	assert_int_equal(cq_take_error(&q, &err, NEWEST), 1);
	assert_int_equal(err.err, FI_ETRUNC);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, NULL, 0, NULL), 0);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, e, 8, NULL), 1);
	expect(&e[0], 5);
	cq_fini(&q);
}

static void older_callers_get_a_shorter_error(void **state)
{
	static const struct {
		uint32_t api_version;
		size_t len;
	} callers[] = {
		{ FI_VERSION(1, 0), 72 },  { FI_VERSION(1, 4), 72 },  { FI_VERSION(1, 5), 80 },
		{ FI_VERSION(1, 19), 80 }, { FI_VERSION(1, 20), 88 }, { FI_VERSION(2, 0), 88 },
	};

	assert_int_equal(sizeof(struct fi_cq_err_entry), 88);
	for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
		union {
			struct fi_cq_err_entry err;
			unsigned char bytes[sizeof(struct fi_cq_err_entry)];
		} buf;
		struct cq q;

		assert_int_equal(cq_init(&q, 0), 0);
		push_error(&q, 3, FI_EIO);
		memset(&buf, 0xee, sizeof(buf));
		if (callers[i].api_version >= FI_VERSION(1, 5))
			buf.err.err_data_size = 0;
		assert_int_equal(cq_take_error(&q, &buf.err, callers[i].api_version), 1);
		assert_int_equal(buf.err.err, FI_EIO);
		assert_null(buf.err.err_data);
		for (size_t at = callers[i].len; at < sizeof(buf); at++)
			assert_int_equal(buf.bytes[at], 0xee);
		if (callers[i].len == 88)
			assert_int_equal(buf.err.src_addr, 8);
		cq_fini(&q);
	}
}

static void error_data_go_to_the_callers_buffer_or_are_lent(void **state)
{
	char data[] = "sixteen letters", mine[8] = "", *lent;
	struct fi_cq_err_entry in = { .err = FI_EADDRNOTAVAIL,
				      .err_data = data,
				      .err_data_size = 16 };
	struct fi_cq_err_entry err = { 0 };
	struct cq q;

	assert_int_equal(cq_init(&q, 0), 0);
	for (int i = 0; i < 4; i++)
		cq_push_error(&q, &in);
	memset(data, 'x', 15); /* a copy is queued */

	err.err_data = mine;
	err.err_data_size = sizeof(mine);
	assert_int_equal(cq_take_error(&q, &err, FI_VERSION(1, 5)), 1);
	assert_ptr_equal(err.err_data, mine);
	assert_int_equal(err.err_data_size, 8);
	assert_memory_equal(mine, "sixteen ", 8);

	err.err_data_size = 0; /* no buffer */
	assert_int_equal(cq_take_error(&q, &err, NEWEST), 1);
	assert_ptr_not_equal(err.err_data, mine);
	assert_int_equal(err.err_data_size, 16);
	lent = err.err_data;
	assert_string_equal(lent, "sixteen letters");

	err.err_data_size = 4444; /* not there for a caller of 1.4 */
	assert_int_equal(cq_take_error(&q, &err, FI_VERSION(1, 4)), 1);
	assert_int_equal(err.err_data_size, 4444);
	lent = err.err_data;
	assert_string_equal(lent, "sixteen letters");
	assert_ptr_equal(q.lent == NULL, 0);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_MSG, NULL, 0, NULL), -FI_EAVAIL);
	assert_null(q.lent);

	cq_fini(&q); /* the fourth, unread, is freed: leak checkers watch */
}

static void caller_with_a_buffer_is_told_that_there_are_no_data(void **state)
{
	char mine[8] = "mine";
	struct fi_cq_err_entry err = { .err_data = mine, .err_data_size = sizeof(mine) };
	struct cq q;

	assert_int_equal(cq_init(&q, 0), 0);
	push_error(&q, 1, FI_EIO);
	assert_int_equal(cq_take_error(&q, &err, NEWEST), 1);
	assert_ptr_equal(err.err_data, mine);
	assert_int_equal(err.err_data_size, 0);
	assert_string_equal(mine, "mine");
	cq_fini(&q);
}

static int told;

static void tell(struct cq *q)
{
	told++;
}

/* Whatever there is room for, and whether it can be written or not. */
static void who_watches_is_told_once_of_what_is_written_next(void **state)
{
	struct fi_cq_tagged_entry e;
	struct cq q;

	assert_int_equal(cq_init(&q, 1), 0);
	told = 0;
	for (int in = 0; in < 64; in++) {
		if (in % 2)
			cq_watch(&q, CQ_SLEEPERS, tell);
		push(&q, (uint64_t)in);
		assert_int_equal(told, (in + 1) / 2);
	}
	cq_watch(&q, CQ_SLEEPERS, tell);
	push_error(&q, 64, FI_EIO);
	assert_int_equal(told, 33);
	for (int out = 0; out < 64; out++) {
		assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, &e, 1, NULL), 1);
		expect(&e, (uint64_t)out);
	}
	cq_watch(&q, CQ_SLEEPERS, tell);
	cq_unwatch(&q, CQ_SLEEPERS);
	push(&q, 65);
	assert_int_equal(told, 33);
	while (q.tail - q.head <= q.mask)
		push(&q, 0);
	cq_watch(&q, CQ_SLEEPERS, tell);
	no_memory = true;
	assert_null(cq_slot(&q));
	no_memory = false;
	assert_int_equal(told, 34);
	assert_true(q.overrun);
	cq_fini(&q);
}

static int passed;

static void pass(struct cq *q)
{
	passed++;
}

static void watchers_know_nothing_of_one_another(void **state)
{
	struct cq q;

	assert_int_equal(cq_init(&q, 1), 0);
	told = passed = 0;
	cq_watch(&q, CQ_OWNER, pass);
	cq_watch(&q, CQ_SLEEPERS, tell);
	push(&q, 0);
	push(&q, 1);
	assert_int_equal(told, 1);
	assert_int_equal(passed, 1);
	cq_watch(&q, CQ_OWNER, pass);
	cq_watch(&q, CQ_SLEEPERS, tell);
	cq_unwatch(&q, CQ_SLEEPERS);
	push(&q, 2);
	assert_int_equal(told, 1);
	assert_int_equal(passed, 2);
	cq_watch(&q, CQ_SLEEPERS, tell);
	cq_unwatch(&q, CQ_OWNER);
	push(&q, 3);
	assert_int_equal(told, 2);
	assert_int_equal(passed, 2);
	cq_fini(&q);
}

/* The task that passes entries on drops each after it has written it to the owner's queue. */
static void entries_are_seen_and_dropped_one_by_one(void **state)
{
	const struct fi_cq_err_entry *err;
	struct cq q;

	assert_int_equal(cq_init(&q, 1), 0);
	assert_null(cq_first(&q));
	for (int round = 0; round < 3; round++) {
		for (uint64_t in = 0; in < 20; in++) {
			if (in == 7)
				push_error(&q, in, FI_EIO);
			else
				push(&q, in);
		}
		for (uint64_t out = 0; out < 20; out++) {
			assert_int_equal((uintptr_t)cq_first(&q)->context, out);
			assert_ptr_equal(cq_first(&q), cq_first(&q));
			assert_int_equal(!!(cq_first(&q)->flags & CQ_ERROR), out == 7);
			if (out == 7) {
				err = cq_first(&q)->error;
				assert_int_equal(err->err, FI_EIO);
				assert_int_equal((uintptr_t)err->op_context, out);
				assert_int_equal(err->src_addr, out + 5);
			}
			cq_drop_first(&q);
		}
		assert_null(cq_first(&q));
	}
	cq_fini(&q);
}

static void lost_completion_is_reported_once_the_rest_is_read(void **state)
{
	struct fi_cq_tagged_entry e;
	uint64_t out = 0;
	struct cq q;

	no_memory = true;
	assert_int_equal(cq_init(&q, 0), -FI_ENOMEM);
	no_memory = false;
	cq_fini(&q);
	assert_int_equal(cq_init(&q, 1), 0);
	for (uint64_t in = 0; in < 16; in++)
		push(&q, in);
	no_memory = true;
	assert_null(cq_slot(&q));
	no_memory = false;
	assert_true(q.overrun);
	while (cq_take(&q, FI_CQ_FORMAT_TAGGED, &e, 1, NULL) == 1)
		expect(&e, out++);
	assert_int_equal(out, 16);
	for (int i = 0; i < 2; i++)
		assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, &e, 1, NULL), -FI_EOVERRUN);
	push(&q, 16);
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, &e, 1, NULL), 1);
	cq_fini(&q);
}

static void lost_error_is_an_overrun_too(void **state)
{
	struct cq q;

	assert_int_equal(cq_init(&q, 0), 0);
	no_memory = true;
	push_error(&q, 1, FI_EIO);
	no_memory = false;
	assert_true(q.overrun);
	assert_true(cq_empty(&q));
	assert_int_equal(cq_take(&q, FI_CQ_FORMAT_TAGGED, NULL, 0, NULL), -FI_EOVERRUN);
	cq_fini(&q);
}

static void error_that_can_not_be_kept_is_an_overrun(void **state)
{
	struct fi_cq_err_entry in = { .err_data = &in, .err_data_size = SIZE_MAX / 2 - 128 };
	struct cq q;

	assert_int_equal(cq_init(&q, SIZE_MAX), 0);
	cq_push_error(&q, &in);
	assert_true(q.overrun);
	assert_true(cq_empty(&q));
	cq_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_queue_says_again),
		cmocka_unit_test(each_format_gets_its_layout),
		cmocka_unit_test(the_only_entry_is_taken_like_one_of_several),
		cmocka_unit_test(sources_go_to_their_own_array),
		cmocka_unit_test(queue_grows_while_wrapped),
		cmocka_unit_test(error_is_met_at_its_place),
		cmocka_unit_test(older_callers_get_a_shorter_error),
		cmocka_unit_test(error_data_go_to_the_callers_buffer_or_are_lent),
		cmocka_unit_test(caller_with_a_buffer_is_told_that_there_are_no_data),
		cmocka_unit_test(who_watches_is_told_once_of_what_is_written_next),
		cmocka_unit_test(watchers_know_nothing_of_one_another),
		cmocka_unit_test(entries_are_seen_and_dropped_one_by_one),
		cmocka_unit_test(lost_completion_is_reported_once_the_rest_is_read),
		cmocka_unit_test(lost_error_is_an_overrun_too),
		cmocka_unit_test(error_that_can_not_be_kept_is_an_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
