/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of the connection to a lender and of leases: what the library makes of a lender that refuses, says nothing,
 * answers too late, ends the connection, or lies. The lender is a model.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "fake_pace.h"
#include "fake_use.h"

#define THREADS 6

/* How much faster time passes where no answer comes. */
#define PACE 10

/* What a machine with much to do takes longer. */
#define SLACK_MS (PACE * 20000)
/* A lease that does not end meanwhile */
#define LONG_MS 600000

/* Longer than the bound that a lender which is slow must not run into, and less than LENDER_ANSWER_MS */
#define SLOW_MS 4000

/* Answers that are none. Each call with such a one fails, and the next one does not. */
static void short_one(struct fake_answer *a)
{
	a->len = sizeof(a->msg) - 1;
}

static void empty_one(struct fake_answer *a)
{
	a->len = 1;
}

static void longer_than_it_says(struct fake_answer *a)
{
	a->len += 8;
}

static void says_more_than_there_is(struct fake_answer *a)
{
	a->msg.data_len += 8;
}

static void says_too_much(struct fake_answer *a)
{
	a->msg.data_len = UINT32_MAX;
}

static void longest(struct fake_answer *a)
{
	a->len = sizeof(a->msg) + sizeof(a->data);
	a->msg.data_len = sizeof(a->data);
}

static void of_another_kind(struct fake_answer *a)
{
	a->msg.kind++;
}

static void of_another_request(struct fake_answer *a)
{
	a->msg.seq--;
}

static void of_another_version(struct fake_answer *a)
{
	a->msg.version++;
}

static void status_above_zero(struct fake_answer *a)
{
	a->msg.status = 1;
}

static void status_that_is_no_errno(struct fake_answer *a)
{
	a->msg.status = INT32_MIN;
}

static void descriptors_that_are_not_there(struct fake_answer *a)
{
	a->msg.fd_cnt++;
}

static void descriptors_that_it_does_not_say(struct fake_answer *a)
{
	a->fds[a->fd_cnt++] = fake_file(4096);
}

static void descriptors_of_no_use(struct fake_answer *a)
{
	while (a->fd_cnt < 5)
		a->fds[a->fd_cnt++] = fake_file(4096);
	a->msg.fd_cnt = a->fd_cnt;
}

static void descriptors_beside_an_error(struct fake_answer *a)
{
	descriptors_of_no_use(a);
	a->msg.status = -EINVAL;
}

static const struct lie {
	void (*lie)(struct fake_answer *a);
	int result; /* 0: it is of no matter; 1: any error */
} lies[] = {
	{ short_one, 1 },
	{ empty_one, 1 },
	{ longer_than_it_says, 1 },
	{ says_more_than_there_is, -ETIMEDOUT },
	{ says_too_much, -ETIMEDOUT },
	{ longest, 1 },
	{ of_another_kind, -ETIMEDOUT },
	{ of_another_request, -ETIMEDOUT },
	{ of_another_version, -ENOPROTOOPT },
	{ status_above_zero, -ETIMEDOUT },
	{ status_that_is_no_errno, -ETIMEDOUT },
	{ descriptors_that_are_not_there, -ETIMEDOUT },
	{ descriptors_that_it_does_not_say, -ETIMEDOUT },
	{ descriptors_of_no_use, 0 },
	{ descriptors_beside_an_error, -EINVAL },
};

static int list(struct fake_use *u)
{
	struct weft_device_info infos[2];
	size_t cnt = 2;

	return weft_device_list(u->lender, infos, &cnt);
}

/* What is no answer to the request is not waited for any longer than that. */
#define BRIEFLY_MS 1000

static int borrow_briefly(struct fake_use *u)
{
	struct weft_device_info info;
	struct request request = {
		.msg = { .kind = LEASE_BORROW, .ms = 10000 },
		.data = &info,
		.data_room = sizeof(info),
		.until_ms = client_now_ms() + BRIEFLY_MS,
	};
	int err;

	fake_pace(PACE);
	err = lender_ask(u->lender, &request);
	fake_pace(1);
	return err;
}

static void lies_fail_the_call_alone(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg;
	size_t i;
	int err;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct weft_device *dev = NULL;

		fake_lender_rule(&u->fake, LEASE_BORROW,
				 (struct fake_rule){ .how = FAKE_LIES, .lie = lies[i].lie });
		err = lies[i].result == -ETIMEDOUT ? borrow_briefly(u)
						   : weft_device_borrow(u->lender, NULL, &dev);
		if (lies[i].result == 1)
			assert_true(err < 0);
		else
			assert_int_equal(err, lies[i].result);
		if (!err)
			assert_int_equal(weft_device_return(dev), 0);
		assert_int_equal(list(u), 0);
		/* As its connection would, if it ended. What was asked over it before has been carried out by now. */
		fake_lender_end(&u->fake);
	}
	fake_use_rule(u, LEASE_BORROW, FAKE_HONEST);
	fake_use_borrow(u, 10000);
	assert_int_equal(weft_segment_alloc(u->dev, 65536, 0, &seg), 0);
	assert_int_equal(weft_segment_free(seg), 0);
}

static void lender_is_not_opened_with_a_lie_for_a_greeting(void **state)
{
	struct fake_use *u = *state;
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct weft_lender *other = NULL;
		int err;

		/* Those that are waited for have been, by the test before, for less long. */
		if (!lies[i].result || lies[i].result == -ETIMEDOUT || lies[i].lie == longest)
			continue;
		fake_use_lie(u, LEASE_HELLO, lies[i].lie);
		err = weft_lender_open(u->fake.path, NULL, &other);
		assert_true(err < 0);
	}
	fake_use_rule(u, LEASE_HELLO, FAKE_ENDS);
	assert_int_equal(weft_lender_open(u->fake.path, NULL, &u->lender), -ENOPROTOOPT);
}

static void texts_of_a_device_end(void **state)
{
	struct fake_use *u = *state;
	struct weft_device_info info;
	size_t cnt = 1;

	memset(u->fake.info.name, 'n', sizeof(info.name));
	memset(u->fake.info.model, 'm', sizeof(info.model));
	memset(u->fake.info.serial, 's', sizeof(info.serial));
	assert_int_equal(weft_device_list(u->lender, &info, &cnt), 0);
	assert_int_equal(strlen(info.name), sizeof(info.name) - 1);
	assert_int_equal(strlen(info.model), sizeof(info.model) - 1);
	assert_int_equal(strlen(info.serial), sizeof(info.serial) - 1);
	fake_use_borrow(u, 10000);
	assert_int_equal(strlen(weft_device_info(u->dev)->name), sizeof(info.name) - 1);
}

static void there_is_always_one_more(struct fake_answer *a)
{
	struct weft_device_info info = { .id = 1 };

	a->msg.status = 0;
	memcpy(a->data, &info, sizeof(info));
	a->msg.data_len = sizeof(info);
	a->len = sizeof(a->msg) + sizeof(info);
}

static void the_same_lease_again(struct fake_answer *a)
{
	a->msg.status = 0;
	a->msg.lease = 5;
}

static void lists_end(void **state)
{
	struct fake_use *u = *state;
	struct weft_device_info info;
	struct weft_lease_info lease;
	size_t cnt = 1;

	fake_use_lie(u, LEASE_LIST, there_is_always_one_more);
	assert_int_equal(weft_device_list(u->lender, &info, &cnt), -ENOPROTOOPT);
	fake_use_lie(u, LEASE_LEASES, the_same_lease_again);
	cnt = 1;
	assert_int_equal(weft_lease_list(u->lender, FAKE_LENDER_DEVICE, &lease, &cnt),
			 -ENOPROTOOPT);
}

static void refusals_are_what_the_caller_gets(void **state)
{
	static const int refusals[] = { -ENODEV, -EBUSY, -EINVAL, -EACCES, -ENOSPC, -ENOTUNIQ };
	struct fake_use *u = *state;
	size_t i;

	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		fake_lender_rule(&u->fake, LEASE_BORROW,
				 (struct fake_rule){ FAKE_REFUSES, 0, refusals[i], NULL });
		assert_int_equal(weft_device_borrow(u->lender, NULL, &u->dev), refusals[i]);
	}
	u->dev = NULL;
}

static void a_late_answer_is_not_the_next_ones(void **state)
{
	struct fake_use *u = *state;
	struct weft_segment *seg;

	fake_use_borrow(u, LONG_MS);
	/* It has descriptors beside it, which nobody waits for any more. */
	fake_use_rule(u, LEASE_MEMORY, FAKE_LATE);
	fake_pace(PACE);
	assert_int_equal(weft_segment_alloc(u->dev, 65536, 0, &seg), -ETIMEDOUT);
	fake_pace(1);
	fake_use_rule(u, LEASE_MEMORY, FAKE_HONEST);
	assert_int_equal(weft_device_renew(u->dev, 60000), 0);
	assert_int_equal(weft_segment_alloc(u->dev, 65536, 0, &seg), 0);
	assert_int_equal(weft_segment_free(seg), 0);
}

static void *share(void *arg)
{
	struct fake_use *u = arg;
	uint64_t begin = fake_use_ms();

	if (weft_device_share(u->dev) != -ETIMEDOUT)
		return NULL;
	return (void *)(uintptr_t)(fake_use_ms() - begin);
}

/* Two times what an answer is waited for: who asked before may have waited as long. */
static void who_asks_a_silent_lender_waits_no_longer_beside_others(void **state)
{
	struct fake_use *u = *state;
	pthread_t threads[THREADS];
	size_t i;

	fake_use_borrow(u, LONG_MS);
	fake_use_rule(u, LEASE_SHARE, FAKE_SILENT);
	fake_pace(PACE);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, share, u), 0);
	for (i = 0; i < THREADS; i++) {
		void *ms;

		pthread_join(threads[i], &ms);
		assert_in_range((uintptr_t)ms, LENDER_ANSWER_MS - 100,
				2 * LENDER_ANSWER_MS + SLACK_MS);
	}
	fake_pace(1);
}

/* struct pause - a lender that does nothing for a while; @begun: it has come to that */
struct pause {
	struct fake_lender *fake;
	atomic_bool begun;
};

static void *pause_for_a_while(void *arg)
{
	struct pause *p = arg;

	pthread_mutex_lock(&p->fake->lock);
	atomic_store(&p->begun, true);
	poll(NULL, 0, SLOW_MS);
	pthread_mutex_unlock(&p->fake->lock);
	return NULL;
}

/* It runs, and answers when it comes to it. */
static void lender_that_is_slow_is_waited_for(void **state)
{
	struct fake_use *u = *state;
	struct pause p = { .fake = &u->fake };
	struct weft_lender *other;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, pause_for_a_while, &p), 0);
	FAKE_USE_UNTIL(atomic_load(&p.begun));
	assert_int_equal(weft_lender_open(u->fake.path, NULL, &other), 0);
	pthread_join(thread, NULL);
	assert_int_equal(weft_lender_close(other), 0);
}

/* A lease that must have ended has: no answer is waited for past its time, by whom ever. */
static void answer_about_a_lease_is_not_waited_for_past_its_end(void **state)
{
	struct fake_use *u = *state;
	uint64_t begin;

	fake_use_borrow(u, 500);
	fake_use_rule(u, LEASE_RENEW, FAKE_SILENT);
	fake_use_rule(u, LEASE_SHARE, FAKE_SILENT);
	begin = fake_use_ms();
	assert_int_equal(weft_device_share(u->dev), -ESTALE);
	assert_in_range(fake_use_ms() - begin, 0, LENDER_ANSWER_MS - 1);
}

/* Whatever it is asked when it ends: the call fails, and the next one is answered over another connection. */
static void lender_that_ends_is_found_again(void **state)
{
	static const uint16_t kinds[] = { LEASE_LIST,	LEASE_SHARE,  LEASE_RENEW, LEASE_WINDOW,
					  LEASE_MEMORY, LEASE_QUEUES, LEASE_ATTACH };
	struct fake_use *u = *state;
	struct weft_segment *seg, *near;
	struct weft_window *window;
	struct weft_nvme *qp;
	size_t i;

	fake_use_borrow(u, 60000);
	assert_int_equal(weft_segment_alloc(NULL, 4096, 0, &seg), 0);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		fake_use_rule(u, kinds[i], FAKE_ENDS);
		switch (kinds[i]) {
		case LEASE_LIST:
			assert_int_equal(list(u), -ETIMEDOUT);
			break;
		case LEASE_SHARE:
			assert_int_equal(weft_device_share(u->dev), -ETIMEDOUT);
			break;
		case LEASE_RENEW:
			assert_int_equal(weft_device_renew(u->dev, 60000), -ETIMEDOUT);
			break;
		case LEASE_WINDOW:
			assert_int_equal(weft_window_open(u->dev, seg, WEFT_WINDOW_RW, &window),
					 -ETIMEDOUT);
			break;
		case LEASE_MEMORY:
			assert_int_equal(weft_segment_alloc(u->dev, 65536, 0, &near),
					 -ETIMEDOUT);
			break;
		case LEASE_QUEUES:
			assert_int_equal(weft_nvme_open(u->dev, NULL, &qp), -ETIMEDOUT);
			break;
		case LEASE_ATTACH:
			/* It is asked when the library connects again. */
			fake_lender_vanish(&u->fake);
			fake_lender_return(&u->fake);
			FAKE_USE_UNTIL(fake_lender_asked(&u->fake, LEASE_ATTACH) > 3);
			break;
		}
		fake_use_rule(u, kinds[i], FAKE_HONEST);
		FAKE_USE_UNTIL(!list(u));
		assert_int_equal(weft_device_renew(u->dev, 60000), 0);
	}
	assert_int_equal(weft_segment_free(seg), 0);
}

/* A digit that is another one is refused by the lender, and what is no ticket at once. */
static void ticket_is_refused_wherever_it_is_wrong(void **state)
{
	static const char none[] = "AF.-+x gG";
	struct fake_use *u = *state;
	char right[WEFT_TICKET_MAX], wrong[WEFT_TICKET_MAX + 1];
	struct weft_lender *lender;
	struct weft_device *dev;
	size_t len, i, k, token;
	uint32_t asked;

	fake_use_borrow(u, 60000);
	weft_device_ticket(u->dev, right);
	len = strcspn(right, "@");
	right[len] = 0;
	token = (size_t)(strrchr(right, '.') + 1 - right);
	assert_int_equal(len - token, 32);
	for (i = token; i < len; i++) {
		strcpy(wrong, right);
		wrong[i] = wrong[i] == '7' ? '8' : '7';
		assert_int_equal(weft_device_attach(u->lender, wrong, &dev), -EACCES);
	}
	asked = fake_lender_asked(&u->fake, LEASE_ATTACH);
	for (i = token; i < len; i++)
		for (k = 0; k < sizeof(none); k++) {
			strcpy(wrong, right);
			wrong[i] = none[k];
			assert_int_equal(weft_device_attach(u->lender, wrong, &dev), -EINVAL);
		}
	for (i = 0; i < len; i++) {
		strcpy(wrong, right);
		wrong[i] = 0;
		assert_int_equal(weft_device_attach(u->lender, wrong, &dev), -EINVAL);
	}
	snprintf(wrong, sizeof(wrong), "%s0", right);
	assert_int_equal(weft_device_attach(u->lender, wrong, &dev), -EINVAL);
	snprintf(wrong, sizeof(wrong), "%s@", right);
	assert_int_equal(weft_device_attach(u->lender, wrong, &dev), -EINVAL);
	assert_int_equal(weft_lender_open_ticket(NULL, wrong, NULL, &lender), -EBADMSG);
	assert_int_equal(fake_lender_asked(&u->fake, LEASE_ATTACH), asked);
	assert_int_equal(weft_device_attach(u->lender, right, &dev), 0);
	weft_device_leave(dev);
}

static void open_by_ticket(struct fake_use *u, const char *name, const char *ticket)
{
	struct weft_lender *lender;
	struct weft_device *dev;

	assert_int_equal(weft_lender_open_ticket(name, ticket, NULL, &lender), 0);
	assert_int_equal(weft_device_attach(lender, ticket, &dev), 0);
	assert_int_equal(weft_device_renew(dev, 60000), 0);
	weft_device_leave(dev);
	assert_int_equal(weft_lender_close(lender), 0);
}

/* Whoever is named is asked alone; else nobody but the ticket is needed. */
static void lender_is_where_its_ticket_says(void **state)
{
	struct fake_use *u = *state;
	char ticket[WEFT_TICKET_MAX], bare[WEFT_TICKET_MAX];
	struct weft_lender *lender;

	fake_use_borrow(u, 60000);
	weft_device_ticket(u->dev, ticket);
	assert_string_equal(strchr(ticket, '@') + 1, u->fake.path);
	strcpy(bare, ticket);
	*strchr(bare, '@') = 0;
	unsetenv("WEFT_LENDER");
	unsetenv("WEFT_DIRECTORY");
	open_by_ticket(u, NULL, ticket);
	/* Of a directory at which nobody is. */
	open_by_ticket(u, "http://127.0.0.1:1", ticket);
	setenv("WEFT_LENDER", "http://127.0.0.1:1", 1);
	open_by_ticket(u, NULL, ticket);
	open_by_ticket(u, u->fake.path, bare);
	setenv("WEFT_LENDER", u->fake.path, 1);
	open_by_ticket(u, NULL, bare);
	assert_int_equal(weft_lender_open_ticket("/nonexistent", ticket, NULL, &lender),
			 -ECONNREFUSED);
	setenv("WEFT_LENDER", "/nonexistent", 1);
	assert_int_equal(weft_lender_open_ticket(NULL, ticket, NULL, &lender), -ECONNREFUSED);
	unsetenv("WEFT_LENDER");
	/* The lease has ended: its lender says so. */
	fake_lender_end(&u->fake);
	assert_int_equal(weft_lender_open_ticket(NULL, ticket, NULL, &lender), 0);
	assert_int_equal(weft_lender_close(lender), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_use_setup, fake_use_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(lies_fail_the_call_alone),
		TEST(lender_is_not_opened_with_a_lie_for_a_greeting),
		TEST(texts_of_a_device_end),
		TEST(lists_end),
		TEST(refusals_are_what_the_caller_gets),
		TEST(a_late_answer_is_not_the_next_ones),
		TEST(who_asks_a_silent_lender_waits_no_longer_beside_others),
		TEST(lender_that_is_slow_is_waited_for),
		TEST(answer_about_a_lease_is_not_waited_for_past_its_end),
		TEST(lender_that_ends_is_found_again),
		TEST(ticket_is_refused_wherever_it_is_wrong),
		TEST(lender_is_where_its_ticket_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
