/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of the thread that keeps leases: when it renews them, what it tells of, and how it connects again. The lender
 * is a model.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client.h"
#include "fake_pace.h"
#include "fake_use.h"

/* How much faster time passes where no answer comes. */
#define PACE 10

/* Of what fails where this process does not come to run for a while */
#define TRIES 10

static uint32_t told(struct fake_use *u, uint32_t kind)
{
	return fake_eq_count(&u->eq, kind, 0);
}

static uint32_t ended(struct fake_use *u)
{
	return fake_eq_count(&u->eq, WEFT_EVENT_LEASE_ENDED, weft_device_lease(u->dev));
}

/*
 * Borrow until the lender has been asked about the lease so often. Whether it was: a lease ends by its time where this
 * process has not come to run for that long, and is returned then.
 */
static bool goes_on(struct fake_use *u, const struct weft_borrow_attr *attr, uint16_t kind,
		    uint32_t cnt)
{
	uint32_t before = fake_lender_asked(&u->fake, kind);
	int err;

	assert_int_equal(weft_device_borrow(u->lender, attr, &u->dev), 0);
	FAKE_USE_UNTIL(fake_lender_asked(&u->fake, kind) >= before + cnt || ended(u));
	err = weft_device_share(u->dev);
	if (err != -ESTALE && !ended(u)) {
		assert_int_equal(err, 0);
		return true;
	}
	fake_lender_end(&u->fake);
	assert_int_equal(weft_device_return(u->dev), 0);
	u->dev = NULL;
	return false;
}

static void lease_is_renewed_in_time(void **state)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr), .ms = 3000 };
	int tries = TRIES;

	while (tries && !goes_on(*state, &attr, LEASE_RENEW, 3))
		tries--;
	assert_true(tries);
}

static void lease_that_is_kept_is_not_renewed(void **state)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr), .ms = 3000, .keep = 1 };
	struct fake_use *u = *state;
	int tries = TRIES;

	/* It looks how long it still runs. */
	while (tries && !goes_on(u, &attr, LEASE_ATTACH, 3))
		tries--;
	assert_true(tries);
	assert_int_equal(fake_lender_asked(&u->fake, LEASE_RENEW), 0);
}

/* The lender says so, and its answer to the renewal does: that is one event. */
static void end_of_a_lease_is_told_of_once(void **state)
{
	struct fake_use *u = *state;

	fake_use_borrow(u, 300);
	fake_lender_end(&u->fake);
	fake_lender_tell(&u->fake, WEFT_EVENT_LEASE_ENDED, FAKE_LENDER_DEVICE,
			 weft_device_lease(u->dev));
	FAKE_USE_UNTIL(ended(u));
	assert_int_equal(weft_device_renew(u->dev, 300), -ESTALE);
	/* What comes behind it has been heard: so was a second one. */
	fake_lender_tell(&u->fake, WEFT_EVENT_LEASE_ENDED, FAKE_LENDER_DEVICE,
			 weft_device_lease(u->dev));
	fake_lender_tell(&u->fake, WEFT_EVENT_DEVICE_REMOVED, FAKE_LENDER_DEVICE, 0);
	FAKE_USE_UNTIL(told(u, WEFT_EVENT_DEVICE_REMOVED));
	assert_int_equal(ended(u), 1);
}

static void end_that_a_renewal_finds_out_is_told_of(void **state)
{
	struct fake_use *u = *state;

	fake_use_borrow(u, 300);
	fake_lender_end(&u->fake);
	FAKE_USE_UNTIL(ended(u));
	assert_int_equal(ended(u), 1);
}

static void lease_ends_by_its_time_where_there_is_no_lender(void **state)
{
	struct fake_use *u = *state;
	uint64_t begin = fake_use_ms();

	fake_use_borrow(u, 700);
	fake_lender_vanish(&u->fake);
	FAKE_USE_UNTIL(ended(u) && told(u, WEFT_EVENT_LENDER_LOST));
	assert_true(fake_use_ms() - begin >= 700);
	assert_int_equal(ended(u), 1);
	assert_int_equal(told(u, WEFT_EVENT_LENDER_LOST), 1);
	assert_int_equal(weft_device_share(u->dev), -ESTALE);
}

static void others_leases_are_not_told_of(void **state)
{
	struct fake_use *u = *state;

	fake_use_borrow(u, 60000);
	fake_lender_tell(&u->fake, WEFT_EVENT_LEASE_ENDED, FAKE_LENDER_DEVICE,
			 weft_device_lease(u->dev) + 1);
	fake_lender_tell(&u->fake, WEFT_EVENT_LEASE_ENDED, FAKE_LENDER_DEVICE + 1,
			 weft_device_lease(u->dev));
	fake_lender_tell(&u->fake, WEFT_EVENT_DEVICE_ADDED, FAKE_LENDER_DEVICE + 1, 0);
	FAKE_USE_UNTIL(told(u, WEFT_EVENT_DEVICE_ADDED));
	assert_int_equal(u->eq.cnt, 1);
	assert_int_equal(weft_device_share(u->dev), 0);
}

static void leases_are_shown_to_a_lender_that_is_back(void **state)
{
	struct fake_use *u = *state;

	fake_use_borrow(u, 60000);
	fake_lender_vanish(&u->fake);
	FAKE_USE_UNTIL(told(u, WEFT_EVENT_LENDER_LOST));
	assert_int_equal(weft_device_share(u->dev), -ETIMEDOUT);
	fake_lender_return(&u->fake);
	FAKE_USE_UNTIL(told(u, WEFT_EVENT_LENDER_BACK));
	assert_int_equal(fake_lender_asked(&u->fake, LEASE_ATTACH), 1);
	assert_int_equal(weft_device_share(u->dev), 0);
	assert_int_equal(ended(u), 0);
	assert_int_equal(told(u, WEFT_EVENT_LENDER_LOST), 1);
}

static void lease_that_a_lender_has_lost_has_ended(void **state)
{
	struct fake_use *u = *state;

	fake_use_borrow(u, 60000);
	fake_lender_vanish(&u->fake);
	fake_lender_end(&u->fake);
	fake_lender_return(&u->fake);
	FAKE_USE_UNTIL(told(u, WEFT_EVENT_LENDER_BACK));
	FAKE_USE_UNTIL(ended(u));
	assert_int_equal(ended(u), 1);
}

/* The lender that is back refuses the lease for now: it goes on, and so does the connection. */
static void refusal_of_a_lease_that_goes_on_is_not_its_end(void **state)
{
	struct fake_use *u = *state;

	fake_use_borrow(u, 60000);
	fake_lender_rule(&u->fake, LEASE_ATTACH,
			 (struct fake_rule){ FAKE_REFUSES, 0, -ENODEV, NULL });
	fake_lender_vanish(&u->fake);
	fake_lender_return(&u->fake);
	FAKE_USE_UNTIL(told(u, WEFT_EVENT_LENDER_BACK));
	assert_int_equal(ended(u), 0);
	assert_int_equal(weft_device_share(u->dev), 0);
}

static void of_another_kind(struct fake_answer *a)
{
	a->msg.kind = LEASE_HELLO;
}

static void nothing_but_events_may_come_as_events(void **state)
{
	struct fake_use *u = *state;

	fake_use_borrow(u, 600000);
	/* The lender says something else where events are expected, and is connected to anew. */
	fake_use_lie(u, LEASE_WATCH, of_another_kind);
	fake_pace(PACE);
	fake_lender_vanish(&u->fake);
	fake_lender_return(&u->fake);
	while (fake_lender_asked(&u->fake, LEASE_WATCH) < 3)
		poll(NULL, 0, PACE);
	fake_pace(1);
	fake_use_rule(u, LEASE_WATCH, FAKE_HONEST);
	FAKE_USE_UNTIL(told(u, WEFT_EVENT_LENDER_BACK));
	assert_int_equal(weft_device_share(u->dev), 0);
}

static void device_may_be_returned_while_the_lender_is_silent(void **state)
{
	struct fake_use *u = *state;
	uint64_t begin;
	uint16_t kind;

	fake_use_borrow(u, 300);
	for (kind = LEASE_HELLO; kind < LEASE_EVENT; kind++)
		fake_use_rule(u, kind, FAKE_SILENT);
	FAKE_USE_UNTIL(fake_lender_asked(&u->fake, LEASE_RENEW) || ended(u));
	begin = fake_use_ms();
	assert_int_equal(weft_device_return(u->dev), 0);
	assert_true(fake_use_ms() - begin < LENDER_ANSWER_MS);
	u->dev = NULL;
}

/* The thread that tells of the end waits for the answer to a renewal no longer than that. */
static void end_is_told_of_while_the_lender_is_silent(void **state)
{
	const uint32_t ms = 5000;
	struct fake_use *u = *state;
	uint64_t begin = fake_use_ms();

	fake_use_rule(u, LEASE_RENEW, FAKE_SILENT);
	fake_use_borrow(u, ms);
	FAKE_USE_UNTIL(ended(u));
	assert_in_range(fake_use_ms() - begin, ms - 100, ms / 3 + LENDER_ANSWER_MS - 100);
	assert_true(fake_lender_asked(&u->fake, LEASE_RENEW));
}

/* Nobody waits for the answer to the request that events are told of. */
static void lender_may_be_closed_while_it_is_silent(void **state)
{
	struct fake_use *u = *state;
	struct weft_lender *other;
	uint64_t begin;

	fake_use_rule(u, LEASE_WATCH, FAKE_SILENT);
	assert_int_equal(weft_lender_open(u->fake.path, NULL, &other), 0);
	FAKE_USE_UNTIL(fake_lender_asked(&u->fake, LEASE_WATCH) == 2);
	begin = fake_use_ms();
	assert_int_equal(weft_lender_close(other), 0);
	assert_true(fake_use_ms() - begin < LENDER_ANSWER_MS - 500);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_use_setup, fake_use_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(lease_is_renewed_in_time),
		TEST(lease_that_is_kept_is_not_renewed),
		TEST(end_of_a_lease_is_told_of_once),
		TEST(end_that_a_renewal_finds_out_is_told_of),
		TEST(lease_ends_by_its_time_where_there_is_no_lender),
		TEST(others_leases_are_not_told_of),
		TEST(leases_are_shown_to_a_lender_that_is_back),
		TEST(lease_that_a_lender_has_lost_has_ended),
		TEST(refusal_of_a_lease_that_goes_on_is_not_its_end),
		TEST(nothing_but_events_may_come_as_events),
		TEST(device_may_be_returned_while_the_lender_is_silent),
		TEST(end_is_told_of_while_the_lender_is_silent),
		TEST(lender_may_be_closed_while_it_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
