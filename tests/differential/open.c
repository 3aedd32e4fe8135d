/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs that open objects: VERB NAME PARENT [INFO] FIELD=... With attr=null the attributes are
 * a NULL pointer.
 */
#include <string.h>
#include "script.h"

#define FID(type, o) ((struct type *)(o)->fid)

/* What a call has put at @object, or its error. */
static long opened(struct call *c, int ret, void *object)
{
	struct object *o = ret == 0 ? object_new(c->words[1], *(struct fid **)object) : NULL;

	if (o)
		o->ready = word_value(c, "wait", FI_WAIT_NONE) != FI_WAIT_NONE;
	return ret == 0 && !o ? RESULT_WRONG : ret;
}

static bool attr_null(const struct call *c)
{
	const char *text = word_text(c, "attr");

	return text && strcmp(text, "null") == 0;
}

/* The parent, unless the name is taken or the parent absent. */
static struct object *parent_of(const struct call *c)
{
	struct object *parent = object_of(c, 2);

	return parent && parent->fid && !object_of(c, 1) ? parent : NULL;
}

static long run_fabric(struct call *c)
{
	struct object *inf = object_of(c, 2);
	struct fid_fabric *fabric = NULL;

	if (!inf || object_of(c, 1))
		return RESULT_ABSENT;
	return opened(c, fi_fabric(inf->info->fabric_attr, &fabric, NULL), &fabric);
}

static long run_domain(struct call *c)
{
	struct object *parent = parent_of(c), *inf = object_of(c, 3);
	struct fid_domain *domain = NULL;

	if (!parent || !inf)
		return RESULT_ABSENT;
	return opened(c, fi_domain(FID(fid_fabric, parent), inf->info, &domain, NULL), &domain);
}

/* The wait set that set= names, or NULL. */
static struct fid_wait *set_of(const struct call *c)
{
	struct object *set = word_text(c, "set") ? object_find(word_text(c, "set")) : NULL;

	return set ? FID(fid_wait, set) : NULL;
}

static bool set_there(const struct call *c)
{
	return !word_text(c, "set") || set_of(c);
}

static long run_eq(struct call *c)
{
	struct object *parent = parent_of(c);
	struct fi_eq_attr attr = { .size = word_value(c, "size", 0),
				   .flags = word_value(c, "flags", 0),
				   .wait_obj = (enum fi_wait_obj)word_value(c, "wait", 0),
				   .wait_set = set_of(c) };
	struct fid_eq *eq = NULL;

	if (!parent || !set_there(c))
		return RESULT_ABSENT;
	return opened(c, fi_eq_open(FID(fid_fabric, parent), &attr, &eq, NULL), &eq);
}

static long run_av(struct call *c)
{
	struct object *parent = parent_of(c);
	struct fi_av_attr attr = { .type = (enum fi_av_type)word_value(c, "type", 0),
				   .count = word_value(c, "count", 0),
				   .rx_ctx_bits = (int)word_value(c, "rx_ctx_bits", 0),
				   .name = word_text(c, "name"),
				   .flags = word_value(c, "flags", 0) };
	struct fid_av *av = NULL;
	long ret;

	if (!parent)
		return RESULT_ABSENT;
	ret = opened(c, fi_av_open(FID(fid_domain, parent), &attr, &av, NULL), &av);
	if (ret == 0)
		say(c, " type=%d", attr.type);
	return ret;
}

static long run_cq(struct call *c)
{
	struct object *parent = parent_of(c);
	struct fi_cq_attr attr = {
		.size = word_value(c, "size", 0),
		.flags = word_value(c, "flags", 0),
		.format = (enum fi_cq_format)word_value(c, "format", 0),
		.wait_obj = (enum fi_wait_obj)word_value(c, "wait", 0),
		.wait_cond = (enum fi_cq_wait_cond)word_value(c, "cond", 0),
		.wait_set = set_of(c),
	};
	struct fid_cq *cq = NULL;
	long ret;

	if (!parent || !set_there(c))
		return RESULT_ABSENT;
	ret = fi_cq_open(FID(fid_domain, parent), attr_null(c) ? NULL : &attr, &cq, NULL);
	ret = opened(c, (int)ret, &cq);
	if (ret == 0) {
		object_find(c->words[1])->format = (enum fi_cq_format)word_value(c, "format", 0);
		object_find(c->words[1])->source = word_value(c, "source", 0);
		say(c, " size=%s", attr.size ? "there" : "0");
	}
	return ret;
}

static long run_cntr(struct call *c)
{
	struct object *parent = parent_of(c);
	struct fi_cntr_attr attr = {
		.events = (enum fi_cntr_events)word_value(c, "events", 0),
		.wait_obj = (enum fi_wait_obj)word_value(c, "wait", 0),
		.wait_set = set_of(c),
		.flags = word_value(c, "flags", 0),
	};
	struct fid_cntr *cntr = NULL;

	if (!parent || !set_there(c))
		return RESULT_ABSENT;
	return opened(
		c,
		fi_cntr_open(FID(fid_domain, parent), attr_null(c) ? NULL : &attr, &cntr, NULL),
		&cntr);
}

static long run_waitset(struct call *c)
{
	struct object *parent = parent_of(c);
	struct fi_wait_attr attr = { .wait_obj = (enum fi_wait_obj)word_value(c, "wait", 0),
				     .flags = word_value(c, "flags", 0) };
	struct fid_wait *set = NULL;
	int ret;

	if (!parent)
		return RESULT_ABSENT;
	ret = FID(fid_fabric, parent)->ops->wait_open(FID(fid_fabric, parent), &attr, &set);
	return opened(c, ret, &set);
}

static long run_pollset(struct call *c)
{
	struct object *parent = parent_of(c);
	struct fi_poll_attr attr = { .flags = word_value(c, "flags", 0) };
	struct fid_poll *set = NULL;
	int ret;

	if (!parent)
		return RESULT_ABSENT;
	ret = FID(fid_domain, parent)
		      ->ops->poll_open(FID(fid_domain, parent), attr_null(c) ? NULL : &attr,
				       &set);
	return opened(c, ret, &set);
}

/* ep, sep NAME DOMAIN INFO */
static long open_endpoint(struct call *c, bool scalable)
{
	struct object *parent = parent_of(c), *inf = object_of(c, 3);
	struct fid_ep *ep = NULL;
	long ret;

	if (!parent || !inf)
		return RESULT_ABSENT;
	ret = scalable ? fi_scalable_ep(FID(fid_domain, parent), inf->info, &ep, NULL)
		       : fi_endpoint(FID(fid_domain, parent), inf->info, &ep, NULL);
	ret = opened(c, (int)ret, &ep);
	if (ret == 0)
		object_find(c->words[1])->info = inf->info;
	return ret;
}

static long run_ep(struct call *c)
{
	return open_endpoint(c, false);
}

static long run_sep(struct call *c)
{
	return open_endpoint(c, true);
}

/* tx, rx NAME SEP idx= [attr=null] */
static long run_tx(struct call *c)
{
	struct object *parent = parent_of(c);
	struct fi_tx_attr attr;
	struct fid_ep *ep = NULL;
	int idx = (int)word_value(c, "idx", 0);

	if (!parent)
		return RESULT_ABSENT;
	attr = *parent->info->tx_attr;
	return opened(
		c,
		fi_tx_context(FID(fid_ep, parent), idx, attr_null(c) ? NULL : &attr, &ep, NULL),
		&ep);
}

static long run_rx(struct call *c)
{
	struct object *parent = parent_of(c);
	struct fi_rx_attr attr;
	struct fid_ep *ep = NULL;
	int idx = (int)word_value(c, "idx", 0);

	if (!parent)
		return RESULT_ABSENT;
	attr = *parent->info->rx_attr;
	return opened(
		c,
		fi_rx_context(FID(fid_ep, parent), idx, attr_null(c) ? NULL : &attr, &ep, NULL),
		&ep);
}

/* stx, srx NAME DOMAIN INFO [attr=null] */
static long run_stx(struct call *c)
{
	struct object *parent = parent_of(c), *inf = object_of(c, 3);
	struct fid_stx *stx = NULL;

	if (!parent || !inf)
		return RESULT_ABSENT;
	return opened(c,
		      fi_stx_context(FID(fid_domain, parent),
				     attr_null(c) ? NULL : inf->info->tx_attr, &stx, NULL),
		      &stx);
}

static long run_srx(struct call *c)
{
	struct object *parent = parent_of(c), *inf = object_of(c, 3);
	struct fid_ep *srx = NULL;
	long ret;

	if (!parent || !inf)
		return RESULT_ABSENT;
	ret = opened(c,
		     fi_srx_context(FID(fid_domain, parent),
				    attr_null(c) ? NULL : inf->info->rx_attr, &srx, NULL),
		     &srx);
	if (ret == 0) /* receives may be posted at once */
		object_find(c->words[1])->ready = true;
	return ret;
}

/* mr NAME DOMAIN INFO region= at= len= access= key= flags= [base=null] */
static long run_mr(struct call *c)
{
	struct object *parent = parent_of(c), *inf = object_of(c, 3), *o;
	unsigned char *base = regions[word_value(c, "region", 0) % REGIONS];
	struct fid_mr *mr = NULL;
	long ret;

	if (!parent || !inf)
		return RESULT_ABSENT;
	base += word_value(c, "at", 0) % ARENA_LEN;
	if (word_text(c, "base"))
		base = NULL;
	ret = fi_mr_reg(FID(fid_domain, parent), base, word_value(c, "len", 4096),
			word_value(c, "access", 0), word_value(c, "offset", 0),
			word_value(c, "key", 0), word_value(c, "flags", 0), &mr, NULL);
	ret = opened(c, (int)ret, &mr);
	if (ret == 0) {
		o = object_find(c->words[1]);
		o->base = base;
		o->mr_mode = (uint64_t)inf->info->domain_attr->mr_mode;
		if (!(o->mr_mode & (FI_MR_BASIC | FI_MR_PROV_KEY)))
			say(c, " key=%#llx", (unsigned long long)fi_mr_key(mr));
	}
	return ret;
}

/* alias NAME EP flags= */
static long run_alias(struct call *c)
{
	struct object *parent = parent_of(c);
	struct fi_info *info = parent ? parent->info : NULL;
	struct fid_ep *ep = NULL;
	long ret;

	if (!parent)
		return RESULT_ABSENT;
	ret = opened(c, fi_ep_alias(FID(fid_ep, parent), &ep, word_value(c, "flags", 0)), &ep);
	if (ret == 0)
		object_find(c->words[1])->info = info;
	return ret;
}

const struct verb open_verbs[] = {
	{ "fabric", run_fabric },
	{ "domain", run_domain },
	{ "eq", run_eq },
	{ "av", run_av },
	{ "cq", run_cq },
	{ "cntr", run_cntr },
	{ "waitset", run_waitset },
	{ "pollset", run_pollset },
	{ "ep", run_ep },
	{ "sep", run_sep },
	{ "tx", run_tx },
	{ "rx", run_rx },
	{ "stx", run_stx },
	{ "srx", run_srx },
	{ "mr", run_mr },
	{ "alias", run_alias },
	{ NULL, NULL },
};
