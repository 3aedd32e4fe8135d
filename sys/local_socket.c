/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets between processes of one host. Called by providers on any thread, with a lock that fork(2) takes: a thread is
 * not cancelled here.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "cancel.h"
#include "descriptor.h"
#include "fault.h"
#include "local_socket.h"

/* Of listen(2); the kernel may have a lower limit. */
#define BACKLOG	   4096
#define FILE_START "weft-"
/* Ends the name of a socket file until its process listens there, */
#define FILE_NEW ".new"
/* and after so many seconds such a file is stale. */
#define NEW_S 60
/* The uid of users that have no number in our user namespace. */
#define NOBODY 65534

static int faulty(enum sys_call call)
{
	int err = sys_fault(call);

	if (err)
		errno = err;
	return err;
}

/* Closes @fd. Returns -FI_E* for what errno says. */
static int fail(int fd)
{
	int err = errno;

	sys_descriptor_close(fd);
	return -err;
}

/* Makes the address of a number. Returns its length, or 0 when the folder's path is too long. */
static socklen_t address_of(uint64_t number, const char *folder, const char *end,
			    struct sockaddr_un *address)
{
	size_t room = sizeof(address->sun_path);
	int n;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (folder)
		n = snprintf(address->sun_path, room, "%s/" FILE_START "%016" PRIx64 "%s",
			     folder, number, end);
	else
		n = 1 +
		    snprintf(address->sun_path + 1, room - 1, FILE_START "%016" PRIx64, number);
	if (n < 0 || (size_t)n >= room)
		return 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + !!folder);
}

static int open_socket(void)
{
	return faulty(SYS_CALL_SOCKET)
		       ? -1
		       : sys_descriptor_keep(socket(
				 AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static int listen_at(const struct sockaddr_un *address, socklen_t len)
{
	int sock = open_socket();

	if (sock < 0)
		return -errno;
	/* the file that bind makes has the socket's mode */
	if (fchmod(sock, 0600) || faulty(SYS_CALL_BIND) ||
	    bind(sock, (const struct sockaddr *)address, len) || listen(sock, BACKLOG))
		return fail(sock);
	return sock;
}

static int listen_in(uint64_t number, const char *folder)
{
	struct sockaddr_un address, final;
	socklen_t len = address_of(number, folder, FILE_NEW, &address);
	struct stat st;
	int sock, err;

	if (!len || !address_of(number, folder, "", &final))
		return -FI_EINVAL;
	if (stat(folder, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -FI_EINVAL;
	sock = listen_at(&address, len);
	if (sock < 0)
		return sock;
	/* sys_local_remove_stale() of another process must not find a file without a listener */
	if (!rename(address.sun_path, final.sun_path))
		return sock;
	err = fail(sock);
	unlink(address.sun_path);
	return err;
}

int sys_local_listen(uint64_t number, const char *folder)
{
	struct sockaddr_un address;

	return folder ? listen_in(number, folder)
		      : listen_at(&address, address_of(number, NULL, "", &address));
}

void sys_local_remove(uint64_t number, const char *folder)
{
	struct sockaddr_un address;

	if (address_of(number, folder, "", &address))
		unlink(address.sun_path);
}

static int connect_to(const struct sockaddr_un *address, socklen_t len)
{
	int sock = open_socket(), state = sys_uncancelled();
	bool failed;

	failed = sock < 0 || faulty(SYS_CALL_CONNECT) ||
		 connect(sock, (const struct sockaddr *)address, len);
	sys_uncancelled_end(state);
	if (!failed)
		return sock;
	return sock < 0 ? -errno : fail(sock);
}

int sys_local_connect(uint64_t number, const char *folder)
{
	struct sockaddr_un address;
	socklen_t len = address_of(number, folder, "", &address);
	int sock;

	if (!len)
		return -FI_ECONNREFUSED;
	sock = connect_to(&address, len);
	return sock == -FI_ENOENT ? -FI_ECONNREFUSED : sock;
}

/* Returns true if the folder is on a file system of this host alone. */
static bool is_ours_alone(int dir)
{
	static const unsigned long local[] = { TMPFS_MAGIC,	 EXT4_SUPER_MAGIC,
					       XFS_SUPER_MAGIC,	 BTRFS_SUPER_MAGIC,
					       F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC };
	struct statfs fs;

	if (fstatfs(dir, &fs))
		return false;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if ((unsigned long)fs.f_type == local[i])
			return true;
	return false;
}

/* The number in a file's name. @end: out: what follows it */
static bool number_of(const char *name, uint64_t *number, const char **end)
{
	size_t start = strlen(FILE_START);
	char again[32];

	if (sscanf(name, FILE_START "%16" SCNx64, number) != 1)
		return false;
	snprintf(again, sizeof(again), FILE_START "%016" PRIx64, *number);
	*end = name + start + 16;
	return !strncmp(name, again, start + 16);
}

static void tidy_file(int dir, const char *folder, const char *name)
{
	const char *end;
	uint64_t number;
	struct stat st;
	int sock;

	if (!number_of(name, &number, &end) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return;
	if (!strcmp(end, FILE_NEW)) {
		if (time(NULL) - st.st_ctime > NEW_S)
			unlinkat(dir, name, 0);
		return;
	}
	if (*end)
		return;
	sock = sys_local_connect(number, folder);
	if (sock == -FI_ECONNREFUSED)
		unlinkat(dir, name, 0);
	else if (sock >= 0)
		sys_descriptor_close(sock);
}

void sys_local_remove_stale(const char *folder)
{
	int state = sys_uncancelled();
	DIR *dir = opendir(folder);
	struct dirent *entry;

	if (dir && is_ours_alone(dirfd(dir)))
		while ((entry = readdir(dir)))
			tidy_file(dirfd(dir), folder, entry->d_name);
	if (dir)
		closedir(dir);
	sys_uncancelled_end(state);
}

int sys_local_accept(int listener)
{
	int state = sys_uncancelled();
	int sock = faulty(SYS_CALL_ACCEPT)
			   ? -1
			   : sys_descriptor_keep(accept4(listener, NULL, NULL,
							 SOCK_CLOEXEC | SOCK_NONBLOCK));

	sys_uncancelled_end(state);
	return sock < 0 ? -errno : sock;
}

/* Returns true if every user has a number in our user namespace, so that NOBODY means that user alone. */
static bool all_have_numbers(void)
{
	int fd = sys_descriptor_open("/proc/self/uid_map", O_RDONLY);
	unsigned long from = 1, to = 1, cnt = 0;
	char text[128];
	ssize_t n;

	if (fd < 0)
		return false;
	n = sys_descriptor_read(fd, text, sizeof(text) - 1);
	sys_descriptor_close(fd);
	if (n < 0)
		return false;
	text[n] = '\0';
	return sscanf(text, "%lu %lu %lu", &from, &to, &cnt) == 3 && !from && !to &&
	       cnt >= UINT32_MAX;
}

int sys_local_same_user(int sock, pid_t *pid)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) || len != sizeof(cred) ||
	    cred.uid != geteuid())
		return 0;
	if (cred.uid == NOBODY && !all_have_numbers())
		return 0;
	*pid = cred.pid > 0 ? cred.pid : 0;
	return 1;
}

/* Room for as many descriptors as there may be, and no more. */
union control {
	char room[CMSG_SPACE(SYS_LOCAL_FDS * sizeof(int))];
	struct cmsghdr align;
};

int sys_local_send(int sock, const void *msg, size_t len, const int *fds, unsigned int fd_cnt)
{
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = len };
	union control control = { .room = { 0 } };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;
	int state;

	if (fd_cnt > SYS_LOCAL_FDS)
		return -FI_EINVAL;
	if (fd_cnt) {
		hdr.msg_control = control.room;
		hdr.msg_controllen = CMSG_SPACE(fd_cnt * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(fd_cnt * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, fd_cnt * sizeof(int));
	}
	state = sys_uncancelled();
	do
		n = faulty(SYS_CALL_SENDMSG) ? -1
					     : sendmsg(sock, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	sys_uncancelled_end(state);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -FI_EIO;
}

static void fds_take(struct msghdr *hdr, struct sys_local_received *received)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c; c = CMSG_NXTHDR(hdr, c)) {
		size_t cnt = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < cnt; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			fd = sys_descriptor_keep(fd);
			if (fd < 0)
				received->err = -FI_EMFILE;
			else if (received->cnt < SYS_LOCAL_FDS)
				received->fds[received->cnt++] = fd;
			else
				sys_descriptor_close(fd);
		}
	}
	if (hdr->msg_flags & MSG_CTRUNC)
		received->err = -FI_EMFILE;
}

ssize_t sys_local_recv(int sock, void *msg, size_t len, struct sys_local_received *received)
{
	struct iovec iov = { .iov_base = msg, .iov_len = len };
	union control control;
	struct msghdr hdr = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	int state = sys_uncancelled();
	ssize_t n;

	received->cnt = 0;
	received->err = 0;
	do
		n = faulty(SYS_CALL_RECVMSG)
			    ? -1
			    : recvmsg(sock, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	sys_uncancelled_end(state);
	if (n < 0)
		return -errno;
	fds_take(&hdr, received);
	return n;
}

int sys_local_closed(int sock)
{
	struct pollfd p = { .fd = sock };
	int n;

	do
		n = faulty(SYS_CALL_POLL) ? -1 : sys_descriptor_poll(&p, 1, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (p.revents & POLLNVAL || sock < 0)
		return -FI_EBADF;
	return (p.revents & (POLLHUP | POLLERR)) != 0;
}

void sys_local_shutdown(int sock)
{
	shutdown(sock, SHUT_RDWR);
}

void sys_local_close(int sock)
{
	sys_descriptor_close(sock);
}
