/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs that change what is open: bind, enable, options, control, close. An object called null is
 * a NULL pointer where the call may take one.
 */
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include "script.h"

/* bind OBJECT TARGET flags= */
static long run_bind(struct call *c)
{
	struct object *o = object_of(c, 1), *target = object_of(c, 2);
	bool null = c->cnt > 2 && strcmp(c->words[2], "null") == 0;

	if (!o || !o->fid || (!null && (!target || !target->fid)))
		return RESULT_ABSENT;
	return o->fid->ops->bind(o->fid, null ? NULL : target->fid, word_value(c, "flags", 0));
}

static long run_enable(struct call *c)
{
	struct object *o = object_of(c, 1);
	long ret;

	if (!o || !o->fid)
		return RESULT_ABSENT;
	ret = fi_control(o->fid, FI_ENABLE, NULL);
	o->ready |= ret == 0;
	return ret;
}

static long run_close(struct call *c)
{
	struct object *o = object_of(c, 1);
	long ret;

	if (!o || !o->fid)
		return RESULT_ABSENT;
	ret = fi_close(o->fid);
	if (ret == 0)
		object_drop(o);
	return ret;
}

/* control OBJECT cmd= [value=]: the argument is room for 64 bytes that begin with the value */
static long run_control(struct call *c)
{
	struct object *o = object_of(c, 1);
	uint64_t arg[8] = { word_value(c, "value", 0) };
	int cmd = (int)word_value(c, "cmd", 0);
	long ret;

	if (!o || !o->fid)
		return RESULT_ABSENT;
	ret = fi_control(o->fid, cmd, word_text(c, "arg") ? NULL : arg);
	if (ret == 0 && (cmd == FI_GETOPSFLAG || cmd == FI_GETFIDFLAG))
		say(c, " value=%#llx", (unsigned long long)arg[0]);
	if (ret == 0 && cmd == FI_GETWAIT)
		say(c, " descriptor=%s", (int)arg[0] > 2 ? "there" : "none");
	if (ret == 0 && cmd == FI_GETWAITOBJ)
		say(c, " object=%d", (int)arg[0]);
	return ret;
}

/* setopt OBJECT opt= value= len= [level=] */
static long run_setopt(struct call *c)
{
	struct object *o = object_of(c, 1);
	uint64_t value[4] = { word_value(c, "value", 0) };

	if (!o || !o->fid)
		return RESULT_ABSENT;
	return fi_setopt(o->fid, (int)word_value(c, "level", FI_OPT_ENDPOINT),
			 (int)word_value(c, "opt", 0), value,
			 word_value(c, "len", sizeof(size_t)));
}

/* getopt OBJECT opt= len= [level=] */
static long run_getopt(struct call *c)
{
	struct object *o = object_of(c, 1);
	size_t len = word_value(c, "len", sizeof(size_t));
	uint64_t value[4] = { 0 };
	long ret;

	if (!o || !o->fid)
		return RESULT_ABSENT;
	if (len > sizeof(value))
		return RESULT_WRONG;
	ret = fi_getopt(o->fid, (int)word_value(c, "level", FI_OPT_ENDPOINT),
			(int)word_value(c, "opt", 0), value, &len);
	if (ret == 0)
		say(c, " value=%llu len=%zu", (unsigned long long)value[0], len);
	return ret;
}

/* getname OBJECT len= */
static long run_getname(struct call *c)
{
	struct object *o = object_of(c, 1);
	size_t len = word_text(c, "buf") ? 0 : word_value(c, "len", 256);
	char name[512];
	long ret;

	if (!o || !o->fid)
		return RESULT_ABSENT;
	if (len > sizeof(name))
		return RESULT_WRONG;
	ret = fi_getname(o->fid, word_text(c, "buf") ? NULL : name, &len);
	say(c, " len=%s", len == 0 ? "0" : len <= 64 ? "small" : "large");
	return ret;
}

/* poll_add, poll_del POLLSET OBJECT flags= */
static long poll_change(struct call *c, bool add)
{
	struct object *o = object_of(c, 1), *target = object_of(c, 2);
	struct fid_poll *set = o ? (struct fid_poll *)o->fid : NULL;
	uint64_t flags = word_value(c, "flags", 0);

	if (!set || !target || !target->fid)
		return RESULT_ABSENT;
	return add ? set->ops->poll_add(set, target->fid, flags)
		   : set->ops->poll_del(set, target->fid, flags);
}

static long run_poll_add(struct call *c)
{
	return poll_change(c, true);
}

static long run_poll_del(struct call *c)
{
	return poll_change(c, false);
}

/* trywait FABRIC OBJECT... */
static long run_trywait(struct call *c)
{
	struct object *o = object_of(c, 1), *waited;
	struct fid *fids[8];
	int cnt = 0;

	if (!o || !o->fid)
		return RESULT_ABSENT;
	for (int i = 2; i < c->cnt && cnt < 8; i++) {
		waited = object_of(c, i);
		if (!waited || !waited->fid || (!waited->ready && !word_text(c, "raw")))
			return RESULT_ABSENT;
		fids[cnt++] = waited->fid;
	}
	return fi_trywait((struct fid_fabric *)o->fid, fids, cnt);
}

/* valid EP kind=plain|fetch|compare type= op=; query DOMAIN type= op= flags= */
static long run_valid(struct call *c)
{
	struct object *o = object_of(c, 1);
	struct fid_ep *ep = o ? (struct fid_ep *)o->fid : NULL;
	enum fi_datatype type = (enum fi_datatype)word_value(c, "type", 0);
	enum fi_op op = (enum fi_op)word_value(c, "op", 0);
	const char *kind = word_text(c, "kind");
	size_t cnt = 0;
	long ret;

	if (!ep || !kind)
		return RESULT_ABSENT;
	ret = *kind == 'p'   ? fi_atomicvalid(ep, type, op, &cnt)
	      : *kind == 'f' ? fi_fetch_atomicvalid(ep, type, op, &cnt)
			     : fi_compare_atomicvalid(ep, type, op, &cnt);
	if (ret == 0)
		say(c, " cnt=%s", cnt ? "there" : "0");
	return ret;
}

static long run_query(struct call *c)
{
	struct object *o = object_of(c, 1);
	struct fi_atomic_attr attr = { 0 };
	long ret;

	if (!o || !o->fid)
		return RESULT_ABSENT;
	ret = fi_query_atomic(
		(struct fid_domain *)o->fid, (enum fi_datatype)word_value(c, "type", 0),
		(enum fi_op)word_value(c, "op", 0), &attr, word_value(c, "flags", 0));
	if (ret == 0)
		say(c, " cnt=%s size=%zu", attr.count ? "there" : "0", attr.size);
	return ret;
}

/* left EP of=tx|rx */
static long run_left(struct call *c)
{
	struct object *o = object_of(c, 1);
	struct fid_ep *ep = o ? (struct fid_ep *)o->fid : NULL;
	const char *of = word_text(c, "of");
	ssize_t left;

	if (!ep || !of)
		return RESULT_ABSENT;
	left = *of == 't' ? ep->ops->tx_size_left(ep) : ep->ops->rx_size_left(ep);
	return left > 0 ? 1 : (long)left;
}

const struct verb control_verbs[] = {
	{ "bind", run_bind },	      { "enable", run_enable },
	{ "close", run_close },	      { "control", run_control },
	{ "setopt", run_setopt },     { "getopt", run_getopt },
	{ "getname", run_getname },   { "poll_add", run_poll_add },
	{ "poll_del", run_poll_del }, { "trywait", run_trywait },
	{ "valid", run_valid },	      { "query", run_query },
	{ "left", run_left },	      { NULL, NULL },
};
