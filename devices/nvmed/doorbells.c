/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Doorbell pages: making and ending them */
#define _GNU_SOURCE
#include "doorbells.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

int sealed_file(const char *name, uint64_t len)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ret;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)len) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int doorbells_open(struct doorbells *db, int epoll, uint64_t tag)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u64 = tag };
	struct flock alive = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int fd = sealed_file("weft-nvmed doorbells", sizeof(struct slot_doorbells));
	void *page;
	int kick, ret;

	if (fd < 0)
		return fd;
	page = mmap(NULL, sizeof(struct slot_doorbells), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (page == MAP_FAILED) {
		ret = -errno;
		goto err_close;
	}
	/* It goes with this process, or with this descriptor of it: that is how others see whether there is a controller. */
	if (fcntl(fd, F_SETLK, &alive)) {
		ret = -errno;
		goto err_unmap;
	}
	kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (kick < 0) {
		ret = -errno;
		goto err_unmap;
	}
	if (epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, kick, &ev)) {
		ret = -errno;
		goto err_kick;
	}
	*db = (struct doorbells){ page, fd, kick, epoll };
	return 0;

err_kick:
	close(kick);
err_unmap:
	munmap(page, sizeof(struct slot_doorbells));
err_close:
	close(fd);
	return ret;
}

void doorbells_close(struct doorbells *db)
{
	if (!db->page)
		return;
	/* R:ended  completions before it; pairs A:ended of its owner */
	atomic_store_explicit((_Atomic uint32_t *)&db->page->ended, 1, memory_order_release);
	munmap(db->page, sizeof(struct slot_doorbells));
	close(db->fd);
	/* An eventfd that its owner still has is not closed, and stays in the set. */
	if (db->epoll >= 0)
		epoll_ctl(db->epoll, EPOLL_CTL_DEL, db->kick, NULL);
	close(db->kick);
	db->page = NULL;
}
