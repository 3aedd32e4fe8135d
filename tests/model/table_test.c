/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is known to be wrong elsewhere, over a real provider: the order of receives, unexpected
 * messages, cancelling, and asking for a provider that is not there.
 *
 * usage: table_test PROVIDER
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>
#include "pair_run.h"
#include <cmocka.h>

#define BIG	  100000
#define UNWANTED  100000
#define LARGE_CNT 2000
#define LARGE_LEN 1000

static const char *provider;
static struct fi_context2 contexts[8];

/* Both sides of a pair may be threads of one process: each has its own of what it changes. */
static __thread char bytes[4][BIG];

/* Order */

enum want {
	WANT_ANY,	   /* any source, this tag */
	WANT_ANY_TAG,	   /* any source, any tag */
	WANT_DIRECTED,	   /* that source, this tag */
	WANT_DIRECTED_ANY, /* that source, any tag */
	WANTS,
};

struct order {
	enum want first, second;
	size_t len[2];	   /* of the messages */
	bool tagged, late; /* late: posted when the messages are there */
};

static struct order order;

static void post(struct pair_side *s, enum want want, int n)
{
	fi_addr_t src = want >= WANT_DIRECTED ? s->peer : FI_ADDR_UNSPEC;
	uint64_t ignore = want % 2 ? UINT64_MAX : 0;

	if (order.tagged)
		PAIR_CHECK(s,
			   !fi_trecv(s->ep, bytes[n], BIG, NULL, src, 7, ignore, &contexts[n]));
	else
		PAIR_CHECK(s, !fi_recv(s->ep, bytes[n], BIG, NULL, src, &contexts[n]));
}

static void order_sender(struct pair_side *s)
{
	if (!order.late)
		pair_hear(s, 'p', true);
	for (int n = 0; n < 2; n++) {
		memset(bytes[n], 'a' + n, order.len[n]);
		if (order.tagged)
			PAIR_CHECK(s, !fi_tsend(s->ep, bytes[n], order.len[n], NULL, s->peer, 7,
						&contexts[n]));
		else
			PAIR_CHECK(s, !fi_send(s->ep, bytes[n], order.len[n], NULL, s->peer,
					       &contexts[n]));
	}
	/* Behind them: when this is there they are too. */
	PAIR_CHECK(s, !fi_tsend(s->ep, NULL, 0, NULL, s->peer, 1ull << 50, &contexts[2]));
	for (int n = 0; n < 3; n++)
		PAIR_CHECK(s, pair_next(s) == 1);
}

static void order_receiver(struct pair_side *s)
{
	int got = 0;

	if (order.late) {
		struct fi_msg_tagged peek = { .addr = s->peer,
					      .tag = 1ull << 50,
					      .context = &contexts[3] };

		do
			PAIR_CHECK(s, !fi_trecvmsg(s->ep, &peek, FI_PEEK));
		while (pair_next(s) != 1);
	}
	memset(bytes, 0, sizeof(bytes));
	post(s, order.first, 0);
	post(s, order.second, 1);
	if (!order.late)
		pair_say(s, 'p');
	/* Completions may be in any order; which receive got which message may not vary. */
	while (got != 3) {
		int n;

		PAIR_CHECK(s, pair_next(s) == 1);
		n = s->entry.op_context == &contexts[1];
		PAIR_CHECK(s, s->entry.op_context == &contexts[n]);
		PAIR_CHECK(s, s->entry.len == order.len[n]);
		PAIR_CHECK(s, !order.len[n] || (bytes[n][0] == 'a' + n &&
						bytes[n][order.len[n] - 1] == 'a' + n));
		PAIR_CHECK(s, s->source == s->peer);
		got |= 1 << n;
	}
	PAIR_CHECK(s, !fi_trecv(s->ep, NULL, 0, NULL, s->peer, 1ull << 50, 0, &contexts[3]));
	pair_done(s, &contexts[3]);
}

static void every_order(enum pair_mode mode, bool late)
{
	static const size_t lens[][2] = {
		{ 8, 8 }, { BIG, 8 }, { 8, BIG }, { 5000, 300 }, { BIG, BIG }
	};
	struct pair_attr attr = { .provider = provider, .mode = mode };

	for (int tagged = 0; tagged < 2; tagged++) {
		for (int i = 0; i < WANTS * WANTS; i++) {
			/* Without tags there is nothing to leave open. */
			if (!tagged && (i % WANTS % 2 || i / WANTS % 2))
				continue;
			order = (struct order){ .first = (enum want)(i / WANTS),
						.second = (enum want)(i % WANTS),
						.tagged = tagged,
						.late = late };
			memcpy(order.len, lens[i % 5], sizeof(order.len));
			pair_run(&attr, order_receiver, order_sender);
		}
	}
}

static void receive_posted_first_gets_the_first_message_between_threads(void **state)
{
	every_order(PAIR_THREADS, false);
}

static void receive_posted_first_gets_the_first_message_between_processes(void **state)
{
	every_order(PAIR_PROCESSES, false);
}

static void message_that_came_first_goes_to_the_first_receive_between_threads(void **state)
{
	every_order(PAIR_THREADS, true);
}

static void message_that_came_first_goes_to_the_first_receive_between_processes(void **state)
{
	every_order(PAIR_PROCESSES, true);
}

/* Unexpected messages */

static struct {
	size_t cnt, len;
} unwanted;

static void unwanted_sender(struct pair_side *s)
{
	char *all = calloc(unwanted.cnt, unwanted.len);
	size_t done = 0;

	PAIR_CHECK(s, all);
	for (size_t i = 0; i <= unwanted.cnt; i++) {
		char *m = all + i * unwanted.len;
		ssize_t ret;

		if (i < unwanted.cnt)
			memcpy(m, &i, sizeof(i));
		do {
			ret = i < unwanted.cnt ? fi_tsend(s->ep, m, unwanted.len, NULL, s->peer,
							  1, &contexts[0])
					       : fi_tsend(s->ep, "wanted", 7, NULL, s->peer, 2,
							  &contexts[1]);
			PAIR_CHECK(s, !ret || ret == -FI_EAGAIN);
			if (ret)
				done += fi_cq_read(s->cq, &s->entry, 1) == 1;
		} while (ret);
	}
	for (; done <= unwanted.cnt; done++)
		PAIR_CHECK(s, pair_next(s) == 1);
	free(all);
}

static void unwanted_receiver(struct pair_side *s)
{
	char *buf = calloc(1, unwanted.len);
	char wanted[8];
	size_t which;

	PAIR_CHECK(s, buf);
	PAIR_CHECK(s,
		   !fi_trecv(s->ep, wanted, sizeof(wanted), NULL, s->peer, 2, 0, &contexts[1]));
	pair_done(s, &contexts[1]);
	PAIR_CHECK(s, !strcmp(wanted, "wanted"));
	for (size_t i = 0; i < unwanted.cnt; i++) {
		PAIR_CHECK(s, !fi_trecv(s->ep, buf, unwanted.len, NULL, s->peer, 1, 0,
					&contexts[0]));
		pair_done(s, &contexts[0]);
		memcpy(&which, buf, sizeof(which));
		PAIR_CHECK(s, which == i);
	}
	free(buf);
}

static void many_unexpected(enum pair_mode mode, size_t cnt, size_t len)
{
	struct pair_attr attr = {
		.provider = provider, .mode = mode, .tx_size = 64, .rx_budget = "0"
	};

	unwanted.cnt = cnt;
	unwanted.len = len;
	pair_run(&attr, unwanted_receiver, unwanted_sender);
}

static void hundred_thousand_unexpected_messages_do_not_block_the_one_that_matches(void **state)
{
	many_unexpected(PAIR_THREADS, UNWANTED, 8);
	many_unexpected(PAIR_PROCESSES, UNWANTED, 8);
}

static void unexpected_payload_beyond_the_budget_does_not_block_the_message_that_matches(
	void **state)
{
	many_unexpected(PAIR_THREADS, LARGE_CNT, LARGE_LEN);
	many_unexpected(PAIR_PROCESSES, LARGE_CNT, LARGE_LEN);
}

/* Cancel */

static void cancel_sender(struct pair_side *s)
{
	pair_hear(s, 'c', true);
	PAIR_CHECK(s, !fi_tsend(s->ep, "tagged", 7, NULL, s->peer, 5, &contexts[0]));
	PAIR_CHECK(s, !fi_send(s->ep, "untagged", 9, NULL, s->peer, &contexts[1]));
	pair_done(s, &contexts[0]);
	pair_done(s, &contexts[1]);
}

static void cancel_receiver(struct pair_side *s)
{
	char *a = bytes[0], *b = bytes[1];

	PAIR_CHECK(s, !fi_trecv(s->ep, a, 8, NULL, FI_ADDR_UNSPEC, 5, 0, &contexts[0]));
	PAIR_CHECK(s, !fi_trecv(s->ep, a, 8, NULL, s->peer, 5, 0, &contexts[1]));
	PAIR_CHECK(s, !fi_recv(s->ep, b, 9, NULL, FI_ADDR_UNSPEC, &contexts[2]));
	PAIR_CHECK(s, !fi_recv(s->ep, b, 9, NULL, s->peer, &contexts[3]));
	PAIR_CHECK(s, !fi_trecv(s->ep, a, 8, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &contexts[4]));
	PAIR_CHECK(s, !fi_recv(s->ep, b, 9, NULL, s->peer, &contexts[5]));
	/* From the middle, from the end, from the beginning. */
	for (int n = 1; n < 4; n++) {
		PAIR_CHECK(s, !fi_cancel(&s->ep->fid, &contexts[n]));
		pair_failed(s, &contexts[n], FI_ECANCELED);
		PAIR_CHECK(s, s->error.flags & FI_RECV);
		PAIR_CHECK(s, fi_cancel(&s->ep->fid, &contexts[n]) == 0);
	}
	PAIR_CHECK(s, !fi_cancel(&s->ep->fid, &contexts[0]));
	pair_failed(s, &contexts[0], FI_ECANCELED);
	PAIR_CHECK(s, pair_none(s));
	pair_say(s, 'c');
	for (int got = 0; got < 2; got++) {
		PAIR_CHECK(s, pair_next(s) == 1);
		if (s->entry.op_context == &contexts[4])
			PAIR_CHECK(s, !strcmp(a, "tagged"));
		else
			PAIR_CHECK(s, s->entry.op_context == &contexts[5] &&
					      !strcmp(b, "untagged"));
	}
	/* They have been removed. */
	for (int n = 0; n < 6; n++)
		PAIR_CHECK(s, fi_cancel(&s->ep->fid, &contexts[n]) == 0);
	PAIR_CHECK(s, fi_cancel(&s->ep->fid, NULL) == 0);
	PAIR_CHECK(s, pair_none(s));
}

static void cancelled_receives_say_so_and_leave_their_messages_to_others(void **state)
{
	for (int mode = 0; mode < 2; mode++) {
		struct pair_attr attr = { .provider = provider, .mode = (enum pair_mode)mode };

		pair_run(&attr, cancel_receiver, cancel_sender);
	}
}

static void queued_sender(struct pair_side *s)
{
	/* The other side does not work: there is no connection yet, and nothing can have left. */
	PAIR_CHECK(s, !fi_tsend(s->ep, "first", 6, NULL, s->peer, 5, &contexts[0]));
	PAIR_CHECK(s, !fi_tsend(s->ep, "second", 7, NULL, s->peer, 5, &contexts[1]));
	PAIR_CHECK(s, !fi_tsend(s->ep, bytes[0], BIG, NULL, s->peer, 6, &contexts[2]));
	PAIR_CHECK(s, pair_none(s));
	PAIR_CHECK(s, !fi_cancel(&s->ep->fid, &contexts[0]));
	pair_failed(s, &contexts[0], FI_ECANCELED);
	PAIR_CHECK(s, s->error.flags & FI_SEND);
	PAIR_CHECK(s, !fi_cancel(&s->ep->fid, &contexts[2]));
	pair_failed(s, &contexts[2], FI_ECANCELED);
	PAIR_CHECK(s, fi_cancel(&s->ep->fid, &contexts[2]) == 0);
	pair_say(s, 'g');
	pair_done(s, &contexts[1]);
	PAIR_CHECK(s, fi_cancel(&s->ep->fid, &contexts[1]) == 0);
}

static void queued_receiver(struct pair_side *s)
{
	pair_hear(s, 'g', false);
	PAIR_CHECK(s,
		   !fi_trecv(s->ep, bytes[0], BIG, NULL, s->peer, 0, UINT64_MAX, &contexts[0]));
	pair_done(s, &contexts[0]);
	PAIR_CHECK(s, !strcmp(bytes[0], "second"));
	PAIR_CHECK(s,
		   !fi_trecv(s->ep, bytes[0], BIG, NULL, s->peer, 0, UINT64_MAX, &contexts[1]));
	PAIR_CHECK(s, pair_none(s));
}

static void send_that_has_not_left_is_cancelled_and_never_arrives(void **state)
{
	for (int mode = 0; mode < 2; mode++) {
		struct pair_attr attr = { .provider = provider, .mode = (enum pair_mode)mode };

		pair_run(&attr, queued_receiver, queued_sender);
	}
}

/* A provider that is not there */

static int ask_for(const char *name)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret;

	assert_non_null(hints);
	hints->fabric_attr->prov_name = strdup(name);
	ret = fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (!ret)
		fi_freeinfo(info);
	return ret;
}

static void provider_that_is_not_there_is_known_in_a_millisecond(void **state)
{
	double best = 1;

	for (int i = 0; i < 50; i++) {
		struct timespec from, to;
		double took;

		clock_gettime(CLOCK_MONOTONIC, &from);
		assert_int_equal(ask_for("nosuch"), -FI_ENODATA);
		clock_gettime(CLOCK_MONOTONIC, &to);
		took = (double)(to.tv_sec - from.tv_sec) +
		       (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
		best = took < best ? took : best;
	}
	printf("%.1f us\n", best * 1e6);
	assert_true(best < 1e-3);
}

/* Asks in a process that is started anew, where FI_LOG_LEVEL counts; the last line that it logs. */
static int lines_of_asking(const char *self, const char *level, char *line, int len)
{
	char command[4096];
	int cnt = 0;
	FILE *out;

	snprintf(command, sizeof(command), "exec env -u FI_LOG_LEVEL %s '%s' ask nosuch 2>&1",
		 level, self);
	out = popen(command, "r");
	assert_non_null(out);
	while (fgets(line, len, out))
		cnt++;
	assert_int_equal(pclose(out), 0);
	return cnt;
}

static void provider_that_is_not_there_has_a_reason_in_the_log(void **state)
{
	char line[512] = "";

	assert_int_equal(lines_of_asking(*state, "FI_LOG_LEVEL=warn", line, sizeof(line)), 1);
	assert_non_null(strstr(line, "nosuch"));
	assert_non_null(strstr(line, provider)); /* what there is instead */
}

static void provider_that_is_not_there_is_no_noise(void **state)
{
	char line[512];

	/* Programs probe. */
	assert_int_equal(lines_of_asking(*state, "", line, sizeof(line)), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive_posted_first_gets_the_first_message_between_threads),
		cmocka_unit_test(receive_posted_first_gets_the_first_message_between_processes),
		cmocka_unit_test(
			message_that_came_first_goes_to_the_first_receive_between_threads),
		cmocka_unit_test(
			message_that_came_first_goes_to_the_first_receive_between_processes),
		cmocka_unit_test(
			hundred_thousand_unexpected_messages_do_not_block_the_one_that_matches),
		cmocka_unit_test(
			unexpected_payload_beyond_the_budget_does_not_block_the_message_that_matches),
		cmocka_unit_test(cancelled_receives_say_so_and_leave_their_messages_to_others),
		cmocka_unit_test(send_that_has_not_left_is_cancelled_and_never_arrives),
		cmocka_unit_test(provider_that_is_not_there_is_known_in_a_millisecond),
		cmocka_unit_test_prestate(provider_that_is_not_there_is_no_noise, argv[0]),
		cmocka_unit_test_prestate(provider_that_is_not_there_has_a_reason_in_the_log,
					  argv[0]),
	};

	if (argc == 3 && !strcmp(argv[1], "ask"))
		return ask_for(argv[2]) == -FI_ENODATA ? 0 : 1;
	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	provider = argv[1];
	if (!pair_exists(provider)) {
		printf("skipped: there is no provider %s that can do this\n", provider);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
