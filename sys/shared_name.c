/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory found by a name: a memfd, and an abstract socket that leads to the process which has it.
 * Called when an address vector with a name is opened, changed or closed, on any thread.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"
#include "memfd.h"
#include "shared_name.h"

#define BACKLOG 4096 /* attaches between two locks of the keeper's; the kernel may have less */
#define PUBLISHED \
	O_NONBLOCK /* on the keeper's file description: of no effect on memory, seen in /proc */

struct sys_shared {
	void *map;
	size_t len;
	int fd;	  /* a file description that nobody else has: the lock is the description's */
	int sock; /* listening: we keep the name; else -1 */
	char name[SYS_SHARED_NAME_MAX];
};

static int faulty(enum sys_call call)
{
	int err = sys_fault(call);

	if (err)
		errno = err;
	return err;
}

static bool name_ok(const char *name)
{
	size_t len = strlen(name);

	return len && len < SYS_SHARED_NAME_MAX &&
	       strspn(name,
		      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:") ==
		       len;
}

/* Makes the abstract socket address of a name of this user. Returns its length. */
static socklen_t address_of(const char *name, struct sockaddr_un *address)
{
	int n;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "weft/%u/%s",
		     (unsigned)geteuid(), name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int open_socket(void)
{
	return faulty(SYS_CALL_SOCKET)
		       ? -1
		       : sys_descriptor_keep(socket(
				 AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static struct sys_shared *handle_new(const char *name)
{
	struct sys_shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->fd = shared->sock = -1;
	strcpy(shared->name, name);
	return shared;
}

/*
 * Maps the memory, and has another file description for the lock: it would last as long as the mapping, which the child
 * of a fork has too. Where /proc does not lead to the memory it does. Returns 0 or -FI_E*.
 */
static int memory_map(struct sys_shared *shared, bool writable)
{
	int err = sys_memfd_map(shared->fd, shared->len, writable ? SYS_MEMFD_WRITE : 0,
				&shared->map);
	char path[64];
	int again;

	if (err || !writable)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", shared->fd);
	again = faulty(SYS_CALL_OPEN_FD)
			? -1
			: sys_descriptor_keep(sys_descriptor_open(path, O_RDWR));
	if (again < 0)
		return 0;
	sys_descriptor_close(shared->fd);
	shared->fd = again;
	return 0;
}

int sys_shared_create(const char *name, size_t len, struct sys_shared **out)
{
	struct sys_shared *shared;
	int ret;

	if (!name_ok(name))
		return -FI_EINVAL;
	shared = handle_new(name);
	if (!shared)
		return -FI_ENOMEM;
	ret = shared->fd = sys_memfd_create(name, len, 0600);
	shared->len = len;
	if (ret >= 0)
		ret = memory_map(shared, true);
	if (ret) {
		sys_shared_close(shared);
		return ret;
	}
	*out = shared;
	return 0;
}

int sys_shared_publish(struct sys_shared *shared)
{
	struct sockaddr_un address;
	socklen_t len = address_of(shared->name, &address);
	int sock = open_socket();
	int err;

	if (sock < 0)
		return -errno;
	/* a process that finds the name finds the memory */
	if (faulty(SYS_CALL_BIND) || bind(sock, (struct sockaddr *)&address, len) ||
	    fcntl(shared->fd, F_SETFL, PUBLISHED) || listen(sock, BACKLOG)) {
		err = errno;
		close(sock);
		return -err;
	}
	shared->sock = sock;
	return 0;
}

/* Returns the process that keeps the name, or -FI_E*. */
static int keeper_of(const char *name)
{
	struct sockaddr_un address;
	socklen_t len = address_of(name, &address), cred_len = sizeof(struct ucred);
	struct ucred cred = { 0 };
	int sock = open_socket();
	int err = 0;

	if (sock < 0)
		return -errno;
	if (faulty(SYS_CALL_CONNECT) || connect(sock, (struct sockaddr *)&address, len) ||
	    getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len))
		err = errno;
	close(sock);
	if (err)
		return err == ECONNREFUSED ? -FI_ENOENT : -err;
	/* a process of another pid namespace has no number here */
	return cred.uid == geteuid() && cred.pid > 0 ? cred.pid : -FI_EACCES;
}

/* Returns true if this descriptor of another process is of memory with that name. */
static bool is_memory(int dir, const char *fd, const char *name)
{
	char link[SYS_SHARED_NAME_MAX + 32], want[SYS_SHARED_NAME_MAX + 32];
	ssize_t n = readlinkat(dir, fd, link, sizeof(link) - 1);

	if (n < 0)
		return false;
	link[n] = '\0';
	snprintf(want, sizeof(want), "/memfd:%s (deleted)", name);
	return !strcmp(link, want);
}

/* Returns true if it is the memory that this keeper has published, not a newer one or another keeper's. */
static bool is_published(int pid, const char *fd)
{
	char line[128];
	unsigned flags = 0;
	FILE *info;

	snprintf(line, sizeof(line), "/proc/%d/fdinfo/%.16s", pid, fd);
	info = fopen(line, "re");
	if (!info)
		return false;
	while (fgets(line, sizeof(line), info) && sscanf(line, "flags: %o", &flags) != 1)
		;
	fclose(info);
	return flags & PUBLISHED;
}

/* Opens the memory that the keeper has published. Returns a descriptor, owned, or -FI_E*. */
static int open_memory(int pid, const char *name, bool writable)
{
	struct dirent *entry;
	int ret = -FI_EAGAIN;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = faulty(SYS_CALL_OPEN_FD) ? NULL : opendir(path);
	if (!dir)
		return errno == ENOENT ? -FI_EAGAIN : errno == EPERM ? -FI_EACCES : -errno;
	while (ret == -FI_EAGAIN && (entry = readdir(dir)))
		if (is_memory(dirfd(dir), entry->d_name, name) &&
		    is_published(pid, entry->d_name))
			ret = sys_memfd_open(pid, atoi(entry->d_name), writable);
	closedir(dir);
	return ret == -FI_ENOENT || ret == -FI_EINVAL ? -FI_EAGAIN : ret;
}

int sys_shared_attach(const char *name, bool writable, struct sys_shared **out)
{
	struct sys_shared *shared;
	int ret;

	if (!name_ok(name))
		return -FI_EINVAL;
	ret = keeper_of(name);
	if (ret < 0)
		return ret;
	shared = handle_new(name);
	if (!shared)
		return -FI_ENOMEM;
	ret = shared->fd = open_memory(ret, name, writable);
	if (ret >= 0)
		ret = sys_memfd_size(shared->fd, &shared->len);
	if (!ret)
		ret = memory_map(shared, writable);
	if (ret) {
		sys_shared_close(shared);
		return ret;
	}
	*out = shared;
	return 0;
}

void *sys_shared_map(const struct sys_shared *shared, size_t *len)
{
	*len = shared->len;
	return shared->map;
}

/* Drops the connections that sys_shared_attach() of other processes has left. */
static void forget_attached(int sock)
{
	int conn;

	while (sock >= 0 && (conn = accept4(sock, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(conn);
}

int sys_shared_lock(struct sys_shared *shared)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int err;

	if (shared->fd < 0)
		return -FI_EOPBADSTATE;
	forget_attached(shared->sock);
	do {
		err = sys_fault(SYS_CALL_FCNTL_LOCK);
		if (!err && fcntl(shared->fd, F_OFD_SETLKW, &lock))
			err = errno;
	} while (err == EINTR);
	return -err;
}

void sys_shared_unlock(struct sys_shared *shared)
{
	struct flock lock = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	fcntl(shared->fd, F_OFD_SETLK, &lock);
}

void sys_shared_forked(struct sys_shared *shared)
{
	if (shared->sock >= 0)
		sys_descriptor_close(shared->sock);
	if (shared->fd >= 0)
		sys_descriptor_close(shared->fd);
	shared->sock = shared->fd = -1;
}

void sys_shared_close(struct sys_shared *shared)
{
	if (!shared)
		return;
	/* the name first: a process that finds it expects the memory */
	if (shared->sock >= 0)
		close(shared->sock);
	sys_memfd_unmap(shared->map, shared->len);
	if (shared->fd >= 0)
		close(shared->fd);
	free(shared);
}
