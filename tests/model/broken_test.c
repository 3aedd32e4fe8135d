/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tagged messages of all sizes in both directions, while breaks.c breaks the connection again and
 * again (BREAK_US): each arrives once, whole and in order, and none fails.
 *
 * usage: broken_test PROVIDER
 */
#include <setjmp.h>
#include <stdarg.h>
#include "pair_run.h"
#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MESSAGES 400
#else
#define MESSAGES 2000
#endif
#define WINDOW	24
#define LARGEST (1u << 20)

static const char *provider;

struct slot {
	struct fi_context2 context;
	int seq; /* -1: free */
	uint8_t *bytes;
};

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

/* Both sides know the length of the n-th message: small ones, and some of every other path. */
static size_t length(int seq)
{
	uint32_t r = mix((uint32_t)seq + 1);

	if (r % 8 < 5)
		return r >> 8 & 63;
	if (r % 8 == 5)
		return (r >> 8) % 9000;
	return r % 8 == 6 ? (r >> 8) % 70000 : (r >> 8) % LARGEST;
}

static void fill(uint8_t *bytes, int seq)
{
	size_t len = length(seq);

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(mix((uint32_t)seq) + i * 7 + (i >> 8));
}

static void check(struct pair_side *s, const uint8_t *bytes, int seq)
{
	size_t len = length(seq), i;

	for (i = 0; i < len; i++)
		if (bytes[i] != (uint8_t)(mix((uint32_t)seq) + i * 7 + (i >> 8)))
			break;
	PAIR_CHECK(s, i == len);
}

static struct slot *slots_create(void)
{
	struct slot *slots = calloc(WINDOW, sizeof(*slots));

	for (int i = 0; i < WINDOW; i++) {
		slots[i].seq = -1;
		slots[i].bytes = malloc(LARGEST);
	}
	return slots;
}

static void slots_free(struct slot *slots)
{
	for (int i = 0; i < WINDOW; i++)
		free(slots[i].bytes);
	free(slots);
}

/* Posts what fits, in order. Every tag is the same: which message a receive gets is the order's. */
static int post(struct pair_side *s, struct slot *slots, int next, bool send)
{
	struct slot *slot;
	ssize_t ret;

	for (; next < MESSAGES && slots[next % WINDOW].seq < 0; next++) {
		slot = &slots[next % WINDOW];
		if (send)
			fill(slot->bytes, next);
		ret = send ? fi_tsend(s->ep, slot->bytes, length(next), NULL, s->peer, 7,
				      &slot->context)
			   : fi_trecv(s->ep, slot->bytes, LARGEST, NULL, s->peer, 7, 0,
				      &slot->context);
		if (ret == -FI_EAGAIN)
			break;
		PAIR_CHECK(s, !ret);
		slot->seq = next;
	}
	return next;
}

static void exchange(struct pair_side *s)
{
	struct slot *out = slots_create(), *in = slots_create(), *slot;
	int sent = 0, posted = 0, done = 0;

	while (done < 2 * MESSAGES) {
		posted = post(s, in, posted, false);
		sent = post(s, out, sent, true);
		PAIR_CHECK(s, pair_next(s) == 1);
		slot = s->entry.op_context;
		PAIR_CHECK(s, slot->seq >= 0);
		if (slot >= in && slot < in + WINDOW) {
			PAIR_CHECK(s, s->entry.len == length(slot->seq));
			check(s, slot->bytes, slot->seq);
		}
		slot->seq = -1;
		done++;
	}
	slots_free(out);
	slots_free(in);
}

static void each_message_arrives_once_and_in_order(void **state)
{
	struct pair_attr attr = { .provider = provider, .mode = PAIR_PROCESSES };

	pair_run(&attr, exchange, exchange);
}

static void so_it_does_between_threads(void **state)
{
	struct pair_attr attr = { .provider = provider, .mode = PAIR_THREADS };

	pair_run(&attr, exchange, exchange);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_message_arrives_once_and_in_order),
		cmocka_unit_test(so_it_does_between_threads),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
