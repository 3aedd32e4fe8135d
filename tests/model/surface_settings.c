/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Slots of an endpoint's settings and names: a call of each, and what it does. See surface.h. */
#include "surface.h"

#define SETTING 100u

/* Settings */

static bool receives(const struct subject *u)
{
	return u->does & FI_RECV && u->does & (FI_MSG | FI_TAGGED);
}

static ssize_t call_cancel(struct subject *u)
{
	ssize_t ret;

	if (receives(u)) {
		ret = u->does & FI_MSG ? fi_recv(u->ep, u->in, SURFACE_LEN, NULL,
						 FI_ADDR_UNSPEC, &u->context)
				       : fi_trecv(u->ep, u->in, SURFACE_LEN, NULL,
						  FI_ADDR_UNSPEC, 0, 0, &u->context);
		assert_int_equal(ret, 0);
		return fi_cancel(&u->ep->fid, &u->context);
	}
	return fi_cancel(&u->ep->fid, &u->context); /* nothing is under way */
}

static void cancelled(struct subject *u, const struct slot *slot)
{
	struct fi_cq_err_entry err = { 0 };

	if (!receives(u))
		return;
	END_UNTIL(fi_cq_readerr(u->cq, &err, 0) == 1, );
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, &u->context);
}

/* A setting that it has: none is there for all. */
static int setting_of(const struct subject *u)
{
	if (u->ep->fid.fclass != FI_CLASS_TX_CTX)
		return FI_OPT_MIN_MULTI_RECV;
	return u->does & FI_MSG ? FI_OPT_INJECT_MSG_SIZE : FI_OPT_TX_SIZE;
}

static ssize_t call_getopt(struct subject *u)
{
	size_t len = sizeof(u->cnt);

	u->cnt = 0;
	return fi_getopt(&u->ep->fid, FI_OPT_ENDPOINT, setting_of(u), &u->cnt, &len);
}

static void is_set(struct subject *u, const struct slot *slot)
{
	assert_true(u->cnt > 0);
}

static ssize_t call_setopt(struct subject *u)
{
	size_t value = SETTING;

	return fi_setopt(&u->ep->fid, FI_OPT_ENDPOINT, setting_of(u), &value, sizeof(value));
}

static void was_set(struct subject *u, const struct slot *slot)
{
	assert_int_equal(call_getopt(u), 0);
	assert_int_equal(u->cnt, SETTING);
}

static ssize_t call_tx_ctx(struct subject *u)
{
	struct fid_ep *ctx = NULL;
	int ret = fi_tx_context(u->ep, 1, NULL, &ctx, NULL);

	u->opened = ctx ? &ctx->fid : NULL;
	return ret;
}

static void tx_opened(struct subject *u, const struct slot *slot)
{
	assert_int_equal(u->opened->fclass, FI_CLASS_TX_CTX);
	assert_int_equal(fi_close(u->opened), 0);
}

static ssize_t call_rx_ctx(struct subject *u)
{
	struct fid_ep *ctx = NULL;
	int ret = fi_rx_context(u->ep, 1, NULL, &ctx, NULL);

	u->opened = ctx ? &ctx->fid : NULL;
	return ret;
}

static void rx_opened(struct subject *u, const struct slot *slot)
{
	assert_int_equal(u->opened->fclass, FI_CLASS_RX_CTX);
	assert_int_equal(fi_close(u->opened), 0);
}

static ssize_t room(struct subject *u, ssize_t left)
{
	u->cnt = left > 0 ? (size_t)left : 0;
	return left < 0 ? left : 0;
}

static ssize_t call_rx_left(struct subject *u)
{
	return room(u, fi_rx_size_left(u->ep));
}

static ssize_t call_tx_left(struct subject *u)
{
	return room(u, fi_tx_size_left(u->ep));
}

static ssize_t call_export(struct subject *u)
{
	return u->ep->ops->export_xpu(u->ep, 0, NULL);
}

const struct slot ep_slots[] = {
	SLOT(fi_ops_ep, cancel, DOES_SETTINGS, call_cancel, cancelled),
	SLOT(fi_ops_ep, getopt, DOES_SETTINGS, call_getopt, is_set),
	SLOT(fi_ops_ep, setopt, DOES_SETTINGS, call_setopt, was_set),
	SLOT(fi_ops_ep, tx_ctx, DOES_CONTEXTS, call_tx_ctx, tx_opened),
	SLOT(fi_ops_ep, rx_ctx, DOES_CONTEXTS, call_rx_ctx, rx_opened),
	SLOT(fi_ops_ep, rx_size_left, FI_RECV, call_rx_left, is_set),
	SLOT(fi_ops_ep, tx_size_left, DOES_TRANSMIT, call_tx_left, is_set),
	SLOT(fi_ops_ep, export_xpu, DOES_NOT, call_export, NULL),
};
ALL_SLOTS(fi_ops_ep, ep_slots);

/* Names and groups */

/* A name is for what is not enabled: another of its kind. */
static ssize_t call_setname(struct subject *u)
{
	struct fi_info *info = u->s->info;
	struct fid_ep *ep;
	int ret;

	if (!(u->does & DOES_NAME))
		return fi_setname(&u->ep->fid, info->src_addr, info->src_addrlen);
	assert_int_equal(fi_setname(&u->ep->fid, info->src_addr, info->src_addrlen),
			 -FI_EOPBADSTATE);
	assert_int_equal(fi_endpoint(u->s->domain, info, &ep, NULL), 0);
	assert_ptr_equal(ep->cm->setname, u->ep->cm->setname);
	ret = fi_setname(&ep->fid, info->src_addr, info->src_addrlen);
	assert_int_equal(fi_ep_bind(ep, &u->s->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &u->s->far.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0); /* at the requested address */
	assert_int_equal(fi_close(&ep->fid), 0);
	return ret;
}

struct name {
	char bytes[128];
	size_t len;
};

static ssize_t call_getname(struct subject *u)
{
	struct name name = { .len = sizeof(name.bytes) }, known = name;
	int ret = fi_getname(&u->ep->fid, name.bytes, &name.len);

	if (ret)
		return ret;
	assert_int_equal(fi_av_lookup(u->s->av, u->root, known.bytes, &known.len), 0);
	assert_int_equal(name.len, known.len);
	assert_memory_equal(name.bytes, known.bytes, name.len);
	return 0;
}

static ssize_t call_getpeer(struct subject *u)
{
	struct name name = { .len = sizeof(name.bytes) };

	return fi_getpeer(u->ep, name.bytes, &name.len);
}

static ssize_t call_connect(struct subject *u)
{
	return fi_connect(u->ep, u->s->info->src_addr, NULL, 0);
}

static ssize_t call_listen(struct subject *u)
{
	return u->ep->cm->listen((struct fid_pep *)u->ep);
}

static ssize_t call_accept(struct subject *u)
{
	return fi_accept(u->ep, NULL, 0);
}

static ssize_t call_reject(struct subject *u)
{
	return u->ep->cm->reject((struct fid_pep *)u->ep, &u->ep->fid, NULL, 0);
}

static ssize_t call_shutdown(struct subject *u)
{
	return fi_shutdown(u->ep, 0);
}

static ssize_t call_join(struct subject *u)
{
	struct fi_collective_addr addr = { .coll_addr = FI_ADDR_NOTAVAIL };
	struct groups groups;
	struct fid_mc *mc;

	if (!(u->does & DOES_JOIN))
		return fi_join(u->ep, &addr, FI_COLLECTIVE, &mc, NULL);
	surface_groups(u->s, u->ep, u->root, &groups);
	assert_int_equal(groups.near->fid.fclass, FI_CLASS_MC);
	surface_groups_close(&groups);
	/* One of multicast there is not. */
	assert_int_equal(fi_join(u->ep, u->s->info->src_addr, 0, &mc, NULL), -FI_ENOSYS);
	return 0;
}

const struct slot cm_slots[] = {
	SLOT(fi_ops_cm, setname, DOES_NAME, call_setname, NULL),
	SLOT(fi_ops_cm, getname, DOES_NAME, call_getname, NULL),
	SLOT(fi_ops_cm, getpeer, DOES_NOT, call_getpeer, NULL),
	SLOT(fi_ops_cm, connect, DOES_NOT, call_connect, NULL),
	SLOT(fi_ops_cm, listen, DOES_NOT, call_listen, NULL),
	SLOT(fi_ops_cm, accept, DOES_NOT, call_accept, NULL),
	SLOT(fi_ops_cm, reject, DOES_NOT, call_reject, NULL),
	SLOT(fi_ops_cm, shutdown, DOES_NOT, call_shutdown, NULL),
	SLOT(fi_ops_cm, join, DOES_JOIN, call_join, NULL),
};
ALL_SLOTS(fi_ops_cm, cm_slots);
