/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of processes. Any thread.
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "image.h"
#include "local_socket.h"
#include "pidfd.h"
#include "process.h"
#include "region.h"

/* Protects the processes that are held. Rank 3, nothing is called under it. */
static struct platform_lock lock = { PTHREAD_MUTEX_INITIALIZER };
static struct list held = { &held, &held };

static void fork_prepare(void)
{
	platform_lock(&lock);
}

static void fork_over(void)
{
	platform_unlock(&lock);
}

/* The table is consistent in the child, which may hold processes of its own. */
static struct platform_fork fork_watcher = {
	.prepare = fork_prepare,
	.parent = fork_over,
	.child = fork_over,
};

void pshm_process_watch(void)
{
	platform_fork_watch(&fork_watcher);
}

/* Opens a descriptor of the process's memory; where there is none, a pidfd, or its folder. */
static int process_open(uint32_t pid, enum pshm_held_by *how)
{
	int fd = sys_image_open((pid_t)pid);

	*how = PSHM_BY_IMAGE;
	if (fd >= 0 || fd == -FI_EAGAIN || pshm_is_shortage(fd))
		return fd;
	fd = sys_pidfd_open((pid_t)pid);
	*how = fd == -FI_ENOSYS ? PSHM_BY_FOLDER : PSHM_BY_PIDFD;
	return *how == PSHM_BY_FOLDER ? sys_procdir_open((pid_t)pid) : fd;
}

static bool process_dead(int fd, enum pshm_held_by how)
{
	switch (how) {
	case PSHM_BY_IMAGE:
		return sys_image_gone(fd) == 1;
	case PSHM_BY_PIDFD:
		return sys_pidfd_dead(fd) == 1;
	case PSHM_BY_FOLDER:
		return sys_procdir_dead(fd) == 1;
	default:
		return sys_local_closed(fd) == 1;
	}
}

static struct pshm_process *find_locked(uint32_t pid)
{
	struct pshm_process *p;

	list_for_each_entry(p, &held, link) {
		/*
		 * a dead one stays in the list while it is held: its number may be another's by
		 * now
		 */
		if (p->pid == pid && !pshm_process_dead(p))
			return p;
	}
	return NULL;
}

/* Adds a process to the list, without a reference. Returns it, or NULL and -FI_E*. */
static struct pshm_process *add_locked(uint32_t pid, int *err)
{
	struct pshm_process *p;
	enum pshm_held_by how;
	int fd = process_open(pid, &how);

	if (fd < 0) {
		/* a program that has just begun shares nothing with us yet */
		*err = fd == -ESRCH || fd == -FI_EINVAL || fd == -FI_EAGAIN ? -FI_EHOSTUNREACH
									    : fd;
		return NULL;
	}
	*err = -FI_EHOSTUNREACH;
	if (process_dead(fd, how)) /* its parent has not collected it yet */
		goto err_close;
	*err = -FI_ENOMEM;
	p = platform_alloc(sizeof(*p));
	if (!p)
		goto err_close;
	*p = (struct pshm_process){ .pid = pid, .fd = fd, .how = how };
	list_add_tail(&held, &p->link);
	return p;

err_close:
	close(fd);
	return NULL;
}

int pshm_process_get(uint32_t pid, struct pshm_process **process)
{
	struct pshm_process *p;
	int err = 0;

	if (!pid || pid > INT_MAX)
		return -FI_EHOSTUNREACH;
	platform_lock(&lock);
	p = find_locked(pid);
	if (!p)
		p = add_locked(pid, &err);
	if (p)
		p->refs++;
	platform_unlock(&lock);
	if (!p)
		return err;
	*process = p;
	return 0;
}

void pshm_process_put(struct pshm_process *process)
{
	if (process->release) {
		process->release(process);
		return;
	}
	platform_lock(&lock);
	if (--process->refs) {
		platform_unlock(&lock);
		return;
	}
	list_remove(&process->link);
	platform_unlock(&lock);
	close(process->fd);
	platform_free(process);
}

bool pshm_process_dead(const struct pshm_process *process)
{
	if (atomic_load_explicit(&process->over, memory_order_relaxed))
		return true;
	return process_dead(process->fd, process->how);
}

bool pshm_process_gone(uint32_t pid)
{
	enum pshm_held_by how;
	bool gone;
	int fd;

	if (!pid || pid > INT_MAX)
		return true;
	fd = process_open(pid, &how);
	if (fd < 0)
		return fd == -ESRCH;
	gone = process_dead(fd, how);
	close(fd);
	return gone;
}
