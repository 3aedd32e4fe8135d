/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages with descriptors beside them; packet.h has the contract.
 */
#define _GNU_SOURCE
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int left_ms(uint64_t end)
{
	uint64_t now = now_ms();

	return now >= end ? 0 : end - now > INT_MAX ? INT_MAX : (int)(end - now);
}

/* Whether a call that a signal has interrupted is to be made again: a timer's must not make it last for ever. */
static bool again(uint64_t end)
{
	return errno == EINTR && now_ms() < end;
}

/* What a call that waits says when it was interrupted, or has waited long enough. */
static int timed_out(int err)
{
	return err == EINTR || err == EAGAIN ? -ETIMEDOUT : -err;
}

static int address(const char *path, struct sockaddr_un *un)
{
	if (!*path)
		return -EINVAL;
	if (strlen(path) >= sizeof(un->sun_path))
		return -ENAMETOOLONG;
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	strcpy(un->sun_path, path);
	return 0;
}

int packet_limit(int fd)
{
	static const struct timeval limit = { PACKET_MS / 1000, PACKET_MS % 1000 * 1000 };

	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ? -errno : 0;
}

/* A listener that accepts nothing has a queue, and it is full: that is waited for like room to send. */
static int connect_to(int fd, const struct sockaddr_un *un)
{
	uint64_t end = now_ms() + PACKET_MS;
	int err = packet_limit(fd);

	if (err)
		return err;
	while (connect(fd, (const struct sockaddr *)un, sizeof(*un)))
		if (!again(end))
			return timed_out(errno);
	return 0;
}

int packet_connect(const char *path)
{
	struct sockaddr_un un;
	int err = address(path, &un), fd;

	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = connect_to(fd, &un);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* A socket file that nobody listens at. */
static void remove_left(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return;
	fd = packet_connect(path);
	if (fd == -ECONNREFUSED)
		unlink(path);
	else if (fd >= 0)
		close(fd);
}

/*
 * Keep others who begin to listen in the same folder waiting: a socket that is bound, and does not listen yet, looks like one
 * that was left. Returns a descriptor that is to be closed, or -1: the folder can't be read, or somebody holds it for too long; then one
 * listens without.
 */
static int hold_folder(const struct sockaddr_un *un)
{
	char path[sizeof(un->sun_path)];
	uint64_t end = now_ms() + PACKET_MS;
	int fd;

	strcpy(path, un->sun_path);
	fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		if ((errno == EWOULDBLOCK || errno == EINTR) && now_ms() < end) {
			poll(NULL, 0, 1);
			continue;
		}
		close(fd);
		fd = -1;
	}
	return fd;
}

static int listen_at(const char *path, const struct sockaddr_un *un, mode_t mode)
{
	int err, fd;

	remove_left(path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* The mode before anyone can connect: sockets take it from the descriptor's. */
	if (fchmod(fd, mode) || bind(fd, (const struct sockaddr *)un, sizeof(*un)))
		goto err_close;
	if (!chmod(path, mode) && !listen(fd, SOMAXCONN))
		return fd;
	err = -errno;
	unlink(path);
	close(fd);
	return err;

err_close:
	err = -errno;
	close(fd);
	return err;
}

int packet_listen(const char *path, mode_t mode)
{
	struct sockaddr_un un;
	int err = address(path, &un), folder;

	if (err)
		return err;
	folder = hold_folder(&un);
	err = listen_at(path, &un, mode);
	if (folder >= 0)
		close(folder);
	return err;
}

int packet_send(int fd, const struct iovec *iov, size_t iov_cnt, const int *fds, uint32_t fd_cnt)
{
	union control control;
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = iov_cnt };
	uint64_t end = now_ms() + PACKET_MS;
	struct cmsghdr *cmsg;

	if (fd_cnt > PACKET_FDS_MAX)
		return -EINVAL;
	if (fd_cnt) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(fd_cnt * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_cnt * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, fd_cnt * sizeof(int));
	}
	while (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0)
		if (!again(end))
			return errno == ECONNRESET ? -EPIPE : timed_out(errno);
	return 0;
}

static void take_fds(struct msghdr *msg, int *fds, uint32_t *fd_cnt)
{
	struct cmsghdr *cmsg;
	uint32_t cnt;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		cnt = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds + *fd_cnt, CMSG_DATA(cmsg), cnt * sizeof(int));
		*fd_cnt += cnt;
	}
}

static int wait_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = now_ms() + (unsigned)ms;
	int ready;

	while ((ready = poll(&p, 1, left_ms(end))) < 0)
		if (!again(end))
			return timed_out(errno);
	return ready ? 0 : -ETIMEDOUT;
}

ssize_t packet_recv(int fd, const struct iovec *iov, size_t iov_cnt, int *fds, uint32_t *fd_cnt,
		    int ms)
{
	union control control;
	struct msghdr msg = {
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = iov_cnt,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n = ms < 0 ? 0 : wait_readable(fd, ms);

	*fd_cnt = 0;
	if (n)
		return n;
	while ((n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	take_fds(&msg, fds, fd_cnt);
	/* What comes beside no bytes is nobody's: to callers that is the end of the connection. */
	if (n && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	packet_close_fds(fds, *fd_cnt);
	*fd_cnt = 0;
	return !n ? 0 : msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : -EMFILE;
}

void packet_close_fds(const int *fds, uint32_t fd_cnt)
{
	while (fd_cnt)
		close(fds[--fd_cnt]);
}
