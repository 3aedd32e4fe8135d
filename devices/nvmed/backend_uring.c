/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A namespace in a file, by io_uring: up to DEPTH pieces are under way, each in as many steps as it takes */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "file_target.h"
#include "nvme/spec.h"
#include "segments.h"

#define DEPTH	128u
#define BYTES	(4u << 20)
#define ZEROES	(4u << 20)
#define BOUNCES 16u /* buffers for pieces that don't go straight; further ones wait */

static_assert(ZEROES / PIECE_LEN_MAX <= PIECE_SEGS_MAX, "zeros are written from one buffer");

/*
 * struct request - a piece under way
 * @bounce: its buffer, or NULL
 * @mode:   of the fallocate() that is under way
 * @syncs:  the step under way is the last one, which makes it durable
 */
struct request {
	struct request *next;
	struct piece *piece;
	uint8_t *bounce;
	uint64_t offset;
	int mode;
	bool syncs;
	uint32_t iov_cnt;
	struct iovec iov[PIECE_SEGS_MAX];
};

struct uring {
	struct backend b;
	struct file_target f;
	struct io_uring ring;
	bool to_submit;
	struct request *free;
	struct request *waiting; /* for a buffer, the newest first */
	uint32_t bounce_cnt;
	uint8_t *bounces[BOUNCES];
	uint8_t *room;
	uint8_t *zeroes;
	struct request requests[DEPTH];
};

static struct io_uring_sqe *step(struct uring *u, struct request *r)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	/* The ring has room for a step of each request. */
	if (!sqe) {
		io_uring_submit(&u->ring);
		sqe = io_uring_get_sqe(&u->ring);
	}
	assert(sqe);
	memset(sqe, 0, sizeof(*sqe));
	io_uring_sqe_set_data(sqe, r);
	u->to_submit = true;
	return sqe;
}

static void step_end(struct io_uring_sqe *sqe, struct request *r)
{
	io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data(sqe, r);
}

static void step_move(struct uring *u, struct request *r)
{
	struct io_uring_sqe *sqe = step(u, r);
	const struct piece *p = r->piece;

	if (p->op == PIECE_READ || p->op == PIECE_COMPARE)
		io_uring_prep_readv(sqe, 0, r->iov, r->iov_cnt, r->offset);
	else
		io_uring_prep_writev2(sqe, 0, r->iov, r->iov_cnt, r->offset,
				      p->durable ? RWF_DSYNC : 0);
	step_end(sqe, r);
}

static void step_sync(struct uring *u, struct request *r)
{
	struct io_uring_sqe *sqe = step(u, r);

	r->syncs = true;
	io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
	step_end(sqe, r);
}

static void step_zero(struct uring *u, struct request *r)
{
	const struct piece *p = r->piece;
	struct io_uring_sqe *sqe;

	r->mode = file_zero_mode(&u->f, p);
	if (r->mode) {
		sqe = step(u, r);
		io_uring_prep_fallocate(sqe, 0, r->mode, (off_t)p->offset, (off_t)p->len);
		step_end(sqe, r);
		return;
	}
	r->iov_cnt = 0;
	for (uint64_t at = 0; at < p->len; at += PIECE_LEN_MAX)
		r->iov[r->iov_cnt++] = (struct iovec){ u->zeroes, p->len - at < PIECE_LEN_MAX
									  ? p->len - at
									  : PIECE_LEN_MAX };
	step_move(u, r);
}

/* By way of a buffer, if one is free */
static void step_bounce(struct uring *u, struct request *r)
{
	struct piece *p = r->piece;

	if (!u->bounce_cnt) {
		r->next = u->waiting;
		u->waiting = r;
		return;
	}
	r->bounce = u->bounces[--u->bounce_cnt];
	if (p->op == PIECE_WRITE)
		segments_gather(p, r->bounce);
	r->iov[0] = (struct iovec){ r->bounce, p->len };
	r->iov_cnt = 1;
	step_move(u, r);
}

static bool uring_start(struct backend *b, struct piece *p)
{
	struct uring *u = (struct uring *)b;
	struct request *r = u->free;

	assert(r);
	u->free = r->next;
	r->piece = p;
	r->bounce = NULL;
	r->offset = p->offset;
	r->mode = 0;
	r->syncs = false;
	switch (p->op) {
	case PIECE_READ:
	case PIECE_WRITE:
	case PIECE_COMPARE:
		if (!file_is_straight(&u->f, p)) {
			step_bounce(u, r);
			break;
		}
		r->iov_cnt = file_fill(p, r->iov);
		step_move(u, r);
		break;
	case PIECE_ZERO:
	case PIECE_DEALLOCATE:
	case PIECE_DISCARD:
		step_zero(u, r);
		break;
	case PIECE_FLUSH:
		step_sync(u, r);
		break;
	}
	return false;
}

static void uring_submit(struct backend *b)
{
	struct uring *u = (struct uring *)b;

	if (!u->to_submit)
		return;
	/* What the system can't take now stays in the ring. */
	if (io_uring_submit(&u->ring) >= 0)
		u->to_submit = io_uring_sq_ready(&u->ring);
}

static void bounce_put(struct uring *u, struct request *r)
{
	struct request *next = u->waiting;

	if (!r->bounce)
		return;
	u->bounces[u->bounce_cnt++] = r->bounce;
	r->bounce = NULL;
	if (!next)
		return;
	u->waiting = next->next;
	step_bounce(u, next);
}

/* A step has ended. Returns whether the piece has; if not, another step is under way */
static bool request_stepped(struct uring *u, struct request *r, int res)
{
	struct piece *p = r->piece;

	if (res == -EINTR || res == -EAGAIN) {
		if (r->syncs)
			step_sync(u, r);
		else if (r->mode)
			step_zero(u, r);
		else
			step_move(u, r);
		return false;
	}
	if (r->mode && !r->syncs && res < 0 && file_zero_refused(&u->f, r->mode, -res)) {
		step_zero(u, r);
		return false;
	}
	if (!r->syncs && !r->mode && res >= 0) {
		if (!res)
			res = -EIO; /* the file has become shorter */
		r->offset += res > 0 ? (uint64_t)res : 0;
		r->iov_cnt = res > 0 ? iov_advance(r->iov, r->iov_cnt, (uint64_t)res) : 0;
		if (r->iov_cnt) {
			step_move(u, r);
			return false;
		}
	}
	if (res >= 0 && r->mode && !r->syncs && p->durable) {
		step_sync(u, r);
		return false;
	}
	p->status = file_status(p, res < 0 ? -res : 0);
	return true;
}

static uint32_t uring_reap(struct backend *b, void (*done)(void *, struct piece *), void *arg)
{
	struct uring *u = (struct uring *)b;
	struct io_uring_cqe *cqe;
	uint32_t cnt = 0;

	while (!io_uring_peek_cqe(&u->ring, &cqe)) {
		struct request *r = io_uring_cqe_get_data(cqe);
		struct piece *p = r->piece;
		int res = cqe->res;

		io_uring_cqe_seen(&u->ring, cqe);
		if (!request_stepped(u, r, res))
			continue;
		if (r->bounce && !p->status && p->op == PIECE_READ)
			segments_scatter(p, r->bounce);
		if (r->bounce && !p->status && p->op == PIECE_COMPARE)
			p->status = segments_compare(p, r->bounce);
		bounce_put(u, r);
		r->next = u->free;
		u->free = r;
		cnt++;
		done(arg, p);
	}
	uring_submit(b);
	/* What the system can't take now is tried again: no descriptor tells when it can. */
	return cnt + u->to_submit;
}

static int uring_event(struct backend *b)
{
	return ((struct uring *)b)->ring.ring_fd;
}

static void uring_close(struct backend *b)
{
	struct uring *u = (struct uring *)b;

	fdatasync(u->f.fd);
	/* The ring lets its reference to the file go later: the next controller need not wait for that. */
	flock(u->f.fd, LOCK_UN);
	io_uring_queue_exit(&u->ring);
	close(u->f.fd);
	free(u->room);
	free(u);
}

static const struct backend_ops uring_ops = {
	.slice = PIECE_LEN_MAX,
	.zeroes = ZEROES,
	.depth = DEPTH,
	.bytes = BYTES,
	.start = uring_start,
	.submit = uring_submit,
	.reap = uring_reap,
	.event = uring_event,
	.close = uring_close,
};

static int ring_open(struct uring *u)
{
	int ret = io_uring_queue_init(2 * DEPTH, &u->ring,
				      IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);

	if (ret == -EINVAL)
		ret = io_uring_queue_init(2 * DEPTH, &u->ring, 0);
	if (ret)
		return ret;
	ret = io_uring_register_files(&u->ring, &u->f.fd, 1);
	if (ret)
		io_uring_queue_exit(&u->ring);
	return ret;
}

int backend_uring_open(const struct file_target *f, struct backend **b)
{
	struct uring *u = calloc(1, sizeof(*u));
	int ret = -ENOMEM;

	if (!u)
		return ret;
	u->f = *f;
	u->room = aligned_alloc(NVME_PAGE, (BOUNCES + 1) * PIECE_LEN_MAX);
	if (!u->room)
		goto err_free;
	u->zeroes = u->room + BOUNCES * PIECE_LEN_MAX;
	memset(u->zeroes, 0, PIECE_LEN_MAX);
	for (uint32_t i = 0; i < BOUNCES; i++)
		u->bounces[u->bounce_cnt++] = u->room + i * PIECE_LEN_MAX;
	for (uint32_t i = 0; i < DEPTH; i++) {
		u->requests[i].next = u->free;
		u->free = &u->requests[i];
	}
	ret = ring_open(u);
	if (ret)
		goto err_free;
	u->b = (struct backend){
		.ops = &uring_ops,
		.len = f->len,
		.write_cache = true,
		.how = f->align > 1 ? "a file, directly, by io_uring"
				    : "a file, through the page cache, by io_uring"
	};
	*b = &u->b;
	return 0;

err_free:
	free(u->room);
	free(u);
	return ret;
}
