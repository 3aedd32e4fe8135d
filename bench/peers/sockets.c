/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sockets without a kernel; sockets.h has the contract. These functions stand before libc's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "sockets.h"

#define FIRST	   (1 << 24) /* descriptors that are made up; the kernel's are below */
#define ANSWER_MAX 4096u
#define AGAIN_MAX  64u /* readable sockets that one epoll_wait() reports */

/*
 * What a peer that is made up knows of the provider (providers/tcp/tcp_wire.h): where the secret of a
 * session is in what both sides say first, which answers repeat, and the packet that acknowledges.
 */
#define COOKIE_LEN    16u
#define COOKIE_ASKED  24u
#define COOKIE_ANSWER 16u
#define ACK_OP	      0xf2u
#define ACK_LEN	      (64u << 10) /* bytes after which one is sent */
#define PACKET_LEN    32u
#define PACKET_TAG    16u /* the bytes that are acknowledged */

/* A socket that is made up. */
struct made {
	struct sockaddr_storage peer;
	epoll_data_t data;
	uint32_t events; /* what epoll is to report */
	uint32_t ready;	 /* what it would report */
	bool queued;	 /* in ready_list[] */
	bool greeted;	 /* it was sent something: the answer waits */
	uint32_t answered;
	uint8_t cookie[COOKIE_LEN];
	uint64_t in, acked;
	uint8_t ack[PACKET_LEN];
	uint32_t ack_left; /* of the last acknowledgement, bytes that were not read */
};

static struct made *made;
static uint32_t made_max, made_cnt;
static uint32_t *ready_list, ready_cnt;
static uint64_t sent_bytes;
static uint8_t answer[ANSWER_MAX];
static uint32_t answer_len;
static int recorded_fd = -1;
static bool recording, pretending;

/* The kernel's: @name of libc, which this program stands before. */
#define REAL(ret, name, ...)                                         \
	({                                                           \
		static ret (*real_)(__VA_ARGS__);                    \
		if (!real_)                                          \
			*(void **)(&real_) = dlsym(RTLD_NEXT, name); \
		real_;                                               \
	})

static struct made *made_of(int fd)
{
	return fd >= FIRST ? &made[fd - FIRST] : NULL;
}

static int fail(int err)
{
	errno = err;
	return -1;
}

static void look(struct made *m)
{
	if (!(m->ready & m->events) || m->queued)
		return;
	m->queued = true;
	ready_list[ready_cnt++] = (uint32_t)(m - made);
}

void sockets_record(void)
{
	recording = true;
}

uint32_t sockets_recorded(void)
{
	return answer_len;
}

int sockets_pretend(uint32_t cnt)
{
	made = calloc(cnt, sizeof(*made));
	ready_list = calloc(cnt, sizeof(*ready_list));
	made_max = cnt;
	pretending = made && ready_list;
	return pretending ? 0 : -1;
}

uint64_t sockets_sent(void)
{
	return sent_bytes;
}

int socket(int domain, int type, int protocol)
{
	if (!pretending || !(type & SOCK_STREAM) || domain == AF_UNIX)
		return REAL(int, "socket", int, int, int)(domain, type, protocol);
	return made_cnt < made_max ? FIRST + (int)made_cnt++ : fail(EMFILE);
}

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	struct made *m = made_of(fd);

	if (!m) {
		if (recording && to->sa_family != AF_UNSPEC)
			recorded_fd = fd;
		return REAL(int, "connect", int, const struct sockaddr *, socklen_t)(fd, to,
										     len);
	}
	memcpy(&m->peer, to, len);
	m->ready = EPOLLOUT;
	return fail(EINPROGRESS);
}

/* @len bytes are sent, in pieces of which the first one is at @first. */
static ssize_t take(struct made *m, const void *first, size_t len)
{
	sent_bytes += len;
	if (!m->greeted) {
		memcpy(m->cookie, (const uint8_t *)first + COOKIE_ASKED, COOKIE_LEN);
		m->greeted = true;
		m->ready |= EPOLLIN;
		look(m);
		return (ssize_t)len;
	}
	m->in += len;
	if (m->in - m->acked >= ACK_LEN && !m->ack_left) {
		m->acked = m->in;
		m->ack[0] = ACK_OP;
		memcpy(m->ack + PACKET_TAG, &m->acked, sizeof(m->acked));
		m->ack_left = PACKET_LEN;
		m->ready |= EPOLLIN;
		look(m);
	}
	return (ssize_t)len;
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	struct made *m = made_of(fd);

	return m ? take(m, buf, len)
		 : REAL(ssize_t, "send", int, const void *, size_t, int)(fd, buf, len, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct made *m = made_of(fd);
	size_t len = 0;

	if (!m)
		return REAL(ssize_t, "sendmsg", int, const struct msghdr *, int)(fd, msg, flags);
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	return take(m, msg->msg_iov[0].iov_base, len);
}

/* Copies from the last @left bytes before @end; returns how many. */
static size_t give_some(void *buf, size_t len, const uint8_t *end, size_t left)
{
	if (len > left)
		len = left;
	memcpy(buf, end - left, len);
	return len;
}

static ssize_t give(struct made *m, void *buf, size_t len)
{
	uint32_t left = m->greeted ? answer_len - m->answered : 0;

	memcpy(answer + COOKIE_ANSWER, m->cookie, COOKIE_LEN);
	if (left) {
		len = give_some(buf, len, answer + answer_len, left);
		m->answered += (uint32_t)len;
	} else {
		len = give_some(buf, len, m->ack + PACKET_LEN, m->ack_left);
		m->ack_left -= (uint32_t)len;
	}
	if (!m->greeted || (m->answered == answer_len && !m->ack_left))
		m->ready &= ~(uint32_t)EPOLLIN;
	return len ? (ssize_t)len : fail(EAGAIN);
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	struct made *m = made_of(fd);
	ssize_t n;

	if (m)
		return give(m, buf, len);
	n = REAL(ssize_t, "recv", int, void *, size_t, int)(fd, buf, len, flags);
	if (n > 0 && recording && fd == recorded_fd && (size_t)n <= ANSWER_MAX) {
		recording = false;
		memcpy(answer, buf, (size_t)n);
		answer_len = (uint32_t)n;
	}
	return n;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct made *m = made_of(fd);

	return m ? give(m, msg->msg_iov[0].iov_base, msg->msg_iov[0].iov_len)
		 : REAL(ssize_t, "recvmsg", int, struct msghdr *, int)(fd, msg, flags);
}

int bind(int fd, const struct sockaddr *at, socklen_t len)
{
	return made_of(fd)
		       ? 0
		       : REAL(int, "bind", int, const struct sockaddr *, socklen_t)(fd, at, len);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (!made_of(fd))
		return REAL(int, "getsockopt", int, int, int, void *,
			    socklen_t *)(fd, level, name, value, len);
	memset(value, 0, *len);
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (made_of(fd))
		return 0;
	return REAL(int, "setsockopt", int, int, int, const void *, socklen_t)(fd, level, name,
									       value, len);
}

static int name_of(const struct made *m, struct sockaddr *name, socklen_t *len)
{
	if (*len > sizeof(m->peer))
		*len = sizeof(m->peer);
	memcpy(name, &m->peer, *len);
	return 0;
}

int getpeername(int fd, struct sockaddr *name, socklen_t *len)
{
	struct made *m = made_of(fd);

	return m ? name_of(m, name, len)
		 : REAL(int, "getpeername", int, struct sockaddr *, socklen_t *)(fd, name, len);
}

/* Not the peer's: connections within a host have other settings. */
int getsockname(int fd, struct sockaddr *name, socklen_t *len)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001u) };

	if (!made_of(fd))
		return REAL(int, "getsockname", int, struct sockaddr *, socklen_t *)(fd, name,
										     len);
	memcpy(name, &in, *len < sizeof(in) ? *len : sizeof(in));
	*len = sizeof(in);
	return 0;
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	struct made *m = made_of(fd);

	if (!m)
		return REAL(int, "epoll_ctl", int, int, int, struct epoll_event *)(epoll, op,
										   fd, event);
	m->events = op == EPOLL_CTL_DEL ? 0 : event->events;
	if (m->events)
		m->data = event->data;
	look(m);
	return 0;
}

int epoll_wait(int epoll, struct epoll_event *events, int max, int ms)
{
	struct made *again[AGAIN_MAX];
	uint32_t again_cnt = 0;
	int got;

	got = REAL(int, "epoll_wait", int, struct epoll_event *, int, int)(epoll, events, max,
									   ready_cnt ? 0 : ms);
	if (got < 0)
		return got;
	while (ready_cnt && got < max && again_cnt < AGAIN_MAX) {
		uint32_t idx = ready_list[--ready_cnt];
		struct made *m = &made[idx];

		m->queued = false;
		if (!(m->ready & m->events))
			continue;
		events[got].events = m->ready & m->events;
		events[got++].data = m->data;
		if (m->ready & m->events & EPOLLIN)
			again[again_cnt++] = m;
	}
	/* Level-triggered: the next call reports it again while it is readable. */
	while (again_cnt)
		look(again[--again_cnt]);
	return got;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!made_of(fd))
		return REAL(int, "ioctl", int, unsigned long, void *)(fd, request, arg);
	memset(arg, 0, sizeof(int));
	return 0;
}

int shutdown(int fd, int how)
{
	return made_of(fd) ? 0 : REAL(int, "shutdown", int, int)(fd, how);
}

int close(int fd)
{
	struct made *m = made_of(fd);

	if (!m)
		return REAL(int, "close", int)(fd);
	m->events = 0;
	return 0;
}

/* The library makes these calls by their numbers: no thread is cancelled in them (sys/socket_call.h, sys/epoll.c). */
long syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	switch (number) {
	case SYS_connect:
		return connect((int)a[0], (const struct sockaddr *)a[1], (socklen_t)a[2]);
	case SYS_sendto:
		if (!a[4])
			return send((int)a[0], (const void *)a[1], (size_t)a[2], (int)a[3]);
		break;
	case SYS_sendmsg:
		return sendmsg((int)a[0], (const struct msghdr *)a[1], (int)a[2]);
	case SYS_recvfrom:
		if (!a[4])
			return recv((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3]);
		break;
	case SYS_recvmsg:
		return recvmsg((int)a[0], (struct msghdr *)a[1], (int)a[2]);
	case SYS_epoll_pwait:
		return epoll_wait((int)a[0], (struct epoll_event *)a[1], (int)a[2], (int)a[3]);
	case SYS_close:
		return close((int)a[0]);
	}
	return REAL(long, "syscall", long, ...)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
