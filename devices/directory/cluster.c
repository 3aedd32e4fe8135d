/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A directory's members as one; cluster.h has the contract.
 */
#define _GNU_SOURCE
#include "cluster.h"
#include "directory.h"
#include "etcd.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

uint64_t cluster_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int cluster_open(struct cluster *c, const char *urls)
{
	int err = members_parse(&c->members, urls, (uint32_t)getpid());

	*c->why = 0;
	return err ? err : http_create(&c->http);
}

void cluster_close(struct cluster *c)
{
	http_destroy(c->http);
}

/* Errors that are this side's, or about what was asked: another member would say the same. */
static bool is_final(int err)
{
	return !err || err == -ENOENT || err == -ECANCELED || err == -ENOMEM || err == -EMSGSIZE;
}

int cluster_ask_member(struct cluster *c, uint32_t member, const char *path, const char *body,
		       struct http_answer *answer)
{
	const char *url = c->members.url[member];
	char why[HTTP_WHY_MAX] = "";
	int err = http_post(c->http, url, path, body, DIRECTORY_ASK_MS, answer, why);

	if (!err) {
		err = etcd_refused(answer->status, answer->text, answer->len, why, sizeof(why));
		if (err)
			free(answer->text);
	}
	if (err)
		snprintf(c->why, sizeof(c->why), "%s: %s", url, why);
	if (!is_final(err))
		members_failed(&c->members, member, cluster_now_ms());
	else if (!err || err == -ENOENT)
		members_answered(&c->members, member);
	return err;
}

bool cluster_elects(struct cluster *c, int err, uint64_t began_ms)
{
	return members_elect(&c->members, err, began_ms, cluster_now_ms());
}

int cluster_worse(int err, int other)
{
	/* A member that is there and can't says more than one that is not. */
	static const int most[] = { -EACCES, -EAGAIN, -ENOPROTOOPT, -EPROTO, -ETIMEDOUT };
	unsigned i;

	for (i = 0; i < sizeof(most) / sizeof(most[0]); i++)
		if (err == most[i] || other == most[i])
			return most[i];
	return other;
}

int cluster_ask(struct cluster *c, const char *path, char *body, struct http_answer *answer)
{
	uint32_t order[MEMBERS_MAX], i;
	int err = -ENOMEM, one;

	members_order(&c->members, cluster_now_ms(), order);
	for (i = 0; body && i < c->members.cnt; i++) {
		one = cluster_ask_member(c, order[i], path, body, answer);
		err = i && !is_final(one) ? cluster_worse(err, one) : one;
		if (is_final(one))
			break;
	}
	free(body);
	return err;
}
