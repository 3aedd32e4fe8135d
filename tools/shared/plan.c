/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plans and places; plan.h has the contract. Called by 'weft bench' and
 * 'weft pingpong' before anything is measured.
 */
#define _GNU_SOURCE
#include "plan.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_WAIT_MS 10000
#define FORMAT \
	"weft-plan 8 endpoint=%u wait=%u tagged=%u verify=%u tests=%u rounds=%u iterations=%u provider=%"
#define WORD_MAX 256 /* of a list of tests */

/* Where a size is in the plan's, which it joins if it is new; -1 when there is no room. */
static int size_index(struct sizes *sizes, size_t len)
{
	size_t i;

	for (i = 0; i < sizes->cnt; i++)
		if (sizes->len[i] == len)
			return (int)i;
	if (i == SIZES_MAX)
		return -1;
	sizes->len[sizes->cnt++] = len;
	return (int)i;
}

/* "8+64k": a comma ends the test already. */
static int read_sizes(char *text, struct sizes *sizes, uint64_t *mask)
{
	struct sizes named;
	size_t i;
	char *plus;
	int idx;

	while ((plus = strchr(text, '+')))
		*plus = ',';
	if (sizes_parse(text, &named))
		return -EINVAL;
	*mask = 0;
	for (i = 0; i < named.cnt; i++) {
		idx = size_index(sizes, named.len[i]);
		if (idx < 0)
			return -EINVAL;
		*mask |= UINT64_C(1) << idx;
	}
	return 0;
}

/* One entry of the list; @usual: the sizes of a test that names none. */
static int read_test(const char *text, size_t len, uint64_t usual, struct plan *plan)
{
	char word[WORD_MAX], *sizes;
	uint64_t mask = usual;
	unsigned bits, t;

	if (len >= sizeof(word))
		return -EINVAL;
	memcpy(word, text, len);
	word[len] = '\0';
	sizes = strchr(word, '@');
	if (sizes) {
		*sizes++ = '\0';
		if (read_sizes(sizes, &plan->sizes, &mask))
			return -EINVAL;
	}
	bits = figure_tests_parse(word);
	for (t = 0; t < FIGURE_TESTS; t++)
		if (bits & FIGURE_BIT(t))
			plan->at[t] |= mask;
	plan->tests |= bits;
	return bits ? 0 : -EINVAL;
}

int plan_tests_parse(const char *text, struct plan *plan)
{
	struct plan got = *plan;
	uint64_t usual = got.sizes.cnt < 64 ? (UINT64_C(1) << got.sizes.cnt) - 1 : UINT64_MAX;
	size_t len;

	got.tests = 0;
	memset(got.at, 0, sizeof(got.at));
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		if (read_test(text, len, usual, &got))
			return -EINVAL;
		if (!text[len])
			break;
	}
	*plan = got;
	return 0;
}

unsigned plan_tests_at(const struct plan *plan, size_t idx)
{
	unsigned t, bits = 0;

	for (t = 0; t < FIGURE_TESTS; t++)
		if (plan->at[t] >> idx & 1)
			bits |= FIGURE_BIT(t);
	return bits & plan->tests;
}

size_t plan_format(const struct plan *plan, char *text)
{
	size_t used, i, t;

	used = (size_t)snprintf(text, PLAN_TEXT_MAX, FORMAT "s at=", (unsigned)plan->endpoint,
				(unsigned)plan->wait, plan->tagged, plan->verify, plan->tests,
				plan->rounds, plan->iterations,
				plan->provider[0] ? plan->provider : "-");
	for (t = 0; t < FIGURE_TESTS; t++)
		used += (size_t)snprintf(text + used, PLAN_TEXT_MAX - used, "%s%" PRIx64,
					 t ? ":" : "", plan->at[t]);
	used += (size_t)snprintf(text + used, PLAN_TEXT_MAX - used, " sizes=");
	for (i = 0; i < plan->sizes.cnt; i++)
		used += (size_t)snprintf(text + used, PLAN_TEXT_MAX - used, "%s%zu",
					 i ? "," : "", plan->sizes.len[i]);
	return used;
}

/* The masks of plan_format, and the sizes behind them. */
static int parse_at(const char *text, struct plan *plan)
{
	unsigned t;
	int read;

	for (t = 0; t < FIGURE_TESTS; t++) {
		read = 0;
		if (sscanf(text, t ? ":%16" SCNx64 "%n" : "%16" SCNx64 "%n", &plan->at[t],
			   &read) != 1 ||
		    !read)
			return -EINVAL;
		text += read;
	}
	if (strncmp(text, " sizes=", 7) || sizes_parse(text + 7, &plan->sizes))
		return -EINVAL;
	for (t = 0; t < FIGURE_TESTS && plan->sizes.cnt < 64; t++)
		if (plan->at[t] >> plan->sizes.cnt)
			return -EINVAL;
	return 0;
}

int plan_parse(const char *text, struct plan *plan)
{
	unsigned endpoint, wait, tagged, verify;
	struct plan got = { 0 };
	int at = 0;

	if (sscanf(text, FORMAT "63[^ ] at=%n", &endpoint, &wait, &tagged, &verify, &got.tests,
		   &got.rounds, &got.iterations, got.provider, &at) != 8 ||
	    !at)
		return -EINVAL;
	if (endpoint >= PLAN_ENDPOINTS || wait >= PLAN_WAITS || tagged > 1 || verify > 1 ||
	    !got.rounds || parse_at(text + at, &got))
		return -EINVAL;
	got.endpoint = endpoint;
	got.wait = wait;
	got.tagged = tagged;
	got.verify = verify;
	if (!strcmp(got.provider, "-"))
		got.provider[0] = '\0';
	*plan = got;
	return 0;
}

int plan_agree(struct side *side, struct plan *plan)
{
	char mine[PLAN_TEXT_MAX], theirs[PLAN_TEXT_MAX];
	size_t len = sizeof(theirs) - 1;
	struct plan got;
	int rc;

	if (side->local)
		return 0;
	rc = oob_exchange(&side->oob, mine, plan_format(plan, mine), theirs, &len);
	if (rc || !side->rank)
		return rc;
	theirs[len] = '\0';
	if (plan_parse(theirs, &got)) {
		warnx("the client is another version of weft");
		return -EPROTO;
	}
	if (plan->provider[0])
		memcpy(got.provider, plan->provider, sizeof(got.provider));
	*plan = got;
	return 0;
}

int place_run(const struct place *place, int (*body)(struct side *side, void *arg), void *arg)
{
	struct side side = { 0 };
	int rc, status;

	if (place->local)
		return pair_run(place->has_cpus ? place->cpus : NULL, place->realtime, body,
				arg);
	side.rank = !place->host;
	if (place->host)
		rc = oob_connect(&side.oob, place->host, place->port, CONNECT_WAIT_MS);
	else
		rc = oob_listen(&side.oob, NULL, place->port);
	if (rc)
		return EXIT_FAILURE;
	status = body(&side, arg);
	oob_close(&side.oob);
	return status;
}
