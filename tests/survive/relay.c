/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A port that bends what passes; relay.h has the contract. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "node.h"
#include "relay.h"

#define CHUNK	 8192u
#define SOON	 1024u /* a deed is due within so many bytes as often as it is later */
#define LATE	 12000u
#define STALL_NS 20000000u
#define SOME_MAX 64u

int relay_open(struct relay *r, const struct sockaddr_in *to, uint64_t seed)
{
	socklen_t len = sizeof(r->here);

	*r = (struct relay){ .to = *to, .seed = seed };
	r->here = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	for (int i = 0; i < RELAY_LINKS; i++)
		r->links[i].fds[0] = r->links[i].fds[1] = -1;
	r->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (r->listener < 0 || bind(r->listener, (struct sockaddr *)&r->here, len) ||
	    listen(r->listener, 64))
		return -1;
	return getsockname(r->listener, (struct sockaddr *)&r->here, &len);
}

static void link_close(struct relay_link *l, bool reset)
{
	struct linger linger = { .l_onoff = 1 };

	for (int i = 0; i < 2; i++) {
		if (l->fds[i] >= 0 && reset)
			setsockopt(l->fds[i], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		if (l->fds[i] >= 0)
			close(l->fds[i]);
		l->fds[i] = -1;
	}
}

void relay_close(struct relay *r)
{
	for (int i = 0; i < RELAY_LINKS; i++)
		link_close(&r->links[i], false);
	if (r->listener >= 0)
		close(r->listener);
}

/* A free link, or a stalled or random one that is given up for it. */
static struct relay_link *link_for(struct relay *r)
{
	struct relay_link *l = &r->links[seeded_below(&r->seed, RELAY_LINKS)];

	for (int i = 0; i < RELAY_LINKS; i++)
		if (r->links[i].fds[0] < 0)
			return &r->links[i];
	link_close(l, seeded_below(&r->seed, 2));
	return l;
}

static void link_begin(struct relay *r, int fd)
{
	struct relay_link *l = link_for(r);
	int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (to < 0 || connect(to, (struct sockaddr *)&r->to, sizeof(r->to))) {
		close(fd);
		if (to >= 0)
			close(to);
		return;
	}
	*l = (struct relay_link){ .fds = { fd, to },
				  .at = seeded_below(&r->seed,
						     seeded_below(&r->seed, 2) ? SOON : LATE),
				  .deed = (enum relay_deed)seeded_below(&r->seed, RELAY_DEEDS) };
}

/* What can't be sent at once is lost with its connection. */
static void pass(struct relay_link *l, int to, const void *bytes, size_t len)
{
	if (send(l->fds[to], bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
		link_close(l, false);
}

/* Does the link's deed in the chunk at @off. */
static void misdo(struct relay *r, struct relay_link *l, int to, uint8_t *bytes, size_t len,
		  size_t off)
{
	size_t some = 1 + seeded_below(&r->seed, SOME_MAX);
	uint8_t noise[SOME_MAX];

	r->deeds[l->deed]++;
	if (some > len - off)
		some = len - off;
	switch (l->deed) {
	case RELAY_BEND:
		bytes[off] ^= (uint8_t)(1u << seeded_below(&r->seed, 8));
		pass(l, to, bytes, len);
		break;
	case RELAY_LOSE:
		memmove(bytes + off, bytes + off + some, len - off - some);
		pass(l, to, bytes, len - some);
		break;
	case RELAY_NOISE:
	case RELAY_REPEAT:
		for (size_t i = 0; i < some; i++)
			noise[i] = l->deed == RELAY_NOISE ? (uint8_t)seeded_random(&r->seed)
							  : bytes[off + i];
		pass(l, to, bytes, off);
		if (l->fds[to] >= 0)
			pass(l, to, noise, some);
		if (l->fds[to] >= 0)
			pass(l, to, bytes + off, len - off);
		break;
	case RELAY_CUT:
	case RELAY_RESET:
		if (off)
			pass(l, to, bytes, off);
		link_close(l, l->deed == RELAY_RESET);
		break;
	case RELAY_STALL:
	case RELAY_DEEDS:
		l->stalled_ns = node_now_ns();
		break;
	}
}

static bool link_turn(struct relay *r, struct relay_link *l, int from)
{
	uint8_t bytes[CHUNK];
	ssize_t len;
	bool due;

	if (l->stalled_ns && node_now_ns() > l->stalled_ns + STALL_NS)
		link_close(l, false);
	if (l->fds[from] < 0 || l->stalled_ns)
		return false;
	len = recv(l->fds[from], bytes, sizeof(bytes), MSG_DONTWAIT);
	if (len < 0 && errno == EAGAIN)
		return false;
	if (len <= 0) {
		link_close(l, false);
		return true;
	}
	if (!l->passed && !from) {
		r->head_len = (size_t)len < RELAY_HEAD ? (size_t)len : RELAY_HEAD;
		memcpy(r->head, bytes, r->head_len);
	}
	due = l->passed <= l->at && l->at < l->passed + (uint64_t)len;
	if (due)
		misdo(r, l, !from, bytes, (size_t)len, l->at - l->passed);
	else
		pass(l, !from, bytes, (size_t)len);
	l->passed += (uint64_t)len;
	return true;
}

bool relay_turn(struct relay *r)
{
	int fd = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	bool any = fd >= 0;

	if (any)
		link_begin(r, fd);
	for (int i = 0; i < RELAY_LINKS; i++)
		for (int from = 0; from < 2; from++)
			any |= link_turn(r, &r->links[i], from);
	return any;
}
