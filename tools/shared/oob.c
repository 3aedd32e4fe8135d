/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The out-of-band channel; oob.h has the contract. Blobs travel behind a
 * 4-byte little-endian length that is checked before anything is read into
 * the caller's room.
 */
#define _GNU_SOURCE
#include "oob.h"

#include <endian.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void note_local(struct oob *oob)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	int one = 1;

	oob->local[0] = '\0';
	if (getsockname(oob->fd, (struct sockaddr *)&sa, &len))
		return;
	if (getnameinfo((struct sockaddr *)&sa, len, oob->local, sizeof(oob->local), NULL, 0,
			NI_NUMERICHOST))
		oob->local[0] = '\0';
	/* An IPv4 client of an IPv6 socket; providers want the plain form. */
	if (!strncmp(oob->local, "::ffff:", 7))
		memmove(oob->local, oob->local + 7, strlen(oob->local + 7) + 1);
	setsockopt(oob->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static int resolve(const char *host, unsigned port, int flags, struct addrinfo **list)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	char service[16];
	int rc;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, list);
	if (rc) {
		warnx("%s: %s", host ? host : "any address", gai_strerror(rc));
		return -EADDRNOTAVAIL;
	}
	return 0;
}

static int listen_at(const struct addrinfo *ai)
{
	int one = 1, off = 0, fd, err;

	fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* With no host given an IPv6 socket serves both families, where there is IPv6. */
static int listen_any(const struct addrinfo *list)
{
	const struct addrinfo *ai;
	int fd = -EADDRNOTAVAIL;

	for (ai = list; ai; ai = ai->ai_next) {
		if (ai->ai_family != AF_INET6)
			continue;
		fd = listen_at(ai);
		if (fd >= 0)
			return fd;
	}
	for (ai = list; ai; ai = ai->ai_next) {
		fd = listen_at(ai);
		if (fd >= 0)
			return fd;
	}
	return fd;
}

int oob_listen(struct oob *oob, const char *host, unsigned port)
{
	struct addrinfo *list;
	int fd, rc;

	rc = resolve(host, port, AI_PASSIVE, &list);
	if (rc)
		return rc;
	fd = listen_any(list);
	freeaddrinfo(list);
	if (fd < 0) {
		warnx("cannot listen on port %u: %s", port, strerror(-fd));
		return fd;
	}
	warnx("waiting for the client on port %u", port);
	do {
		oob->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	} while (oob->fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	rc = oob->fd < 0 ? -errno : 0;
	close(fd);
	if (rc)
		warnx("accept: %s", strerror(-rc));
	else
		note_local(oob);
	return rc;
}

static int connect_any(const struct addrinfo *list)
{
	const struct addrinfo *ai;
	int fd, err = -EADDRNOTAVAIL;

	for (ai = list; ai; ai = ai->ai_next) {
		fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			err = -errno;
			continue;
		}
		if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
			return fd;
		err = -errno;
		close(fd);
	}
	return err;
}

int oob_connect(struct oob *oob, const char *host, unsigned port, int wait_ms)
{
	const struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };
	struct addrinfo *list;
	int fd, rc, told = 0;

	rc = resolve(host, port, 0, &list);
	if (rc)
		return rc;
	while ((fd = connect_any(list)) == -ECONNREFUSED && wait_ms > 0) {
		if (!told++)
			warnx("no server at %s port %u yet, trying for %d s", host, port,
			      wait_ms / 1000);
		nanosleep(&pause, NULL);
		wait_ms -= 50;
	}
	freeaddrinfo(list);
	if (fd < 0) {
		warnx("cannot connect to %s port %u: %s", host, port, strerror(-fd));
		return fd;
	}
	oob->fd = fd;
	note_local(oob);
	return 0;
}

void oob_adopt(struct oob *oob, int fd)
{
	oob->fd = fd;
	oob->local[0] = '\0';
}

static int write_all(int fd, const void *buf, size_t len)
{
	const char *at = buf;
	ssize_t n;

	while (len) {
		n = send(fd, at, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int read_all(int fd, void *buf, size_t len)
{
	char *at = buf;
	ssize_t n;

	while (len) {
		n = recv(fd, at, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EPIPE;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int read_blob(int fd, void *in, size_t *in_len)
{
	uint32_t len;
	int rc;

	rc = read_all(fd, &len, sizeof(len));
	if (rc)
		return rc;
	len = le32toh(len);
	if (len > *in_len)
		return -EMSGSIZE;
	*in_len = len;
	return read_all(fd, in, len);
}

int oob_exchange(struct oob *oob, const void *out, size_t out_len, void *in, size_t *in_len)
{
	uint32_t len = htole32((uint32_t)out_len);
	int rc;

	/* Blobs are far smaller than a socket buffer: both may write first. */
	if (out_len > OOB_BLOB_MAX)
		return -EMSGSIZE;
	rc = write_all(oob->fd, &len, sizeof(len));
	if (!rc)
		rc = write_all(oob->fd, out, out_len);
	if (!rc)
		rc = read_blob(oob->fd, in, in_len);
	if (rc == -ECONNRESET)
		rc = -EPIPE;
	/* of a socket that its owner gave a limit */
	if (rc == -EAGAIN)
		rc = -ETIMEDOUT;
	if (rc == -EPIPE)
		warnx("the other side has ended");
	else if (rc)
		warnx("exchange with the other side: %s", strerror(-rc));
	return rc;
}

int oob_barrier(struct oob *oob, int status)
{
	uint32_t mine = htole32((uint32_t)-status), theirs = 0;
	size_t len = sizeof(theirs);
	int rc;

	rc = oob_exchange(oob, &mine, sizeof(mine), &theirs, &len);
	if (rc)
		return rc;
	if (len != sizeof(theirs))
		return -EPROTO;
	theirs = le32toh(theirs);
	return theirs > 4096 ? -EPROTO : -(int)theirs;
}

int oob_gone(const struct oob *oob)
{
	struct pollfd pfd = { .fd = oob->fd, .events = POLLRDHUP };

	return poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

int oob_heard(const struct oob *oob)
{
	struct pollfd pfd = { .fd = oob->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

void oob_close(struct oob *oob)
{
	if (oob->fd >= 0)
		close(oob->fd);
	oob->fd = -1;
}
