/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tools/shared/channel.h over one TCP socket of the loopback interface: what the kernel takes, which
 * no provider over TCP is faster than. Messages alone, without a header: a message has the length of
 * the receive that waits for it, and its bytes go from the sender's buffer into the receiver's. The
 * provider "spin" polls the socket and "block" sleeps in recv(2). One channel per process.
 */
#define _GNU_SOURCE
#include "channel.h"
#include "posted.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#define ACCEPT_SECS 60

static struct {
	int fd;
	bool blocks;
	struct posted posted;
	/* bytes of the first receive that have arrived */
	size_t got;
} raw = { .fd = -1 };

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* A socket that listens at a port of the kernel's choice; accept4(2) ends after ACCEPT_SECS. */
static int listen_at(struct sockaddr_in *at)
{
	const struct timeval secs = { .tv_sec = ACCEPT_SECS };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*at);

	*at = loopback();
	if (fd >= 0 && !bind(fd, (struct sockaddr *)at, len) && !listen(fd, 1) &&
	    !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &secs, sizeof(secs)) &&
	    !getsockname(fd, (struct sockaddr *)at, &len))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int connect_to(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Side 0 listens. */
static int meet(struct channel *ch)
{
	int listener = -1, one = 1, rc, flags;
	struct sockaddr_in mine = { 0 }, theirs = { 0 };
	size_t len = sizeof(theirs);

	if (!ch->side->rank) {
		listener = listen_at(&mine);
		if (listener < 0)
			return fabric_complain("a listening socket", -errno);
	}
	rc = oob_exchange(&ch->side->oob, &mine, sizeof(mine), &theirs, &len);
	if (!rc) {
		raw.fd = ch->side->rank ? connect_to(&theirs)
					: accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		rc = raw.fd < 0
			     ? fabric_complain("a connection of the loopback interface", -errno)
			     : 0;
	}
	if (listener >= 0)
		close(listener);
	if (!rc && setsockopt(raw.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		rc = fabric_complain("TCP_NODELAY", -errno);
	flags = rc || raw.blocks ? 0 : O_NONBLOCK;
	if (!rc && flags && fcntl(raw.fd, F_SETFL, flags))
		rc = fabric_complain("O_NONBLOCK", -errno);
	return rc;
}

int channel_open(struct channel *ch, const struct plan *plan, const struct channel_options *opt,
		 struct side *side)
{
	int rc;

	memset(ch, 0, sizeof(*ch));
	if (raw.fd >= 0) {
		warnx("over a socket there is one channel per process");
		return -FI_EBUSY;
	}
	raw.blocks = !strcmp(plan->provider, "block");
	if (!raw.blocks && strcmp(plan->provider, "spin")) {
		warnx("a socket is used by 'spin' or 'block', not '%s'", plan->provider);
		return -FI_EINVAL;
	}
	ch->opt = *opt;
	ch->side = side;
	ch->limits = (struct channel_limits){
		.provider = raw.blocks ? "socket, blocking" : "socket, polled",
		.max_message = SIZE_MAX,
	};
	rc = meet(ch);
	if (rc)
		channel_close(ch);
	return rc;
}

void channel_close(struct channel *ch)
{
	if (raw.fd >= 0)
		close(raw.fd);
	memset(&raw, 0, sizeof(raw));
	raw.fd = -1;
	memset(ch, 0, sizeof(*ch));
}

void channel_describe(const struct channel *ch, struct results_config *config)
{
	struct utsname kernel = { 0 };

	uname(&kernel);
	*config = (struct results_config){ 0 };
	snprintf(config->provider, sizeof(config->provider), "%s", ch->limits.provider);
	snprintf(config->prov_version, sizeof(config->prov_version), "-");
	snprintf(config->build, sizeof(config->build), "%s", ch->limits.provider);
	snprintf(config->library, sizeof(config->library), "Linux %.32s", kernel.release);
}

/* Returns when the kernel has all bytes: the peer reads them, as its receives are posted. */
int channel_send(struct channel *ch, struct channel_buf *buf, size_t len)
{
	struct channel_deadline deadline = { 0 };
	const char *at = buf->addr;
	ssize_t done;
	int rc;

	buf->op.is_recv = false;
	while (len) {
		done = send(raw.fd, at, len, MSG_NOSIGNAL);
		if (done > 0) {
			at += done;
			len -= (size_t)done;
			continue;
		}
		if (errno != EAGAIN)
			return fabric_complain("send", -errno);
		rc = channel_idle_turn(ch, &deadline);
		if (rc < 0)
			return rc;
	}
	ch->tx_done++;
	return 0;
}

int channel_recv(struct channel *ch, struct channel_buf *buf, size_t len)
{
	return posted_add(&raw.posted, ch, buf, len);
}

static inline int channel_progress(struct channel *ch)
{
	size_t len;
	struct channel_buf *buf = posted_first(&raw.posted, ch, &len);
	ssize_t got;

	if (!buf)
		return 0;
	while (raw.got < len) {
		got = recv(raw.fd, (char *)buf->addr + raw.got, len - raw.got, 0);
		if (got < 0 && errno == EAGAIN)
			return 0;
		if (got <= 0)
			return got ? fabric_complain("recv", -errno) : -FI_ESHUTDOWN;
		raw.got += (size_t)got;
	}
	raw.got = 0;
	posted_done(ch, buf, len);
	return 1;
}

#include "channel_wait.h"
