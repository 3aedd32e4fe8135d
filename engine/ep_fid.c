/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoint object: opened, bound, enabled (which opens its wires and chooses its op
 * tables), closed. Calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include <weft/routes.h>
#include "fids.h"
#include "loop.h"
#include "nosys.h"
#include "peer.h"
#include "progress.h"
#include "recv.h"
#include "send.h"

#define DRAIN_NS 1000000000u /* for what was sent and has not left at close, ns */

static struct engine_ep *ep_of(struct fid *fid)
{
	return container_of(fid, struct engine_ep, fid.fid);
}

/* Wires */

/* @wire came up with the endpoint, or why it did not. */
static void engine_wire_add(struct engine_ep *ep, const struct wire_ops *ops, const struct wire_attr *attr)
{
	uint32_t idx = ep->wire_cnt++;
	struct engine_wire *w = &ep->wires[idx];
	int ret;

	w->ops = ops;
	ret = ops->open(ep, attr, &ep->address, &w->wire, w->why, sizeof(w->why));
	if (ret) {
		w->wire = NULL;
		FI_INFO(ep->family->provider, FI_LOG_EP_CTRL, "%s: %s\n", ops->name, w->why);
		return;
	}
	w->wire->ops = ops;
	w->wire->ep = ep;
	w->wire->idx = idx;
}

static void engine_wires_close(struct engine_ep *ep)
{
	for (uint32_t i = 0; i < ep->wire_cnt; i++)
		if (ep->wires[i].wire)
			ep->wires[i].ops->close(ep->wires[i].wire);
	ep->wire_cnt = 0;
}

static int engine_wires_open(struct engine_ep *ep)
{
	struct wire_attr attr = { .bind = &ep->bind, .tx_size = ep->tx_size };
	const struct wire_provider *wp;
	bool any = false;

	ep->address = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_NONCE };
	if (platform_random(ep->address.nonce, sizeof(ep->address.nonce)))
		return -FI_EIO;
	for (uint32_t i = 0; i < ENGINE_WIRE_MAX - 1 && ep->family->wires[i]; i++) {
		wp = wire_find(ep->family->wires[i]);
		if (!wp)
			continue;
		engine_wire_add(ep, wp->ops, &attr);
		any |= ep->wires[ep->wire_cnt - 1].wire != NULL;
	}
	if (!any) {
		FI_WARN(ep->family->provider, FI_LOG_EP_CTRL, "no way to reach anyone: %s\n",
			ep->wire_cnt ? ep->wires[ep->wire_cnt - 1].why : "no wire is built in");
		engine_wires_close(ep);
		return -FI_ENODEV;
	}
	engine_wire_add(ep, &loop_wire_ops, &attr);
	if (!ep->wires[ep->wire_cnt - 1].wire) {
		engine_wires_close(ep);
		return -FI_ENOMEM;
	}
	return 0;
}

/* Enable */

static void engine_ep_budget(struct engine_ep *ep)
{
	size_t budget = ENGINE_BUDGET;

	fi_param_get_size_t((struct fi_provider *)ep->family->provider, ENGINE_PARAM_BUDGET, &budget);
	ep->budget = budget;
}

static int engine_ep_enable(struct engine_ep *ep)
{
	struct engine_domain *domain = ep->domain;
	int ret;

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (!ep->av)
		return -FI_ENOAV;
	if ((ep->caps & FI_SEND && !ep->tx_cq) || (ep->caps & FI_RECV && !ep->rx_cq))
		return -FI_ENOCQ;
	engine_ep_budget(ep);
	while (!ep->epoch)
		if (platform_random(&ep->epoch, sizeof(ep->epoch)))
			return -FI_EIO;
	ep->tagged = match_create();
	ep->msg = match_create();
	ret = ep->tagged && ep->msg ? engine_wires_open(ep) : -FI_ENOMEM;
	if (ret) {
		match_destroy(ep->tagged);
		match_destroy(ep->msg);
		ep->tagged = ep->msg = NULL;
		return ret;
	}
	if (!ep->tx_cq)
		ep->tx_flags &= ~ENGINE_COMPLETE;
	if (!ep->rx_cq)
		ep->rx_flags &= ~ENGINE_COMPLETE;
	ep->enabled = true;
	ep->fid.msg = domain->safe ? &engine_safe_msg_ops : ep->family->msg;
	ep->fid.tagged = domain->safe ? &engine_safe_tagged_ops : ep->family->tagged;
	list_push(&domain->eps, &ep->domain_link);
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

	while (engine_unsent(ep) && platform_now_ns() < end) {
		engine_domain_progress(ep->domain); /* the peer may be one of these */
		platform_yield();
	}
}

static void engine_ep_free_held(struct engine_ep *ep)
{
	struct match *matchers[] = { ep->tagged, ep->msg };
	struct list *node, *after, *hnode;

	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		while ((hnode = list_pop(&peer->early)))
			engine_held_free(ep, container_of(hnode, struct engine_held, link));
	}
	for (size_t i = 0; i < 2; i++) {
		struct match_msg *msg;

		while (matchers[i] && (msg = match_first_msg(matchers[i]))) {
			match_take(matchers[i], msg);
			engine_held_free(ep, container_of(msg, struct engine_held, match));
		}
	}
	while ((node = list_pop(&ep->claimed)))
		engine_held_free(ep, container_of(node, struct engine_held, link));
	/* What is left is matched and still arriving. */
	list_for_each(node, after, &ep->all) {
		struct engine_peer *peer = container_of(node, struct engine_peer, all);

		while (!list_empty(&peer->arriving))
			engine_held_free(ep, container_of(peer->arriving.next, struct engine_held, arriving));
	}
}

static void engine_ep_free(struct engine_ep *ep)
{
	struct engine_tx *tx;
	uint32_t i = 0;

	while ((tx = pool_each(&ep->tx_pool, &i)))
		platform_free(tx->copy);
	while (!list_empty(&ep->all))
		engine_peer_free(container_of(ep->all.next, struct engine_peer, all));
	match_destroy(ep->tagged);
	match_destroy(ep->msg);
	pool_fini(&ep->tx_pool);
	pool_fini(&ep->rx_pool);
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
		ep->family->closing(routes, cnt);
}

static int engine_ep_close(struct fid *fid)
{
	struct engine_ep *ep = ep_of(fid);
	struct engine_domain *domain = ep->domain;

	engine_enter(domain);
	if (ep->enabled) {
		engine_ep_drain(ep);
		engine_ep_report(ep);
		list_remove(&ep->domain_link);
		/* Before what is held: payload is on its way to it. */
		engine_wires_close(ep);
		engine_ep_free_held(ep);
	}
	if (ep->av)
		list_remove(&ep->av_link);
	if (ep->tx_cq)
		engine_unref(&ep->tx_cq->refs);
	if (ep->rx_cq)
		engine_unref(&ep->rx_cq->refs);
	engine_leave(domain);
	engine_ep_free(ep);
	engine_unref(&domain->refs);
	return 0;
}

/* Bind and control */

static int engine_ep_bind_av(struct engine_ep *ep, struct fid *target)
{
	struct engine_av *av = container_of(target, struct engine_av, fid.fid);

	if (av->domain != ep->domain || ep->av)
		return -FI_EINVAL;
	ep->av = av;
	list_push(&av->eps, &ep->av_link);
	return 0;
}

static void engine_cq_attach(struct engine_cq **slot, struct engine_cq *cq)
{
	*slot = cq;
	engine_ref(&cq->refs);
}

static int engine_ep_bind_cq(struct engine_ep *ep, struct fid *target, uint64_t flags)
{
	struct engine_cq *cq = container_of(target, struct engine_cq, fid.fid);

	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return -FI_EBADFLAGS;
	if (!(flags & (FI_TRANSMIT | FI_RECV)) || cq->domain != ep->domain)
		return -FI_EINVAL;
	if ((flags & FI_TRANSMIT && ep->tx_cq) || (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		engine_cq_attach(&ep->tx_cq, cq);
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
		if (!ep->tx_selective)
			ep->tx_flags |= ENGINE_COMPLETE;
	}
	if (flags & FI_RECV) {
		engine_cq_attach(&ep->rx_cq, cq);
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
		if (!ep->rx_selective)
			ep->rx_flags |= ENGINE_COMPLETE;
	}
	return 0;
}

static int engine_ep_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_ep *ep = ep_of(fid);
	int ret = -FI_EINVAL;

	if (!target)
		return -FI_EINVAL;
	engine_enter(ep->domain);
	if (ep->enabled)
		ret = -FI_EOPBADSTATE;
	else if (target->fclass == FI_CLASS_AV)
		ret = engine_ep_bind_av(ep, target);
	else if (target->fclass == FI_CLASS_CQ)
		ret = engine_ep_bind_cq(ep, target, flags);
	else if (target->fclass == FI_CLASS_EQ)
		ret = 0; /* a reliable datagram endpoint has no events of its own */
	else if (target->fclass == FI_CLASS_CNTR)
		ret = -FI_ENOSYS;
	engine_leave(ep->domain);
	return ret;
}

static int engine_ep_control(struct fid *fid, int command, void *arg)
{
	struct engine_ep *ep = ep_of(fid);
	int ret;

	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	engine_enter(ep->domain);
	ret = engine_ep_enable(ep);
	engine_leave(ep->domain);
	return ret;
}

static int engine_ep_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	if (!name || !ops)
		return -FI_EINVAL;
	if (strcmp(name, WEFT_ROUTES_OPS))
		return -FI_ENOSYS;
	*ops = &engine_routes_ops;
	return 0;
}

static ssize_t engine_ep_cancel(struct fid *fid, void *context)
{
	struct engine_ep *ep = ep_of(fid);
	ssize_t ret;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	engine_enter(ep->domain);
	ret = engine_cancel(ep, context);
	engine_leave(ep->domain);
	return ret;
}

static int engine_ep_getopt(struct fid *fid, int level, int name, void *val, size_t *len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (!val || !len)
		return -FI_EINVAL;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)val = ep_of(fid)->min_multi_recv;
	*len = sizeof(size_t);
	return 0;
}

static int engine_ep_setopt(struct fid *fid, int level, int name, const void *val, size_t len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (!val || len != sizeof(size_t))
		return -FI_EINVAL;
	ep_of(fid)->min_multi_recv = *(const size_t *)val;
	return 0;
}

static int engine_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
			    void *context)
{
	return -FI_ENOSYS;
}

static int engine_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
			    void *context)
{
	return -FI_ENOSYS;
}

static ssize_t engine_no_size_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

static int engine_no_export(struct fid_ep *ep, uint64_t flags, struct fid_xpu_ep *xpu_ep)
{
	return -FI_ENOSYS;
}

static int engine_ep_getname(struct fid *fid, void *addr, size_t *len)
{
	struct engine_ep *ep = ep_of(fid);
	const struct engine_family *family = ep->family;
	uint8_t whole[sizeof(struct weft_addr)];
	size_t room;

	if (!len || (*len && !addr))
		return -FI_EINVAL;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	room = *len;
	*len = family->addr_len;
	family->addr_write(&ep->address, whole);
	if (room)
		memcpy(addr, whole, room < family->addr_len ? room : family->addr_len);
	return room < family->addr_len ? -FI_ETOOSMALL : 0;
}

static int engine_ep_setname(struct fid *fid, void *addr, size_t len)
{
	struct engine_ep *ep = ep_of(fid);
	char why[96] = "";
	int ret;

	if (!ep->family->bind_read)
		return -FI_ENOSYS;
	if (!addr || len != ep->family->addr_len)
		return -FI_EINVAL;
	if (ep->enabled)
		return -FI_EOPBADSTATE;
	ret = ep->family->bind_read(addr, &ep->bind, why, sizeof(why));
	if (ret)
		FI_WARN(ep->family->provider, FI_LOG_EP_CTRL, "fi_setname: %s\n", why);
	return ret;
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

static struct fi_ops_ep engine_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = engine_ep_cancel,
	.getopt = engine_ep_getopt,
	.setopt = engine_ep_setopt,
	.tx_ctx = engine_no_tx_ctx,
	.rx_ctx = engine_no_rx_ctx,
	.rx_size_left = engine_no_size_left,
	.tx_size_left = engine_no_size_left,
	.export_xpu = engine_no_export,
};

static struct fi_ops_cm engine_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = engine_ep_setname,
	.getname = engine_ep_getname,
	.getpeer = engine_no_cm_getpeer,
	.connect = engine_no_cm_connect,
	.listen = engine_no_cm_listen,
	.accept = engine_no_cm_accept,
	.reject = engine_no_cm_reject,
	.shutdown = engine_no_cm_shutdown,
	.join = engine_no_cm_join,
};

static void engine_ep_init(struct engine_ep *ep, struct engine_domain *domain, const struct fi_info *info)
{
	ep->domain = domain;
	ep->family = domain->family;
	ep->caps = info->caps ? info->caps : ENGINE_CAPS;
	if (!(ep->caps & (FI_SEND | FI_RECV)))
		ep->caps |= FI_SEND | FI_RECV;
	ep->directed_recv = ep->caps & FI_DIRECTED_RECV;
	ep->tx_size = ENGINE_TX_SIZE;
	if (info->tx_attr) {
		if (info->tx_attr->size && info->tx_attr->size < ENGINE_TX_SIZE)
			ep->tx_size = info->tx_attr->size;
		if (info->tx_attr->op_flags & FI_COMPLETION)
			ep->tx_flags |= ENGINE_COMPLETE;
		if (info->tx_attr->op_flags & FI_INJECT)
			ep->tx_flags |= ENGINE_INJECT;
	}
	if (info->rx_attr && info->rx_attr->op_flags & FI_COMPLETION)
		ep->rx_flags |= ENGINE_COMPLETE;
	list_init(&ep->posted);
	list_init(&ep->claimed);
	list_init(&ep->blocked);
	list_init(&ep->all);
	list_init(&ep->domain_link);
	list_init(&ep->av_link);
	pool_init(&ep->tx_pool, sizeof(struct engine_tx), 0);
	pool_init(&ep->rx_pool, sizeof(struct engine_rx), 0);
	pool_init(&ep->ctl_pool, sizeof(struct engine_ctl), 0);
	pool_init(&ep->held_pool, sizeof(struct engine_held) + ENGINE_HELD_SMALL, 0);
}

int engine_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct engine_ep *ep;
	char why[96] = "";
	int ret = 0;

	if (!info || !out)
		return -FI_EINVAL;
	if (info->ep_attr && info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC)
		return -FI_EINVAL;
	ep = platform_alloc(sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	engine_ep_init(ep, domain, info);
	if (domain->family->bind_read && info->src_addr && info->src_addrlen == domain->family->addr_len)
		ret = domain->family->bind_read(info->src_addr, &ep->bind, why, sizeof(why));
	if (ret) {
		FI_WARN(domain->family->provider, FI_LOG_EP_CTRL, "src_addr: %s\n", why);
		engine_ep_free(ep);
		return ret;
	}
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &engine_ep_fi_ops;
	ep->fid.ops = &engine_ep_ops;
	ep->fid.cm = &engine_ep_cm_ops;
	ep->fid.msg = &engine_closed_msg_ops;
	ep->fid.tagged = &engine_closed_tagged_ops;
	ep->fid.rma = &engine_no_rma_ops;
	ep->fid.atomic = &engine_no_atomic_ops;
	ep->fid.collective = &engine_no_collective_ops;
	engine_ref(&domain->refs);
	*out = &ep->fid;
	return 0;
}
