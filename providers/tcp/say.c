/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is said while a lane comes up; tcp_say.h has the contract. Called by greet.c, prove.c and
 * hub.c, on the thread that holds the endpoint's domain.
 */
#include "tcp_hub.h"
#include "tcp_lane.h"
#include "tcp_say.h"

struct tcp_unsaid {
	/* Bytes that are kept, and of them those that are sent */
	size_t len, sent;
	uint8_t bytes[];
};

/* Returns the bytes that the kernel took, or -FI_E*. */
static ssize_t send_some(struct tcp_lane *lane, const void *bytes, size_t len)
{
	ssize_t n = tcp_lane_send(lane, bytes, len, 0);

	if (n >= 0)
		return n;
	return tcp_no_room((int)n) || n == -FI_EINTR ? 0 : n;
}

static int keep(struct tcp_lane *lane, const void *bytes, size_t len)
{
	const struct tcp_unsaid *before = lane->unsaid;
	size_t old = before ? before->len : 0;
	struct tcp_unsaid *unsaid = calloc(1, sizeof(*unsaid) + old + len);

	if (!unsaid)
		return -FI_ENOMEM;
	if (before) {
		memcpy(unsaid->bytes, before->bytes, old);
		unsaid->sent = before->sent;
	}
	memcpy(unsaid->bytes + old, bytes, len);
	unsaid->len = old + len;
	free(lane->unsaid);
	lane->unsaid = unsaid;
	return 0;
}

int tcp_say(struct tcp_hub *hub, struct tcp_lane *lane, const void *bytes, size_t len)
{
	ssize_t n = lane->unsaid ? 0 : send_some(lane, bytes, len);
	int err;

	if (n == (ssize_t)len)
		return 0;
	if (n < 0)
		return (int)n;
	err = keep(lane, (const uint8_t *)bytes + n, len - (size_t)n);
	return err ? err : tcp_watch(hub, lane, EPOLLIN | EPOLLOUT);
}

int tcp_say_rest(struct tcp_hub *hub, struct tcp_lane *lane)
{
	struct tcp_unsaid *unsaid = lane->unsaid;
	ssize_t n;

	if (likely(!unsaid))
		return 1;
	n = send_some(lane, unsaid->bytes + unsaid->sent, unsaid->len - unsaid->sent);
	if (n < 0)
		return (int)n;
	unsaid->sent += (size_t)n;
	if (unsaid->sent < unsaid->len)
		return 0;
	tcp_say_forget(lane);
	n = tcp_watch(hub, lane, EPOLLIN);
	return n ? (int)n : 1;
}

void tcp_say_forget(struct tcp_lane *lane)
{
	free(lane->unsaid);
	lane->unsaid = NULL;
}
