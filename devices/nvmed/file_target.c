/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The file of a namespace */
#define _GNU_SOURCE
#include "file_target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvme/spec.h"

static int file_len(int fd, uint64_t *len)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISREG(st.st_mode)) {
		*len = (uint64_t)st.st_size;
		return 0;
	}
	if (S_ISBLK(st.st_mode))
		return ioctl(fd, BLKGETSIZE64, len) ? -errno : 0;
	return -EINVAL;
}

/* Whether direct I/O takes this alignment, of the file's offsets and of memory */
static bool takes(int fd, uint8_t *room, uint32_t align)
{
	return pread(fd, room + align, align, align) == (ssize_t)align;
}

/* Bypass the page cache where that can be done with blocks of this size. Returns the alignment, 1: it can't */
static uint32_t try_direct(int fd, const char *path, uint32_t block, int flags)
{
	uint32_t align = 1;
	uint8_t *room;
	int direct = open(path, flags | O_DIRECT);

	if (direct < 0)
		return 1;
	room = aligned_alloc(NVME_PAGE, 4 * NVME_PAGE);
	if (room && takes(direct, room, 512))
		align = 512;
	else if (room && block == NVME_PAGE && takes(direct, room, NVME_PAGE))
		align = NVME_PAGE;
	free(room);
	/* The descriptor stays the one that is locked. */
	if (align > 1 && dup3(direct, fd, O_CLOEXEC) < 0)
		align = 1;
	close(direct);
	return align;
}

int file_open(struct file_target *f, const char *path, uint32_t block, bool read_only)
{
	int flags = (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY,
	    fd = open(path, flags), ret;

	if (fd < 0)
		return -errno;
	*f = (struct file_target){ .fd = fd };
	ret = file_len(fd, &f->len);
	f->len -= ret ? 0 : f->len % block;
	if (!ret && !f->len)
		ret = -EINVAL;
	if (ret)
		goto err_close;
	f->align = try_direct(fd, path, block, flags);
	if (flock(fd, (read_only ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
		goto err_close;
	}
	return 0;

err_close:
	close(fd);
	return ret;
}

bool file_is_straight(const struct file_target *f, const struct piece *p)
{
	if (p->op != PIECE_READ && p->op != PIECE_WRITE)
		return false;
	for (uint32_t i = 0; i < p->seg_cnt; i++) {
		const struct segment *s = &p->segs[i];
		uintptr_t at = (uintptr_t)(s->window->files[0].base + s->at);

		/* A multicast is read once, where nobody can change it before all have it. */
		if ((at | s->len) % f->align || (p->op == PIECE_READ && s->window->file_cnt > 1))
			return false;
	}
	return true;
}

uint32_t file_fill(const struct piece *p, struct iovec *iov)
{
	for (uint32_t i = 0; i < p->seg_cnt; i++) {
		const struct segment *s = &p->segs[i];

		iov[i] = (struct iovec){ s->window->files[0].base + s->at, s->len };
	}
	return p->seg_cnt;
}

int file_zero_mode(const struct file_target *f, const struct piece *p)
{
	if ((p->op == PIECE_DEALLOCATE || p->op == PIECE_DISCARD) && !f->no_punch)
		return FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	return f->no_zero ? 0 : FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
}

bool file_zero_refused(struct file_target *f, int mode, int error)
{
	if (error != EOPNOTSUPP && error != ENOSYS && error != EINVAL)
		return false;
	if (mode & FALLOC_FL_PUNCH_HOLE)
		f->no_punch = true;
	else
		f->no_zero = true;
	return true;
}

uint32_t iov_advance(struct iovec *iov, uint32_t cnt, uint64_t len)
{
	uint32_t gone = 0;

	while (gone < cnt && len >= iov[gone].iov_len)
		len -= iov[gone++].iov_len;
	cnt -= gone;
	memmove(iov, iov + gone, cnt * sizeof(*iov));
	if (cnt) {
		iov[0].iov_base = (uint8_t *)iov[0].iov_base + len;
		iov[0].iov_len -= len;
	}
	return cnt;
}

uint16_t file_status(const struct piece *p, int error)
{
	switch (error) {
	case 0:
		return NVME_SC_SUCCESS;
	case ENOSPC:
	case EDQUOT:
		return NVME_SC_CAPACITY;
	}
	return p->op == PIECE_READ || p->op == PIECE_COMPARE ? NVME_SC_READ_ERROR
							     : NVME_SC_WRITE_FAULT;
}
