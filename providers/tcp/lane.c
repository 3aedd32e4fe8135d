/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The bytes of a lane that is encrypted; tcp_lane.h has the contract. Called by the files of the
 * wire, on the thread that holds the endpoint's domain.
 */
#include "tcp_lane.h"
#include "tcp_secret.h"

/*
 * Bytes of one read from the socket: two whole records, so that payload takes half of the system
 * calls. The buffer of a lane is as long.
 */
#define READ_AHEAD (2 * ((16u << 10) + 512u))

/* What encrypts a lane. */
struct tcp_secure {
	const struct tcp_crypto *crypto;
	struct tcp_tls *tls;
};

int tcp_lane_secure(struct tcp_lane *lane, const struct tcp_secret *secret, bool accepts)
{
	struct tcp_secure *secure = calloc(1, sizeof(*secure));

	if (!secure)
		return -FI_ENOMEM;
	secure->crypto = secret->crypto;
	secure->tls = secret->crypto->create(secret->tls, lane->fd, accepts, READ_AHEAD);
	if (!secure->tls) {
		free(secure);
		return -FI_ENOMEM;
	}
	lane->secure = secure;
	return 0;
}

int tcp_lane_handshake(struct tcp_lane *lane, bool *out)
{
	return lane->secure->crypto->handshake(lane->secure->tls, out);
}

void tcp_lane_insecure(struct tcp_lane *lane)
{
	struct tcp_secure *secure = lane->secure;

	if (!secure)
		return;
	secure->crypto->free(secure->tls);
	free(secure);
	lane->secure = NULL;
}

bool tcp_lane_shut(struct tcp_lane *lane)
{
	if (lane->fd < 0)
		return true;
	if (lane->secure && !lane->secure->crypto->shut(lane->secure->tls))
		return false;
	sys_socket_shut(lane->fd);
	return true;
}

ssize_t tcp_lane_decrypt(struct tcp_lane *lane, const struct iovec *iov, size_t cnt)
{
	return lane->secure->crypto->recv(lane->secure->tls, iov, cnt);
}

ssize_t tcp_lane_encrypt(struct tcp_lane *lane, const struct iovec *iov, size_t cnt)
{
	return lane->secure->crypto->send(lane->secure->tls, iov, cnt);
}

void tcp_lane_requeue(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_secure *secure = lane->secure;

	/* A data lane that waits for the turn of its header is read when that has come. */
	if (conn->dead || lane->state != TCP_LANE_UP ||
	    (lane == &conn->data && !list_empty(&conn->waiting)) ||
	    !secure->crypto->pending(secure->tls))
		return;
	lane->revents |= EPOLLIN;
	list_remove(&lane->ready);
	list_add_tail(&tcp_wire_of(conn)->ready, &lane->ready);
}
