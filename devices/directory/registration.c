/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lender that is registered; registration.h has the contract.
 */
#define _GNU_SOURCE
#include "registration.h"
#include "cluster.h"
#include "entry.h"
#include "etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_MS	 (REGISTRATION_S * 1000 / 3)
#define AGAIN_MS 500u
#define END_MS	 1000u

/*
 * struct directory_registration
 * @lock:    of @value, @changed
 * @value:   what is to be registered, or NULL: not known yet
 * @changed: the directory may not have it
 * @lease:   of etcd, or 0
 * @keep_ms, @put_ms: when the lease is kept alive, and when the key may change again
 * @told:    the error that was told last; 0: that it is registered; 1: nothing yet
 * @told_other: that another lender has the key was told
 */
struct directory_registration {
	struct cluster cluster;
	void (*tell)(const char *line);
	pthread_t thread;
	atomic_bool stop;
	pthread_mutex_t lock;
	char *value;
	bool changed;
	char key[ENTRY_KEY_MAX];
	uint64_t lease;
	uint64_t keep_ms, put_ms;
	int told;
	bool told_other;
};

__attribute__((format(printf, 2, 3))) static void tell(struct directory_registration *r,
						       const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	r->tell(line);
}

static int grant(struct directory_registration *r)
{
	struct http_answer answer;
	int err = cluster_ask(&r->cluster, ETCD_GRANT, etcd_ask_grant(REGISTRATION_S), &answer);

	if (err)
		return err;
	err = etcd_granted(answer.text, answer.len, &r->lease);
	free(answer.text);
	r->keep_ms = cluster_now_ms() + KEEP_MS;
	return err;
}

static void set_changed(struct directory_registration *r)
{
	pthread_mutex_lock(&r->lock);
	r->changed = true;
	pthread_mutex_unlock(&r->lock);
}

static int put(struct directory_registration *r)
{
	struct http_answer answer;
	char *body;
	int err;

	pthread_mutex_lock(&r->lock);
	body = etcd_ask_put(r->key, r->value, r->lease);
	r->changed = false;
	pthread_mutex_unlock(&r->lock);
	err = cluster_ask(&r->cluster, ETCD_PUT, body, &answer);
	r->put_ms = cluster_now_ms() + REGISTRATION_CHANGE_MS;
	if (err)
		set_changed(r);
	else
		free(answer.text);
	return err;
}

/* Whether the key is there, and ours. */
static int check(struct directory_registration *r)
{
	struct etcd_range range = { .key = r->key, .keys_only = true };
	struct http_answer answer;
	struct etcd_list list;
	int err = cluster_ask(&r->cluster, ETCD_RANGE, etcd_ask_range(&range), &answer);

	if (err)
		return err;
	err = etcd_listed(answer.text, answer.len, &list);
	free(answer.text);
	if (err)
		return err;
	if (!list.cnt)
		set_changed(r);
	if (list.cnt && list.kvs[0].lease != r->lease && !r->told_other)
		tell(r,
		     "another lender is registered at %s too: each needs a --state of its own",
		     r->key);
	r->told_other = list.cnt && list.kvs[0].lease != r->lease;
	etcd_list_fini(&list);
	return 0;
}

/* Keep the lease alive; -ENOENT: there is none any more. */
static int keep(struct directory_registration *r)
{
	struct http_answer answer;
	uint64_t seconds = 0;
	int err = cluster_ask(&r->cluster, ETCD_KEEP, etcd_ask_lease(r->lease), &answer);

	if (err)
		return err;
	err = etcd_kept(answer.text, answer.len, &seconds, r->cluster.why,
			sizeof(r->cluster.why));
	free(answer.text);
	if (err)
		return err;
	if (!seconds)
		return -ENOENT;
	r->keep_ms = cluster_now_ms() + KEEP_MS;
	return check(r);
}

/* Do what is due, of which @now is the time. */
static int step(struct directory_registration *r, uint64_t now)
{
	bool has_value, changed;
	int err = 0;

	pthread_mutex_lock(&r->lock);
	has_value = r->value;
	changed = r->changed;
	pthread_mutex_unlock(&r->lock);
	if (!has_value)
		return 0;
	if (!r->lease) {
		err = grant(r);
		changed = true;
		r->put_ms = 0;
	}
	if (!err && now >= r->keep_ms)
		err = keep(r);
	if (!err && changed && now >= r->put_ms)
		err = put(r);
	if (err == -ENOENT)
		r->lease = 0;
	return err;
}

/* The first error after a success is told, and the first success after an error. */
static void tell_of(struct directory_registration *r, int err)
{
	if (err == -ENOENT || err == -ECANCELED || (err && r->told < 0) || err == r->told)
		return;
	if (err)
		tell(r, "not registered at the directory; leases go on (%s)", r->cluster.why);
	else
		tell(r, "registered at the directory, %s",
		     r->cluster.members.url[r->cluster.members.at]);
	r->told = err;
}

/* How long nothing is due. */
static unsigned idle_ms(struct directory_registration *r, int err)
{
	uint64_t now = cluster_now_ms(), next = r->keep_ms;
	bool changed;

	if (err)
		return err == -ENOENT ? 0 : AGAIN_MS;
	pthread_mutex_lock(&r->lock);
	changed = r->changed;
	if (!r->value)
		next = now + 60000;
	pthread_mutex_unlock(&r->lock);
	if (changed && r->put_ms < next)
		next = r->put_ms;
	return next > now ? (unsigned)(next - now) : 0;
}

/* A member that does not answer soon need not: the lease ends by itself. */
static void end_lease(struct directory_registration *r)
{
	char *body = etcd_ask_lease(r->lease), why[HTTP_WHY_MAX];
	const struct members *m = &r->cluster.members;
	struct http_answer answer;

	if (body &&
	    !http_post(r->cluster.http, m->url[m->at], ETCD_REVOKE, body, END_MS, &answer, why))
		free(answer.text);
	free(body);
}

static void *stay(void *arg)
{
	struct directory_registration *r = arg;
	uint64_t now;
	unsigned ms;
	bool elects;
	int err;

	while (!atomic_load(&r->stop)) {
		now = cluster_now_ms();
		err = step(r, now);
		elects = cluster_elects(&r->cluster, err, now);
		if (!elects && (err || r->lease))
			tell_of(r, err);
		ms = idle_ms(r, err);
		if (ms)
			http_wait(r->cluster.http, ms);
	}
	http_go_on(r->cluster.http);
	if (r->lease)
		end_lease(r);
	return NULL;
}

int registration_open(const char *urls, void (*tell_line)(const char *line),
		      struct directory_registration **out)
{
	struct directory_registration *r = calloc(1, sizeof(*r));
	sigset_t all, old;
	int err;

	if (!r)
		return -ENOMEM;
	r->tell = tell_line;
	r->told = 1;
	pthread_mutex_init(&r->lock, NULL);
	err = cluster_open(&r->cluster, urls);
	if (err)
		goto err_free;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = -pthread_create(&r->thread, NULL, stay, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		goto err_close;
	*out = r;
	return 0;

err_close:
	cluster_close(&r->cluster);
err_free:
	free(r);
	return err;
}

int registration_set(struct directory_registration *r, const struct directory_lender *lender)
{
	char *value;
	bool same;
	int err = entry_encode(lender, &value);

	if (err)
		return err;
	pthread_mutex_lock(&r->lock);
	same = r->value && !strcmp(r->value, value);
	/* From then on the thread reads it. */
	if (!r->value)
		entry_key(lender->node, r->key);
	if (!same) {
		free(r->value);
		r->value = value;
		r->changed = true;
	}
	pthread_mutex_unlock(&r->lock);
	if (same)
		free(value);
	else
		http_wake(r->cluster.http);
	return 0;
}

void registration_close(struct directory_registration *r)
{
	http_stop(r->cluster.http);
	/* Behind it: the thread has what follows this for its own. */
	atomic_store(&r->stop, true);
	pthread_join(r->thread, NULL);
	cluster_close(&r->cluster);
	pthread_mutex_destroy(&r->lock);
	free(r->value);
	free(r);
}
