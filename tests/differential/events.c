/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Results: completions, error entries, events and counts, as text. Every verb that makes progress
 * reads all queues and stores what it reads; the verb drain prints it once no more entries arrive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "script.h"

#define EVENT_LEN 64

/* Flags of completions that are the same for all libraries; only these bits are printed. */
#define FLAGS_TOLD                                                                          \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ | FI_WRITE | \
	 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA | FI_MULTI_RECV)

#define TO_COME_MS 100 /* a wait of so long is for what is to come */

uint64_t now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000;
}

uint64_t bytes_hash(const unsigned char *bytes, size_t len)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ bytes[i]) * 1099511628211u;
	return h & 0xffffffff;
}

/* The number of a context, or -1 for a context of no operation. */
static int context_idx(const void *context)
{
	ptrdiff_t at = (const char *)context - (const char *)stage.contexts;

	if (!context || at < 0 || (size_t)at >= sizeof(stage.contexts))
		return -1;
	return (int)(at / (ptrdiff_t)sizeof(stage.contexts[0]));
}

/* The number of the first address that is this one, or -1. */
static int address_idx(fi_addr_t addr)
{
	for (int i = 0; i < ADDRESSES; i++)
		if (stage.known[i] && stage.addresses[i] == addr)
			return i;
	return -1;
}

static void stash(struct object *o, const char *text)
{
	size_t len = strlen(text);
	char *grown = realloc(o->stash, o->stash_len + len + 1);

	if (!grown)
		abort();
	memcpy(grown + o->stash_len, text, len + 1);
	o->stash = grown;
	o->stash_len += len;
}

/*
 * A buffer of many messages: a message in it, and its release, are two lines. Providers differ in
 * whether the last message reports the release, or an entry of its own.
 */
static void stash_multi(struct object *o, const struct fi_cq_tagged_entry *e, int ctx)
{
	const unsigned char *buf = e->buf;
	char text[STASH_ENTRY];

	if (e->len && buf >= arenas[ctx] && buf + e->len <= arenas[ctx] + ARENA_LEN) {
		snprintf(text, sizeof(text), "\n %s ctx=%d part flags=%#llx len=%zu hash=%#llx",
			 o->name, ctx,
			 (unsigned long long)(e->flags & FLAGS_TOLD & ~FI_MULTI_RECV), e->len,
			 (unsigned long long)bytes_hash(buf, e->len));
		stash(o, text);
	} else if (e->len) {
		snprintf(text, sizeof(text), "\n %s ctx=%d part elsewhere", o->name, ctx);
		stash(o, text);
	}
	if (!(e->flags & FI_MULTI_RECV))
		return;
	snprintf(text, sizeof(text), "\n %s ctx=%d full", o->name, ctx);
	stash(o, text);
	stage.under_way[ctx] = stage.multi[ctx] = false;
}

/* The fields that an entry of this format has and that mean something in it. */
static void stash_entry(struct object *o, const struct fi_cq_tagged_entry *e, fi_addr_t from)
{
	char text[STASH_ENTRY];
	int ctx = context_idx(e->op_context), len;
	bool known = o->format >= FI_CQ_FORMAT_MSG;
	uint64_t flags = known ? e->flags : 0;

	if (ctx >= 0 && stage.multi[ctx] && o->format >= FI_CQ_FORMAT_DATA) {
		stash_multi(o, e, ctx);
		return;
	}
	len = snprintf(text, sizeof(text), "\n %s ctx=%d", o->name, ctx);
	if (known)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " flags=%#llx",
				(unsigned long long)(flags & FLAGS_TOLD));
	if (flags & FI_RECV)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " len=%zu", e->len);
	if (o->format >= FI_CQ_FORMAT_DATA && flags & FI_REMOTE_CQ_DATA)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " data=%#llx",
				(unsigned long long)e->data);
	if (o->format >= FI_CQ_FORMAT_TAGGED && flags & FI_TAGGED && flags & FI_RECV)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " tag=%#llx",
				(unsigned long long)e->tag);
	if (o->source && flags & FI_RECV)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " from=%d",
				address_idx(from));
	if (ctx >= 0 && stage.incoming[ctx])
		snprintf(text + len, sizeof(text) - (size_t)len, " hash=%#llx",
			 (unsigned long long)bytes_hash(arenas[ctx], stage.incoming[ctx]));
	stash(o, text);
	if (ctx >= 0)
		stage.under_way[ctx] = false;
}

static void stash_error(struct object *o)
{
	struct fi_cq_err_entry e = { 0 };
	char text[STASH_ENTRY];
	ssize_t ret = fi_cq_readerr((struct fid_cq *)o->fid, &e, 0);
	int ctx;

	if (ret < 0) {
		snprintf(text, sizeof(text), "\n %s readerr=%s", o->name, word_error(ret));
	} else {
		ctx = context_idx(e.op_context);
		snprintf(text, sizeof(text),
			 "\n %s error ctx=%d err=%s flags=%#llx len=%zu olen=%zu", o->name, ctx,
			 word_error(-e.err), (unsigned long long)(e.flags & FLAGS_TOLD), e.len,
			 e.olen);
		if (ctx >= 0)
			stage.under_way[ctx] = false;
	}
	stash(o, text);
}

/* How much of an entry of no stated format the library writes. */
static void stash_unstated(struct object *o, const unsigned char *entry, size_t len)
{
	char text[STASH_ENTRY];
	bool more = false;

	for (size_t i = sizeof(struct fi_cq_entry); i < len; i++)
		more |= entry[i] != 0xa5;
	snprintf(text, sizeof(text), "\n %s unstated=%s", o->name, more ? "longer" : "context");
	if (more)
		stash(o, text);
}

size_t events_read(struct object *o)
{
	union {
		struct fi_cq_tagged_entry entry;
		unsigned char bytes[sizeof(struct fi_cq_tagged_entry)];
	} u;
	char text[STASH_ENTRY];
	fi_addr_t from = FI_ADDR_NOTAVAIL;
	ssize_t ret;

	memset(u.bytes, 0xa5, sizeof(u));
	ret = o->source ? fi_cq_readfrom((struct fid_cq *)o->fid, &u, 1, &from)
			: fi_cq_read((struct fid_cq *)o->fid, &u, 1);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret > 0) {
		if (o->format == FI_CQ_FORMAT_UNSPEC)
			stash_unstated(o, u.bytes, sizeof(u));
		stash_entry(o, &u.entry, from);
	} else if (ret == -FI_EAVAIL) {
		stash_error(o);
	} else {
		snprintf(text, sizeof(text), "\n %s read=%s", o->name, word_error(ret));
		if (!o->stash || !strstr(o->stash, text))
			stash(o, text);
		return 0;
	}
	return 1;
}

size_t events_progress(void)
{
	struct object *o = NULL;
	size_t cnt = 0;

	while ((o = object_each(o, "cq")))
		for (size_t one = 1; one; cnt += one)
			one = events_read(o);
	while ((o = object_each(o, "cntr")))
		fi_cntr_read((struct fid_cntr *)o->fid);
	return cnt;
}

static bool any_under_way(void)
{
	if (stage.counted)
		return true;
	for (int i = 0; i < ARENAS; i++)
		if (stage.under_way[i])
			return true;
	return false;
}

static void say_events(struct call *c, struct object *o)
{
	struct fi_eq_err_entry failed = { 0 };
	uint64_t buf[EVENT_LEN];
	uint32_t event = 0;
	ssize_t ret;

	while ((ret = fi_eq_read((struct fid_eq *)o->fid, &event, buf, sizeof(buf), 0)) >= 0)
		say(c, "\n %s event=%u len=%zd", o->name, event, ret);
	if (ret == -FI_EAVAIL && fi_eq_readerr((struct fid_eq *)o->fid, &failed, 0) >= 0)
		say(c, "\n %s error err=%s", o->name, word_error(-failed.err));
}

/* drain [quiet=MS]: print everything that has arrived, from all queues and counters */
static long run_drain(struct call *c)
{
	uint64_t quiet_ms = word_value(c, "quiet", stage.quiet_ms), since = now_ms();
	struct object *o = NULL;

	while (now_ms() - since < (any_under_way() ? quiet_ms : quiet_ms < 2 ? quiet_ms : 2))
		if (events_progress())
			since = now_ms();
	while ((o = object_each(o, "cq"))) {
		if (o->stash)
			say(c, "%s", o->stash);
		free(o->stash);
		o->stash = NULL;
		o->stash_len = 0;
	}
	while ((o = object_each(o, "cntr")))
		say(c, "\n %s value=%llu errors=%llu", o->name,
		    (unsigned long long)fi_cntr_read((struct fid_cntr *)o->fid),
		    (unsigned long long)fi_cntr_readerr((struct fid_cntr *)o->fid));
	while ((o = object_each(o, "eq")))
		say_events(c, o);
	memset(stage.under_way, 0, sizeof(stage.under_way));
	stage.counted = false;
	return 0;
}

/* timing quiet= patience=, in milliseconds */
static long run_timing(struct call *c)
{
	stage.quiet_ms = (unsigned)word_value(c, "quiet", stage.quiet_ms);
	stage.patience_ms = (unsigned)word_value(c, "patience", stage.patience_ms);
	return 0;
}

/* cntr CNTR do=add|set|adderr|seterr|read|readerr value= */
static long run_count(struct call *c)
{
	struct object *o = object_of(c, 1);
	struct fid_cntr *cntr = o ? (struct fid_cntr *)o->fid : NULL;
	uint64_t value = word_value(c, "value", 0);
	const char *what = word_text(c, "do");

	if (!cntr || !what)
		return RESULT_ABSENT;
	stage.counted |= strncmp(what, "read", 4) != 0;
	if (strcmp(what, "add") == 0)
		return fi_cntr_add(cntr, value);
	if (strcmp(what, "set") == 0)
		return fi_cntr_set(cntr, value);
	if (strcmp(what, "adderr") == 0)
		return fi_cntr_adderr(cntr, value);
	if (strcmp(what, "seterr") == 0)
		return fi_cntr_seterr(cntr, value);
	say(c, " value=%llu",
	    (unsigned long long)(strcmp(what, "read") == 0 ? fi_cntr_read(cntr)
							   : fi_cntr_readerr(cntr)));
	return 0;
}

int wait_ms(struct call *c, int otherwise)
{
	int ms = (int)word_value(c, "timeout", (uint64_t)otherwise);
	int more = (int)stage.patience_ms / 2;

	return ms < TO_COME_MS || more < ms || word_text(c, "idle") ? ms : more;
}

/* wait OBJECT timeout= [threshold=]: a blocking call of a queue, counter or set */
static long run_wait(struct call *c)
{
	struct object *o = object_of(c, 1);
	int timeout = wait_ms(c, 1);
	struct fi_cq_tagged_entry entry;
	uint64_t buf[EVENT_LEN];
	uint32_t event;

	if (!o || !o->fid || (!o->ready && !word_text(c, "raw")))
		return RESULT_ABSENT;
	switch (o->fid->fclass) {
	case FI_CLASS_CQ:
		/* nothing is taken out that the drain would miss */
		return fi_cq_sread((struct fid_cq *)o->fid, &entry, 0, NULL, timeout);
	case FI_CLASS_CNTR:
		return fi_cntr_wait((struct fid_cntr *)o->fid, word_value(c, "threshold", 0),
				    timeout);
	case FI_CLASS_EQ:
		return fi_eq_sread((struct fid_eq *)o->fid, &event, buf, sizeof(buf), timeout,
				   FI_PEEK);
	case FI_CLASS_WAIT:
		return ((struct fid_wait *)o->fid)->ops->wait((struct fid_wait *)o->fid, timeout);
	default:
		return RESULT_WRONG;
	}
}

/* signal CQ */
static long run_signal(struct call *c)
{
	struct object *o = object_of(c, 1);

	if (!o || !o->fid || (!o->ready && !word_text(c, "raw")))
		return RESULT_ABSENT;
	return fi_cq_signal((struct fid_cq *)o->fid);
}

/* poll POLLSET cnt= */
static long run_poll(struct call *c)
{
	struct object *o = object_of(c, 1);
	struct fid_poll *set = o ? (struct fid_poll *)o->fid : NULL;
	void *contexts[8];

	return set ? set->ops->poll(set, contexts, (int)word_value(c, "cnt", 8)) : RESULT_ABSENT;
}

/* eq_write EQ event= len= flags= */
static long run_eq_write(struct call *c)
{
	struct object *o = object_of(c, 1);
	uint64_t buf[EVENT_LEN] = { 0 };

	if (!o || !o->fid)
		return RESULT_ABSENT;
	return fi_eq_write((struct fid_eq *)o->fid, (uint32_t)word_value(c, "event", 0), buf,
			   word_value(c, "len", sizeof(struct fi_eq_entry)) % sizeof(buf),
			   word_value(c, "flags", 0));
}

const struct verb event_verbs[] = {
	{ "drain", run_drain },	      { "timing", run_timing }, { "count", run_count },
	{ "wait", run_wait },	      { "signal", run_signal }, { "poll", run_poll },
	{ "eq_write", run_eq_write }, { NULL, NULL },
};
