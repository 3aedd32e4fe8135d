/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of event queue storage. */
#include <setjmp.h>
#include <stdarg.h>
#include "eq.h"
#include <cmocka.h>

/* Memory runs out when a test says so: the linker leads platform_alloc() here. */
void *__real_platform_alloc(size_t len);
void *__wrap_platform_alloc(size_t len);
static bool no_memory;

void *__wrap_platform_alloc(size_t len)
{
	return no_memory ? NULL : __real_platform_alloc(len);
}

static int fid_a, fid_b; /* stand for fids by their addresses */

static struct fi_eq_entry entry(uint64_t data)
{
	return (struct fi_eq_entry){ .fid = (void *)&fid_a, .context = &fid_b, .data = data };
}

static void post(struct eq *q, uint32_t event, const void *buf, size_t len)
{
	struct eq_event *e = eq_event_new(event, buf, len);

	assert_non_null(e);
	eq_post(q, e);
}

static void push(struct eq *q, uint32_t event, uint64_t data)
{
	struct fi_eq_entry e = entry(data);

	post(q, event, &e, sizeof(e));
}

static void events_come_in_order(void **state)
{
	struct fi_eq_entry got;
	uint32_t event = 0;
	struct eq q;

	eq_init(&q);
	assert_true(eq_empty(&q));
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), -FI_EAGAIN);
	push(&q, FI_MR_COMPLETE, 1);
	push(&q, FI_AV_COMPLETE, 2);
	assert_false(eq_empty(&q));
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(event, FI_MR_COMPLETE);
	assert_ptr_equal(got.fid, &fid_a);
	assert_ptr_equal(got.context, &fid_b);
	assert_int_equal(got.data, 1);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), -FI_EAGAIN);
	eq_fini(&q);
}

static void peek_leaves_the_event(void **state)
{
	struct fi_eq_entry got;
	uint32_t event;
	struct eq q;

	eq_init(&q);
	push(&q, FI_AV_COMPLETE, 7);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(eq_take(&q, &event, &got, sizeof(got), FI_PEEK), sizeof(got));
		assert_int_equal(got.data, 7);
	}
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), FI_PEEK), -FI_EAGAIN);
	eq_fini(&q);
}

static void short_buffer_leaves_the_event(void **state)
{
	struct fi_eq_entry got = { .data = 99 };
	uint32_t event = 55;
	struct eq q;

	eq_init(&q);
	push(&q, FI_AV_COMPLETE, 7);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got) - 1, 0), -FI_ETOOSMALL);
	assert_int_equal(eq_take(&q, &event, NULL, 0, 0), -FI_ETOOSMALL);
	assert_int_equal(event, 55);
	assert_int_equal(got.data, 99);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), sizeof(got));
	eq_fini(&q);
}

static void connection_data_are_cut_to_the_buffer(void **state)
{
	union {
		struct fi_eq_cm_entry cm;
		unsigned char bytes[sizeof(struct fi_eq_cm_entry) + 8];
	} in = { 0 }, got = { 0 };
	uint32_t event;
	struct eq q;

	eq_init(&q);
	in.cm.fid = (void *)&fid_a;
	in.cm.info = (void *)&fid_b;
	memcpy(in.bytes + sizeof(in.cm), "password", 8);
	post(&q, FI_CONNREQ, &in, sizeof(in));

	assert_int_equal(eq_take(&q, &event, &got, sizeof(got.cm) - 1, 0), -FI_ETOOSMALL);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got.cm), FI_PEEK), sizeof(got.cm));
	assert_ptr_equal(got.cm.info, &fid_b);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got.cm) + 4, FI_PEEK),
			 sizeof(got.cm) + 4);
	assert_memory_equal(got.bytes + sizeof(got.cm), "pass\0\0\0\0", 8);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(&got, &in, sizeof(in));
	eq_fini(&q);
}

static void error_is_met_at_its_place(void **state)
{
	struct fi_eq_err_entry in = {
		.context = &fid_b, .data = 3, .err = FI_ECONNREFUSED, .prov_errno = 9
	};
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry got;
	uint32_t event;
	struct eq q;

	eq_init(&q);
	push(&q, FI_AV_COMPLETE, 1);
	assert_int_equal(eq_push_error(&q, &in), 0);
	push(&q, FI_AV_COMPLETE, 2);

	assert_int_equal(eq_take_error(&q, &err, 0), -FI_EAGAIN);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), -FI_EAVAIL);
	assert_int_equal(eq_take_error(&q, &err, FI_PEEK), sizeof(err));
	err = (struct fi_eq_err_entry){ 0 };
	assert_int_equal(eq_take_error(&q, &err, 0), sizeof(err));
	assert_ptr_equal(err.context, &fid_b);
	assert_int_equal(err.data, 3);
	assert_int_equal(err.err, FI_ECONNREFUSED);
	assert_int_equal(err.prov_errno, 9);
	assert_null(err.err_data);
	assert_int_equal(err.err_data_size, 0);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(got.data, 2);
	eq_fini(&q);
}

static void error_data_go_to_the_callers_buffer_or_are_lent(void **state)
{
	char data[] = "sixteen letters", mine[8] = "";
	struct fi_eq_err_entry in = { .err = FI_ECONNREFUSED,
				      .err_data = data,
				      .err_data_size = 16 };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry got;
	uint32_t event;
	struct eq q;

	eq_init(&q);
	for (int i = 0; i < 4; i++)
		assert_int_equal(eq_push_error(&q, &in), 0);
	memset(data, 'x', 15); /* a copy is queued */

	err.err_data = mine;
	err.err_data_size = sizeof(mine);
	assert_int_equal(eq_take_error(&q, &err, 0), sizeof(err));
	assert_ptr_equal(err.err_data, mine);
	assert_int_equal(err.err_data_size, 8);
	assert_memory_equal(mine, "sixteen ", 8);

	err.err_data_size = 0;
	assert_int_equal(eq_take_error(&q, &err, FI_PEEK), sizeof(err));
	assert_string_equal(err.err_data, "sixteen letters");
	err.err_data_size = 0;
	assert_int_equal(eq_take_error(&q, &err, 0), sizeof(err));
	assert_string_equal(err.err_data, "sixteen letters");
	assert_int_equal(err.err_data_size, 16);

	q.api_version = FI_VERSION(1, 4); /* err_data_size is ignored then */
	err.err_data = mine;
	err.err_data_size = 4444;
	assert_int_equal(eq_take_error(&q, &err, 0), sizeof(err));
	assert_ptr_not_equal(err.err_data, mine);
	assert_int_equal(err.err_data_size, 16);
	assert_non_null(q.lent);
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), -FI_EAVAIL);
	assert_null(q.lent);
	eq_fini(&q); /* with one unread: leak checkers watch */
}

static void prepared_event_is_posted_without_memory(void **state)
{
	struct fi_eq_entry in = entry(5), got;
	struct eq_event *e, *unused;
	uint32_t event;
	struct eq q;

	eq_init(&q);
	e = eq_event_new(FI_AV_COMPLETE, NULL, sizeof(in));
	unused = eq_event_new(FI_AV_COMPLETE, &in, sizeof(in));
	no_memory = true;
	assert_null(eq_event_new(FI_AV_COMPLETE, NULL, sizeof(in)));
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), -FI_EAGAIN);
	eq_event_fill(e, &in, sizeof(in));
	eq_post(&q, e);
	no_memory = false;
	assert_int_equal(eq_take(&q, &event, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_int_equal(got.data, 5);
	eq_event_free(unused);
	eq_event_free(NULL);
	eq_fini(&q);
}

static void *dropped[4];
static int dropped_cnt;

static void note_dropped(void *arg, const struct fi_eq_cm_entry *cm)
{
	assert_ptr_equal(arg, &dropped);
	dropped[dropped_cnt++] = cm->info;
}

static void events_of_what_is_closed_are_forgotten(void **state)
{
	struct fi_eq_cm_entry cm = { .fid = (void *)&fid_a, .info = (void *)&fid_b }, other = cm;
	struct fi_eq_err_entry err = { .fid = (void *)&fid_a, .err = FI_ECONNREFUSED };
	unsigned char got[64];
	uint32_t event;
	struct eq q;

	eq_init(&q);
	other.fid = (void *)&fid_b;
	push(&q, FI_NOTIFY, 1); /* names fid_a too, and is no connection's */
	post(&q, FI_CONNREQ, &cm, sizeof(cm));
	post(&q, FI_CONNECTED, &cm, sizeof(cm));
	post(&q, FI_CONNREQ, &other, sizeof(other));
	assert_int_equal(eq_push_error(&q, &err), 0);
	post(&q, FI_SHUTDOWN, &cm, sizeof(cm));
	post(&q, FI_CONNREQ, "short", 5); /* a program's own */
	dropped_cnt = 0;
	eq_forget(&q, (void *)&fid_a, note_dropped, &dropped);
	assert_int_equal(dropped_cnt, 1);
	assert_ptr_equal(dropped[0], &fid_b);
	assert_int_equal(eq_take(&q, &event, got, sizeof(got), 0), sizeof(struct fi_eq_entry));
	assert_int_equal(eq_take(&q, &event, got, sizeof(got), 0), sizeof(cm));
	assert_memory_equal(got, &other, sizeof(other));
	assert_int_equal(eq_take(&q, &event, got, sizeof(got), 0), 5);
	assert_true(eq_empty(&q));
	post(&q, FI_CONNREQ, &cm, sizeof(cm));
	eq_forget(&q, (void *)&fid_a, NULL, NULL);
	assert_true(eq_empty(&q));
	eq_fini(&q);
}

static void what_can_not_be_kept_is_refused(void **state)
{
	char data[1] = "";
	struct fi_eq_err_entry in = { .err_data = data, .err_data_size = SIZE_MAX / 2 - 64 };
	struct eq q;

	eq_init(&q);
	assert_int_equal(eq_push_error(&q, &in), -FI_ENOMEM);
	no_memory = true;
	in.err_data_size = 1;
	assert_int_equal(eq_push_error(&q, &in), -FI_ENOMEM);
	assert_null(eq_event_new(0, data, 1));
	no_memory = false;
	in.err_data_size = SIZE_MAX;
	assert_int_equal(eq_push_error(&q, &in), -FI_ENOMEM);
	assert_null(eq_event_new(0, data, SIZE_MAX));
	assert_true(eq_empty(&q));
	eq_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_in_order),
		cmocka_unit_test(peek_leaves_the_event),
		cmocka_unit_test(short_buffer_leaves_the_event),
		cmocka_unit_test(connection_data_are_cut_to_the_buffer),
		cmocka_unit_test(error_is_met_at_its_place),
		cmocka_unit_test(error_data_go_to_the_callers_buffer_or_are_lent),
		cmocka_unit_test(prepared_event_is_posted_without_memory),
		cmocka_unit_test(events_of_what_is_closed_are_forgotten),
		cmocka_unit_test(what_can_not_be_kept_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
