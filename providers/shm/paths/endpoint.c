/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How shm endpoints begin and end. Called by the engine, on the thread that holds the domain.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "conn.h"
#include "connect.h"
#include "lists.h"
#include "membarrier.h"
#include "moved.h"
#include "ns.h"
#include "peer_arena.h"
#include "provider.h"
#include "service.h"
#include "share.h"
#include "shm.h"
#include "shm_endpoint.h"
#include "socket.h"
#include "transfer.h"

static int open_failed(int err, const char *what, char *why, size_t why_len)
{
	if (why_len)
		snprintf(why, why_len, "%s (error %d)", what, -err);
	return err;
}

/* Returns a hash of host and pid namespace, or ADDR_NO_NS: then peers find us by sockets alone. */
static uint32_t ns_hash(bool *host_known)
{
	uint64_t host = 0, hash;
	uint32_t pid_ns;

	*host_known = !sys_ns_host(&host);
	if (sys_ns_pid(&pid_ns))
		return ADDR_NO_NS;
	hash = (host ^ pid_ns) * UINT64_C(0x9e3779b97f4a7c15);
	hash ^= hash >> 32;
	return (uint32_t)hash ? (uint32_t)hash : 1;
}

/* Fills the endpoint's address but for its inbox. Returns 0, or -FI_E* and why. */
static int address_begin(struct weft_addr *ours, bool *host_known, char *why, size_t why_len)
{
	int err = pshm_sockets_name(ours->nonce);

	if (err)
		return open_failed(err, "no random bytes", why, why_len);
	ours->ns_hash = ns_hash(host_known);
	ours->version = ADDR_VERSION;
	ours->kind = ADDR_NONCE;
	ours->pid = (uint32_t)getpid();
	return 0;
}

/* Makes the inbox, and completes the address by it. Returns 0, or -FI_E* and why. */
static int inbox_make(struct pshm_wire *w, const struct wire_attr *attr, struct weft_addr *ours,
		      char *why, size_t why_len)
{
	int err = pshm_inbox_create(ours->nonce, &w->own_inbox);

	if (err)
		return open_failed(err, "can't make shared memory: check memory and ulimit -n",
				   why, why_len);
	w->inbox = w->own_inbox.inbox;
	ours->fd = (uint32_t)w->own_inbox.fd;
	if (!attr->bind || !pshm_service_named(attr->bind))
		return 0;
	ours->family = ADDR_FAMILY_LOCAL;
	memcpy(ours->ip, attr->bind->ip, sizeof(ours->ip));
	err = pshm_service_publish(ours, &w->service);
	if (!err)
		return 0;
	pshm_inbox_destroy(&w->own_inbox);
	return open_failed(err, "can't have the service: another process may", why, why_len);
}

/* Lets peers find it by sockets. Returns 0, or -FI_E* and why when they can't find it at all. */
static int inbox_announce(struct pshm_wire *w, char *why, size_t why_len)
{
	int err = pshm_sockets_join(w);

	if (!err)
		return 0;
	if (w->ns_hash == ADDR_NO_NS)
		return open_failed(err, "no /proc and no socket to be found through", why,
				   why_len);
	FI_INFO(&pshm_provider, FI_LOG_EP_CTRL,
		"can't make a socket: %s; found through /proc alone\n", strerror(-err));
	return 0;
}

/* Makes the inbox, and lets peers find it. Returns 0, or -FI_E* and why. */
static int inbox_open(struct pshm_wire *w, const struct wire_attr *attr, struct weft_addr *ours,
		      char *why, size_t why_len)
{
	int err = inbox_make(w, attr, ours, why, why_len);

	if (err)
		return err;
	err = inbox_announce(w, why, why_len);
	if (err) {
		sys_shared_close(w->service);
		pshm_inbox_destroy(&w->own_inbox);
	}
	return err;
}

static void conn_ended(struct pshm_conn *conn, bool wait)
{
	pshm_transfers_drop(conn, wait);
	pshm_sockets_drop(&conn->ask);
}

static bool conn_freed(struct pshm_conn *conn)
{
	pshm_sockets_drop(&conn->ask);
	return pshm_share_keep(conn);
}

static void conn_attached(struct pshm_conn *conn)
{
	pshm_share_show(conn);
	pshm_arena_show(conn);
}

static const struct pshm_conn_ops conn_ops = {
	.attached = conn_attached,
	.ended = conn_ended,
	.freed = conn_freed,
	.access_reached = pshm_access_reached,
};

static void wire_init(struct pshm_wire *w, struct engine_ep *ep, const struct weft_addr *ours)
{
	w->base.ops = &pshm_wire_ops;
	w->base.ep = ep;
	w->conn_ops = &conn_ops;
	w->pid = ours->pid;
	w->ns_hash = ours->ns_hash;
	memcpy(w->nonce, ours->nonce, PSHM_NONCE);
	w->area_max = PSHM_AREAS_MAX;
	fi_param_get_size_t(&pshm_provider, "area_budget", &w->area_max);
	w->bell = w->wake_fd = -1;
	w->barriers = !sys_membarrier_all_open();
	arena_look();
	list_init(&w->work);
	list_init(&w->connecting);
	list_init(&w->accepted);
	list_init(&w->ended);
	list_init(&w->conns);
	pshm_transfers_init(w);
	list_init(&w->share_link);
}

int pshm_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	      struct wire **wire, char *why, size_t why_len)
{
	struct weft_addr ours = *addr;
	struct pshm_wire *w;
	bool host_known = false;
	int err;

	if (!pshm_pair_allowed(&pshm_small_pair))
		return open_failed(-EFBIG,
				   "the limit on files is below the memory of a connection: "
				   "raise 'ulimit -f'",
				   why, why_len);
	pshm_fork_watch();
	err = address_begin(&ours, &host_known, why, why_len);
	if (err)
		return err;
	w = platform_alloc(sizeof(*w));
	if (!w)
		return open_failed(-FI_ENOMEM, "out of memory", why, why_len);
	wire_init(w, ep, &ours);
	w->host_known = host_known;
	err = inbox_open(w, attr, &ours, why, why_len);
	if (err) {
		pshm_transfers_fini(w);
		platform_free(w);
		return err;
	}
	pshm_share_join(w, attr);
	pshm_lists_join(w);

	*addr = ours;
	*wire = &w->base;
	return 0;
}

void pshm_local(struct wire *wire, char *buf, size_t len)
{
	if (len)
		snprintf(buf, len, "pid %u", ((struct pshm_wire *)wire)->pid);
}

void pshm_close(struct wire *wire)
{
	struct pshm_wire *w = (struct pshm_wire *)wire;
	struct pshm_conn *conn;

	pshm_lists_leave(w);

	/* what was published stays in memory that the peer has mapped too */
	list_for_each_entry(conn, &w->conns, all) {
		if (!conn->ended)
			pshm_conn_end(conn, PSHM_CLOSED, true);
	}
	pshm_conn_reap(w);
	pshm_moved_tell(w);
	pshm_conns_change(w);
	list_remove(&w->share_link);
	/*
	 * R:pshm_inbox.closed  the last check of the mailbox before it; pairs A:pshm_inbox.closed
	 */
	if (!w->forked)
		atomic_store_explicit(&w->inbox->closed, 1, memory_order_release);
	sys_shared_close(w->service);
	pshm_sockets_leave(w);
	pshm_bells_close(w);
	pshm_inbox_destroy(&w->own_inbox);
	pshm_transfers_fini(w);
	platform_free(w->up);
	platform_free(w);
}
