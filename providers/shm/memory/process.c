/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of processes. Any thread.
 */
#include <errno.h>
#include <limits.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "image.h"
#include "local_socket.h"
#include "pidfd.h"
#include "process.h"
#include "region.h"

/*
 * Protects the processes that are held. Rank 3, and nothing is called under it but the system: not the allocator,
 * whose own locks a fork takes as well.
 */
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

/* Takes @made, which describes the process then, without a reference. Returns 0 or -FI_E*: it is not taken. */
static int add_locked(struct pshm_process *made, uint32_t pid)
{
	enum pshm_held_by how;
	int fd = process_open(pid, &how);

	if (fd < 0)
		/* a program that has just begun shares nothing with us yet */
		return fd == -ESRCH || fd == -FI_EINVAL || fd == -FI_EAGAIN ? -FI_EHOSTUNREACH
									    : fd;
	if (process_dead(fd, how)) {
		/* its parent has not collected it yet */
		sys_descriptor_close(fd);
		return -FI_EHOSTUNREACH;
	}
	*made = (struct pshm_process){ .pid = pid, .fd = fd, .how = how };
	list_add_tail(&held, &made->link);
	return 0;
}

int pshm_process_get(uint32_t pid, struct pshm_process **process)
{
	struct pshm_process *made, *found;
	int err = 0;

	if (!pid || pid > INT_MAX)
		return -FI_EHOSTUNREACH;
	made = platform_alloc(sizeof(*made));
	if (!made)
		return -FI_ENOMEM;
	platform_lock(&lock);
	found = find_locked(pid);
	if (!found)
		err = add_locked(made, pid);
	if (!err)
		(found ? found : made)->refs++;
	platform_unlock(&lock);
	if (found || err)
		platform_free(made);
	if (!err)
		*process = found ? found : made;
	return err;
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
	sys_descriptor_close(process->fd);
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
	sys_descriptor_close(fd);
	return gone;
}
