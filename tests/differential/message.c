/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs of messages: VERB EP FIELD=... with to=NUMBER (of an address; none: FI_ADDR_UNSPEC), ctx=
 * (the context, and the buffer), len=, at=, cnt= (buffers), tag=, ignore=, data=, flags=. The
 * buffer of a send is filled by its context's number, that of a receive is cleared before.
 */
#include <string.h>
#include <rdma/fi_tagged.h>
#include "script.h"

#define IOVS 8

/* A transfer as a line says it. */
struct transfer {
	struct fid_ep *ep;
	fi_addr_t addr;
	unsigned ctx;
	void *context;
	void *buf;
	size_t len;
	uint64_t tag;
	uint64_t ignore;
	uint64_t data;
	uint64_t flags;
	struct iovec iov[IOVS];
	size_t cnt;
	void *descs[IOVS];
};

static void vector(struct transfer *t)
{
	size_t each = t->cnt ? t->len / t->cnt : 0;

	for (size_t i = 0; i < t->cnt; i++) {
		t->iov[i].iov_base = (char *)t->buf + i * each;
		t->iov[i].iov_len = i + 1 < t->cnt ? each : t->len - i * each;
	}
}

/* False when the endpoint is absent, or the line wrong. */
static bool transfer_read(struct call *c, struct transfer *t)
{
	*t = (struct transfer){
		.ep = endpoint_of(c),
		.ctx = (unsigned)word_value(c, "ctx", 0) % ARENAS,
		.len = word_value(c, "len", 8),
		.tag = word_value(c, "tag", 0),
		.ignore = word_value(c, "ignore", 0),
		.data = word_value(c, "data", 0),
		.flags = word_value(c, "flags", 0),
		.cnt = word_value(c, "cnt", 1) % (IOVS + 1),
	};
	t->context = word_text(c, "context") ? NULL : &stage.contexts[t->ctx];
	t->buf = word_text(c, "buf") ? NULL : arenas[t->ctx];
	if (t->len > ARENA_LEN && t->len != SIZE_MAX)
		t->len = ARENA_LEN;
	vector(t);
	return t->ep && address_of(c, &t->addr) && trigger_read(c, t->ctx);
}

static struct fi_msg message_of(struct transfer *t)
{
	return (struct fi_msg){
		.msg_iov = t->iov,
		.desc = t->descs,
		.iov_count = t->cnt,
		.addr = t->addr,
		.context = t->context,
		.data = t->data,
	};
}

static struct fi_msg_tagged tagged_of(struct transfer *t)
{
	return (struct fi_msg_tagged){
		.msg_iov = t->iov,
		.desc = t->descs,
		.iov_count = t->cnt,
		.addr = t->addr,
		.tag = t->tag,
		.ignore = t->ignore,
		.context = t->context,
		.data = t->data,
	};
}

static ssize_t post_untagged(const char *verb, struct transfer *t)
{
	struct fi_msg m = message_of(t);

	if (strcmp(verb, "recv") == 0)
		return fi_recv(t->ep, t->buf, t->len, NULL, t->addr, t->context);
	if (strcmp(verb, "recvv") == 0)
		return fi_recvv(t->ep, t->iov, t->descs, t->cnt, t->addr, t->context);
	if (strcmp(verb, "recvmsg") == 0)
		return fi_recvmsg(t->ep, &m, t->flags);
	if (strcmp(verb, "send") == 0)
		return fi_send(t->ep, t->buf, t->len, NULL, t->addr, t->context);
	if (strcmp(verb, "sendv") == 0)
		return fi_sendv(t->ep, t->iov, t->descs, t->cnt, t->addr, t->context);
	if (strcmp(verb, "sendmsg") == 0)
		return fi_sendmsg(t->ep, &m, t->flags);
	if (strcmp(verb, "inject") == 0)
		return fi_inject(t->ep, t->buf, t->len, t->addr);
	if (strcmp(verb, "senddata") == 0)
		return fi_senddata(t->ep, t->buf, t->len, NULL, t->data, t->addr, t->context);
	return fi_injectdata(t->ep, t->buf, t->len, t->data, t->addr);
}

static ssize_t post_tagged(const char *verb, struct transfer *t)
{
	struct fi_msg_tagged m = tagged_of(t);

	if (strcmp(verb, "trecv") == 0)
		return fi_trecv(t->ep, t->buf, t->len, NULL, t->addr, t->tag, t->ignore,
				t->context);
	if (strcmp(verb, "trecvv") == 0)
		return fi_trecvv(t->ep, t->iov, t->descs, t->cnt, t->addr, t->tag, t->ignore,
				 t->context);
	if (strcmp(verb, "trecvmsg") == 0)
		return fi_trecvmsg(t->ep, &m, t->flags);
	if (strcmp(verb, "tsend") == 0)
		return fi_tsend(t->ep, t->buf, t->len, NULL, t->addr, t->tag, t->context);
	if (strcmp(verb, "tsendv") == 0)
		return fi_tsendv(t->ep, t->iov, t->descs, t->cnt, t->addr, t->tag, t->context);
	if (strcmp(verb, "tsendmsg") == 0)
		return fi_tsendmsg(t->ep, &m, t->flags);
	if (strcmp(verb, "tinject") == 0)
		return fi_tinject(t->ep, t->buf, t->len, t->addr, t->tag);
	if (strcmp(verb, "tsenddata") == 0)
		return fi_tsenddata(t->ep, t->buf, t->len, NULL, t->data, t->addr, t->tag,
				    t->context);
	return fi_tinjectdata(t->ep, t->buf, t->len, t->data, t->addr, t->tag);
}

static long post(struct call *c)
{
	const char *verb = c->words[0];
	struct transfer t;

	if (!transfer_read(c, &t))
		return RESULT_ABSENT;
	return *verb == 't' ? post_tagged(verb, &t) : post_untagged(verb, &t);
}

long verb_transfer(struct call *c, long (*once)(struct call *c))
{
	uint64_t since = now_ms();
	long ret = once(c);

	while (ret == -FI_EAGAIN && now_ms() - since < stage.patience_ms) {
		events_progress();
		ret = once(c);
	}
	return ret;
}

static void expect(struct call *c, unsigned ctx, size_t incoming, long ret)
{
	if (ret == 0 && !strstr(c->words[0], "inject")) {
		stage.under_way[ctx] = true;
		stage.incoming[ctx] = incoming;
	}
}

static long run_send(struct call *c)
{
	unsigned ctx = (unsigned)word_value(c, "ctx", 0) % ARENAS;
	size_t len = word_value(c, "len", 8);
	long ret;

	memset(arenas[ctx], (int)(ctx + 1), len < ARENA_LEN ? len : ARENA_LEN);
	ret = verb_transfer(c, post);
	expect(c, ctx, 0, ret);
	return ret;
}

static long run_recv(struct call *c)
{
	unsigned ctx = (unsigned)word_value(c, "ctx", 0) % ARENAS;
	size_t len = word_value(c, "len", 8);
	long ret;

	len = len < ARENA_LEN ? len : ARENA_LEN;
	memset(arenas[ctx], 0, len);
	ret = verb_transfer(c, post);
	expect(c, ctx, word_value(c, "flags", 0) & FI_PEEK ? 0 : len, ret);
	stage.multi[ctx] = ret == 0 && word_value(c, "flags", 0) & FI_MULTI_RECV;
	return ret;
}

/* cancel EP ctx= */
static long run_cancel(struct call *c)
{
	struct fid_ep *ep = endpoint_of(c);

	if (!ep)
		return RESULT_ABSENT;
	return fi_cancel(&ep->fid, &stage.contexts[word_value(c, "ctx", 0) % ARENAS]);
}

const struct verb message_verbs[] = {
	{ "recv", run_recv },	    { "recvv", run_recv },
	{ "recvmsg", run_recv },    { "send", run_send },
	{ "sendv", run_send },	    { "sendmsg", run_send },
	{ "inject", run_send },	    { "senddata", run_send },
	{ "injectdata", run_send }, { "trecv", run_recv },
	{ "trecvv", run_recv },	    { "trecvmsg", run_recv },
	{ "tsend", run_send },	    { "tsendv", run_send },
	{ "tsendmsg", run_send },   { "tinject", run_send },
	{ "tsenddata", run_send },  { "tinjectdata", run_send },
	{ "cancel", run_cancel },   { NULL, NULL },
};
