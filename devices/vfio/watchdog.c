/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The process that ends what is left of another one */
#define _GNU_SOURCE
#include "watchdog.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long one that was killed may take to be gone: one that is in the kernel may take long, and then stays. */
#define GONE_MS 10000

/* struct pack - pidfds of those that may have registers mapped */
struct pack {
	int *fds;
	size_t cnt;
	size_t room;
};

static bool is_alive(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

/* The ones that have ended make room. */
static void pack_clean(struct pack *k)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->cnt; i++) {
		if (is_alive(k->fds[i]))
			k->fds[kept++] = k->fds[i];
		else
			close(k->fds[i]);
	}
	k->cnt = kept;
}

static bool pack_add(struct pack *k, int pidfd)
{
	if (k->cnt == k->room)
		pack_clean(k);
	if (k->cnt == k->room) {
		size_t room = k->room ? 2 * k->room : 16;
		int *more = reallocarray(k->fds, room, sizeof(*more));

		if (!more)
			return false;
		k->fds = more;
		k->room = room;
	}
	k->fds[k->cnt++] = pidfd;
	return true;
}

/* The number of a process, while it lives; 0: it does not */
static int pid_of(int pidfd)
{
	char path[64], line[128];
	int pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	fclose(file);
	return pid > 0 ? pid : 0;
}

/* Whether a process has a device mapped, of this function or another: one that can't be told has. */
static bool has_registers(int pid)
{
	char path[64], line[4352];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return true;
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, "vfio-device") || strstr(line, "/dev/vfio/");
	found |= ferror(file) != 0;
	fclose(file);
	return found;
}

static void end_one(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int pid = pid_of(pidfd);

	if (!pid || !has_registers(pid) || !is_alive(pidfd))
		return;
	syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	if (poll(&p, 1, GONE_MS) == 1)
		warnx("the controller has ended: process %d had its doorbells, and was killed",
		      pid);
	else
		warnx("process %d has the controller's doorbells, and does not end", pid);
}

/* Take a process to watch. Returns whether the other end is there */
static bool listen_once(int socket, struct pack *k)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	ssize_t len = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *head;
	int pidfd;

	if (len < 0)
		return errno == EINTR;
	if (!len)
		return false;
	head = CMSG_FIRSTHDR(&msg);
	if (!head || head->cmsg_type != SCM_RIGHTS)
		return true;
	memcpy(&pidfd, CMSG_DATA(head), sizeof(pidfd));
	byte = pack_add(k, pidfd);
	/* One who is answered may be given the registers. */
	return send(socket, &byte, 1, MSG_NOSIGNAL) == 1;
}

static void __attribute__((noreturn)) watch(struct vfio *v, int socket)
{
	struct pack k = { 0 };

	prctl(PR_SET_NAME, "weft-nvmed-dog");
	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	while (listen_once(socket, &k))
		;
	for (size_t i = 0; i < k.cnt; i++)
		end_one(k.fds[i]);
	vfio_may_access(v, false);
	vfio_reset(v);
	vfio_close(v);
	_exit(EXIT_SUCCESS);
}

int watchdog_start(struct vfio *v)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid = fork();
	if (pid < 0) {
		int ret = -errno;

		close(ends[0]);
		close(ends[1]);
		return ret;
	}
	if (!pid) {
		close(ends[0]);
		watch(v, ends[1]);
	}
	close(ends[1]);
	return ends[0];
}

int watchdog_tell(int watchdog, int pidfd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &pidfd, sizeof(pidfd));
	if (sendmsg(watchdog, &msg, MSG_NOSIGNAL) != 1 || recv(watchdog, &byte, 1, 0) != 1)
		return -EPIPE;
	return byte ? 0 : -ENOMEM;
}

bool watchdog_runs(int watchdog)
{
	char byte;

	return recv(watchdog, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}
