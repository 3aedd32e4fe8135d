/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes in and out of a lane. Every byte of a lane passes here, so that there is one place where it
 * can be encrypted.
 */
#ifndef WEFT_TCP_LANE_H
#define WEFT_TCP_LANE_H

#include <sys/socket.h>
#include "tcp_wire.h"

/*
 * tcp_lane_recv, tcp_lane_recvmsg, tcp_lane_send, tcp_lane_sendmsg - as recv(2) and so on
 *
 * Of a message header the pieces count alone. Sends raise no SIGPIPE. A send that has failed for
 * lack of room is repeated with the same bytes first, though they may have moved and more may follow.
 * Returns bytes, 0 at the end of the stream, or -1 with errno.
 */
static inline ssize_t tcp_lane_recv(struct tcp_lane *lane, void *room, size_t len)
{
	return recv(lane->fd, room, len, 0);
}

static inline ssize_t tcp_lane_recvmsg(struct tcp_lane *lane, struct msghdr *msg)
{
	return recvmsg(lane->fd, msg, 0);
}

static inline ssize_t tcp_lane_send(struct tcp_lane *lane, const void *bytes, size_t len,
				    int flags)
{
	return send(lane->fd, bytes, len, MSG_NOSIGNAL | flags);
}

static inline ssize_t tcp_lane_sendmsg(struct tcp_lane *lane, const struct msghdr *msg)
{
	return sendmsg(lane->fd, msg, MSG_NOSIGNAL);
}

#endif
