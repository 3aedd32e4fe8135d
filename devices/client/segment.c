/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Segments, and windows by which devices reach them; weft/device.h has the contract, client/export.c the segments of
 * others.
 */
#define _GNU_SOURCE
#include "client.h"
#include "remote.h"
#include "spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool client_file_has(int fd, uint64_t end)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_size >= 0 && (uint64_t)st.st_size >= end;
}

static int map_file(uint8_t *at, int fd, size_t len)
{
	if (!client_file_has(fd, len))
		return -ENOPROTOOPT;
	return mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED
		       ? -errno
		       : 0;
}

/*
 * Whether a file is only the name of a device's memory, which no process of borrowers reaches: it can't be written. The
 * addresses that it has here name it to the device.
 */
static bool is_name(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_WRITE;
}

int segment_map(struct weft_segment *seg)
{
	uint8_t *mem = mmap(NULL, seg->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t i;
	int err = 0;

	if (mem == MAP_FAILED)
		return -errno;
	seg->hidden = seg->fd_cnt && is_name(seg->fds[0]);
	for (i = 0; !err && !seg->hidden && i < seg->fd_cnt; i++)
		err = map_file(mem + i * seg->part, seg->fds[i], seg->part);
	if (err)
		munmap(mem, seg->len);
	else
		seg->mem = mem;
	return err;
}

static int own_memory(struct weft_segment *seg, uint32_t flags)
{
	int err;

	seg->fds[0] = memfd_create("weft-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (seg->fds[0] < 0)
		return -errno;
	seg->fd_cnt = 1;
	seg->part = seg->len;
	/* Nobody can take away what the device accesses, and another user can't open it. */
	if (fchmod(seg->fds[0], 0600) || ftruncate(seg->fds[0], (off_t)seg->len) ||
	    fcntl(seg->fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	err = segment_map(seg);
	if (!err && flags & WEFT_SEGMENT_HUGE)
		madvise(seg->mem, seg->len, MADV_HUGEPAGE);
	return err;
}

static int device_memory(struct weft_segment *seg)
{
	struct request request = { .msg = { .kind = LEASE_MEMORY, .len = seg->len } };
	int err = device_ask(seg->dev, &request);

	if (request_fds_lost(&request, err)) {
		request.msg = (struct lease_message){ .kind = LEASE_UNMEMORY,
						      .index = request.msg.index,
						      .count = request.msg.count };
		device_ask(seg->dev, &request);
	}
	if (err)
		return err;
	seg->first = request.msg.index;
	seg->fd_cnt = request.msg.fd_cnt;
	memcpy(seg->fds, request.got, seg->fd_cnt * sizeof(int));
	if (!seg->fd_cnt || request.msg.len % NVME_PAGE ||
	    request.msg.len > SIZE_MAX / PACKET_FDS_MAX ||
	    request.msg.len * seg->fd_cnt < seg->len)
		return -ENOPROTOOPT;
	seg->part = request.msg.len;
	seg->len = seg->part * seg->fd_cnt;
	return segment_map(seg);
}

static void destroy(struct weft_segment *seg)
{
	struct request request = {
		.msg = { .kind = LEASE_UNMEMORY, .index = seg->first, .count = seg->fd_cnt }
	};

	segment_unexport(seg);
	if (seg->mem)
		munmap(seg->mem, seg->len);
	if (seg->dev && seg->fd_cnt)
		device_ask(seg->dev, &request);
	packet_close_fds(seg->fds, seg->fd_cnt);
	if (seg->dev)
		device_unref(seg->dev);
	free(seg->fds);
	free(seg);
}

#define HINTS                                                                     \
	(WEFT_HINT_DEVICE_READS | WEFT_HINT_DEVICE_WRITES | WEFT_HINT_CPU_READS | \
	 WEFT_HINT_CPU_WRITES)

/* Whether the device's memory is the place for what is done. Who reads waits, who writes does not. */
static bool place(uint32_t hints, const char **why)
{
	if (!hints)
		*why = "the device's memory: it was asked for";
	else if (hints & WEFT_HINT_CPU_READS)
		*why = "this process's memory: the processor reads it, and would wait for the device's";
	else if (hints & WEFT_HINT_DEVICE_READS)
		*why = "the device's memory: the device alone reads it, and would wait for this process's";
	else
		*why = "this process's memory: nobody reads it often";
	return !hints || (hints & (WEFT_HINT_CPU_READS | WEFT_HINT_DEVICE_READS)) ==
				 WEFT_HINT_DEVICE_READS;
}

static int create_at(struct weft_device *dev, size_t len, uint32_t flags, const char *why,
		     struct weft_segment **out)
{
	struct weft_segment *seg = calloc(1, sizeof(*seg));
	int err;

	if (!seg)
		return -ENOMEM;
	if (dev)
		atomic_fetch_add(&dev->refs, 1);
	seg->dev = dev;
	seg->why = why;
	seg->len = nvme_page_len(len);
	seg->fds = calloc(PACKET_FDS_MAX, sizeof(int));
	if (!seg->fds)
		err = -ENOMEM;
	else
		err = dev ? device_memory(seg) : own_memory(seg, flags);
	if (err)
		destroy(seg);
	else
		*out = seg;
	return err;
}

int weft_segment_alloc(struct weft_device *dev, size_t len, uint32_t flags,
		       struct weft_segment **out)
{
	const char *why = "this process's memory: it was asked for";
	uint32_t hints = flags & HINTS;
	int err;

	if (!len || len > SIZE_MAX / 2 || flags & ~(HINTS | WEFT_SEGMENT_HUGE))
		return -EINVAL;
	if (!dev || !place(hints, &why))
		return create_at(NULL, len, flags, why, out);
	err = create_at(dev, len, flags, why, out);
	if (!err && hints & (WEFT_HINT_CPU_READS | WEFT_HINT_CPU_WRITES) && (*out)->hidden) {
		destroy(*out);
		return create_at(NULL, len, flags,
				 "this process's memory: the processor can't reach the device's",
				 out);
	}
	if (!hints || (err != -EOPNOTSUPP && err != -ENOSPC))
		return err;
	why = err == -ENOSPC ? "this process's memory: all of the device's is in use"
			     : "this process's memory: the device has none";
	return create_at(NULL, len, flags, why, out);
}

const char *weft_segment_why(const struct weft_segment *seg)
{
	return seg->why;
}

int weft_segment_free(struct weft_segment *seg)
{
	if (atomic_load(&seg->windows))
		return -EBUSY;
	destroy(seg);
	return 0;
}

void *weft_segment_mem(const struct weft_segment *seg)
{
	return seg->mem;
}

size_t weft_segment_len(const struct weft_segment *seg)
{
	return seg->len;
}

int spans_copy(struct weft_device *dev, struct span **spans, uint32_t *cnt, uint32_t *version)
{
	struct span *copy;

	pthread_mutex_lock(&dev->lock);
	copy = malloc((dev->span_cnt + 1) * sizeof(*copy));
	if (copy) {
		if (dev->span_cnt)
			memcpy(copy, dev->spans, dev->span_cnt * sizeof(*copy));
		*cnt = dev->span_cnt;
		*version = atomic_load(&dev->spans_version);
		*spans = copy;
	}
	pthread_mutex_unlock(&dev->lock);
	return copy ? 0 : -ENOMEM;
}

static int by_memory(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->mem != y->mem)
		return x->mem < y->mem ? -1 : 1;
	return x->order > y->order ? -1 : x->order < y->order;
}

static int add_spans(struct weft_device *dev, const struct span *spans, uint32_t cnt)
{
	struct span *more;
	uint32_t i;

	pthread_mutex_lock(&dev->lock);
	more = reallocarray(dev->spans, dev->span_cnt + cnt, sizeof(*more));
	if (more) {
		memcpy(more + dev->span_cnt, spans, cnt * sizeof(*more));
		for (i = 0; i < cnt; i++)
			more[dev->span_cnt + i].order = dev->spans_version;
		dev->spans = more;
		dev->span_cnt += cnt;
		qsort(more, dev->span_cnt, sizeof(*more), by_memory);
		atomic_fetch_add(&dev->spans_version, 1);
	}
	pthread_mutex_unlock(&dev->lock);
	return more ? 0 : -ENOMEM;
}

static void remove_spans(struct weft_device *dev, const struct span *spans, uint32_t cnt)
{
	uint32_t i, k, kept = 0;

	pthread_mutex_lock(&dev->lock);
	for (i = 0; i < dev->span_cnt; i++) {
		for (k = 0; k < cnt && dev->spans[i].addr != spans[k].addr; k++)
			;
		if (k == cnt)
			dev->spans[kept++] = dev->spans[i];
	}
	dev->span_cnt = kept;
	atomic_fetch_add(&dev->spans_version, 1);
	pthread_mutex_unlock(&dev->lock);
}

static int unmap(struct weft_device *dev, const struct span *span)
{
	const struct lease_message msg = { .kind = LEASE_UNWINDOW,
					   .addr = span->addr,
					   .len = span->len };
	int err;

	if (dev->lender->remote)
		return remote_forget(dev, span);
	err = device_ask_end(dev, &msg, client_now_ms() + LENDER_ANSWER_MS);
	/* Of a lease that has ended nothing is mapped; and the answer to an earlier request may have been lost. */
	return err == -ESTALE || err == -ENOENT ? 0 : err;
}

static int map(struct weft_device *dev, uint32_t access, const int *fds, uint32_t fd_cnt,
	       struct span *span)
{
	struct request request = {
		.msg = { .kind = LEASE_WINDOW,
			 .flags = access,
			 .len = span->len,
			 .fd_cnt = fd_cnt },
		.fds = fds,
	};
	int err;

	span->access = access;
	/* The provider reaches memory of this process by itself: queue pairs tell it which (client/remote.c). */
	if (dev->lender->remote) {
		err = device_ended(dev, false);
		span->addr = atomic_fetch_add(&dev->remote_spans, 1) + 1;
		return fd_cnt > 1 ? -EOPNOTSUPP : err;
	}
	err = device_ask(dev, &request);
	span->addr = request.msg.addr;
	return err;
}

static void free_window(struct weft_window *window)
{
	free(window->spans);
	free(window->segs);
	free(window);
}

/* A window of which nothing is mapped yet. */
static struct weft_window *create(struct weft_device *dev, struct weft_segment *const *segs,
				  uint32_t seg_cnt)
{
	struct weft_segment *first = segs[0];
	struct weft_window *window = calloc(1, sizeof(*window));
	uint32_t i;

	if (!window)
		return NULL;
	window->dev = dev;
	window->seg_cnt = seg_cnt;
	window->span_cnt = first->fd_cnt;
	window->segs = calloc(seg_cnt, sizeof(*window->segs));
	window->spans = calloc(first->fd_cnt, sizeof(*window->spans));
	if (!window->segs || !window->spans) {
		free_window(window);
		return NULL;
	}
	memcpy(window->segs, segs, seg_cnt * sizeof(*segs));
	for (i = 0; i < first->fd_cnt; i++)
		window->spans[i] = (struct span){ .mem = (uintptr_t)first->mem + i * first->part,
						  .len = first->part };
	return window;
}

static int unmap_spans(struct weft_window *window, uint32_t cnt)
{
	uint32_t i;
	int err;

	for (i = 0; i < cnt; i++) {
		/* Those that are unmapped already have no length. */
		err = window->spans[i].len ? unmap(window->dev, &window->spans[i]) : 0;
		if (err)
			return err;
		window->spans[i].len = 0;
	}
	return 0;
}

/* Everything is mapped: from now on commands find it. */
static int publish(struct weft_window *window, struct weft_window **out)
{
	struct weft_device *dev = window->dev;
	uint32_t i;
	int err = add_spans(dev, window->spans, window->span_cnt);

	if (err)
		return err;
	for (i = 0; i < window->seg_cnt; i++)
		atomic_fetch_add(&window->segs[i]->windows, 1);
	pthread_mutex_lock(&dev->lock);
	window->next = dev->windows;
	dev->windows = window;
	pthread_mutex_unlock(&dev->lock);
	*out = window;
	return 0;
}

int weft_window_open(struct weft_device *dev, struct weft_segment *seg, uint32_t access,
		     struct weft_window **out)
{
	struct weft_window *window = create(dev, &seg, 1);
	uint32_t n;
	int err = 0;

	if (!window)
		return -ENOMEM;
	for (n = 0; n < window->span_cnt; n++) {
		err = map(dev, access, &seg->fds[n], 1, &window->spans[n]);
		if (err)
			break;
	}
	if (!err)
		err = publish(window, out);
	if (err) {
		unmap_spans(window, n);
		free_window(window);
	}
	return err;
}

int weft_multicast_open(struct weft_device *dev, struct weft_segment *const *segs, uint32_t cnt,
			struct weft_window **out)
{
	int fds[WEFT_MULTICAST_MAX], err;
	struct weft_window *window;
	uint32_t i;

	if (!cnt || cnt > WEFT_MULTICAST_MAX)
		return -EINVAL;
	for (i = 0; i < cnt; i++) {
		if (segs[i]->fd_cnt != 1)
			return -EOPNOTSUPP;
		if (segs[i]->len != segs[0]->len)
			return -EINVAL;
		fds[i] = segs[i]->fds[0];
	}
	window = create(dev, segs, cnt);
	if (!window)
		return -ENOMEM;
	err = map(dev, WEFT_WINDOW_WRITE, fds, cnt, &window->spans[0]);
	if (!err) {
		err = publish(window, out);
		if (err)
			unmap_spans(window, 1);
	}
	if (err)
		free_window(window);
	return err;
}

int weft_window_close(struct weft_window *window)
{
	struct weft_device *dev = window->dev;
	struct weft_window **at;
	uint32_t i;
	int err;

	remove_spans(dev, window->spans, window->span_cnt);
	err = unmap_spans(window, window->span_cnt);
	if (err)
		return err;
	pthread_mutex_lock(&dev->lock);
	for (at = &dev->windows; *at != window; at = &(*at)->next)
		;
	*at = window->next;
	pthread_mutex_unlock(&dev->lock);
	for (i = 0; i < window->seg_cnt; i++)
		atomic_fetch_sub(&window->segs[i]->windows, 1);
	if (window->last)
		weft_segment_free(window->segs[0]);
	free_window(window);
	return 0;
}
