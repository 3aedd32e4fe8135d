/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoint object as it is opened, and its slots: its names and its control here, the others in
 * ep_bind.c, ep_enable.c and ep_close.c. Calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include <weft/routes.h>
#include "cm.h"
#include "coll.h"
#include "conns.h"
#include "ctx.h"
#include "domain_fid.h"
#include "ep_fid.h"
#include "ep_names.h"
#include "ep_wires.h"
#include "guard.h"
#include "no_call.h"
#include "nosys.h"
#include "refs.h"
#include "refuse.h"
#include "routes.h"

#define EP_OPEN "fi_endpoint or fi_scalable_ep"

static struct engine_ep *ep_of(struct fid *fid)
{
	return engine_ctx_at(fid)->ep;
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

int engine_ep_getname(struct fid *fid, void *addr, size_t *len)
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
				     "no peer could reach the endpoint");
	room = addr ? *len : 0;
	*len = engine_name_write(ep->family, &address, addr, room);
	return room < *len ? -FI_ETOOSMALL : 0;
}

int engine_ep_setname(struct fid *fid, void *addr, size_t len)
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
		engine_wires_close(ep); /* they were opened for the former name */
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
	ep->at_once = ep->order_max ? 0 : size; /* ordered operations wait for others */
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
	ep->acks_ns = platform_now_ns();
	ep->held_max = PLATFORM_HELD_MAX;
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

/* Sets the kind of endpoint that @type asks for. Returns 0, -FI_EINVAL or -FI_ENOSYS. */
static int engine_ep_type(const struct engine_domain *domain, const struct fi_info *info,
			  size_t fclass, uint8_t *kind)
{
	enum fi_ep_type type = info->ep_attr ? info->ep_attr->type : FI_EP_UNSPEC;
	bool connects = domain->family->info_copy;

	*kind = type == FI_EP_MSG ? ENGINE_EP_MSG : ENGINE_EP_RDM;
	if (type == FI_EP_MSG && connects && fclass == FI_CLASS_SEP)
		return engine_refuse(domain->family, FI_LOG_EP_CTRL, -FI_ENOSYS,
				     "fi_scalable_ep",
				     "connected endpoints (FI_EP_MSG) are not scalable");
	if (type == FI_EP_RDM || type == FI_EP_UNSPEC || (type == FI_EP_MSG && connects))
		return 0;
	return engine_refuse_value(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, EP_OPEN,
				   connects ? "ep_attr.type is FI_EP_RDM or FI_EP_MSG"
					    : "ep_attr.type is FI_EP_RDM",
				   type);
}

static int engine_ep_info_check(const struct engine_domain *domain, const struct fi_info *info)
{
	int ret;

	if (info->caps & ~(ENGINE_CAPS | ENGINE_SIDE_CAPS))
		return engine_refuse_value(domain->family, FI_LOG_EP_CTRL, -FI_EINVAL, EP_OPEN,
					   "caps beyond those that fi_getinfo offers",
					   info->caps);
	ret = engine_tx_attr_check(domain, EP_OPEN, info->tx_attr);
	return ret ? ret : engine_rx_attr_check(domain, EP_OPEN, info->rx_attr);
}

/* Sets the endpoint's own authorization key, if the attributes have one. Returns 0 or -FI_E*. */
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

/* Sets the address to listen at, if the program gives one. Returns 0 or -FI_E*. */
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

/* An endpoint without connections of its own accepts each request at once. */
static void engine_ep_admit(struct wire_conn *conn, const struct hello *hello)
{
	if (hello->kind == HELLO_RDM)
		engine_conn_accept(conn, hello, NULL);
	else
		engine_conn_refuse(conn, -FI_ECONNREFUSED, NULL);
}

int engine_ep_create(struct engine_domain *domain, struct fi_info *info, size_t fclass,
		     void *context, struct engine_ep **out)
{
	struct engine_ep *ep;
	uint8_t kind;
	int ret;

	ret = engine_ep_type(domain, info, fclass, &kind);
	if (!ret)
		ret = engine_ep_info_check(domain, info);
	if (ret)
		return ret;
	ep = platform_alloc(sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	engine_ep_init(ep, domain, info);
	ep->kind = kind;
	ep->requested = engine_ep_admit;
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
	list_add_tail(&domain->not_enabled, &ep->domain_link);
	engine_leave(domain);
	engine_ref(&domain->refs);
	*out = ep;
	return 0;
}

void engine_ep_plain(struct engine_ep *ep)
{
	ep->ctx.tx = &ep->tx;
	ep->ctx.rx = &ep->rx;
	ep->rx.ep = ep;
	ep->rx.q = &ep->rx.own;
	ep->rx.own.min_multi_recv = ENGINE_MIN_MULTI_RECV;
	ep->rx0 = &ep->rx;
	ep->rxs = &ep->rx0;
	ep->rx_cnt = ep->tx_cnt = 1;
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
	engine_ep_plain(ep);
	if (ep->kind == ENGINE_EP_MSG) {
		ret = engine_cm_open(ep, info->handle);
		if (ret) {
			engine_enter(domain);
			engine_ep_end(ep);
			engine_leave(domain);
			return ret;
		}
	}
	*out = &ep->ctx.fid;
	return 0;
}
