/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs of remote memory and of atomics: VERB EP MR FIELD=... with to=, ctx=, len= or cnt=
 * (elements), at= (offset in the region), type=, op=, data=, flags=, vectors= (ranges).
 * Operands lie at the beginning of the context's buffer, results behind it at 4 KiB.
 */
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "script.h"

#define RESULT_AT  4096
#define COMPARE_AT 8192

/* An access as a line says it. */
struct access {
	struct fid_ep *ep;
	fi_addr_t addr;
	unsigned ctx;
	void *context;
	unsigned char *buf;
	unsigned char *result;
	unsigned char *compare;
	size_t len;
	size_t cnt;
	uint64_t at;
	uint64_t key;
	uint64_t data;
	uint64_t flags;
	enum fi_datatype type;
	enum fi_op op;
};

static bool access_read(struct call *c, struct access *a)
{
	struct object *mr = object_of(c, 2);
	struct fid_ep *ep = endpoint_of(c);
	fi_addr_t addr;

	if (!ep || !mr || !mr->fid || !address_of(c, &addr) ||
	    !trigger_read(c, (unsigned)word_value(c, "ctx", 0) % ARENAS))
		return false;
	*a = (struct access){
		.ep = ep,
		.addr = addr,
		.ctx = (unsigned)word_value(c, "ctx", 0) % ARENAS,
		.len = word_value(c, "len", 8),
		.cnt = word_value(c, "cnt", 1),
		.at = word_value(c, "at", 0),
		.key = fi_mr_key((struct fid_mr *)mr->fid) + word_value(c, "wrong", 0),
		.data = word_value(c, "data", 0),
		.flags = word_value(c, "flags", 0),
		.type = (enum fi_datatype)word_value(c, "type", FI_UINT64),
		.op = (enum fi_op)word_value(c, "op", FI_SUM),
	};
	a->context = &stage.contexts[a->ctx];
	a->buf = arenas[a->ctx];
	a->result = a->buf + RESULT_AT;
	a->compare = a->buf + COMPARE_AT;
	if (mr->mr_mode & (FI_MR_BASIC | FI_MR_VIRT_ADDR))
		a->at += (uint64_t)(uintptr_t)mr->base;
	if (a->len > ARENA_LEN)
		a->len = ARENA_LEN;
	return true;
}

static struct fi_msg_rma rma_of(struct access *a, struct iovec *iov, struct fi_rma_iov *rma)
{
	*iov = (struct iovec){ a->buf, a->len };
	*rma = (struct fi_rma_iov){ a->at, a->len, a->key };
	return (struct fi_msg_rma){
		.msg_iov = iov,
		.iov_count = a->cnt,
		.addr = a->addr,
		.rma_iov = rma,
		.rma_iov_count = 1,
		.context = a->context,
		.data = a->data,
	};
}

static long post_rma(struct call *c)
{
	const char *verb = c->words[0];
	struct iovec iov;
	struct fi_rma_iov rma;
	struct fi_msg_rma m;
	struct access a;

	if (!access_read(c, &a))
		return RESULT_ABSENT;
	m = rma_of(&a, &iov, &rma);
	if (strcmp(verb, "read") == 0)
		return fi_read(a.ep, a.buf, a.len, NULL, a.addr, a.at, a.key, a.context);
	if (strcmp(verb, "readmsg") == 0)
		return fi_readmsg(a.ep, &m, a.flags);
	if (strcmp(verb, "write") == 0)
		return fi_write(a.ep, a.buf, a.len, NULL, a.addr, a.at, a.key, a.context);
	if (strcmp(verb, "writemsg") == 0)
		return fi_writemsg(a.ep, &m, a.flags);
	if (strcmp(verb, "writedata") == 0)
		return fi_writedata(a.ep, a.buf, a.len, NULL, a.data, a.addr, a.at, a.key,
				    a.context);
	if (strcmp(verb, "inject_write") == 0)
		return fi_inject_write(a.ep, a.buf, a.len, a.addr, a.at, a.key);
	return fi_inject_writedata(a.ep, a.buf, a.len, a.data, a.addr, a.at, a.key);
}

static long post_atomic(struct call *c)
{
	const char *verb = c->words[0];
	struct access a;

	if (!access_read(c, &a))
		return RESULT_ABSENT;
	if (a.cnt > 64)
		return RESULT_WRONG;
	if (strcmp(verb, "atomic") == 0)
		return fi_atomic(a.ep, a.buf, a.cnt, NULL, a.addr, a.at, a.key, a.type, a.op,
				 a.context);
	if (strcmp(verb, "inject_atomic") == 0)
		return fi_inject_atomic(a.ep, a.buf, a.cnt, a.addr, a.at, a.key, a.type, a.op);
	if (strcmp(verb, "fetch") == 0)
		return fi_fetch_atomic(a.ep, a.buf, a.cnt, NULL, a.result, NULL, a.addr, a.at,
				       a.key, a.type, a.op, a.context);
	return fi_compare_atomic(a.ep, a.buf, a.cnt, NULL, a.compare, NULL, a.result, NULL,
				 a.addr, a.at, a.key, a.type, a.op, a.context);
}

/* Reads are cleared before, writes filled by the context's number. */
static long run_access(struct call *c)
{
	unsigned ctx = (unsigned)word_value(c, "ctx", 0) % ARENAS;
	bool reads = strncmp(c->words[0], "read", 4) == 0;
	size_t len = word_value(c, "len", 8);
	long ret;

	len = len < ARENA_LEN ? len : ARENA_LEN;
	memset(arenas[ctx], reads ? 0 : (int)(ctx + 1), len);
	ret = verb_transfer(c, post_rma);
	if (ret == 0 && !strstr(c->words[0], "inject")) {
		stage.under_way[ctx] = true;
		stage.incoming[ctx] = reads ? len : 0;
	}
	return ret;
}

static long run_atomic(struct call *c)
{
	unsigned ctx = (unsigned)word_value(c, "ctx", 0) % ARENAS;
	bool fetches = strcmp(c->words[0], "fetch") == 0 || strcmp(c->words[0], "compare") == 0;
	long ret;

	memset(arenas[ctx], (int)(ctx + 1), RESULT_AT);
	memset(arenas[ctx] + RESULT_AT, 0, COMPARE_AT);
	ret = verb_transfer(c, post_atomic);
	if (ret == 0 && !strstr(c->words[0], "inject")) {
		stage.under_way[ctx] = true;
		stage.incoming[ctx] = fetches ? COMPARE_AT : 0;
	}
	return ret;
}

/* region NUMBER: a hash of what is in it */
static long run_region(struct call *c)
{
	unsigned idx = c->cnt > 1 ? (unsigned)word_number(c->words[1]) % REGIONS : 0;

	say(c, " hash=%#llx", (unsigned long long)bytes_hash(regions[idx], ARENA_LEN));
	return 0;
}

const struct verb access_verbs[] = {
	{ "read", run_access },
	{ "readmsg", run_access },
	{ "write", run_access },
	{ "writemsg", run_access },
	{ "writedata", run_access },
	{ "inject_write", run_access },
	{ "inject_writedata", run_access },
	{ "atomic", run_atomic },
	{ "inject_atomic", run_atomic },
	{ "fetch", run_atomic },
	{ "compare", run_atomic },
	{ "region", run_region },
	{ NULL, NULL },
};
