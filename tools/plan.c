/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plans and places; plan.h has the contract. Called by 'weft bench' and
 * 'weft pingpong' before anything is measured.
 */
#define _GNU_SOURCE
#include "plan.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_WAIT_MS 10000
#define FORMAT		"weft-plan 1 tagged=%u verify=%u tests=%u rounds=%u iterations=%u provider=%"

size_t plan_format(const struct plan *plan, char *text)
{
	size_t used, i;

	used = (size_t)snprintf(text, PLAN_TEXT_MAX, FORMAT "s sizes=", plan->tagged,
				plan->verify, plan->tests, plan->rounds, plan->iterations,
				plan->provider[0] ? plan->provider : "-");
	for (i = 0; i < plan->sizes.cnt; i++)
		used += (size_t)snprintf(text + used, PLAN_TEXT_MAX - used, "%s%zu",
					 i ? "," : "", plan->sizes.len[i]);
	return used;
}

int plan_parse(const char *text, struct plan *plan)
{
	unsigned tagged, verify;
	struct plan got = { 0 };
	int at = 0;

	if (sscanf(text, FORMAT "63[^ ] sizes=%n", &tagged, &verify, &got.tests, &got.rounds,
		   &got.iterations, got.provider, &at) != 6 ||
	    !at)
		return -EINVAL;
	if (tagged > 1 || verify > 1 || !got.rounds || sizes_parse(text + at, &got.sizes))
		return -EINVAL;
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
	rc = oob_swap(&side->oob, mine, plan_format(plan, mine), theirs, &len);
	if (rc || !side->rank)
		return rc;
	theirs[len] = '\0';
	if (plan_parse(theirs, &got)) {
		warnx("the client does not speak this weft's language");
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
