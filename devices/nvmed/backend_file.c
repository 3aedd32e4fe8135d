/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A namespace in a file. Where io_uring is missing, from the build or from the system, or of no use, each piece is waited
 * for: what is here; backend_uring.c has the other one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file_target.h"
#include "nvme/spec.h"
#include "segments.h"

#define ZEROES (4u << 20)

struct sync {
	struct backend b;
	struct file_target f;
	uint8_t *room; /* PIECE_LEN_MAX bytes, and as many zeros behind them */
};

/* Move all of it. Returns 0 or an errno; a file that has become shorter is EIO */
static int move(struct sync *s, const struct piece *p, struct iovec *iov, uint32_t cnt,
		uint64_t offset)
{
	while (cnt) {
		ssize_t n = p->op == PIECE_READ || p->op == PIECE_COMPARE
				    ? preadv(s->f.fd, iov, (int)cnt, (off_t)offset)
				    : pwritev(s->f.fd, iov, (int)cnt, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? errno : EIO;
		offset += (uint64_t)n;
		cnt = iov_advance(iov, cnt, (uint64_t)n);
	}
	return 0;
}

static int move_data(struct sync *s, struct piece *p)
{
	struct iovec iov[PIECE_SEGS_MAX];
	uint32_t cnt = 1;
	bool straight = file_is_straight(&s->f, p);
	int error;

	if (straight)
		cnt = file_fill(p, iov);
	else
		iov[0] = (struct iovec){ s->room, p->len };
	if (!straight && p->op == PIECE_WRITE)
		segments_gather(p, s->room);
	error = move(s, p, iov, cnt, p->offset);
	if (error || straight)
		return error;
	if (p->op == PIECE_READ)
		segments_scatter(p, s->room);
	if (p->op == PIECE_COMPARE)
		p->status = segments_compare(p, s->room);
	return 0;
}

static int write_zeroes(struct sync *s, const struct piece *p)
{
	for (uint64_t at = 0; at < p->len; at += PIECE_LEN_MAX) {
		uint64_t len = p->len - at < PIECE_LEN_MAX ? p->len - at : PIECE_LEN_MAX;
		struct iovec iov = { s->room + PIECE_LEN_MAX, len };
		int error = move(s, p, &iov, 1, p->offset + at);

		if (error)
			return error;
	}
	return 0;
}

static int make_zeroes(struct sync *s, const struct piece *p)
{
	int mode;

	while ((mode = file_zero_mode(&s->f, p))) {
		if (!fallocate(s->f.fd, mode, (off_t)p->offset, (off_t)p->len))
			return 0;
		if (errno != EINTR && !file_zero_refused(&s->f, mode, errno))
			return errno;
	}
	return write_zeroes(s, p);
}

/* The timer of interrupts (vector.c) may end the call: that is no error of the disk. Returns 0 or an errno */
static int bring_to_disk(struct sync *s)
{
	while (fdatasync(s->f.fd))
		if (errno != EINTR)
			return errno;
	return 0;
}

static bool sync_start(struct backend *b, struct piece *p)
{
	struct sync *s = (struct sync *)b;
	int error = 0;

	p->status = NVME_SC_SUCCESS;
	switch (p->op) {
	case PIECE_READ:
	case PIECE_WRITE:
	case PIECE_COMPARE:
		error = move_data(s, p);
		break;
	case PIECE_ZERO:
	case PIECE_DEALLOCATE:
	case PIECE_DISCARD:
		error = make_zeroes(s, p);
		break;
	case PIECE_FLUSH:
		break;
	}
	if (!error && (p->durable || p->op == PIECE_FLUSH))
		error = bring_to_disk(s);
	if (error)
		p->status = file_status(p, error);
	return true;
}

static void sync_submit(struct backend *b)
{
}

static uint32_t sync_reap(struct backend *b, void (*done)(void *, struct piece *), void *arg)
{
	return 0;
}

static int sync_event(struct backend *b)
{
	return -1;
}

static void sync_close(struct backend *b)
{
	struct sync *s = (struct sync *)b;

	bring_to_disk(s);
	close(s->f.fd);
	free(s->room);
	free(s);
}

static const struct backend_ops sync_ops = {
	.slice = PIECE_LEN_MAX,
	.zeroes = ZEROES,
	.start = sync_start,
	.submit = sync_submit,
	.reap = sync_reap,
	.event = sync_event,
	.close = sync_close,
};

int backend_sync_open(const struct file_target *f, struct backend **b)
{
	struct sync *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->room = aligned_alloc(NVME_PAGE, 2 * PIECE_LEN_MAX);
	if (!s->room) {
		free(s);
		return -ENOMEM;
	}
	memset(s->room, 0, 2 * PIECE_LEN_MAX);
	s->f = *f;
	s->b = (struct backend){
		.ops = &sync_ops,
		.len = f->len,
		.write_cache = true,
		.how = f->align > 1 ? "a file, directly, one piece at a time"
				    : "a file, through the page cache, one piece at a time"
	};
	*b = &s->b;
	return 0;
}

/*
 * Whether a read can begin without waiting for it. Of other files, as those of tmpfs, io_uring has a thread of its own
 * do each read: the loop copies what is there in less time than waking that takes.
 */
static bool begins_at_once(const struct file_target *f)
{
	struct iovec iov = { aligned_alloc(NVME_PAGE, NVME_PAGE), NVME_PAGE };
	bool yes = iov.iov_base &&
		   (preadv2(f->fd, &iov, 1, 0, RWF_NOWAIT) >= 0 || errno != EOPNOTSUPP);

	free(iov.iov_base);
	return yes;
}

int backend_file_open(const char *path, uint32_t block, bool read_only, struct backend **b)
{
	struct file_target f;
	int ret = file_open(&f, path, block, read_only);

	if (ret)
		return ret;
	ret = begins_at_once(&f) ? backend_uring_open(&f, b) : -ENOSYS;
	if (ret == -ENOSYS || ret == -EPERM)
		ret = backend_sync_open(&f, b);
	if (ret)
		close(f.fd);
	return ret;
}
