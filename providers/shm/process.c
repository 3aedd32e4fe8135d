/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of processes. Any thread.
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "pidfd.h"
#include "process.h"

/* What is held; rank 3, nothing is called under it. */
static struct platform_lock lock = { PTHREAD_MUTEX_INITIALIZER };
static struct list held = { &held, &held };

/* A descriptor that stands for the process: a pidfd, or its folder where there are none. */
static int process_open(uint32_t pid, bool *folder)
{
	int fd = sys_pidfd_open((pid_t)pid);

	*folder = fd == -FI_ENOSYS;
	return *folder ? sys_procdir_open((pid_t)pid) : fd;
}

static bool process_dead(int fd, bool folder)
{
	return (folder ? sys_procdir_dead(fd) : sys_pidfd_dead(fd)) == 1;
}

static struct pshm_process *find_locked(uint32_t pid)
{
	struct list *node, *after;

	list_for_each(node, after, &held) {
		struct pshm_process *p = container_of(node, struct pshm_process, link);

		/* a dead one stays listed while it is held: its number may be another's by now */
		if (p->pid == pid && !pshm_process_dead(p))
			return p;
	}
	return NULL;
}

int pshm_process_get(uint32_t pid, struct pshm_process **process)
{
	struct pshm_process *p;
	int fd, err = 0;
	bool folder;

	if (!pid || pid > INT_MAX)
		return -FI_EHOSTUNREACH;
	platform_lock(&lock);
	p = find_locked(pid);
	if (p) {
		p->refs++;
		goto out;
	}
	fd = process_open(pid, &folder);
	if (fd < 0) {
		err = fd == -ESRCH || fd == -FI_EINVAL ? -FI_EHOSTUNREACH : fd;
		goto out;
	}
	if (process_dead(fd, folder)) { /* nobody has collected it yet */
		close(fd);
		err = -FI_EHOSTUNREACH;
		goto out;
	}
	p = platform_alloc(sizeof(*p));
	if (!p) {
		close(fd);
		err = -FI_ENOMEM;
		goto out;
	}
	*p = (struct pshm_process){ .pid = pid, .refs = 1, .fd = fd, .folder = folder };
	list_push(&held, &p->link);
out:
	platform_unlock(&lock);
	if (!err)
		*process = p;
	return err;
}

void pshm_process_put(struct pshm_process *process)
{
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
	return process_dead(process->fd, process->folder);
}

bool pshm_process_gone(uint32_t pid)
{
	bool gone, folder;
	int fd;

	if (!pid || pid > INT_MAX)
		return true;
	fd = process_open(pid, &folder);
	if (fd < 0)
		return fd == -ESRCH;
	gone = process_dead(fd, folder);
	close(fd);
	return gone;
}
