/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The owner's socket */
#define _GNU_SOURCE
#include "slot_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvmed.h"
#include "packet/packet.h"

/* Messages that one call answers, before others have their turn */
#define MESSAGES_AT_ONCE 16

/* Room for one descriptor more than there may be, so that too many are seen. */
union control {
	struct cmsghdr align;
	char room[CMSG_SPACE((SLOT_FDS_MAX + 1) * sizeof(int))];
};

static int watch(struct slot *s, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = NVMED_TAG_SLOT };

	return epoll_ctl(s->c->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int slot_open(struct slot *s, struct nvmed *c, const char *path)
{
	struct stat st;
	int ret;

	*s = (struct slot){ .c = c, .path = path, .owner = -1 };
	for (uint32_t i = 0; i < SLOT_PEERS; i++)
		s->peers[i] = -1;
	if (getrandom(&s->answer.run, sizeof(s->answer.run), 0) != sizeof(s->answer.run))
		return -errno;
	s->listener = packet_listen(path, 0600);
	if (s->listener < 0)
		return s->listener;
	if (fcntl(s->listener, F_SETFL, O_NONBLOCK) || stat(path, &st)) {
		ret = -errno;
		goto err_unlink;
	}
	s->device = st.st_dev;
	s->inode = st.st_ino;
	ret = watch(s, s->listener);
	if (!ret)
		return 0;
err_unlink:
	unlink(path);
	close(s->listener);
	return ret;
}

static void peer_close(struct slot *s, uint32_t i)
{
	if (s->peers[i] < 0)
		return;
	close(s->peers[i]);
	s->peers[i] = -1;
	if (s->owner == (int)i)
		s->owner = -1;
}

void slot_close(struct slot *s)
{
	struct stat st;

	for (uint32_t i = 0; i < SLOT_PEERS; i++)
		peer_close(s, i);
	close(s->listener);
	if (!stat(s->path, &st) && st.st_dev == s->device && st.st_ino == s->inode)
		unlink(s->path);
}

/* The place of a new connection: a free one, or that of one which has not attached, in turn */
static uint32_t peer_place(struct slot *s)
{
	for (uint32_t i = 0; i < SLOT_PEERS; i++)
		if (s->peers[i] < 0)
			return i;
	do
		s->next_peer = (s->next_peer + 1) % SLOT_PEERS;
	while (s->owner == (int)s->next_peer);
	return s->next_peer;
}

static bool slot_accept(struct slot *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	uint32_t place;

	if (fd < 0)
		return false;
	place = peer_place(s);
	peer_close(s, place);
	if (watch(s, fd)) {
		close(fd);
		return true;
	}
	s->peers[place] = fd;
	return true;
}

static bool send_answer(int fd, const struct slot_answer *a)
{
	union control control = { .room = { 0 } };
	bool has_data = a->message.kind == SLOT_REMOTE && !a->message.status;
	size_t data_len = has_data ? a->message.len : 0;
	struct iovec iov[2] = { { (void *)(uintptr_t)&a->message, sizeof(a->message) },
				{ (void *)(uintptr_t)a->data, data_len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (a->message.fd_cnt) {
		size_t len = a->message.fd_cnt * sizeof(int);
		struct cmsghdr *head;

		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(len);
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(head), a->fds, len);
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)(sizeof(a->message) + data_len);
}

/* Descriptors beside a message. Returns how many; those that are too many are closed here */
static uint32_t take_fds(struct msghdr *msg, int *fds)
{
	uint32_t cnt = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		size_t n = h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS
				   ? (h->cmsg_len - CMSG_LEN(0)) / sizeof(int)
				   : 0;

		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
			if (cnt < SLOT_FDS_MAX)
				fds[cnt++] = fd;
			else
				close(fd);
		}
	}
	return cnt;
}

/* Whether the user at the other end may own the controller */
static bool may_attach(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       (cred.uid == geteuid() || !cred.uid);
}

/* Why a message is not for the controller: 0 if it is */
static int refusal(struct slot *s, uint32_t i, const struct slot_message *m)
{
	if (m->kind == SLOT_ATTACH) {
		if (!may_attach(s->peers[i]))
			return -EPERM;
		return s->owner >= 0 ? -EBUSY : 0;
	}
	return s->owner == (int)i ? 0 : -EPERM;
}

static void close_all(const int *fds, uint32_t cnt)
{
	for (uint32_t f = 0; f < cnt; f++)
		close(fds[f]);
}

static void refuse(struct slot *s, uint32_t i, const struct slot_message *m, int status)
{
	struct slot_answer no = { .message = { .version = SLOT_VERSION,
					       .kind = m->kind,
					       .seq = m->seq,
					       .status = status } };

	if (!send_answer(s->peers[i], &no))
		peer_close(s, i);
}

static void answer(struct slot *s, uint32_t i, const struct slot_message *m, int *fds,
		   uint32_t cnt)
{
	int ret = refusal(s, i, m);

	if (ret) {
		close_all(fds, cnt);
		refuse(s, i, m, ret);
		return;
	}
	slot_answer(s->c, m, fds, cnt, &s->answer);
	if (m->kind == SLOT_ATTACH && !s->answer.message.status)
		s->owner = (int)i;
	/* One who does not take answers gets none. */
	if (!send_answer(s->peers[i], &s->answer))
		peer_close(s, i);
}

/* A message of a connection. Returns whether there was one, or the connection has ended */
static bool peer_receive(struct slot *s, uint32_t i)
{
	struct slot_message m;
	union control control;
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	int fds[SLOT_FDS_MAX];
	ssize_t len = recvmsg(s->peers[i], &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	uint32_t cnt;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	cnt = len < 0 ? 0 : take_fds(&msg, fds);
	if (len != sizeof(m) || msg.msg_flags & MSG_TRUNC) {
		/* The connection has ended. Or what it was can't be told: a peer that sends this speaks something else. */
		close_all(fds, cnt);
		peer_close(s, i);
		return true;
	}
	if (msg.msg_flags & MSG_CTRUNC) {
		/* This process may have no more descriptors. The message is whole, and its owner goes on with all it has. */
		close_all(fds, cnt);
		refuse(s, i, &m, -EMFILE);
		return true;
	}
	answer(s, i, &m, fds, cnt);
	return true;
}

bool slot_progress(struct slot *s)
{
	bool any = slot_accept(s);

	for (uint32_t i = 0; i < SLOT_PEERS; i++)
		for (int n = 0; n < MESSAGES_AT_ONCE && s->peers[i] >= 0; n++) {
			if (!peer_receive(s, i))
				break;
			any = true;
		}
	return any;
}
