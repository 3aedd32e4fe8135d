/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoint object: opened, bound, enabled (which opens its wires, ep_wires.c, and chooses its op
 * tables), named, closed. Calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include <weft/routes.h>
#include "access.h"
#include "auto.h"
#include "cntr.h"
#include "cntr_fid.h"
#include "coll.h"
#include "ctx.h"
#include "domain_fid.h"
#include "ep_fid.h"
#include "ep_names.h"
#include "ep_wires.h"
#include "eq_fid.h"
#include "guard.h"
#include "mr_fid.h"
#include "no_call.h"
#include "nosys.h"
#include "peer.h"
#include "progress.h"
#include "recv.h"
#include "refs.h"
#include "refuse.h"
#include "routes.h"
#include "send.h"
#include "sep_fid.h"
#include "srx_fid.h"
#include "waiting.h"

#define DRAIN_NS 1000000000u /* for what was sent and has not left at close, ns */

#define EP_OPEN "fi_endpoint or fi_scalable_ep"
#define EP_BIND "fi_ep_bind"

static struct engine_ep *ep_of(struct fid *fid)
{
	return engine_ctx_at(fid)->ep;
}

/* Enable */

static void engine_ep_budget(struct engine_ep *ep)
{
	size_t budget = ENGINE_BUDGET;

	fi_param_get_size_t((struct fi_provider *)ep->family->provider, ENGINE_PARAM_BUDGET,
			    &budget);
	ep->budget = budget;
}

/*
 * Is there all that it needs? Queues and counters may come later, or never: what begins without ends untold.
 */
static int engine_ep_ready(const struct engine_ep *ep)
{
	if (!ep->av)
		return engine_refuse(ep->family, FI_LOG_EP_CTRL, -FI_ENOAV, "fi_enable",
				     "no address vector is bound");
	return ep->sep_rxs ? 0 : engine_shared_check(ep);
}

static bool engine_reports(const struct engine_cq *cq, struct engine_cntr *const *cntr,
			   size_t cnt)
{
	bool told = cq != NULL;

	for (size_t i = 0; i < cnt; i++)
		told |= cntr[i] != NULL;
	return told;
}

/* Other providers refuse such an endpoint; libfabric's sockets and we do not. Who forgot the queue reads it once. */
static void engine_ep_untold(struct engine_ep *ep)
{
	static const char *const what[][2] = {
		{ "sends", "FI_TRANSMIT" },
		{ "receives", "FI_RECV" },
		{ "sends and receives", "FI_TRANSMIT and FI_RECV" },
	};
	const struct engine_tx_ctx *tx = ep->ctx.tx_caps ? ep->ctx.tx : NULL;
	const struct engine_rx_ctx *rx = ep->ctx.rx_caps & (FI_MSG | FI_TAGGED) ? ep->ctx.rx
										: NULL;
	bool sends = tx && !engine_reports(tx->cq, tx->cntr, ENGINE_TX_CNTRS);
	bool receives = rx && !engine_reports(rx->cq, rx->cntr, ENGINE_RX_CNTRS);
	int which = sends + 2 * receives - 1;

	if (ep->domain->untold || ep->sep_rxs || which < 0)
		return;
	ep->domain->untold = true;
	FI_WARN(ep->family->provider, FI_LOG_EP_CTRL,
		"fi_enable: the endpoint %s, and no completion queue or counter is told of it; bind one "
		"with %s, as other providers require (%s). Logged once for each domain\n",
		what[which][0], what[which][1], fi_strerror(FI_ENOCQ));
}

/* With the domain held. */
static int engine_ep_start(struct engine_ep *ep)
{
	bool own = !ep->sep_rxs && !ep->srx, named = ep->wire_cnt;
	int ret;

	ret = engine_ep_ready(ep);
	if (!ret)
		ret = engine_auto_enable(ep->domain);
	if (ret)
		return ret;
	engine_ep_budget(ep);
	while (!ep->epoch)
		if (platform_random(&ep->epoch, sizeof(ep->epoch)))
			return -FI_EIO;
	ret = own ? engine_rxq_init(&ep->rx.own, false) : 0;
	if (ret)
		return ret;
	ret = engine_wires_open(ep);
	if (ret) {
		if (own)
			engine_rxq_fini(ep->domain, &ep->rx.own);
		return ret;
	}
	if (named &&
	    engine_wires_remote_events(ep)) /* the wires could not know of these counters */
		engine_mrs_tell(ep->domain);
	engine_ctx_enable(&ep->ctx);
	ep->enabled = true;
	list_remove(&ep->domain_link);
	list_push(&ep->domain->eps, &ep->domain_link);
	ep->domain->pending = true; /* it may have waited for that */
	engine_waiter_join(ep);
	engine_ep_untold(ep);
	return 0;
}

/* Close */

/* Is there anything that the program was told is sent, and that no wire has? */
static bool engine_unsent(struct engine_ep *ep)
{
	struct list *node, *after, *tnode, *tafter;

	list_for_each(node, after, &ep->blocked) {
		struct engine_peer *peer = container_of(node, struct engine_peer, blocked);

		if (!list_empty(&peer->ctl))
			return true;
		list_for_each(tnode, tafter, &peer->queued)
			if (container_of(tnode, struct engine_tx, link)->flags & ENGINE_INJECT)
				return true;
	}
	return false;
}

static void engine_ep_drain(struct engine_ep *ep)
{
	uint64_t end = platform_now_ns() + DRAIN_NS;

	engine_acks_hurry(ep); /* of what came, who wrote it is not to think that it was lost */
	while (engine_unsent(ep) && platform_now_ns() < end) {
		engine_domain_progress(ep->domain); /* the peer may be one of these */
		platform_yield();
	}
}

static void engine_ep_free_held(struct engine_ep *ep)
{
	struct list *node, *after, *hnode;

	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		while ((hnode = list_pop(&peer->reorder)))
			engine_held_free(ep, container_of(hnode, struct engine_held, link));
	}
	for (uint32_t i = 0; i <= ep->rx_cnt; i++)
		if (engine_rxq_at(ep, i))
			engine_rxq_drop(ep, engine_rxq_at(ep, i));
	/* What is left is matched and still arriving. */
	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		while (!list_empty(&peer->arriving))
			engine_held_free(ep, container_of(peer->arriving.next,
							  struct engine_held, arriving));
	}
}

static void engine_ep_free(struct engine_ep *ep)
{
	struct engine_tx *tx;
	uint32_t i = 0;

	while ((tx = pool_each(&ep->tx_pool, &i))) {
		platform_free(tx->copy);
		if (tx->flags & ENGINE_DEFERRED)
			engine_cntr_release(tx->work_cntr);
	}
	while (!list_empty(&ep->all)) {
		struct engine_peer *peer = container_of(ep->all.next, struct engine_peer, all);
		struct list *node;

		while ((node = list_pop(&peer->receiving)))
			engine_rx_drop(ep->domain, container_of(node, struct engine_rx, link));
		engine_replies_drop(peer);
		engine_peer_free(peer);
	}
	engine_coll_free(ep);
	engine_rxq_fini(ep->domain, &ep->rx.own);
	engine_sep_free(ep);
	pool_fini(&ep->tx_pool);
	pool_fini(&ep->reply_pool);
	pool_fini(&ep->landing_pool);
	pool_fini(&ep->ctl_pool);
	pool_fini(&ep->held_pool);
	platform_free(ep->peers);
	platform_free(ep);
}

static void engine_ep_report(struct engine_ep *ep)
{
	struct weft_route routes[ENGINE_WIRE_MAX];
	size_t cnt = ENGINE_WIRE_MAX;

	if (ep->family->closing && !engine_routes(ep, routes, &cnt))
		ep->family->closing(ep->family->provider, routes, cnt);
}

void engine_ep_end(struct engine_ep *ep)
{
	struct engine_domain *domain = ep->domain;
	struct engine_srx *srx = ep->srx;

	if (ep->enabled) {
		engine_ep_drain(ep);
		engine_ep_report(ep);
		engine_ctx_close_tables(&ep->ctx);
		engine_waiter_part(ep);
	}
	list_remove(&ep->domain_link);
	/* Before what is held: payload is on its way to it. */
	engine_wires_close(ep);
	if (ep->enabled)
		engine_ep_free_held(ep);
	platform_copy_unwatch(&ep->ctx.copy);
	if (ep->av)
		list_remove(&ep->av_link);
	engine_shared_unbind(ep);
	engine_tx_release(&ep->tx);
	engine_rx_release(&ep->rx);
	engine_ep_free(ep);
	if (srx)
		engine_srx_left(srx);
	engine_unref(&domain->refs);
}

static int engine_ep_close(struct fid *fid)
{
	struct engine_ctx *ctx = engine_ctx_at(fid);
	struct engine_domain *domain = ctx->domain;
	struct engine_eq *eq = ctx->ep->eq;
	bool busy;

	engine_enter(domain);
	busy = !list_empty(&ctx->aliases) || engine_sep_busy(ctx->ep) ||
	       engine_mr_bound(domain, ctx->ep) || engine_coll_busy(ctx->ep);
	if (!busy && eq)
		engine_ref(&domain->refs); /* until the queue has let it go */
	if (!busy)
		engine_ep_end(ctx->ep);
	engine_leave(domain);
	if (!busy && eq) {
		engine_eq_drop(eq, domain);
		engine_unref(&domain->refs);
	}
	return busy ? engine_refuse(
			      domain->family, FI_LOG_EP_CTRL, -FI_EBUSY,
			      "fi_close of an endpoint",
			      "it has aliases, contexts, collective groups or memory regions "
			      "that are bound to it; close those first")
		    : 0;
}

/* Bind and control */

static int engine_bind_refuse(const struct engine_ep *ep, int err, const char *why)
{
	return engine_refuse(ep->family, FI_LOG_EP_CTRL, err, EP_BIND, why);
}

static int engine_ep_bind_av(struct engine_ep *ep, struct engine_av *av)
{
	if (av->domain != ep->domain)
		return engine_bind_refuse(
			ep, -FI_EINVAL,
			"an address vector of another domain; open one in the "
			"endpoint's");
	if (ep->av == av)
		return 0;
	if (ep->av)
		return engine_bind_refuse(
			ep, -FI_EINVAL,
			"another address vector is bound, which the endpoint keeps");
	ep->av = av;
	list_push(&av->eps, &ep->av_link);
	return 0;
}

/*
 * For the end of fi_join_collective, which gives the domain the thread that the queue may want; in place
 * of one that was bound before. Holds the domain itself: the queue's lock comes first.
 */
static int engine_ep_bind_eq(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	struct engine_eq *eq = container_of(target, struct engine_eq, fid.fid), *drop;
	int ret;

	if (flags)
		return engine_refuse_value(ep->family, FI_LOG_EP_CTRL, -FI_EBADFLAGS, EP_BIND,
					   "an event queue has no flags", flags);
	if (eq->fabric != ep->domain->fabric)
		return engine_bind_refuse(ep, -FI_EINVAL, "an event queue of another fabric");
	ret = engine_eq_watch(eq, ep->domain);
	if (ret)
		return ret;
	engine_enter(ep->domain);
	drop = ep->eq;
	ep->eq = eq;
	engine_leave(ep->domain);
	if (drop)
		engine_eq_drop(drop, ep->domain);
	return 0;
}

/* A region says itself which endpoint it serves, if that matters. */
static int engine_ep_bind_mr(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	if (container_of(target, struct engine_mr, fid.fid)->domain != ep->domain)
		return engine_bind_refuse(ep, -FI_EINVAL, "a memory region of another domain");
	if (!(ep->domain->mr->mode & FI_MR_ENDPOINT))
		return 0;
	return target->ops->bind(target, &ep->ctx.fid.fid, flags);
}

/* Peers do by packets what a counter is to tell of: those that come later than the wires. */
static void engine_ep_bound(struct engine_ep *ep)
{
	engine_ctx_bound(&ep->ctx);
	if (ep->srx)
		engine_srx_choose_cq(ep->srx);
	if (ep->enabled && engine_wires_remote_events(ep))
		engine_mrs_tell(ep->domain);
}

static int engine_ep_bind_held(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	int ret;

	if (ep->ctx.copied)
		return engine_bind_refuse(ep, -FI_EOPBADSTATE,
					  "the endpoint is that of the process that forked");
	switch (target->fclass) {
	case FI_CLASS_AV:
		return engine_ep_bind_av(ep, container_of(target, struct engine_av, fid.fid));
	case FI_CLASS_STX_CTX:
	case FI_CLASS_SRX_CTX:
		return engine_shared_bind(ep, target, flags);
	case FI_CLASS_CQ:
	case FI_CLASS_CNTR:
		if (ep->sep_rxs)
			return engine_sep_bind(ep, target, flags);
		break;
	default:
		return engine_refuse_value(ep->family, FI_LOG_EP_CTRL, -FI_EINVAL, EP_BIND,
					   "no object of that class is bound to an endpoint",
					   target->fclass);
	}
	ret = target->fclass == FI_CLASS_CQ
		      ? engine_ctx_bind_cq(ep->domain, &ep->tx, &ep->rx, target, flags)
		      : engine_cntr_bind(&ep->tx, &ep->rx, ep->domain, target, flags);
	if (!ret)
		engine_ep_bound(ep);
	return ret;
}

int engine_ep_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_ep *ep = ep_of(fid);
	bool awaits;
	int ret;

	if (!target)
		return engine_bind_refuse(ep, -FI_EINVAL, "NULL");
	if (target->fclass == FI_CLASS_EQ)
		return engine_ep_bind_eq(ep, target, flags);
	if (target->fclass == FI_CLASS_MR)
		return engine_ep_bind_mr(ep, target, flags);
	engine_enter(ep->domain);
	ret = engine_ep_bind_held(ep, target, flags);
	awaits = engine_sep_awaits(ep);
	engine_leave(ep->domain);
	return !ret && awaits ? engine_ep_enable(ep) : ret;
}

int engine_ep_enable(struct engine_ep *ep)
{
	struct engine_eq *eq = engine_domain_eq(ep->domain);
	int ret = eq ? engine_eq_watch(eq, ep->domain) : 0;

	if (ret)
		return ret;
	engine_enter(ep->domain);
	if (ep->ctx.copied)
		ret = engine_refuse(ep->family, FI_LOG_EP_CTRL, -FI_EOPBADSTATE, "fi_enable",
				    "the endpoint is that of the process that forked");
	else if (!ep->enabled)
		ret = engine_ep_start(ep);
	if (!ret && !ep->eq) {
		ep->eq = eq;
		eq = NULL;
	}
	engine_leave(ep->domain);
	if (eq)
		engine_eq_drop(eq, ep->domain);
	return ret;
}

static int engine_ep_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? engine_ep_enable(ep_of(fid))
				    : engine_ctx_control(fid, command, arg);
}

int engine_ep_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		       void *context)
{
	if (!name || !ops)
		return engine_refuse(engine_ctx_at(fid)->domain->family, FI_LOG_EP_CTRL,
				     -FI_EINVAL, "fi_open_ops",
				     "NULL for the name, or where the ops are to go");
	if (strcmp(name, WEFT_ROUTES_OPS))
		return -FI_ENOSYS;
	*ops = &engine_routes_ops;
	return 0;
}

static int engine_ep_getname(struct fid *fid, void *addr, size_t *len)
{
	struct engine_ep *ep = ep_of(fid);
	struct weft_addr address;
	size_t room;
	int ret;

	if (!len)
		return engine_refuse(ep->family, FI_LOG_EP_CTRL, -FI_EINVAL, "fi_getname",
				     "NULL for the length");
	engine_enter(ep->domain);
	ret = engine_wires_open(ep);
	address = ep->address;
	engine_leave(ep->domain);
	if (ret)
		return engine_refuse(ep->family, FI_LOG_EP_CTRL, ret, "fi_getname",
				     "nobody could reach the endpoint");
	room = addr ? *len : 0;
	*len = engine_name_give(ep->family, &address, addr, room);
	return room < *len ? -FI_ETOOSMALL : 0;
}

static int engine_ep_setname(struct fid *fid, void *addr, size_t len)
{
	struct engine_ep *ep = ep_of(fid);
	struct weft_addr bind;
	char why[96] = "";
	bool enabled;
	int ret;

	if (!ep->family->bind_read)
		return -FI_ENOSYS;
	if (addr)
		len = engine_name_len(ep->family, addr, len);
	if (!addr || !len)
		return engine_refuse(ep->family, FI_LOG_EP_CTRL, -FI_EINVAL, "fi_setname",
				     "an address of the endpoint's format, with its length");
	ret = ep->family->bind_read(addr, len, &bind, why, sizeof(why));
	engine_enter(ep->domain);
	enabled = ep->enabled;
	if (!ret && !enabled) {
		engine_wires_close(ep); /* open for the name that it had */
		ep->bind = bind;
	}
	engine_leave(ep->domain);
	if (enabled)
		return engine_refuse(ep->family, FI_LOG_EP_CTRL, -FI_EOPBADSTATE, "fi_setname",
				     "the endpoint listens already; name it before fi_enable");
	return ret ? engine_refuse(ep->family, FI_LOG_EP_CTRL, ret, "fi_setname", why) : 0;
}

static struct fi_ops engine_ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_ep_close,
	.bind = engine_ep_bind,
	.control = engine_ep_control,
	.ops_open = engine_ep_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

struct fi_ops_cm engine_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = engine_ep_setname,
	.getname = engine_ep_getname,
	.getpeer = engine_no_cm_getpeer,
	.connect = engine_no_cm_connect,
	.listen = engine_no_cm_listen,
	.accept = engine_no_cm_accept,
	.reject = engine_no_cm_reject,
	.shutdown = engine_no_cm_shutdown,
	.join = engine_coll_join,
};

void engine_ep_size(struct engine_ep *ep, size_t size)
{
	ep->tx_size = size;
	ep->at_once = ep->order_max ? 0 : size; /* what keeps order looks at what came before */
}

static void engine_ep_order(struct engine_ep *ep, const struct fi_ep_attr *attr)
{
	size_t most = attr ? attr->max_order_raw_size : 0;

	if (attr && attr->max_order_war_size > most)
		most = attr->max_order_war_size;
	if (attr && attr->max_order_waw_size > most)
		most = attr->max_order_waw_size;
	ep->order_max = most > ENGINE_ORDER_MAX ? most : 0;
}

static void engine_ep_init(struct engine_ep *ep, struct engine_domain *domain,
			   const struct fi_info *info)
{
	ep->domain = domain;
	ep->family = domain->family;
	ep->group_ops = &engine_groups;
	ep->caps = engine_whole_caps(info->caps ? info->caps : ENGINE_CAPS);
	engine_ctx_init(&ep->ctx, domain, &ep->ctx);
	engine_options_init(&ep->ctx.options, info);
	ep->max_msg_size = ep->ctx.options.max_msg;
	ep->ctx.ep = ep;
	ep->ctx.tx_caps = engine_part_caps(info->tx_attr ? info->tx_attr->caps : 0, ep->caps);
	ep->ctx.rx_caps = engine_part_caps(info->rx_attr ? info->rx_attr->caps : 0, ep->caps);
	ep->ctx.directed_recv = ep->ctx.rx_caps & FI_DIRECTED_RECV;
	engine_ep_order(ep, info->ep_attr);
	engine_ep_size(ep, info->tx_attr && info->tx_attr->size ? info->tx_attr->size
								: ENGINE_TX_SIZE);
	if (info->tx_attr)
		ep->ctx.tx_op_flags = info->tx_attr->op_flags;
	if (info->rx_attr)
		ep->ctx.rx_op_flags = info->rx_attr->op_flags;
	ep->look_wait = ep->look_full = 1;
	list_init(&ep->blocked);
	list_init(&ep->all);
	list_init(&ep->acks);
	list_init(&ep->acks_later);
	list_init(&ep->domain_link);
	list_init(&ep->av_link);
	list_init(&ep->srx_link);
	list_init(&ep->stx_link);
	pool_init(&ep->tx_pool, sizeof(struct engine_tx), 0);
	pool_init(&ep->ctl_pool, sizeof(struct engine_ctl), 0);
	pool_init(&ep->held_pool, sizeof(struct engine_held) + ENGINE_HELD_SMALL, 0);
	pool_init(&ep->reply_pool, sizeof(struct engine_reply), 0);
	pool_init(&ep->landing_pool, sizeof(struct engine_landing), 0);
}

static int engine_ep_info_check(const struct engine_domain *domain, const struct fi_info *info)
{
	int ret;

	if (info->ep_attr && info->ep_attr->type != FI_EP_RDM &&
	    info->ep_attr->type != FI_EP_UNSPEC)
		return engine_refuse_value(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, EP_OPEN,
					   "ep_attr.type is FI_EP_RDM", info->ep_attr->type);
	if (info->caps & ~(ENGINE_CAPS | ENGINE_SIDE_CAPS))
		return engine_refuse_value(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, EP_OPEN,
					   "caps beyond what fi_getinfo answers", info->caps);
	ret = engine_tx_attr_check(domain, EP_OPEN, info->tx_attr);
	return ret ? ret : engine_rx_attr_check(domain, EP_OPEN, info->rx_attr);
}

/* The key of its own, where there is one and this version of the interface has them. 0 or -FI_E* */
static int engine_ep_auth(struct engine_ep *ep, const struct fi_ep_attr *attr)
{
	int ret;

	ep->auth = ep->domain->auth;
	if (!attr || !engine_auth_known(ep->domain->fabric->fid.api_version))
		return 0;
	ret = engine_auth_read(attr->auth_key, attr->auth_key_size, &ep->auth);
	return ret ? engine_refuse(ep->family, FI_LOG_EP_CTRL, ret, EP_OPEN,
				   "ep_attr.auth_key has a length that no key has")
		   : 0;
}

/* Where it is to listen, if that matters. 0 or -FI_E* */
static int engine_ep_source(struct engine_ep *ep, const struct fi_info *info)
{
	const struct engine_family *family = ep->family;
	char why[96] = "";
	size_t len;
	int ret;

	if (!info->src_addr || !family->bind_read)
		return 0;
	len = engine_name_len(family, info->src_addr, info->src_addrlen);
	if (!len)
		return 0;
	ret = family->bind_read(info->src_addr, len, &ep->bind, why, sizeof(why));
	return ret ? engine_refuse(family, FI_LOG_EP_CTRL, ret, EP_OPEN, why) : 0;
}

int engine_ep_create(struct engine_domain *domain, struct fi_info *info, size_t fclass,
		     void *context, struct engine_ep **out)
{
	struct engine_ep *ep;
	int ret;

	ret = engine_ep_info_check(domain, info);
	if (ret)
		return ret;
	ep = platform_alloc(sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	engine_ep_init(ep, domain, info);
	ret = engine_ep_auth(ep, info->ep_attr);
	if (!ret)
		ret = engine_ep_source(ep, info);
	if (ret) {
		engine_ep_free(ep);
		return ret;
	}
	ep->ctx.fid.fid.fclass = fclass;
	ep->ctx.fid.fid.context = context;
	ep->ctx.fid.fid.ops = &engine_ep_fi_ops;
	engine_enter(domain);
	list_push(&domain->not_enabled, &ep->domain_link);
	engine_leave(domain);
	engine_ref(&domain->refs);
	*out = ep;
	return 0;
}

int engine_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out,
		   void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct engine_ep *ep;
	int ret;

	if (!info || !out)
		return engine_refuse(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, EP_OPEN,
				     "NULL for the fi_info, or where the endpoint is to go");
	ret = engine_ep_create(domain, info, FI_CLASS_EP, context, &ep);
	if (ret)
		return ret;
	ep->ctx.tx = &ep->tx;
	ep->ctx.rx = &ep->rx;
	ep->rx.ep = ep;
	ep->rx.q = &ep->rx.own;
	ep->rx.own.min_multi_recv = ENGINE_MIN_MULTI_RECV;
	ep->rx0 = &ep->rx;
	ep->rxs = &ep->rx0;
	ep->rx_cnt = ep->tx_cnt = 1;
	*out = &ep->ctx.fid;
	return 0;
}
