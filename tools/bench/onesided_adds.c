/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Additions to a word of the peer, of one-sided traffic; onesided.h has the contract. Called by
 * 'weft bench' on both sides.
 */
#include "onesided.h"
#include "clock.h"

#include <err.h>
#include <rdma/fi_errno.h>
#include <string.h>

static int update(struct onesided *os, enum region_transfer_kind kind, struct channel_op *op)
{
	const struct region_access access = {
		.local = &os->local,
		.at = onesided_word_at(os),
		.remote = &os->remote,
		.remote_at = onesided_word_at(os),
		.len = sizeof(uint64_t),
	};

	return region_transfer(os->ch, kind, &access, op);
}

/* Adds @operand to the peer's word. @before: out: its previous value */
static int fetch(struct onesided *os, uint64_t operand, uint64_t *before)
{
	uint64_t words[2] = { operand, UINT64_MAX }, tx_base = os->ch->tx_done;
	int rc;

	memcpy(os->local.mem + onesided_word_at(os), words, sizeof(words));
	rc = update(os, REGION_FETCH_ADD, &os->ops[0]);
	if (!rc)
		rc = channel_wait(os->ch, tx_base + 1, 0);
	memcpy(words, os->local.mem + onesided_word_at(os), sizeof(words));
	*before = words[1];
	return rc;
}

static int wrong_sum(const struct onesided *os, uint64_t found)
{
	warnx("an atomic addition found %llu instead of %llu", (unsigned long long)found,
	      (unsigned long long)os->added);
	return -FI_EIO;
}

static int add_one(struct onesided *os)
{
	uint64_t before;
	int rc = fetch(os, 1, &before);

	if (!rc && before != os->added)
		return wrong_sum(os, before);
	os->added++;
	return rc;
}

/* A barrier of both sides before additions, if this side can make them. */
static int prepare_adds(struct onesided *os)
{
	int rc = region_adds(os->ch);

	return oob_barrier(&os->ch->side->oob, rc) ? (rc ? rc : -FI_ECONNABORTED) : rc;
}

int onesided_fetch_add(struct onesided *os, uint32_t cnt, uint64_t *taken)
{
	uint64_t start;
	uint32_t i;
	int rc;

	*taken = 0;
	if (os->ch->side->rank)
		return onesided_serve(os);
	rc = prepare_adds(os);
	start = clock_ns();
	for (i = 0; i < cnt && !rc; i++)
		rc = add_one(os);
	*taken = clock_ns() - start;
	return rc ? rc : onesided_end_serving(os);
}

/* Until all of them are there: a provider need not keep them in order with what fetches. */
static int await_sum(struct onesided *os)
{
	struct channel_deadline deadline = { 0 };
	uint64_t sum;
	int rc;

	while (!(rc = fetch(os, 0, &sum)) && sum != os->added) {
		if (sum > os->added)
			return wrong_sum(os, sum);
		rc = channel_turn(os->ch, &deadline);
		if (rc < 0)
			return rc;
	}
	return rc;
}

int onesided_add(struct onesided *os, uint32_t cnt, uint64_t *taken)
{
	uint64_t start, one = 1;
	uint32_t i;
	int rc;

	*taken = 0;
	if (os->ch->side->rank)
		return onesided_serve(os);
	rc = prepare_adds(os);
	memcpy(os->local.mem + onesided_word_at(os), &one, sizeof(one));
	start = clock_ns();
	for (i = 0; i < cnt && !rc; i++) {
		rc = onesided_free_slot(os, i);
		if (!rc)
			rc = update(os, REGION_ADD, &os->ops[i % os->cnt]);
	}
	os->added += cnt;
	if (!rc)
		rc = await_sum(os);
	*taken = clock_ns() - start;
	return rc ? rc : onesided_end_serving(os);
}
