/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ways of ways.h. */
#define _GNU_SOURCE
#include "ways.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define SQPOLL_IDLE_MS 50
#define RING_ENTRIES   64

static int no_open(struct sender *sender)
{
	return 0;
}

static int no_settle(struct sender *sender, uint64_t left)
{
	return 0;
}

static void no_close(struct sender *sender)
{
}

static int msg_zerocopy_open(struct sender *sender)
{
	int on = 1;

	return setsockopt(sender->fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) ? -errno : 0;
}

/* Reads one entry of the error queue, which tells of a range of calls. */
static int read_notice(struct sender *sender)
{
	union {
		char room[CMSG_SPACE(sizeof(struct sock_extended_err)) + 128];
		struct cmsghdr align;
	} control;
	struct msghdr msg = { .msg_control = &control, .msg_controllen = sizeof(control) };
	const struct sock_extended_err *err;
	const struct cmsghdr *cmsg;

	if (recvmsg(sender->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg)
		return -EPROTO;
	err = (const struct sock_extended_err *)CMSG_DATA(cmsg);
	if (err->ee_errno || err->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
		return -EPROTO;
	sender->told += err->ee_data - err->ee_info + 1;
	if (err->ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
		sender->copied += err->ee_data - err->ee_info + 1;
	return 0;
}

static int msg_zerocopy_settle(struct sender *sender, uint64_t left)
{
	while (sender->asked - sender->told > left) {
		struct pollfd pfd = { .fd = sender->fd };
		int err = read_notice(sender);

		if (err == -EAGAIN)
			poll(&pfd, 1, -1); /* POLLERR is always reported */
		else if (err)
			return err;
	}
	return 0;
}

/* As a wire does that may not sleep in send(): it comes back when the socket has room. */
static int polled_send(struct sender *sender, size_t at, size_t len)
{
	struct pollfd pfd = { .fd = sender->fd, .events = POLLOUT };

	while (len) {
		ssize_t n = send(sender->fd, sender->memory->mem + at, len,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0) {
			poll(&pfd, 1, -1);
			continue;
		}
		at += (size_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * ENOBUFS: no more memory may be locked, or the queue of notifications is full. Those that are under
 * way free some; without any the kernel is asked to copy.
 */
static int msg_zerocopy_send(struct sender *sender, size_t at, size_t len)
{
	int flags = MSG_ZEROCOPY | MSG_NOSIGNAL;

	while (len) {
		ssize_t n = send(sender->fd, sender->memory->mem + at, len, flags);
		uint64_t untold = sender->asked - sender->told;
		int err = n < 0 ? -errno : 0;

		if (err == -ENOBUFS && flags & MSG_ZEROCOPY) {
			err = untold ? msg_zerocopy_settle(sender, untold - 1) : 0;
			flags = untold ? flags : MSG_NOSIGNAL;
			n = 0;
		} else if (!err && flags & MSG_ZEROCOPY) {
			sender->asked++;
		}
		if (err)
			return err;
		at += (size_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static bool has_zc(struct io_uring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool has = probe && io_uring_opcode_supported(probe, IORING_OP_SEND_ZC);

	io_uring_free_probe(probe);
	return has;
}

static int ring_open(struct sender *sender, unsigned flags)
{
	struct io_uring_params params = { .flags = flags, .sq_thread_idle = SQPOLL_IDLE_MS };
	struct iovec iov = { sender->memory->mem, sender->memory->len };
	int err = io_uring_queue_init_params(RING_ENTRIES, &sender->ring, &params);

	if (err)
		return err;
	err = has_zc(&sender->ring) ? io_uring_register_buffers(&sender->ring, &iov, 1)
				    : -EOPNOTSUPP;
	if (err)
		io_uring_queue_exit(&sender->ring);
	return err;
}

static int uring_open(struct sender *sender)
{
	return ring_open(sender, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
}

static int sqpoll_open(struct sender *sender)
{
	return ring_open(sender, IORING_SETUP_SQPOLL);
}

static void uring_close(struct sender *sender)
{
	io_uring_queue_exit(&sender->ring);
}

/* Takes one entry: a notification is counted. Returns 1 and the result of a request, 0, or -errno. */
static int take_cqe(struct sender *sender, int *res)
{
	struct io_uring_cqe *cqe;
	int err = io_uring_submit_and_wait(&sender->ring, 1);
	bool notice;

	if (err < 0)
		return err;
	err = io_uring_wait_cqe(&sender->ring, &cqe);
	if (err)
		return err;
	notice = cqe->flags & IORING_CQE_F_NOTIF;
	*res = cqe->res;
	sender->told += notice;
	sender->asked += !notice && cqe->flags & IORING_CQE_F_MORE;
	io_uring_cqe_seen(&sender->ring, cqe);
	return !notice;
}

/* What io_uring sends in one request. */
typedef void (*prep_fn)(struct io_uring_sqe *sqe, int fd, const void *addr, size_t len);

static void prep_write_fixed(struct io_uring_sqe *sqe, int fd, const void *addr, size_t len)
{
	io_uring_prep_write_fixed(sqe, fd, addr, (unsigned)len, 0, 0);
}

static void prep_zc(struct io_uring_sqe *sqe, int fd, const void *addr, size_t len)
{
	io_uring_prep_send_zc(sqe, fd, addr, len, MSG_WAITALL | MSG_NOSIGNAL, 0);
}

static void prep_zc_fixed(struct io_uring_sqe *sqe, int fd, const void *addr, size_t len)
{
	io_uring_prep_send_zc_fixed(sqe, fd, addr, len, MSG_WAITALL | MSG_NOSIGNAL, 0, 0);
}

/* One request after the other: two of them could mix their bytes. */
static int uring_send(struct sender *sender, size_t at, size_t len, prep_fn prep)
{
	while (len) {
		int res = 0, ret;

		prep(io_uring_get_sqe(&sender->ring), sender->fd, sender->memory->mem + at, len);
		do
			ret = take_cqe(sender, &res);
		while (!ret);
		if (ret < 0)
			return ret;
		if (res <= 0)
			return res ? res : -EPIPE;
		at += (size_t)res;
		len -= (size_t)res;
	}
	return 0;
}

static int write_fixed_send(struct sender *sender, size_t at, size_t len)
{
	return uring_send(sender, at, len, prep_write_fixed);
}

static int zc_send(struct sender *sender, size_t at, size_t len)
{
	return uring_send(sender, at, len, prep_zc);
}

static int zc_fixed_send(struct sender *sender, size_t at, size_t len)
{
	return uring_send(sender, at, len, prep_zc_fixed);
}

static int uring_settle(struct sender *sender, uint64_t left)
{
	int res = 0, ret = 0;

	while (sender->asked - sender->told > left && !ret)
		ret = take_cqe(sender, &res);
	return ret < 0 ? ret : ret ? -EPROTO : 0;
}

/* Its pages are read until the peer has them: the messages' answers tell. */
static int sendfile_send(struct sender *sender, size_t at, size_t len)
{
	off_t from = (off_t)at;

	while (len) {
		ssize_t n = sendfile(sender->fd, sender->memory->file, &from, len);

		if (n <= 0)
			return n ? -errno : -EIO;
		len -= (size_t)n;
	}
	return 0;
}

const struct way ways[WAYS] = {
	{ "send", no_open, polled_send, no_settle, no_close },
	{ "MSG_ZEROCOPY", msg_zerocopy_open, msg_zerocopy_send, msg_zerocopy_settle, no_close },
	{ "WRITE_FIXED", uring_open, write_fixed_send, no_settle, uring_close },
	{ "SEND_ZC", uring_open, zc_send, uring_settle, uring_close },
	{ "SEND_ZC fixed", uring_open, zc_fixed_send, uring_settle, uring_close },
	{ "the same, SQPOLL", sqpoll_open, zc_fixed_send, uring_settle, uring_close },
	{ "sendfile", no_open, sendfile_send, no_settle, no_close },
	/* the first one again: what lies between two of a kind is noise */
	{ "send again", no_open, polled_send, no_settle, no_close },
};
