/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of segments and windows: what is mapped where, and what is undone when the lender refuses a part of it, is
 * silent, or lies. The lender is a model.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "client.h"
#include "fake_pace.h"
#include "fake_use.h"
#include "spec.h"

#define PACE 10

#define GRANULE FAKE_LENDER_GRANULE

static struct weft_segment *own(size_t len)
{
	struct weft_segment *seg;

	assert_int_equal(weft_segment_alloc(NULL, len, 0, &seg), 0);
	return seg;
}

static uint32_t windows_of(struct fake_use *u)
{
	uint32_t i, cnt = 0;

	pthread_mutex_lock(&u->fake.lock);
	for (i = 0; i < FAKE_WINDOWS; i++)
		cnt += u->fake.windows[i].len != 0;
	pthread_mutex_unlock(&u->fake.lock);
	return cnt;
}

static void own_memory_keeps_its_length(void **state)
{
	struct weft_segment *seg = own(5000);

	assert_int_equal(weft_segment_len(seg), 2 * NVME_PAGE);
	assert_true(fcntl(seg->fds[0], F_GET_SEALS) & F_SEAL_SHRINK);
	assert_int_equal(ftruncate(seg->fds[0], 0), -1);
	assert_int_equal(weft_segment_free(seg), 0);
	assert_int_equal(weft_segment_alloc(NULL, 0, 0, &seg), -EINVAL);
	assert_int_equal(weft_segment_alloc(NULL, SIZE_MAX, 0, &seg), -EINVAL);
	assert_int_equal(weft_segment_alloc(NULL, 4096, 1u << 30, &seg), -EINVAL);
}

static void window_leads_to_the_memory(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg = own(NVME_PAGE);
	struct weft_window *window;
	uint8_t *mem = weft_segment_mem(seg);

	fake_use_borrow(u, 60000);
	assert_int_equal(weft_window_open(u->dev, seg, WEFT_WINDOW_RW, &window), 0);
	mem[17] = 42;
	assert_int_equal(*((uint8_t *)fake_lender_mem(&u->fake, window->spans[0].addr) + 17),
			 42);
	assert_int_equal(weft_segment_free(seg), -EBUSY);
	assert_int_equal(weft_window_close(window), 0);
	assert_int_equal(windows_of(u), 0);
	assert_int_equal(weft_segment_free(seg), 0);
}

/* Memory of the device is in several files, each of which needs a window. */
static void window_that_is_refused_in_part_leaves_nothing(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg;
	struct weft_window *window;

	fake_use_borrow(u, 60000);
	assert_int_equal(weft_segment_alloc(u->dev, 3 * GRANULE, 0, &seg), 0);
	assert_int_equal(seg->fd_cnt, 3);
	fake_lender_rule(&u->fake, LEASE_WINDOW,
			 (struct fake_rule){ FAKE_REFUSES, 2, -ENOSPC, NULL });
	assert_int_equal(weft_window_open(u->dev, seg, WEFT_WINDOW_RW, &window), -ENOSPC);
	assert_int_equal(windows_of(u), 0);
	assert_int_equal(u->dev->span_cnt, 0);
	assert_int_equal(weft_segment_free(seg), 0);
}

static void window_that_could_not_be_closed_is_closed_later(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg;
	struct weft_window *window;

	fake_use_borrow(u, 600000);
	assert_int_equal(weft_segment_alloc(u->dev, 2 * GRANULE, 0, &seg), 0);
	assert_int_equal(weft_window_open(u->dev, seg, WEFT_WINDOW_RW, &window), 0);
	/* The first file's is closed, the second one's is not. */
	fake_lender_rule(&u->fake, LEASE_UNWINDOW,
			 (struct fake_rule){ .how = FAKE_SILENT, .skip = 1 });
	fake_pace(PACE);
	assert_int_equal(weft_window_close(window), -ETIMEDOUT);
	fake_pace(1);
	assert_int_equal(weft_segment_free(seg), -EBUSY);
	fake_lender_rule(&u->fake, LEASE_UNWINDOW, (struct fake_rule){ .how = FAKE_HONEST });
	/* It was, and its answer alone is missing. */
	assert_int_equal(windows_of(u), 0);
	assert_int_equal(weft_window_close(window), 0);
	assert_int_equal(weft_segment_free(seg), 0);
}

static void windows_of_a_lease_that_has_ended_are_closed_without_the_lender(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg = own(NVME_PAGE);
	struct weft_window *window;

	fake_use_borrow(u, 60000);
	assert_int_equal(weft_window_open(u->dev, seg, WEFT_WINDOW_RW, &window), 0);
	fake_lender_end(&u->fake);
	assert_int_equal(weft_device_renew(u->dev, 60000), -ESTALE);
	assert_int_equal(weft_window_close(window), 0);
	assert_int_equal(fake_lender_asked(&u->fake, LEASE_UNWINDOW), 0);
	assert_int_equal(weft_segment_free(seg), 0);
}

static void no_memory(struct fake_answer *a)
{
	packet_close_fds(a->fds, a->fd_cnt);
	a->msg.fd_cnt = a->fd_cnt = 0;
}

static void half_a_page(struct fake_answer *a)
{
	a->msg.len = 2048;
}

static void no_length(struct fake_answer *a)
{
	a->msg.len = 0;
}

static void more_than_there_is(struct fake_answer *a)
{
	a->msg.len = 16 * GRANULE;
}

static void less_than_was_asked_for(struct fake_answer *a)
{
	a->msg.len = NVME_PAGE;
}

static void all_there_is(struct fake_answer *a)
{
	a->msg.len = 0xfffffffffffff000ULL;
}

static void another_error(struct fake_answer *a)
{
	a->msg.status = -EOPNOTSUPP;
}

static void (*const lies[])(struct fake_answer *a) = {
	no_memory, half_a_page, no_length, more_than_there_is, all_there_is, another_error,
};

static void memory_of_a_device_is_what_its_lender_has(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg;
	size_t i;

	fake_use_borrow(u, 60000);
	fake_use_lie(u, LEASE_MEMORY, less_than_was_asked_for);
	assert_int_equal(weft_segment_alloc(u->dev, 2 * GRANULE, 0, &seg), -ENOPROTOOPT);
	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		fake_use_lie(u, LEASE_MEMORY, lies[i]);
		assert_true(weft_segment_alloc(u->dev, 2 * GRANULE, 0, &seg) < 0);
	}
	fake_use_rule(u, LEASE_MEMORY, FAKE_HONEST);
	assert_int_equal(weft_segment_alloc(u->dev, GRANULE + 1, 0, &seg), 0);
	assert_int_equal(weft_segment_len(seg), 2 * GRANULE);
	memset(weft_segment_mem(seg), 1, weft_segment_len(seg));
	assert_int_equal(weft_segment_free(seg), 0);
}

static void hints_find_other_memory_where_the_device_has_none(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg;

	fake_use_borrow(u, 60000);
	fake_lender_rule(&u->fake, LEASE_MEMORY,
			 (struct fake_rule){ FAKE_REFUSES, 0, -ENOSPC, NULL });
	assert_int_equal(weft_segment_alloc(u->dev, NVME_PAGE, 0, &seg), -ENOSPC);
	assert_int_equal(weft_segment_alloc(u->dev, NVME_PAGE, WEFT_HINT_DEVICE_READS, &seg), 0);
	assert_null(seg->dev);
	assert_int_equal(weft_segment_free(seg), 0);
}

static void multicast_has_segments_of_one_length(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *segs[2] = { own(NVME_PAGE), own(2 * NVME_PAGE) };
	struct weft_window *window;

	fake_use_borrow(u, 60000);
	assert_int_equal(weft_multicast_open(u->dev, segs, 2, &window), -EINVAL);
	assert_int_equal(weft_multicast_open(u->dev, segs, 0, &window), -EINVAL);
	assert_int_equal(weft_multicast_open(u->dev, segs, WEFT_MULTICAST_MAX + 1, &window),
			 -EINVAL);
	fake_lender_rule(&u->fake, LEASE_WINDOW,
			 (struct fake_rule){ FAKE_REFUSES, 0, -ENOSPC, NULL });
	assert_int_equal(weft_multicast_open(u->dev, segs, 1, &window), -ENOSPC);
	assert_int_equal(weft_segment_free(segs[0]), 0);
	assert_int_equal(weft_segment_free(segs[1]), 0);
}

static void segment_is_imported_by_its_address_until_it_is_gone(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg = own(3 * NVME_PAGE), *same;
	struct weft_address addr, again;

	assert_int_equal(weft_segment_export(u->lender, seg, 0, &addr), 0);
	assert_int_equal(addr.node, FAKE_LENDER_NODE);
	assert_int_equal(weft_segment_export(u->lender, seg, 0, &again), -EBUSY);
	assert_int_equal(weft_segment_import(u->lender, &addr, &same), 0);
	assert_int_equal(weft_segment_len(same), 3 * NVME_PAGE);
	memset(weft_segment_mem(seg), 0x3c, 3 * NVME_PAGE);
	assert_memory_equal(weft_segment_mem(seg), weft_segment_mem(same), 3 * NVME_PAGE);
	again = addr;
	again.generation++;
	assert_int_equal(weft_segment_import(u->lender, &again, &same), -ESTALE);
	assert_int_equal(weft_segment_free(same), 0);
	assert_int_equal(weft_segment_free(seg), 0);
	assert_int_equal(weft_segment_import(u->lender, &addr, &same), -ESTALE);
}

static void import_that_is_a_lie_leaves_nothing(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg = own(NVME_PAGE), *same;
	struct weft_address addr;
	size_t i;

	assert_int_equal(weft_segment_export(u->lender, seg, 0, &addr), 0);
	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		fake_use_lie(u, LEASE_IMPORT, lies[i]);
		assert_true(weft_segment_import(u->lender, &addr, &same) < 0);
	}
	fake_use_rule(u, LEASE_EXPORT, FAKE_SILENT);
	fake_use_rule(u, LEASE_UNEXPORT, FAKE_ENDS);
	assert_int_equal(weft_segment_free(seg), 0);
}

static void export_that_is_not_answered_may_be_tried_again(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg = own(NVME_PAGE);
	struct weft_address addr;

	fake_use_rule(u, LEASE_EXPORT, FAKE_ENDS);
	assert_int_equal(weft_segment_export(u->lender, seg, 0, &addr), -ETIMEDOUT);
	fake_use_rule(u, LEASE_EXPORT, FAKE_HONEST);
	FAKE_USE_UNTIL(seg->exported || !weft_segment_export(u->lender, seg, 0, &addr));
	assert_int_equal(weft_segment_free(seg), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_use_setup, fake_use_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(own_memory_keeps_its_length),
		TEST(window_leads_to_the_memory),
		TEST(window_that_is_refused_in_part_leaves_nothing),
		TEST(window_that_could_not_be_closed_is_closed_later),
		TEST(windows_of_a_lease_that_has_ended_are_closed_without_the_lender),
		TEST(memory_of_a_device_is_what_its_lender_has),
		TEST(hints_find_other_memory_where_the_device_has_none),
		TEST(multicast_has_segments_of_one_length),
		TEST(segment_is_imported_by_its_address_until_it_is_gone),
		TEST(import_that_is_a_lie_leaves_nothing),
		TEST(export_that_is_not_answered_may_be_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
