/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of MSG endpoints: fi_connect, fi_accept, fi_shutdown, and what their peers do. The
 * endpoint has one peer, ep->only, which it dials or whose request it accepts; each step is
 * reported to its event queue. The slots take the domain; the functions of engine_cm_ops are
 * called with it held, by peer/.
 *
 * A connection ends once: by fi_shutdown, by its peer, or because it breaks. Operations under way
 * and receives that are posted complete with FI_ECANCELED, and FI_SHUTDOWN follows; messages that
 * have arrived whole can still be received, and other receives that are posted later complete at
 * once, with FI_ECANCELED too.
 *
 * Source: fi_cm(3), fi_msg(3), fi_eq(3).
 */
#include <rdma/fi_errno.h>
#include "cm.h"
#include "coll.h"
#include "conns.h"
#include "ctx.h"
#include "ep_fid.h"
#include "ep_names.h"
#include "ep_wires.h"
#include "events.h"
#include "guard.h"
#include "lost.h"
#include "nosys.h"
#include "peer.h"
#include "pep_fid.h"
#include "progress.h"
#include "recv.h"
#include "refuse.h"
#include "tasks.h"
#include "waiting.h"

/* Time that fi_shutdown waits for operations that are being sent, ns */
#define LEAVE_NS 1000000000u

static int engine_cm_refuse(const struct engine_ep *ep, int err, const char *call,
			    const char *why)
{
	return engine_refuse(ep->family, FI_LOG_EP_CTRL, err, call, why);
}

int engine_cm_data(const struct engine_family *family, const char *call, const void *param,
		   size_t len, struct hello_data *data)
{
	if (len > HELLO_DATA_MAX || (len && !param))
		return engine_refuse_value(family, FI_LOG_EP_CTRL, -FI_EINVAL, call,
					   "data of at most FI_OPT_CM_DATA_SIZE bytes", len);
	*data = (struct hello_data){ .len = (uint32_t)len };
	if (len)
		memcpy(data->bytes, param, len);
	return 0;
}

struct eq_event *engine_cm_event(uint32_t type, struct fid *fid, struct fi_info *info,
				 const struct hello_data *data)
{
	const struct fi_eq_cm_entry entry = { .fid = fid, .info = info };
	unsigned char bytes[sizeof(entry) + HELLO_DATA_MAX];
	size_t len = data ? data->len : 0;

	memcpy(bytes, &entry, sizeof(entry));
	if (len)
		memcpy(bytes + sizeof(entry), data->bytes, len);
	return eq_event_new(type, bytes, sizeof(entry) + len);
}

void engine_cm_report_to(struct engine_ep *ep, struct engine_eq *eq)
{
	if (ep->kind == ENGINE_EP_RDM)
		return;
	if (eq)
		atomic_fetch_add_explicit(&eq->connections, 1, memory_order_relaxed);
	if (ep->eq)
		atomic_fetch_sub_explicit(&ep->eq->connections, 1, memory_order_relaxed);
}

/* What the peer does. */

/* Reports that the endpoint is connected by that conn. @data: of the peer, or NULL */
static int engine_cm_connected(struct engine_ep *ep, struct wire_conn *conn,
			       const struct hello_data *data)
{
	struct engine_cm *cm = ep->cm;
	struct eq_event *event;
	int ret;

	ret = conn->wire->ops->names(conn, &cm->local, &cm->remote);
	if (ret)
		return ret;
	event = engine_cm_event(FI_CONNECTED, &ep->ctx.fid.fid, NULL, data);
	if (!event)
		return -FI_ENOMEM;
	cm->state = CM_CONNECTED;
	engine_eq_post(ep->eq, event);
	return 0;
}

/*
 * The event is before the peer's next request, which may come as soon as the peer has the answer.
 * Where it can't be posted now, up() tries it again, or tells why not.
 */
static void engine_cm_answering(struct engine_peer *peer, struct wire_conn *conn)
{
	(void)engine_cm_connected(peer->ep, conn, NULL);
}

static int engine_cm_up(struct engine_peer *peer, const struct hello *hello)
{
	struct engine_ep *ep = peer->ep;
	bool ours = ep->cm->state == CM_CONNECTING;
	int ret = 0;

	if (ep->cm->state != CM_CONNECTED)
		ret = engine_cm_connected(ep, peer->conn, ours ? &hello->data : NULL);
	if (!ret)
		engine_only_open(ep);
	return ret;
}

/*
 * Ends the receives that no message has matched, and those that are posted from now on; those of a
 * shared context wait for other peers.
 */
static void engine_cm_end_receives(struct engine_ep *ep)
{
	struct engine_rxq *q = ep->rx.q;
	struct engine_rx *rx;

	if (q->shared)
		return;
	while ((rx = engine_rxq_next(q, NULL))) {
		match_unpost(engine_matcher(q, rx->flags), &rx->match);
		engine_recv_error(ep->domain, rx, -FI_ECANCELED);
	}
	ep->rx.ended = true;
	engine_ctx_bound(&ep->ctx);
}

/* Reports that no connection was made. */
static void engine_cm_failed(struct engine_ep *ep, int err, const struct hello_data *data)
{
	struct fi_eq_err_entry entry = { .fid = &ep->ctx.fid.fid,
					 .context = ep->ctx.fid.fid.context,
					 .err = -err,
					 .prov_errno = -err };

	ep->cm->state = CM_ENDED;
	engine_cm_end_receives(ep);
	if (data && data->len) {
		entry.err_data = (void *)data->bytes;
		entry.err_data_size = data->len;
	}
	if (!engine_eq_push_error(ep->eq, &entry))
		return;
	engine_cm_refuse(ep, err, "a connection that failed",
			 "there is no memory for the error; FI_SHUTDOWN is reported");
	engine_eq_post(ep->eq, ep->cm->shutdown);
	ep->cm->shutdown = NULL;
}

static void engine_cm_refused(struct engine_peer *peer, int err, const struct hello_data *data)
{
	engine_cm_failed(peer->ep, err, data);
}

/*
 * The end of a round in which the connection has ended: what other endpoints have received in it is
 * reported before.
 */
static bool engine_cm_over(struct engine_task *task)
{
	struct engine_cm *cm = container_of(task, struct engine_cm, over);
	struct engine_ep *ep = cm->ep;

	engine_cm_end_receives(ep);
	engine_eq_post(ep->eq, cm->shutdown);
	cm->shutdown = NULL;
	return true;
}

static void engine_cm_lost(struct engine_peer *peer, int err)
{
	struct engine_ep *ep = peer->ep;
	struct engine_cm *cm = ep->cm;

	if (cm->state == CM_CONNECTING || cm->state == CM_ACCEPTING) {
		engine_cm_failed(ep, err, NULL);
	} else if (cm->state == CM_CONNECTED) {
		cm->state = CM_ENDED;
		engine_task_due(ep->domain, &cm->over);
	}
}

static const struct engine_cm_ops cm_ops = {
	.answering = engine_cm_answering,
	.up = engine_cm_up,
	.refused = engine_cm_refused,
	.lost = engine_cm_lost,
};

/* No peer connects to a MSG endpoint but by the connection that it has. */
static void engine_cm_requested(struct wire_conn *conn, const struct hello *hello)
{
	engine_conn_refuse(conn, -FI_ECONNREFUSED, NULL);
}

/* fi_connect and fi_accept */

/*
 * Enables the endpoint and checks that a connection may begin in @state. Takes the domain, and
 * keeps it if it returns 0.
 */
static int engine_cm_begin(struct engine_ep *ep, enum engine_cm_state state, const char *call)
{
	int ret = ep->enabled ? 0 : engine_ep_enable(ep);

	if (ret)
		return ret;
	engine_enter(ep->domain);
	if (ep->cm->state != state || ep->ctx.copied)
		ret = -FI_EOPBADSTATE;
	else if (!ep->eq)
		ret = -FI_ENOEQ;
	if (ret)
		engine_leave(ep->domain);
	if (ret == -FI_EOPBADSTATE)
		return engine_cm_refuse(
			ep, ret, call,
			"fi_connect takes a new endpoint, fi_accept one that was opened "
			"with the info of an FI_CONNREQ, and each of them once");
	return ret ? engine_cm_refuse(ep, ret, call, "no event queue is bound") : 0;
}

/* Makes the peer, and the event of the connection's end. */
static struct engine_peer *engine_cm_peer(struct engine_ep *ep, const struct weft_addr *address)
{
	struct engine_cm *cm = ep->cm;

	if (!cm->shutdown)
		cm->shutdown = engine_cm_event(FI_SHUTDOWN, &ep->ctx.fid.fid, NULL, NULL);
	return cm->shutdown ? engine_peer_only(ep, address) : NULL;
}

/* Returns true for an error of the network, which the event queue reports. */
static bool engine_cm_is_answer(int err)
{
	return err != -FI_EAGAIN && err != -FI_ENOMEM && err != -FI_EOPBADSTATE &&
	       err != -FI_EADDRINUSE && err != -FI_EADDRNOTAVAIL;
}

static int engine_cm_dial(struct engine_ep *ep, const struct weft_addr *address,
			  const struct hello_data *data)
{
	struct engine_peer *peer = engine_cm_peer(ep, address);
	int ret = peer ? engine_peer_dial(peer, data) : -FI_ENOMEM;

	if (!ret) {
		ep->cm->state = CM_CONNECTING;
		ep->domain->pending = true;
	} else if (engine_cm_is_answer(ret)) {
		engine_cm_failed(ep, ret, NULL);
		ret = 0;
	}
	return ret;
}

static int engine_cm_connect(struct fid_ep *fid, const void *addr, const void *param, size_t len)
{
	struct engine_ep *ep = engine_ctx_of(fid)->ep;
	const struct engine_family *family = ep->family;
	struct weft_addr address;
	struct hello_data data;
	char why[96] = "NULL for the address";
	int ret = -FI_EINVAL;

	if (addr)
		ret = family->addr_read(addr, engine_name_len(family, addr, SIZE_MAX), &address,
					why, sizeof(why));
	if (ret)
		return engine_cm_refuse(ep, ret, "fi_connect", why);
	ret = engine_cm_data(family, "fi_connect", param, len, &data);
	if (!ret)
		ret = engine_cm_begin(ep, CM_IDLE, "fi_connect");
	if (ret)
		return ret;
	ret = engine_cm_dial(ep, &address, &data);
	engine_leave(ep->domain);
	return ret;
}

/* Accepts the request of the endpoint, which goes to its wire. Returns 0 or -FI_E*. */
static int engine_cm_take(struct engine_ep *ep, const struct hello_data *data)
{
	struct engine_cm *cm = ep->cm;
	struct wire_conn *conn = cm->request;
	struct engine_peer *peer = engine_cm_peer(ep, &cm->hello.addr);
	int ret = peer ? cm->ops->join(conn, ep->wires[0].wire) : -FI_ENOMEM;

	if (ret)
		return ret;
	cm->request = NULL;
	cm->state = CM_ACCEPTING;
	ret = engine_conn_accept(conn, &cm->hello, data);
	if (ret)
		cm->state = CM_ENDED;
	ep->domain->pending = true;
	return ret;
}

static int engine_cm_accept(struct fid_ep *fid, const void *param, size_t len)
{
	struct engine_ep *ep = engine_ctx_of(fid)->ep;
	struct hello_data data;
	int ret = engine_cm_data(ep->family, "fi_accept", param, len, &data);

	if (!ret)
		ret = engine_cm_begin(ep, CM_REQUESTED, "fi_accept");
	if (ret)
		return ret;
	ret = engine_cm_take(ep, &data);
	/* The conn comes up in this round: the event is posted already. */
	if (!ret)
		engine_domain_progress(ep->domain);
	engine_leave(ep->domain);
	return ret ? engine_cm_refuse(
			     ep, ret, "fi_accept",
			     "no memory, no descriptor, or another authorization key there")
		   : 0;
}

/* fi_shutdown */

/* Waits until the wire has what is being sent. */
static void engine_cm_leave(struct engine_ep *ep)
{
	uint64_t end = platform_now_ns() + LEAVE_NS;

	engine_ep_drain(ep);
	while (ep->connected && ep->only->leaving_cnt && platform_now_ns() < end) {
		engine_domain_progress(ep->domain);
		platform_yield();
	}
}

/*
 * Ends the connection from this side. The wire is closed, which sends all that it has: its conn
 * is no longer the peer's.
 */
static void engine_cm_end(struct engine_ep *ep)
{
	struct engine_peer *peer = ep->only;

	engine_cm_leave(ep);
	if (!ep->connected) /* the peer was faster */
		return;
	engine_ep_report(ep);
	engine_bells_part(ep);
	engine_domain_unlink(ep);
	engine_conns_leave(peer);
	engine_wires_close(ep);
	engine_peer_lost(peer, -FI_ECANCELED, true);
	engine_tasks_run(ep->domain);
}

static int engine_cm_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct engine_ep *ep = engine_ctx_of(fid)->ep;
	bool bad;

	engine_enter(ep->domain);
	bad = ep->ctx.copied || (ep->cm->state != CM_CONNECTED && ep->cm->state != CM_ENDED);
	if (!bad && ep->cm->state == CM_CONNECTED)
		engine_cm_end(ep);
	engine_leave(ep->domain);
	return bad ? engine_cm_refuse(ep, -FI_EOPBADSTATE, "fi_shutdown",
				      "the endpoint is not connected")
		   : 0;
}

/* Names */

static int engine_cm_give(const struct engine_ep *ep, const char *call,
			  const struct weft_addr *address, void *addr, size_t *len)
{
	size_t room;

	if (!len)
		return engine_cm_refuse(ep, -FI_EINVAL, call, "NULL for the length");
	room = addr ? *len : 0;
	*len = engine_name_write(ep->family, address, addr, room);
	return room < *len ? -FI_ETOOSMALL : 0;
}

static int engine_cm_getname(struct fid *fid, void *addr, size_t *len)
{
	struct engine_ep *ep = engine_ctx_at(fid)->ep;
	struct weft_addr address;

	engine_enter(ep->domain);
	address = ep->cm->local.family ? ep->cm->local : ep->bind;
	engine_leave(ep->domain);
	if (!address.family)
		return engine_cm_refuse(ep, -FI_EOPBADSTATE, "fi_getname",
					"the endpoint gets an address when it connects");
	return engine_cm_give(ep, "fi_getname", &address, addr, len);
}

static int engine_cm_getpeer(struct fid_ep *fid, void *addr, size_t *len)
{
	struct engine_ep *ep = engine_ctx_of(fid)->ep;
	struct weft_addr address;
	bool connected;

	engine_enter(ep->domain);
	connected = ep->cm->state == CM_CONNECTED;
	address = ep->cm->remote;
	engine_leave(ep->domain);
	if (!connected)
		return engine_cm_refuse(ep, -FI_ENOTCONN, "fi_getpeer",
					"the endpoint is not connected");
	return engine_cm_give(ep, "fi_getpeer", &address, addr, len);
}

static struct fi_ops_cm engine_cm_slots = {
	.size = sizeof(struct fi_ops_cm),
	.setname = engine_ep_setname,
	.getname = engine_cm_getname,
	.getpeer = engine_cm_getpeer,
	.connect = engine_cm_connect,
	.listen = engine_no_cm_listen,
	.accept = engine_cm_accept,
	.reject = engine_no_cm_reject,
	.shutdown = engine_cm_shutdown,
	.join = engine_coll_join,
};

int engine_cm_open(struct engine_ep *ep, fid_t handle)
{
	struct engine_cm *cm = platform_alloc(sizeof(*cm));
	int ret;

	if (!cm)
		return -FI_ENOMEM;
	cm->ep = ep;
	cm->over.run = engine_cm_over;
	list_init(&cm->over.link);
	ep->cm = cm;
	ep->cm_ops = &cm_ops;
	ep->requested = engine_cm_requested;
	ep->ctx.directed_recv = false; /* there is one source */
	ep->ctx.fid.cm = &engine_cm_slots;
	if (!handle)
		return 0;
	if (!engine_pep_take(ep->domain->fabric, handle, &ep->bind))
		return 0;
	ret = engine_request_take(ep->domain->fabric, handle, cm);
	if (ret)
		return engine_cm_refuse(
			ep, ret, "fi_endpoint",
			"info.handle is no request that a passive endpoint of the fabric "
			"has reported, or it was answered");
	cm->state = CM_REQUESTED;
	ep->accepts = true;
	ep->bind = cm->local;
	ep->bind.port = 0;
	return 0;
}

void engine_cm_free(struct engine_ep *ep)
{
	struct engine_cm *cm = ep->cm;

	if (!cm)
		return;
	engine_task_drop(&cm->over);
	/* Before the memory is another endpoint's: events are found by it. */
	if (ep->eq)
		engine_eq_forget(ep->eq, &ep->ctx.fid.fid, NULL, NULL);
	if (cm->request)
		cm->ops->drop(cm->request);
	eq_event_free(cm->shutdown);
	platform_free(cm);
}
