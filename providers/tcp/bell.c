/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waking a thread that sleeps. The bell is the epoll descriptor that watches all sockets of the
 * domain: senders do nothing for it, and arming it is a system call only where it did not watch a
 * lane that is polled (hot.c). Where a set of sockets is no descriptor, it rings. Work of poll
 * that no socket reports is in lists of the wire, which are read when the wire is armed. Called
 * by the engine on the thread that holds the endpoint's domain.
 */
#include "net_socket.h"
#include "tcp_bell.h"
#include "tcp_hot.h"
#include "tcp_hub.h"
#include "tcp_wire.h"

int tcp_bell(struct wire *out, int poll_set)
{
	struct tcp_wire *wire = tcp_wire_from(out);

	/* The descriptor is the parent's, and reports the parent's events. */
	return wire->hub->forked ? -FI_EOPBADSTATE : wire->hub->epoll_fd;
}

static uint64_t sooner(uint64_t ns, uint64_t due_ns, uint64_t now)
{
	uint64_t left = due_ns > now ? due_ns - now : 0;

	return left < ns ? left : ns;
}

/*
 * Returns the time until poll has to look at a conn or a listener without an event of a socket,
 * ns.
 */
static uint64_t next_due(const struct tcp_wire *wire)
{
	uint64_t now, ns = UINT64_MAX, hub_due = tcp_hub_due(wire->hub);
	const struct tcp_conn *conn;

	if (!list_empty(&wire->waiting))
		ns = TCP_TURN_NS;
	if (list_empty(&wire->timed) && hub_due == UINT64_MAX)
		return ns;
	now = platform_now_ns();
	if (hub_due != UINT64_MAX)
		ns = sooner(ns, hub_due, now);
	list_for_each_entry(conn, &wire->timed, timed)
		ns = sooner(ns, conn->due_ns, now);
	return ns;
}

/*
 * Notes that a thread sleeps until @now + @ns, before which no timer is due. @others: threads sleep
 * already, maybe for longer: armed_ns is the last of these times.
 */
static void sleeps_for(struct tcp_wire *wire, uint64_t now, uint64_t ns, bool others)
{
	uint64_t end = ns == UINT64_MAX ? ns : now + ns;

	if (!others || end > wire->armed_ns)
		wire->armed_ns = end;
	wire->armed = true;
}

static void ring(void *wire)
{
	engine_wire_wake(wire);
}

uint64_t tcp_arm(struct wire *out)
{
	struct tcp_wire *wire = tcp_wire_from(out);
	bool others = wire->armed;
	uint64_t ns, now = platform_now_ns();

	wire->armed = false;
	if (wire->hub->forked && !list_empty(&wire->conns))
		return 0; /* poll ends the conns of a copy */
	if (!list_empty(&wire->dirty) || !list_empty(&wire->finished) ||
	    !list_empty(&wire->telling) || !list_empty(&wire->ready) ||
	    !list_empty(&wire->arrived))
		return 0;
	ns = next_due(wire);
	if (!tcp_hot_watch(wire) && ns > TCP_TURN_NS)
		ns = TCP_TURN_NS;
	if (!ns || !sys_events_arm(wire->hub->epoll_fd, ring, &wire->wire))
		return 0;
	sleeps_for(wire, now, ns, others);
	return ns;
}

void tcp_disarm(struct wire *out)
{
	struct tcp_wire *wire = tcp_wire_from(out);

	wire->armed = false;
	sys_events_disarm(wire->hub->epoll_fd, &wire->wire);
}

void tcp_wake(struct tcp_wire *wire)
{
	if (unlikely(wire->armed) && !wire->polling)
		engine_wire_wake(&wire->wire);
}

void tcp_wake_by(struct tcp_wire *wire, uint64_t due_ns)
{
	if (!wire->polling)
		tcp_wake(wire);
	else if (unlikely(wire->armed) && due_ns < wire->armed_ns)
		wire->wake_due = true;
}
