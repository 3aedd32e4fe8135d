/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inboxes: those of this process's endpoints, which share memory, and those of peers, of which only
 * the one inbox is mapped. Called by the wire when an endpoint or a connection is made. Files of
 * inboxes are shared by the domains of the process, under a lock.
 */
#include <limits.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "list.h"
#include "memfd.h"
#include "region.h"

/* Memory of several inboxes of this process. */
struct pshm_inbox_file {
	struct pshm_inboxes *head;
	size_t len;
	int fd;
	/* places that have been used, of cnt */
	uint32_t used, cnt;
	/* inboxes that are not destroyed */
	uint32_t open;
};

/*
 * Protects filling, the file that has free places, or NULL. Rank 3; no other lock is taken while it
 * is held, and no allocator is called, whose own locks a fork takes as well.
 */
static struct platform_lock lock = { PTHREAD_MUTEX_INITIALIZER };
static struct pshm_inbox_file *filling;

static void fork_prepare(void)
{
	platform_lock(&lock);
}

static void fork_parent(void)
{
	platform_unlock(&lock);
}

/* The places that are left are the parent's. */
static void fork_child(void)
{
	filling = NULL;
	platform_unlock(&lock);
}

static struct platform_fork fork_watcher = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

void pshm_inboxes_watch(void)
{
	platform_fork_watch(&fork_watcher);
}

static size_t inboxes_len(uint32_t cnt)
{
	return PSHM_INBOXES_HEAD + (size_t)cnt * PSHM_INBOX_STRIDE;
}

/* Returns how many inboxes stand in memory of that length; 0 for a length that can't be. */
static uint32_t inboxes_in(size_t len)
{
	size_t cnt = len < PSHM_INBOXES_HEAD ? 0 : (len - PSHM_INBOXES_HEAD) / PSHM_INBOX_STRIDE;

	return cnt <= PSHM_INBOXES && len == inboxes_len((uint32_t)cnt) ? (uint32_t)cnt : 0;
}

static size_t inbox_offset(uint32_t idx)
{
	return inboxes_len(idx);
}

/* Returns how many inboxes a new file has: PSHM_INBOXES, or fewer under a low limit on files. */
static uint32_t inboxes_allowed(void)
{
	size_t most = sys_memfd_max();

	if (most >= inboxes_len(PSHM_INBOXES))
		return PSHM_INBOXES;
	return most < inboxes_len(1)
		       ? 1
		       : (uint32_t)((most - PSHM_INBOXES_HEAD) / PSHM_INBOX_STRIDE);
}

static void file_free(struct pshm_inbox_file *file)
{
	sys_memfd_unmap(file->head, file->len);
	sys_descriptor_close(file->fd);
	platform_free(file);
}

/* Makes a file, described by @file. Returns 0 or -FI_E*. */
static int file_create(struct pshm_inbox_file *file)
{
	void *addr;
	int err;

	*file = (struct pshm_inbox_file){ .cnt = inboxes_allowed() };
	file->len = inboxes_len(file->cnt);
	file->fd = sys_memfd_create("weft-inboxes", file->len, 0600);
	if (file->fd < 0)
		return file->fd;
	err = sys_memfd_map(file->fd, file->len, SYS_MEMFD_WRITE, &addr);
	if (err) {
		sys_descriptor_close(file->fd);
		return err;
	}
	file->head = addr;
	file->head->magic = PSHM_INBOXES_MAGIC;
	file->head->version = PSHM_VERSION;
	return 0;
}

/* Takes a place of a file, which is @made if none has a free one. Returns 0 or -FI_E*. */
static int place_take(struct pshm_inbox_file *made, struct pshm_inbox_file **file, uint32_t *idx)
{
	int err = 0;

	platform_lock(&lock);
	if (!filling)
		err = file_create(made);
	if (!err) {
		*file = filling ? filling : made;
		(*file)->open++;
		*idx = (*file)->used++;
		filling = (*file)->used < (*file)->cnt ? *file : NULL;
	}
	platform_unlock(&lock);
	return err;
}

int pshm_inbox_create(const uint8_t nonce[PSHM_NONCE], struct pshm_own_inbox *own)
{
	struct pshm_inbox_file *made = platform_alloc(sizeof(*made)), *file = NULL;
	struct pshm_inbox *inbox;
	uint32_t idx = 0;
	int err;

	if (!made)
		return -FI_ENOMEM;
	err = place_take(made, &file, &idx);
	if (file != made)
		platform_free(made);
	if (err)
		return err;

	inbox = (struct pshm_inbox *)((char *)file->head + inbox_offset(idx));
	inbox->magic = PSHM_INBOX_MAGIC;
	inbox->version = PSHM_VERSION;
	memcpy(inbox->nonce, nonce, PSHM_NONCE);
	memcpy(file->head->nonces[idx], nonce, PSHM_NONCE);
	*own = (struct pshm_own_inbox){ .inbox = inbox, .fd = file->fd, .file = file };
	return 0;
}

void pshm_inbox_destroy(struct pshm_own_inbox *own)
{
	struct pshm_inbox_file *file = own->file;
	bool last;

	if (!own->inbox)
		return;
	platform_lock(&lock);
	last = !--file->open;
	if (last && file == filling)
		filling = NULL;
	platform_unlock(&lock);
	if (last)
		file_free(file);
	own->inbox = NULL;
}

/* Finds the inbox in memory that is not trusted. Returns 0 and its index, or -FI_E*. */
static int inbox_find(int fd, const uint8_t nonce[PSHM_NONCE], uint32_t *idx)
{
	struct pshm_inboxes head;
	uint32_t cnt;
	size_t len;
	int err;

	err = sys_memfd_size(fd, &len);
	if (err)
		return err;
	cnt = inboxes_in(len);
	if (!cnt)
		return -FI_EINVAL;
	err = sys_memfd_read(fd, &head, sizeof(head));
	if (err)
		return err;
	if (head.magic != PSHM_INBOXES_MAGIC || head.version != PSHM_VERSION)
		return -FI_EINVAL;
	for (uint32_t i = 0; i < cnt; i++) {
		if (!pshm_nonce_same(head.nonces[i], nonce))
			continue;
		*idx = i;
		return 0;
	}
	return -FI_EINVAL;
}

int pshm_inbox_take(int fd, const uint8_t nonce[PSHM_NONCE], struct pshm_region *region)
{
	struct pshm_region found = { .len = sizeof(struct pshm_inbox), .fd = -1 };
	const struct pshm_inbox *inbox;
	uint32_t idx = 0;
	int err;

	err = inbox_find(fd, nonce, &idx);
	if (!err)
		err = sys_memfd_map_at(fd, inbox_offset(idx), found.len, SYS_MEMFD_WRITE,
				       &found.addr);
	sys_descriptor_close(fd);
	if (err)
		return pshm_region_error(err);
	inbox = found.addr;
	if (inbox->magic != PSHM_INBOX_MAGIC || inbox->version != PSHM_VERSION ||
	    !pshm_nonce_same(inbox->nonce, nonce)) {
		pshm_region_close(&found);
		return -FI_EHOSTUNREACH;
	}
	*region = found;
	return 0;
}

int pshm_inbox_open(uint32_t pid, uint32_t fd, const uint8_t nonce[PSHM_NONCE],
		    struct pshm_region *region)
{
	int opened, err;

	if (!pid || pid > INT_MAX || fd > INT_MAX)
		return -FI_ENOENT;
	opened = sys_memfd_open((pid_t)pid, (int)fd, true);
	if (opened == -FI_ENOENT || opened == -FI_EINVAL)
		return -FI_ENOENT;
	if (opened < 0)
		return pshm_region_error(opened);
	err = pshm_inbox_take(opened, nonce, region);
	return err == -FI_EHOSTUNREACH ? -FI_ENOENT : err;
}
