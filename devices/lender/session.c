/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A borrower's connection, at the lender; session.h has the contract. A message that is no request ends the connection.
 * What a request asks for is in request.c.
 */
#define _GNU_SOURCE
#include "session.h"
#include "exports.h"
#include "log.h"
#include "message.h"
#include "packet.h"
#include "request.h"
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Wait for a request.
 * Returns 0; -EMFILE: there is one, but no room for the descriptors beside it; -ECONNRESET: the connection is to end.
 */
static int receive(struct session *s)
{
	struct iovec iov[2] = { { &s->msg, sizeof(s->msg) }, { s->data, sizeof(s->data) } };
	struct pollfd p[2] = { { .fd = s->fd, .events = POLLIN },
			       { .fd = s->process, .events = POLLIN } };
	ssize_t n;

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return -ECONNRESET;
	if (p[1].revents)
		return -ECONNRESET;
	s->msg = (struct lease_message){ 0 };
	n = packet_recv(s->fd, iov, 2, s->fds, &s->fd_cnt, -1);
	if (!n)
		return -ECONNRESET;
	if (n > 0 && request_is_whole(s, n))
		return 0;
	if (n >= (ssize_t)sizeof(s->msg.version) && s->msg.version != LEASE_VERSION) {
		lender_log("process %d of user %u is cut off: it speaks version %u, and not %u",
			   (int)s->by.pid, (unsigned)s->by.uid, s->msg.version, LEASE_VERSION);
		return -ECONNRESET;
	}
	if (n == -EMFILE && request_is_one(&s->msg))
		return -EMFILE;
	lender_log("process %d of user %u is cut off: what it sends is no request%s%s",
		   (int)s->by.pid, (unsigned)s->by.uid, n < 0 ? ": " : "",
		   n < 0 ? strerror((int)-n) : "");
	return -ECONNRESET;
}

int session_answer_remote(struct lender *lender, const struct lent_borrower *by,
			  struct lease_message *msg, void *data, uint32_t *complained)
{
	struct session s = { .lender = lender,
			     .fd = -1,
			     .process = -1,
			     .by = *by,
			     .remote = true,
			     .complained = *complained,
			     .msg = *msg };

	if (!request_is_one(msg) || msg->fd_cnt || msg->data_len > sizeof(s.data))
		return -EPROTO;
	memcpy(s.data, data, msg->data_len);
	request_carry_out(&s);
	*complained = s.complained;
	*msg = s.msg;
	memcpy(data, s.data, msg->data_len);
	return 0;
}

static bool answer(struct session *s)
{
	struct iovec iov[2] = { { &s->msg, sizeof(s->msg) }, { s->data, s->msg.data_len } };
	int err = packet_send(s->fd, iov, 2, s->fds, s->fd_cnt);

	request_drop_fds(s);
	if (err == -ETIMEDOUT)
		lender_log("process %d of user %u is cut off: it takes no answer",
			   (int)s->by.pid, (unsigned)s->by.uid);
	return !err;
}

static void identify(struct session *s)
{
	struct ucred cred = { .pid = -1, .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);

	getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	s->by = (struct lent_borrower){ cred.pid, cred.uid };
	s->trusted = !cred.uid || cred.uid == geteuid();
	s->process = cred.pid > 0 ? (int)syscall(SYS_pidfd_open, cred.pid, 0) : -1;
}

void session_serve(struct lender *lender, int fd)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		close(fd);
		return;
	}
	s->lender = lender;
	s->fd = fd;
	identify(s);
	while (!(err = receive(s)) || err == -EMFILE) {
		if (err)
			request_refuse(s, err);
		else
			request_carry_out(s);
		if (s->watching || !answer(s))
			break;
	}
	request_drop_fds(s);
	exports_remove_all(lender->exports, s);
	while (s->held.first) {
		lent_let_go(s->held.first->lent, &s->held.first->lease);
		leased_drop(&s->held, &s->held.first);
	}
	if (s->watching)
		watchers_add(lender->watchers, s->fd, &s->msg);
	else
		close(s->fd);
	uses_end(&s->uses, s->by.pid, s->process);
	if (s->process >= 0)
		close(s->process);
	free(s);
}
