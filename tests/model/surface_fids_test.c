/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What all objects have: fi_close, fi_bind, fi_control, fi_open_ops, fi_tostr, fi_set_ops. For each
 * kind of object each of them works, or is refused with -FI_ENOSYS. See surface.h.
 *
 * usage: surface_fids_test PROVIDER
 */
#include <rdma/fi_ext.h>
#include <weft/routes.h>
#include "surface.h"

/* A kind of object: its slots, how one is opened, and what it is in, or NULL. */
struct kind {
	const char *name;
	const struct slot *slots;
	struct fid *(*open)(struct surface *s);
	struct fid *(*inside)(struct surface *s);
};

static const struct kind *kind;
static struct fid_ep *sep;	 /* endpoint whose contexts are opened */
static struct fid_av_set *alone; /* near is its only member */
static uint64_t next_key;
static char name[128];
static size_t name_len;

/* Slots that most kinds do not have */

static ssize_t call_bind(struct subject *u)
{
	return u->fid->ops->bind(u->fid, &u->s->eq->fid, 0);
}

static ssize_t call_control(struct subject *u)
{
	uint64_t arg = 0;

	return fi_control(u->fid, FI_GETFIDFLAG, &arg);
}

static ssize_t call_ops_open(struct subject *u)
{
	void *ops;

	return fi_open_ops(u->fid, WEFT_ROUTES_OPS, 0, &ops, NULL);
}

static ssize_t call_tostr(struct subject *u)
{
	char text[64];

	return u->fid->ops->tostr(u->fid, text, sizeof(text));
}

static ssize_t call_ops_set(struct subject *u)
{
	struct fi_hmem_override_ops ops = { .size = sizeof(ops) };

	return fi_set_ops(u->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &ops, NULL);
}

/* Another one of its kind comes and goes; what they are in can't go before them. */
static ssize_t call_close(struct subject *u)
{
	struct fid *other = kind->open(u->s);

	if (kind->inside)
		assert_int_equal(fi_close(kind->inside(u->s)), -FI_EBUSY);
	return fi_close(other);
}

#define CLOSE	   SLOT(fi_ops, close, 0, call_close, NULL)
#define NO_BIND	   SLOT(fi_ops, bind, DOES_NOT, call_bind, NULL)
#define NO_CONTROL SLOT(fi_ops, control, DOES_NOT, call_control, NULL)
#define NO_OPS	   SLOT(fi_ops, ops_open, DOES_NOT, call_ops_open, NULL)
#define NO_TOSTR   SLOT(fi_ops, tostr, DOES_NOT, call_tostr, NULL)
#define NO_SET	   SLOT(fi_ops, ops_set, DOES_NOT, call_ops_set, NULL)

static const struct slot plain_slots[] = { CLOSE, NO_BIND, NO_CONTROL, NO_OPS, NO_TOSTR, NO_SET };
ALL_SLOTS(fi_ops, plain_slots);

/* Fabrics and the log */

static struct fid *open_fabric(struct surface *s)
{
	struct fid_fabric *fabric;

	assert_int_equal(fi_fabric(s->info->fabric_attr, &fabric, NULL), 0);
	return &fabric->fid;
}

static int log_lines;

static int hears_all(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, uint64_t flags)
{
	return 1;
}

static void hear(const struct fi_provider *prov, enum fi_log_level level,
		 enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
	log_lines++;
}

static struct fid *open_log(struct surface *s)
{
	struct fid *fid;

	assert_int_equal(fi_open(SURFACE_VERSION, "logging", NULL, 0, 0, &fid, NULL), 0);
	return fid;
}

static struct fi_ops_log hearing_ops = { .size = sizeof(hearing_ops),
					 .enabled = hears_all,
					 .log = hear };
static struct fid_logging hearing = { .fid.fclass = FI_CLASS_LOG, .ops = &hearing_ops };

static ssize_t call_bind_log(struct subject *u)
{
	return fi_import_fid(u->fid, &hearing.fid, 0);
}

static void is_heard(struct subject *u, const struct slot *slot)
{
	struct fi_info *hints = surface_hints(), *info;

	hints->caps = FI_MULTICAST; /* refused with a reason */
	assert_int_equal(fi_getinfo(SURFACE_VERSION, NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
	assert_true(log_lines > 0);
	surface_table("fi_ops of an imported log", hearing.fid.ops, sizeof(struct fi_ops));
	assert_int_equal(fi_close(&hearing.fid), 0);
}

static const struct slot log_slots[] = {
	CLOSE,	SLOT(fi_ops, bind, 0, call_bind_log, is_heard), NO_CONTROL, NO_OPS, NO_TOSTR,
	NO_SET,
};
ALL_SLOTS(fi_ops, log_slots);

/* Domains */

static struct fid *open_domain(struct surface *s)
{
	struct fid_domain *domain;

	assert_int_equal(fi_domain(s->fabric, s->info, &domain, NULL), 0);
	return &domain->fid;
}

static ssize_t call_bind_domain(struct subject *u)
{
	struct fid_domain *domain = (struct fid_domain *)u->fid;

	assert_int_equal(fi_domain_bind(domain, &u->s->near.cq->fid, 0), -FI_EINVAL);
	return fi_domain_bind(domain, &u->s->eq->fid, 0);
}

static void has_event(struct surface *s, uint32_t what, struct fid *fid, struct fid_cq *cq)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event;
	ssize_t ret;

	END_UNTIL((ret = fi_eq_read(s->eq, &event, &entry, sizeof(entry), 0)) != -FI_EAGAIN,
		  if (cq) fi_cq_read(cq, NULL, 0));
	assert_int_equal(ret, sizeof(entry));
	assert_int_equal(event, what);
	assert_ptr_equal(entry.fid, fid);
}

/* An object without a queue of its own reports events in the domain's. */
static void is_told_of_domain(struct subject *u, const struct slot *slot)
{
	struct fid_domain *domain = (struct fid_domain *)u->fid;
	struct fi_av_attr av_attr = { .flags = FI_EVENT };
	struct fi_av_set_attr set_attr = { .flags = FI_UNIVERSE };
	struct fid_av_set *set;
	struct fid_mc *mc;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;

	assert_int_equal(fi_domain_bind(domain, &u->s->eq->fid, 0), 0); /* again */
	assert_int_equal(fi_av_open(domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_cq_open(domain, NULL, &cq, NULL), 0);
	assert_int_equal(fi_endpoint(domain, u->s->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	name_len = sizeof(name);
	assert_int_equal(fi_getname(&ep->fid, name, &name_len), 0);
	assert_int_equal(fi_av_insert(av, name, 1, NULL, 0, NULL), 0);
	has_event(u->s, FI_AV_COMPLETE, &av->fid, cq);
	assert_int_equal(fi_av_set(av, &set_attr, &set, NULL), 0);
	assert_int_equal(fi_join_collective(ep, FI_ADDR_NOTAVAIL, set, 0, &mc, NULL), 0);
	has_event(u->s, FI_JOIN_COMPLETE, &mc->fid, cq);
	assert_int_equal(fi_close(&mc->fid), 0);
	assert_int_equal(fi_close(&set->fid), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
}

static ssize_t call_map_raw(struct subject *u)
{
	struct fid_domain *domain = (struct fid_domain *)u->fid;
	uint64_t base, key = 0;
	uint8_t raw[64];
	size_t len = sizeof(raw);
	int ret;

	assert_int_equal(fi_mr_raw_attr(u->s->mr, &base, raw, &len, 0), 0);
	ret = fi_mr_map_raw(domain, base, raw, len, &key, 0);
	if (ret)
		return ret;
	assert_int_equal(key, SURFACE_KEY);
	return fi_mr_unmap_key(domain, key);
}

static const struct slot domain_slots[] = {
	CLOSE,
	SLOT(fi_ops, bind, 0, call_bind_domain, is_told_of_domain),
	SLOT(fi_ops, control, 0, call_map_raw, NULL),
	NO_OPS,
	NO_TOSTR,
	NO_SET,
};
ALL_SLOTS(fi_ops, domain_slots);

/* Endpoints, their aliases and contexts */

static struct fid_ep *ep_at(struct subject *u)
{
	return (struct fid_ep *)u->fid;
}

static struct fid *open_ep(struct surface *s)
{
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(s->domain, s->info, &ep, NULL), 0);
	return &ep->fid;
}

static struct fid *in_domain(struct surface *s)
{
	return &s->domain->fid;
}

static ssize_t call_bind_ep(struct subject *u)
{
	assert_int_equal(fi_enable(ep_at(u)), -FI_ENOAV);
	assert_int_equal(fi_ep_bind(ep_at(u), &u->s->av->fid, 0), 0);
	return fi_ep_bind(ep_at(u), &u->s->near.cq->fid, FI_TRANSMIT | FI_RECV);
}

static void enables(struct subject *u, const struct slot *slot)
{
	assert_int_equal(fi_enable(ep_at(u)), 0);
}

static uint64_t direction_of(const struct subject *u)
{
	return u->fid->fclass == FI_CLASS_RX_CTX || u->fid->fclass == FI_CLASS_SRX_CTX
		       ? FI_RECV
		       : FI_TRANSMIT;
}

static ssize_t call_set_flags(struct subject *u)
{
	uint64_t flags = direction_of(u) | FI_COMPLETION;

	return fi_control(u->fid, FI_SETOPSFLAG, &flags);
}

static void are_set(struct subject *u, const struct slot *slot)
{
	uint64_t flags = direction_of(u);

	assert_int_equal(fi_control(u->fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, FI_COMPLETION);
}

static ssize_t call_routes(struct subject *u)
{
	return fi_open_ops(u->fid, WEFT_ROUTES_OPS, 0, &u->arg, NULL);
}

static ssize_t call_list(struct subject *u)
{
	struct weft_route routes[WEFT_ROUTES_MAX];
	const struct weft_routes_ops *ops = u->arg;

	u->cnt = WEFT_ROUTES_MAX;
	return ops->list(u->fid, routes, &u->cnt);
}

static void are_listed(struct subject *u, const struct slot *slot)
{
	assert_true(u->cnt > 0);
}

static const struct slot routes_slots[] = { SLOT(weft_routes_ops, list, 0, call_list,
						 are_listed) };
ALL_SLOTS(weft_routes_ops, routes_slots);

static void has_routes(struct subject *u, const struct slot *slot)
{
	void *ops;

	surface_walk(u, "weft_routes_ops", u->arg, routes_slots, COUNT_OF(routes_slots));
	assert_int_equal(fi_open_ops(u->fid, "no such table", 0, &ops, NULL), -FI_ENOSYS);
}

#define FLAGS  SLOT(fi_ops, control, 0, call_set_flags, are_set)
#define ROUTES SLOT(fi_ops, ops_open, 0, call_routes, has_routes)

static const struct slot ep_fid_slots[] = {
	CLOSE, SLOT(fi_ops, bind, 0, call_bind_ep, enables), FLAGS, ROUTES, NO_TOSTR, NO_SET,
};
ALL_SLOTS(fi_ops, ep_fid_slots);

static struct fid *open_alias(struct surface *s)
{
	struct fid_ep *alias = NULL;

	assert_int_equal(fi_ep_alias(s->near.ep, &alias, FI_TRANSMIT), 0);
	return &alias->fid;
}

static struct fid *in_near(struct surface *s)
{
	return &s->near.ep->fid;
}

/* What is bound to one is bound to the endpoint. */
static const struct slot alias_slots[] = { CLOSE,    SLOT(fi_ops, bind, 0, call_bind, NULL),
					   FLAGS,    ROUTES,
					   NO_TOSTR, NO_SET };
ALL_SLOTS(fi_ops, alias_slots);

static struct fid *open_sep(struct surface *s)
{
	struct fi_info *info = fi_dupinfo(s->info);
	struct fid_ep *ep;

	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 2;
	assert_int_equal(fi_scalable_ep(s->domain, info, &ep, NULL), 0);
	fi_freeinfo(info);
	return &ep->fid;
}

static ssize_t call_bind_sep(struct subject *u)
{
	assert_int_equal(fi_enable(ep_at(u)), -FI_ENOAV);
	return fi_scalable_ep_bind(ep_at(u), &u->s->av->fid, 0);
}

static const struct slot sep_slots[] = {
	CLOSE, SLOT(fi_ops, bind, 0, call_bind_sep, enables), FLAGS, ROUTES, NO_TOSTR, NO_SET,
};
ALL_SLOTS(fi_ops, sep_slots);

/* The first context that is not open. */
static struct fid *open_tx(struct surface *s)
{
	struct fid_ep *ctx;

	if (fi_tx_context(sep, 0, NULL, &ctx, NULL))
		assert_int_equal(fi_tx_context(sep, 1, NULL, &ctx, NULL), 0);
	return &ctx->fid;
}

static struct fid *open_rx(struct surface *s)
{
	struct fid_ep *ctx;

	if (fi_rx_context(sep, 0, NULL, &ctx, NULL))
		assert_int_equal(fi_rx_context(sep, 1, NULL, &ctx, NULL), 0);
	return &ctx->fid;
}

static struct fid *in_sep(struct surface *s)
{
	return &sep->fid;
}

static ssize_t call_bind_ctx(struct subject *u)
{
	return fi_ep_bind(ep_at(u), &u->s->near.cq->fid, direction_of(u));
}

static const struct slot ctx_slots[] = {
	CLOSE, SLOT(fi_ops, bind, 0, call_bind_ctx, enables), FLAGS, NO_OPS, NO_TOSTR, NO_SET,
};
ALL_SLOTS(fi_ops, ctx_slots);

static struct fid *open_srx(struct surface *s)
{
	struct fid_ep *srx;

	assert_int_equal(fi_srx_context(s->domain, s->info->rx_attr, &srx, NULL), 0);
	return &srx->fid;
}

static struct fid *open_stx(struct surface *s)
{
	struct fid_stx *stx;

	assert_int_equal(fi_stx_context(s->domain, s->info->tx_attr, &stx, NULL), 0);
	return &stx->fid;
}

static struct fid *open_cq(struct surface *s)
{
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(s->domain, NULL, &cq, NULL), 0);
	return &cq->fid;
}

static ssize_t call_bind_srx(struct subject *u)
{
	u->opened = open_cq(u->s);
	return fi_ep_bind(ep_at(u), u->opened, FI_RECV);
}

static void is_used(struct subject *u, const struct slot *slot)
{
	assert_int_equal(fi_close(u->opened), -FI_EBUSY);
}

static const struct slot srx_slots[] = {
	CLOSE, SLOT(fi_ops, bind, 0, call_bind_srx, is_used), FLAGS, NO_OPS, NO_TOSTR, NO_SET,
};
ALL_SLOTS(fi_ops, srx_slots);

/* Queues, counters, and ways to wait */

static struct fid *open_cntr(struct surface *s)
{
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(s->domain, NULL, &cntr, NULL), 0);
	return &cntr->fid;
}

static struct fid *open_eq(struct surface *s)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_eq *eq;

	assert_int_equal(fi_eq_open(s->fabric, &attr, &eq, NULL), 0);
	return &eq->fid;
}

static struct fid *open_wait(struct surface *s)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_YIELD };
	struct fid_wait *wait;

	assert_int_equal(fi_wait_open(s->fabric, &attr, &wait), 0);
	return &wait->fid;
}

static struct fid *open_poll(struct surface *s)
{
	struct fid_poll *poll;

	assert_int_equal(fi_poll_open(s->domain, NULL, &poll), 0);
	return &poll->fid;
}

static ssize_t call_wait_obj(struct subject *u)
{
	enum fi_wait_obj obj = FI_WAIT_POLLFD;
	int ret = fi_control(u->fid, FI_GETWAITOBJ, &obj);

	if (!ret)
		assert_int_equal(obj, u->fid->fclass == FI_CLASS_WAIT ? FI_WAIT_YIELD
								      : FI_WAIT_NONE);
	return ret;
}

static const struct slot waiting_slots[] = {
	CLOSE, NO_BIND, SLOT(fi_ops, control, 0, call_wait_obj, NULL), NO_OPS, NO_TOSTR, NO_SET,
};
ALL_SLOTS(fi_ops, waiting_slots);

/* Address vectors, sets and groups */

static struct fid *open_av(struct surface *s)
{
	struct fi_av_attr attr = { .flags = FI_EVENT };
	struct fid_av *av;

	assert_int_equal(fi_av_open(s->domain, &attr, &av, NULL), 0);
	return &av->fid;
}

static ssize_t call_bind_av(struct subject *u)
{
	struct fid_av *av = (struct fid_av *)u->fid;

	name_len = sizeof(name);
	assert_int_equal(fi_getname(&u->s->far.ep->fid, name, &name_len), 0);
	assert_int_equal(fi_av_insert(av, name, 1, NULL, 0, NULL), -FI_ENOEQ);
	return fi_av_bind(av, &u->s->eq->fid, 0);
}

static void is_told_of_av(struct subject *u, const struct slot *slot)
{
	struct fid_av *av = (struct fid_av *)u->fid;

	assert_int_equal(fi_av_insert(av, name, 1, NULL, 0, NULL), 0);
	has_event(u->s, FI_AV_COMPLETE, u->fid, NULL);
}

static const struct slot av_slots[] = {
	CLOSE,	    SLOT(fi_ops, bind, 0, call_bind_av, is_told_of_av),
	NO_CONTROL, NO_OPS,
	NO_TOSTR,   NO_SET,
};
ALL_SLOTS(fi_ops, av_slots);

static struct fid *open_set(struct surface *s)
{
	struct fi_av_set_attr attr = { .start_addr = s->near.addr,
				       .end_addr = s->near.addr,
				       .stride = 1 };
	struct fid_av_set *set;

	assert_int_equal(fi_av_set(s->av, &attr, &set, NULL), 0);
	return &set->fid;
}

static struct fid *in_av(struct surface *s)
{
	return &s->av->fid;
}

static struct fid *open_mc(struct surface *s)
{
	struct fid_mc *mc;

	assert_int_equal(fi_join_collective(s->near.ep, FI_ADDR_NOTAVAIL, alone, 0, &mc, NULL),
			 0);
	has_event(s, FI_JOIN_COMPLETE, &mc->fid, s->near.cq);
	return &mc->fid;
}

/* Memory */

static struct fid *open_mr(struct surface *s)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(s->domain, s->words, sizeof(s->words), FI_REMOTE_WRITE, 0,
				   ++next_key, 0, &mr, NULL),
			 0);
	return &mr->fid;
}

static ssize_t call_bind_mr(struct subject *u)
{
	u->opened = open_cntr(u->s);
	return fi_mr_bind((struct fid_mr *)u->fid, u->opened, FI_REMOTE_WRITE);
}

static void is_counted(struct subject *u, const struct slot *slot)
{
	struct fid_cntr *cntr = (struct fid_cntr *)u->opened;
	uint64_t key = fi_mr_key((struct fid_mr *)u->fid);

	assert_int_equal(
		fi_write(u->s->far.ep, u->out, 8, NULL, u->s->near.addr, 0, key, &u->context),
		0);
	surface_done(u->s->far.cq, &u->context);
	assert_int_equal(fi_cntr_wait(cntr, 1, 20000), 0);
}

static ssize_t call_raw_key(struct subject *u)
{
	struct fid_mr *mr = (struct fid_mr *)u->fid;
	uint64_t base = 1;
	uint8_t raw[64];
	size_t len = sizeof(raw);
	int ret = fi_mr_raw_attr(mr, &base, raw, &len, 0);

	if (!ret)
		assert_true(len == sizeof(uint64_t) && raw[0] == (fi_mr_key(mr) & 0xff) &&
			    !base);
	return ret;
}

static const struct slot mr_slots[] = {
	CLOSE,
	SLOT(fi_ops, bind, 0, call_bind_mr, is_counted),
	SLOT(fi_ops, control, 0, call_raw_key, NULL),
	NO_OPS,
	NO_TOSTR,
	NO_SET,
};
ALL_SLOTS(fi_ops, mr_slots);

static const struct kind kinds[] = {
	{ "log", log_slots, open_log, NULL },
	{ "fabric", plain_slots, open_fabric, NULL },
	{ "domain", domain_slots, open_domain, NULL },
	{ "endpoint", ep_fid_slots, open_ep, in_domain },
	{ "alias", alias_slots, open_alias, in_near },
	{ "scalable endpoint", sep_slots, open_sep, in_domain },
	{ "transmit context", ctx_slots, open_tx, in_sep },
	{ "receive context", ctx_slots, open_rx, in_sep },
	{ "shared receive context", srx_slots, open_srx, in_domain },
	{ "shared transmit context", plain_slots, open_stx, in_domain },
	{ "completion queue", waiting_slots, open_cq, in_domain },
	{ "counter", waiting_slots, open_cntr, in_domain },
	{ "event queue", waiting_slots, open_eq, NULL },
	{ "wait set", waiting_slots, open_wait, NULL },
	{ "poll set", plain_slots, open_poll, in_domain },
	{ "address vector", av_slots, open_av, in_domain },
	{ "address vector set", plain_slots, open_set, in_av },
	{ "group", plain_slots, open_mc, in_near },
	{ "memory region", mr_slots, open_mr, in_domain },
};

static void each_object_answers_what_all_have(void **state)
{
	struct surface s;
	struct subject u;
	struct fid *fid;

	next_key = SURFACE_KEY;
	surface_open(&s, surface_all(), FI_THREAD_SAFE);
	fid = open_sep(&s);
	sep = (struct fid_ep *)fid;
	fid = open_set(&s);
	alone = (struct fid_av_set *)fid;
	for (kind = kinds; kind < kinds + COUNT_OF(kinds); kind++) {
		surface_subject(&u, &s, kind->name, NULL, 0);
		u.fid = kind->open(&s);
		surface_walk(&u, "fi_ops", u.fid->ops, kind->slots, SLOTS_OF(fi_ops));
		assert_int_equal(fi_close(u.fid), 0);
		if (u.opened)
			assert_int_equal(fi_close(u.opened), 0);
	}
	assert_null(s.info->nic); /* one would have a table, too */
	assert_int_equal(fi_close(&alone->fid), 0);
	assert_int_equal(fi_close(&sep->fid), 0);
	surface_close(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_object_answers_what_all_have) };

	if (argc != 2) {
		fprintf(stderr, "usage: %s PROVIDER\n", argv[0]);
		return 2;
	}
	surface_provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
