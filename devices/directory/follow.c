/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A directory that is followed; follow.h has the contract.
 *
 * One member is asked for all keys, and from the revision that it has shown for what changes: so nothing is missed in
 * between. Whenever the watch ends, for whatever reason, both begin anew with the next member that answers, and the
 * listener hears of the difference. Watches say nothing when nothing happens, and a member that is stopped does too; so
 * that one is asked something now and then.
 */
#define _GNU_SOURCE
#include "follow.h"
#include "cluster.h"
#include "entry.h"
#include "etcd.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_MS 500u
#define ELECT_MS 200u /* between attempts while members elect a leader */

/* struct known - a lender that the listener knows; @seen: in the list that is being read */
struct known {
	uint64_t node;
	bool seen;
};

/*
 * struct directory_follow
 * @member:   with the watch; @watching: it has been asked for one, @begun: and has said that it watches
 * @probe_ms: when it is asked whether it is there, or has to have begun
 * @lost:     the error that the listener was told, or 0
 * @lock:     of @first and @has_begun, which @began tells of: what came of the first attempt
 */
struct directory_follow {
	struct cluster cluster;
	struct directory_listener listener;
	pthread_t thread;
	atomic_bool stop;
	struct known *known;
	size_t known_cnt, known_room;
	uint32_t member;
	bool watching, begun;
	uint64_t probe_ms;
	int lost;
	pthread_mutex_t lock;
	pthread_cond_t began;
	bool has_begun;
	int first;
};

static struct known *find_known(struct directory_follow *f, uint64_t node)
{
	size_t i;

	for (i = 0; i < f->known_cnt; i++)
		if (f->known[i].node == node)
			return &f->known[i];
	return NULL;
}

static struct known *add_known(struct directory_follow *f, uint64_t node)
{
	if (f->known_cnt == f->known_room) {
		size_t room = f->known_room * 2 + 16;
		struct known *known = reallocarray(f->known, room, sizeof(*known));

		if (!known)
			return NULL;
		f->known = known;
		f->known_room = room;
	}
	f->known[f->known_cnt] = (struct known){ .node = node };
	return &f->known[f->known_cnt++];
}

static void drop_known(struct directory_follow *f, struct known *known)
{
	uint64_t node = known->node;

	*known = f->known[--f->known_cnt];
	f->listener.gone(f->listener.arg, node);
}

/* A key is there, with a value: what is no lender is as if it were not. */
static int take_put(struct directory_follow *f, const struct etcd_kv *kv, uint64_t node)
{
	struct known *known = find_known(f, node);
	struct directory_lender lender;
	int err = kv->value ? entry_decode(kv->value, kv->value_len, node, &lender) : -EPROTO;

	if (err) {
		if (known)
			drop_known(f, known);
		return err == -ENOMEM ? err : 0;
	}
	if (!known)
		known = add_known(f, node);
	if (known) {
		known->seen = true;
		f->listener.lender(f->listener.arg, &lender);
	}
	entry_fini(&lender);
	return known ? 0 : -ENOMEM;
}

static int take_kv(struct directory_follow *f, const struct etcd_kv *kv)
{
	struct known *known;
	uint64_t node;

	if (entry_node(kv->key, &node))
		return 0;
	if (!kv->deleted)
		return take_put(f, kv, node);
	known = find_known(f, node);
	if (known)
		drop_known(f, known);
	return 0;
}

static int take_list(struct directory_follow *f, const struct etcd_list *list)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < list->cnt; i++)
		err = take_kv(f, &list->kvs[i]);
	return err;
}

/* A page of keys, from @range's on; the range is that of the next page then, whose first key is at @next. */
static int read_page(struct directory_follow *f, uint32_t member, struct etcd_range *range,
		     char next[ETCD_KEY_MAX + 2], struct etcd_list *list)
{
	char *body = etcd_ask_range(range);
	struct http_answer answer;
	int err = -ENOMEM;

	if (body)
		err = cluster_ask_member(&f->cluster, member, ETCD_RANGE, body, &answer);
	free(body);
	if (err)
		return err;
	err = etcd_listed(answer.text, answer.len, list);
	free(answer.text);
	if (err)
		return err;
	if (!range->revision)
		range->revision = list->revision;
	if (!list->more)
		return 0;
	if (!list->cnt) {
		etcd_list_fini(list);
		return -EPROTO;
	}
	/* The next key is the last one and a character, the least that there is. */
	snprintf(next, ETCD_KEY_MAX + 2, "%s\x01", list->kvs[list->cnt - 1].key);
	range->key = next;
	return 0;
}

/* Have all keys of a member; what is known and not among them is gone. */
static int read_all(struct directory_follow *f, uint32_t member, uint64_t *revision)
{
	struct etcd_range range = { .key = ENTRY_PREFIX,
				    .end = ENTRY_PREFIX_END,
				    .limit = FOLLOW_PAGE };
	char next[ETCD_KEY_MAX + 2];
	struct etcd_list list;
	bool more;
	size_t i;
	int err;

	for (i = 0; i < f->known_cnt; i++)
		f->known[i].seen = false;
	do {
		err = read_page(f, member, &range, next, &list);
		if (err)
			return err;
		more = list.more;
		err = take_list(f, &list);
		etcd_list_fini(&list);
		if (err)
			return err;
	} while (more);
	for (i = f->known_cnt; i-- > 0;)
		if (!f->known[i].seen)
			drop_known(f, &f->known[i]);
	*revision = range.revision;
	return 0;
}

static int watch(struct directory_follow *f, uint32_t member, uint64_t from)
{
	struct etcd_range range = { .key = ENTRY_PREFIX,
				    .end = ENTRY_PREFIX_END,
				    .revision = from };
	char *body = etcd_ask_watch(&range);
	int err = -ENOMEM;

	if (body)
		err = http_stream_open(f->cluster.http, f->cluster.members.url[member],
				       ETCD_WATCH, body);
	free(body);
	if (err)
		return err;
	f->member = member;
	f->watching = true;
	f->begun = false;
	f->probe_ms = cluster_now_ms() + DIRECTORY_ASK_MS;
	return 0;
}

/* Have all keys, and a watch, of the first member that answers. */
static int begin(struct directory_follow *f)
{
	uint32_t order[MEMBERS_MAX], i;
	uint64_t revision = 0;
	int err = 0, one;

	members_order(&f->cluster.members, cluster_now_ms(), order);
	for (i = 0; i < f->cluster.members.cnt; i++) {
		one = read_all(f, order[i], &revision);
		if (!one)
			one = watch(f, order[i], revision + 1);
		if (!one || one == -ECANCELED || one == -ENOMEM)
			return one;
		err = i ? cluster_worse(err, one) : one;
	}
	return err;
}

static void end_watch(struct directory_follow *f, bool failed)
{
	http_stream_close(f->cluster.http);
	f->watching = false;
	if (failed)
		members_failed(&f->cluster.members, f->member, cluster_now_ms());
}

/* What the watch has said. Returns 0 or why it is over. */
static int take_lines(struct directory_follow *f)
{
	const char *line;
	size_t len;

	while ((line = http_stream_line(f->cluster.http, &len))) {
		struct etcd_list list;
		int err;

		if (!len)
			continue;
		err = etcd_watched(line, len, &list, f->cluster.why, sizeof(f->cluster.why));
		if (err)
			return err;
		f->begun = true;
		err = take_list(f, &list);
		etcd_list_fini(&list);
		if (err)
			return err;
	}
	return http_stream_ended(f->cluster.http) ? -ECONNREFUSED : 0;
}

/* A key that need not be there: the answer alone says that the member is, and has a majority. */
static int probe(struct directory_follow *f)
{
	struct etcd_range range = { .key = ENTRY_PREFIX, .keys_only = true };
	struct http_answer answer;
	char *body;
	int err;

	if (!f->begun)
		return -ETIMEDOUT;
	body = etcd_ask_range(&range);
	if (!body)
		return -ENOMEM;
	err = cluster_ask_member(&f->cluster, f->member, ETCD_RANGE, body, &answer);
	free(body);
	if (!err)
		free(answer.text);
	f->probe_ms = cluster_now_ms() + FOLLOW_PROBE_MS;
	return err;
}

static void tell_state(struct directory_follow *f, int err)
{
	if (err == -ECANCELED || err == -EINPROGRESS || !err == !f->lost)
		return;
	f->lost = err;
	f->listener.state(f->listener.arg, err);
}

/* Begin, or try to; what is no end of the directory, as its members may elect a leader, is -EINPROGRESS. */
static int try_begin(struct directory_follow *f)
{
	uint64_t began_ms = cluster_now_ms();
	int err = begin(f);

	return cluster_elects(&f->cluster, err, began_ms) ? -EINPROGRESS : err;
}

static int first_begin(struct directory_follow *f)
{
	int err;

	while ((err = try_begin(f)) == -EINPROGRESS)
		http_wait(f->cluster.http, ELECT_MS);
	pthread_mutex_lock(&f->lock);
	f->first = err;
	f->has_begun = true;
	pthread_cond_signal(&f->began);
	pthread_mutex_unlock(&f->lock);
	return err;
}

static void *go_on(void *arg)
{
	struct directory_follow *f = arg;
	uint64_t now;
	int err;

	if (first_begin(f))
		return NULL;
	while (!atomic_load(&f->stop)) {
		if (!f->watching) {
			err = try_begin(f);
			tell_state(f, err);
			if (err)
				http_wait(f->cluster.http,
					  err == -EINPROGRESS ? ELECT_MS : AGAIN_MS);
			continue;
		}
		err = take_lines(f);
		now = cluster_now_ms();
		if (!err && now >= f->probe_ms)
			err = probe(f);
		if (err)
			end_watch(f, err != -ESTALE);
		else
			http_wait(f->cluster.http,
				  f->probe_ms > now ? (unsigned)(f->probe_ms - now) : 0);
	}
	return NULL;
}

/* What libcurl does is done by the thread alone, where no signal can come of it. */
static int start(struct directory_follow *f)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = -pthread_create(&f->thread, NULL, go_on, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return err;
	pthread_mutex_lock(&f->lock);
	while (!f->has_begun)
		pthread_cond_wait(&f->began, &f->lock);
	err = f->first;
	pthread_mutex_unlock(&f->lock);
	if (err)
		pthread_join(f->thread, NULL);
	return err;
}

static void destroy(struct directory_follow *f)
{
	cluster_close(&f->cluster);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->began);
	free(f->known);
	free(f);
}

int follow_open(const char *urls, const struct directory_listener *listener,
		struct directory_follow **out)
{
	struct directory_follow *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->listener = *listener;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->began, NULL);
	err = cluster_open(&f->cluster, urls);
	if (err) {
		free(f);
		return err;
	}
	err = start(f);
	if (err)
		destroy(f);
	else
		*out = f;
	return err;
}

void follow_close(struct directory_follow *f)
{
	http_stop(f->cluster.http);
	atomic_store(&f->stop, true);
	pthread_join(f->thread, NULL);
	destroy(f);
}
