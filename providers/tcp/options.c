/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket options. Called by the hub and while greeting, on the thread that holds the endpoint's
 * domain.
 */
#include "iface.h"
#include "net_socket.h"
#include "tcp.h"
#include "tcp_options.h"
#include "tcp_wire.h"

#define KEEPALIVE_CNT 3 /* questions without an answer, for FI_TCP_DEAD_MS in all */

static const char reno[] = "reno";

static void set_reno(int fd)
{
	sys_socket_set(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno) - 1);
}

static bool same_host(const union ip_sockaddr *here, const union ip_sockaddr *there)
{
	return ip_sockaddr_same_ip(here, there) ||
	       (ip_sockaddr_loopback(here) && ip_sockaddr_loopback(there));
}

bool tcp_within_host(int fd)
{
	union ip_sockaddr here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof(here), there_len = sizeof(there);

	return !sys_socket_own(fd, &here.sa, &here_len) &&
	       !sys_socket_peer(fd, &there.sa, &there_len) && same_host(&here, &there);
}

/*
 * A connection inside the host shares no network with others, so that congestion control can only
 * cost, and some costs much: BBR slows payload of 1 MiB by up to a third. Reno is in every kernel,
 * for every user. It is set before connect() where the address is known to be local: BBR begins
 * pacing with the connection, and pacing continues after a change. After a pause, pacing may hold
 * back the end of a message for as long as the peer took to acknowledge the one before.
 */
void tcp_set_connecting(int fd, const union ip_sockaddr *to)
{
	union ip_sockaddr from;

	if (!ip_iface_route(to, &from) && same_host(&from, to))
		set_reno(fd);
}

void tcp_set_connected(int fd)
{
	if (tcp_within_host(fd))
		set_reno(fd);
}

/*
 * The peer of an accepted socket is not known beforehand: it has the setting of its listener, or
 * of its route.
 */
void tcp_set_listening(struct tcp_hub *hub, int fd)
{
	char *name = hub->congestion;

	if (sys_socket_congestion(fd, name, sizeof(hub->congestion)) || strncmp(name, "bbr", 3))
		name[0] = '\0';
	else
		set_reno(fd);
}

void tcp_set_accepted(const struct tcp_hub *hub, int fd)
{
	if (tcp_within_host(fd))
		set_reno(fd);
	else if (hub->congestion[0])
		sys_socket_set(fd, IPPROTO_TCP, TCP_CONGESTION, hub->congestion,
			       strlen(hub->congestion));
}

static void set_keepalive(int fd, int idle_s, int interval_s)
{
	sys_socket_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	sys_socket_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
}

/* Keepalive detects a dead host while nothing is under way. For a lane that is up see lane_check(). */
static void set_patience(int fd)
{
	int interval_s = tcp_settings.dead_ms >= 5000 ? tcp_settings.dead_ms / 5000 : 1;
	int idle_s = tcp_settings.dead_ms / 1000 - KEEPALIVE_CNT * interval_s;

	set_keepalive(fd, idle_s > 0 ? idle_s : 1, interval_s);
}

void tcp_set_options(int fd)
{
	int on = 1, cnt = KEEPALIVE_CNT;

	sys_socket_set(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	sys_socket_set(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	sys_socket_set(fd, IPPROTO_TCP, TCP_KEEPCNT, &cnt, sizeof(cnt));
	set_patience(fd);
}

/*
 * A preamble finds room in any kernel, so that only a dead host does not acknowledge it, whereas a
 * process may take any time to answer. Its kernel is asked each second whether it still has the
 * socket: one that has ended without a word, or whose reset was lost, would be waited for. With a
 * bound on unacknowledged data the kernel does not count its questions: silence has that bound.
 */
void tcp_set_greeting(int fd)
{
	unsigned int ms = (unsigned int)tcp_settings.dead_ms;

	sys_socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	set_keepalive(fd, 1, 1);
}

void tcp_set_greeted(int fd)
{
	unsigned int none = 0;

	sys_socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof(none));
	set_patience(fd);
}

/*
 * The kernel offers 64 KiB at first, and more once it has learned that they are read, which takes
 * hundreds of messages. Until then the sender of a larger one waits in the middle of each.
 * SO_RCVLOWAT raises the buffer and leaves the kernel's own growth on, which SO_RCVBUF would end.
 * It is bounded by half of the maximum of tcp_rmem. The first read then sends a window update,
 * which takes 3 us: not for a lane of small messages.
 */
void tcp_set_window(int fd, int len)
{
	int one = 1;

	sys_socket_set(fd, SOL_SOCKET, SO_RCVLOWAT, &len, sizeof(len));
	sys_socket_set(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
}
