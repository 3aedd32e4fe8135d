/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket options. Called by the hub and while greeting, on the thread that holds the endpoint's
 * domain.
 */
#include <netinet/tcp.h>
#include "iface.h"
#include "tcp.h"
#include "tcp_options.h"
#include "tcp_wire.h"

static const char reno[] = "reno";

static void set_reno(int fd)
{
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno) - 1);
}

static bool same_host(const union tcp_sockaddr *here, const union tcp_sockaddr *there)
{
	return tcp_sockaddr_same_ip(here, there) ||
	       (tcp_sockaddr_loopback(here) && tcp_sockaddr_loopback(there));
}

static bool connected_within(int fd)
{
	union tcp_sockaddr here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof(here), there_len = sizeof(there);

	return !getsockname(fd, &here.sa, &here_len) &&
	       !getpeername(fd, &there.sa, &there_len) && same_host(&here, &there);
}

/*
 * A connection inside the host shares no network with others, so that congestion control can only
 * cost, and some costs much: BBR slows payload of 1 MiB by up to a third. Reno is in every kernel,
 * for every user. It is set before connect() where the address is known to be local: BBR begins
 * pacing with the connection, and pacing continues after a change; after a pause it may hold back
 * the end of a message for as long as the peer took to acknowledge the one before.
 */
void tcp_set_connecting(int fd, const union tcp_sockaddr *to)
{
	union tcp_sockaddr from;

	if (!tcp_iface_route(to, &from) && same_host(&from, to))
		set_reno(fd);
}

void tcp_set_connected(int fd)
{
	if (connected_within(fd))
		set_reno(fd);
}

/*
 * The peer of an accepted socket is not known beforehand: it has the setting of its listener, or
 * of its route.
 */
void tcp_set_listening(struct tcp_hub *hub, int fd)
{
	socklen_t len = sizeof(hub->congestion) - 1;
	char *name = hub->congestion;

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) || strncmp(name, "bbr", 3))
		name[0] = '\0';
	else
		set_reno(fd);
}

void tcp_set_accepted(const struct tcp_hub *hub, int fd)
{
	if (connected_within(fd))
		set_reno(fd);
	else if (hub->congestion[0])
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, hub->congestion,
			   (socklen_t)strlen(hub->congestion));
}

/*
 * Keepalive detects a dead host while nothing is under way. The bound on unacknowledged data is
 * set until the answer has arrived: a preamble finds room in any kernel, so that only a dead host
 * does not acknowledge it, whereas a process may take any time to answer. For a lane that is up
 * see lane_check().
 */
void tcp_set_options(int fd)
{
	int on = 1, cnt = 3;
	int interval_s = tcp_settings.dead_ms >= 5000 ? tcp_settings.dead_ms / 5000 : 1;
	int idle_s = tcp_settings.dead_ms / 1000 > cnt * interval_s
			     ? tcp_settings.dead_ms / 1000 - cnt * interval_s
			     : 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &cnt, sizeof(cnt));
}

void tcp_set_timeout(int fd, unsigned int ms)
{
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

/*
 * The kernel offers 64 KiB at first, and more as it learns that they are read, which takes
 * hundreds of messages; until then a sender of more at once waits in the middle of each.
 * SO_RCVLOWAT raises the buffer and leaves the kernel's own growth on, which SO_RCVBUF would end.
 * It is bounded by half of the maximum of tcp_rmem. The first read then sends a window update,
 * which takes 3 us: not for a lane of small messages.
 */
void tcp_set_window(int fd, int len)
{
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &len, sizeof(len));
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
}
