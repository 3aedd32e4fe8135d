/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that wait for a counter: triggered transfers, whose context has the threshold, and
 * deferred work. Deferred work has no completions: its counter reports it, and the verb buffer
 * prints the data that arrived.
 */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_trigger.h>
#include "script.h"

bool trigger_read(const struct call *c, unsigned ctx)
{
	const char *name = word_text(c, "trigger");
	struct object *o = name ? object_find(name) : NULL;
	struct fi_triggered_context2 when = { .event_type = FI_TRIGGER_THRESHOLD };

	if (!name)
		return true;
	if (!o || !o->fid)
		return false;
	when.trigger.threshold.cntr = (struct fid_cntr *)o->fid;
	when.trigger.threshold.threshold = word_value(c, "threshold", 0);
	_Static_assert(sizeof(when) == sizeof(stage.contexts[0]), "it stands in for a context");
	memcpy(&stage.contexts[ctx], &when, sizeof(when));
	return true;
}

/* Arguments of one deferred operation. They are never freed, since its end is not reported. */
struct deferred {
	struct fi_deferred_work work;
	struct iovec iov;
	struct fi_rma_iov rma_iov;
	void *desc;
	union {
		struct fi_op_msg msg;
		struct fi_op_tagged tagged;
		struct fi_op_rma rma;
		struct fi_op_cntr cntr;
	} op;
};

static const struct {
	const char *name;
	enum fi_op_type type;
} operations[] = {
	{ "recv", FI_OP_RECV },	   { "send", FI_OP_SEND },    { "trecv", FI_OP_TRECV },
	{ "tsend", FI_OP_TSEND },  { "read", FI_OP_READ },    { "write", FI_OP_WRITE },
	{ "set", FI_OP_CNTR_SET }, { "add", FI_OP_CNTR_ADD },
};

static struct fid *named_fid(const struct call *c, const char *key)
{
	const char *name = word_text(c, key);
	struct object *o = name ? object_find(name) : NULL;

	return o ? o->fid : NULL;
}

/* False when what the operation is about is absent. */
static bool fill_transfer(struct call *c, struct deferred *d, struct fid_ep *ep, fi_addr_t to)
{
	struct object *mr = word_text(c, "mr") ? object_find(word_text(c, "mr")) : NULL;

	d->work.op.msg = &d->op.msg;
	switch (d->work.op_type) {
	case FI_OP_RECV:
	case FI_OP_SEND:
		d->op.msg = (struct fi_op_msg){
			.ep = ep,
			.msg = { &d->iov, &d->desc, 1, to, &d->work.context, 0 },
		};
		return ep;
	case FI_OP_TRECV:
	case FI_OP_TSEND:
		d->op.tagged = (struct fi_op_tagged){
			.ep = ep,
			.msg = { &d->iov, &d->desc, 1, to, word_value(c, "tag", 0), 0,
				 &d->work.context, 0 },
		};
		return ep;
	default:
		if (!ep || !mr || !mr->fid)
			return false;
		d->rma_iov = (struct fi_rma_iov){ (mr->mr_mode & (FI_MR_BASIC | FI_MR_VIRT_ADDR)
							   ? (uint64_t)(uintptr_t)mr->base
							   : 0) +
							  word_value(c, "at", 0),
						  d->iov.iov_len,
						  fi_mr_key((struct fid_mr *)mr->fid) };
		d->op.rma = (struct fi_op_rma){
			.ep = ep,
			.msg = { &d->iov, &d->desc, 1, to, &d->rma_iov, 1, &d->work.context, 0 },
		};
		return true;
	}
}

static bool fill(struct call *c, struct deferred *d)
{
	unsigned ctx = (unsigned)word_value(c, "ctx", 0) % ARENAS;
	fi_addr_t to;

	d->work.threshold = word_value(c, "threshold", 0);
	d->work.triggering_cntr = (struct fid_cntr *)named_fid(c, "trigger");
	d->work.completion_cntr = (struct fid_cntr *)named_fid(c, "done");
	d->iov = (struct iovec){ arenas[ctx], word_value(c, "len", 8) % (ARENA_LEN + 1) };
	if (!d->work.triggering_cntr)
		return false;
	if (d->work.op_type == FI_OP_CNTR_SET || d->work.op_type == FI_OP_CNTR_ADD) {
		d->op.cntr = (struct fi_op_cntr){ (struct fid_cntr *)named_fid(c, "cntr"),
						  word_value(c, "value", 1) };
		d->work.op.cntr = &d->op.cntr;
		return d->op.cntr.cntr;
	}
	memset(arenas[ctx],
	       d->work.op_type == FI_OP_SEND || d->work.op_type == FI_OP_TSEND ||
			       d->work.op_type == FI_OP_WRITE
		       ? (int)(ctx + 1)
		       : 0,
	       d->iov.iov_len);
	return address_of(c, &to) && fill_transfer(c, d, endpoint_of(c), to);
}

/*
 * work EP DOMAIN do=recv|send|trecv|tsend|read|write|set|add trigger=CNTR threshold= [done=CNTR] ctx= len= to=
 * [tag= mr= at= cntr= value=]
 */
static long run_work(struct call *c)
{
	struct object *domain = object_of(c, 2);
	const char *what = word_text(c, "do");
	struct deferred *d;
	long ret = RESULT_WRONG;

	if (!domain || !domain->fid)
		return RESULT_ABSENT;
	d = calloc(1, sizeof(*d));
	for (size_t i = 0; d && what && i < COUNT_OF(operations); i++) {
		if (strcmp(operations[i].name, what) != 0)
			continue;
		d->work.op_type = operations[i].type;
		ret = fill(c, d) ? fi_control(domain->fid, FI_QUEUE_WORK, &d->work)
				 : RESULT_ABSENT;
	}
	if (ret)
		free(d);
	return ret;
}

/* buffer ctx= len=: a hash of what is in it */
static long run_buffer(struct call *c)
{
	unsigned ctx = (unsigned)word_value(c, "ctx", 0) % ARENAS;

	say(c, " hash=%#llx",
	    (unsigned long long)bytes_hash(arenas[ctx],
					   word_value(c, "len", 8) % (ARENA_LEN + 1)));
	return 0;
}

const struct verb deferred_verbs[] = {
	{ "work", run_work },
	{ "buffer", run_buffer },
	{ NULL, NULL },
};
