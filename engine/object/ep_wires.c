/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wires of an endpoint: opened when it is enabled, or earlier when its name is asked for,
 * since the name contains where they listen. Until fi_enable they are not polled, and peers that
 * connect wait. Calls hold the domain.
 */
#include <rdma/fi_errno.h>
#include "ctx.h"
#include "ep_wires.h"
#include "loop.h"
#include "mr_fid.h"
#include "wire.h"

/* Opens one more wire. Returns 0 or -FI_E*; the entry keeps the reason. */
static int engine_wire_add(struct engine_ep *ep, const struct wire_ops *ops,
			   const struct wire_attr *attr)
{
	uint32_t idx = ep->wire_cnt++;
	struct engine_wire *w = &ep->wires[idx];
	int ret;

	w->ops = ops;
	ret = ops->open(ep, attr, &ep->address, &w->wire, w->why, sizeof(w->why));
	if (ret) {
		w->wire = NULL;
		w->err = ret;
		FI_INFO(ep->family->provider, FI_LOG_EP_CTRL, "%s: %s\n", ops->name, w->why);
		return ret;
	}
	w->wire->ops = ops;
	w->wire->ep = ep;
	w->wire->idx = idx;
	return 0;
}

void engine_wires_close(struct engine_ep *ep)
{
	for (uint32_t i = 0; i < ep->wire_cnt; i++)
		if (ep->wires[i].wire)
			ep->wires[i].ops->close(ep->wires[i].wire);
	ep->wire_cnt = 0;
}

/* Returns true if the endpoint connects, and no peer connects to it. */
static bool engine_wires_dial(const struct engine_ep *ep)
{
	return ep->kind == ENGINE_EP_MSG && !ep->accepts;
}

/*
 * Returns true if the endpoint listens where the program asked: a wire that failed leaves its part
 * of the address empty.
 */
static bool engine_wires_placed(const struct engine_ep *ep)
{
	static const uint8_t anywhere[sizeof(ep->bind.ip)];
	bool asked = ep->bind.port || memcmp(ep->bind.ip, anywhere, sizeof(anywhere));

	return !asked || engine_wires_dial(ep) || ep->address.family != ADDR_FAMILY_NONE;
}

/* The last wire that is not open: the network's, which comes last, is what a requested address is about. NULL: all are. */
static const struct engine_wire *engine_wire_failed(const struct engine_ep *ep)
{
	const struct engine_wire *failed = NULL;

	for (uint32_t i = 0; i < ep->wire_cnt; i++)
		if (!ep->wires[i].wire)
			failed = &ep->wires[i];
	return failed;
}

/* Reports an endpoint that is not what was asked for, and closes its wires. Returns the error of fi_enable(). */
static int engine_wires_fail(struct engine_ep *ep, int lack)
{
	const struct engine_wire *failed = engine_wire_failed(ep);
	int err = lack ? lack : failed ? failed->err : -FI_ENODEV;

	FI_WARN(ep->family->provider, FI_LOG_EP_CTRL, "the endpoint is not opened: %s\n",
		failed ? failed->why : "no wire is built in");
	engine_wires_close(ep);
	return err;
}

uint64_t engine_wires_remote_events(const struct engine_ep *ep)
{
	uint64_t events = 0;

	if (ep->sep_rxs) /* its contexts get counters later */
		return FI_REMOTE_READ | FI_REMOTE_WRITE;
	if (ep->rx.cntr[ENGINE_CNTR_REMOTE_READ])
		events |= FI_REMOTE_READ;
	if (ep->rx.cntr[ENGINE_CNTR_REMOTE_WRITE])
		events |= FI_REMOTE_WRITE;
	return events;
}

static int engine_wires_make(struct engine_ep *ep)
{
	struct wire_attr attr = { .bind = &ep->bind,
				  .tx_size = ep->tx_size,
				  .remote_events = engine_wires_remote_events(ep),
				  .domain = ep->domain,
				  .by_nonce = ep->family->by_nonce || ep->accepts,
				  .dials = engine_wires_dial(ep) };
	const struct wire_provider *wp;
	bool any = false, refused = false;
	int lack = 0, err;

	ep->address = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_NONCE };
	if (platform_random(ep->address.nonce, sizeof(ep->address.nonce)))
		return -FI_EIO;
	for (uint32_t i = 0; i < ENGINE_WIRE_MAX - 1 && ep->family->wires[i]; i++) {
		wp = wire_find(ep->family->wires[i]);
		if (!wp || (wp->ops->shares_memory && ep->no_shared_memory))
			continue;
		attr.share = engine_mrs_share(ep->domain, wp->ops);
		err = engine_wire_add(ep, wp->ops, &attr);
		any |= !err;
		refused |= err == -FI_EACCES && !wp->ops->shares_memory;
		if (err == -FI_EMFILE || err == -FI_ENOMEM)
			lack = err;
	}
	if (!any || refused || !engine_wires_placed(ep))
		return engine_wires_fail(ep, lack);
	attr.share = NULL;
	if (engine_wire_add(ep, &loop_wire_ops, &attr)) {
		engine_wires_close(ep);
		return -FI_ENOMEM;
	}
	return 0;
}

int engine_wires_open(struct engine_ep *ep)
{
	int ret = ep->wire_cnt ? 0 : engine_wires_make(ep);

	if (!ret)
		engine_ctx_watch(&ep->ctx);
	return ret;
}
