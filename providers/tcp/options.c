/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel is told of a lane's socket. Called by the hub and by greeting, on the thread that
 * holds the endpoint's domain.
 */
#include <netinet/tcp.h>
#include "tcp.h"
#include "tcp_wire.h"

static const char reno[] = "reno";

static bool same_host(int fd)
{
	union tcp_sockaddr here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof(here), there_len = sizeof(there);

	if (getsockname(fd, &here.sa, &here_len) || getpeername(fd, &there.sa, &there_len))
		return false;
	return tcp_sockaddr_same_ip(&here, &there) ||
	       (tcp_sockaddr_loopback(&here) && tcp_sockaddr_loopback(&there));
}

/*
 * A connection that stays inside the host shares no network with anyone, so congestion control can only
 * cost there, and some costs much: BBR slows payload of 1 MiB by up to a third. Every kernel has Reno, for
 * every user. A socket has it before it is connected, an accepted one from its listener, since pacing, which
 * BBR starts with the connection, goes on after a change: after a pause it may hold the end of a message
 * back for as long as the peer took to acknowledge the one before.
 */
void tcp_set_fresh(struct tcp_hub *hub, int fd)
{
	socklen_t len = sizeof(hub->congestion) - 1;

	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, hub->congestion, &len);
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno) - 1);
}

/* A connection that leads elsewhere has the system's choice, or that of its route. */
void tcp_set_connected(struct tcp_hub *hub, int fd)
{
	char now[TCP_CONGESTION_LEN] = "";
	socklen_t len = sizeof(now) - 1;

	if (same_host(fd) || getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, now, &len))
		return;
	if (!strcmp(now, reno) && hub->congestion[0])
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, hub->congestion,
			   (socklen_t)strlen(hub->congestion));
}

/*
 * Keepalive is what notices a dead host while nothing is under way. A bound on unacknowledged
 * data is set only until the lane is connected: see lane_check().
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
 * The kernel offers 64 KiB at first and more as it learns that they are read, which takes hundreds of
 * messages; until then who sends more at once waits within each. A low-water mark raises the buffer and
 * leaves the kernel's own growth on, which SO_RCVBUF would end. It is bounded by half of tcp_rmem's most.
 */
void tcp_set_window(int fd, int len)
{
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &len, sizeof(len));
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
}
