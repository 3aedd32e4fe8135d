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

	if (!pid || pid > INT_MAX)
		return -FI_EHOSTUNREACH;
	platform_lock(&lock);
	p = find_locked(pid);
	if (p) {
		p->refs++;
		goto out;
	}
	fd = sys_pidfd_open((pid_t)pid);
	if (fd < 0) {
		err = fd == -ESRCH || fd == -FI_EINVAL ? -FI_EHOSTUNREACH : fd;
		goto out;
	}
	p = platform_alloc(sizeof(*p));
	if (!p) {
		close(fd);
		err = -FI_ENOMEM;
		goto out;
	}
	*p = (struct pshm_process){ .pid = pid, .refs = 1, .pidfd = fd };
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
	close(process->pidfd);
	platform_free(process);
}

bool pshm_process_dead(const struct pshm_process *process)
{
	return sys_pidfd_dead(process->pidfd) == 1;
}

bool pshm_process_gone(uint32_t pid)
{
	bool gone;
	int fd;

	if (!pid || pid > INT_MAX)
		return true;
	fd = sys_pidfd_open((pid_t)pid);
	if (fd < 0)
		return fd == -ESRCH;
	gone = sys_pidfd_dead(fd) == 1;
	close(fd);
	return gone;
}
