/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way of a command: its entry in the submission queue, the doorbell, its completion. weft/nvme.h has the contract.
 * All is done by the thread that the queue pair belongs to.
 */
#define _GNU_SOURCE
#include "nvme.h"
#include "bridged.h"
#include "fence.h"
#include "mmio.h"
#include "remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Completions are looked for so many times between looks at whether the lease has run out. */
#define LOOKS_PER_CHECK 256u

/* And between looks at whether the controller is there, which take a system call. */
#define LOOKS_PER_LOCK 65536u

/* How long a controller that lives may be at commands of a lease that must have ended, and say nothing. */
#define SILENT_MS 10000u

/* Bounds of spinning before sleeping, or yielding. */
#define SPIN_NS_MIN 2000u
#define SPIN_NS_MAX 50000u
#define SPIN_NS_FAR 400000u /* a device of another host: it does not need this processor */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The newest span with @mem in it that has the access, found in the pair's copy of the device's. NULL: there is none. */
static const struct span *find_span(struct weft_nvme *qp, uintptr_t mem, uint32_t access)
{
	uint32_t low = 0, high = qp->span_cnt;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (qp->spans[mid].mem + qp->spans[mid].len <= mem)
			low = mid + 1;
		else
			high = mid;
	}
	while (low < qp->span_cnt && qp->spans[low].mem <= mem) {
		if ((qp->spans[low].access & access) == access)
			return &qp->spans[low];
		low++;
	}
	return NULL;
}

static int renew_spans(struct weft_nvme *qp)
{
	struct span *spans;
	int err = spans_copy(qp->dev, &spans, &qp->span_cnt, &qp->spans_version);

	if (err)
		return err;
	free(qp->spans);
	qp->spans = spans;
	qp->hits[0].len = qp->hits[1].len = 0;
	return 0;
}

/* The address at which the device reaches @mem, and how many bytes from there on. 0: it doesn't. */
static size_t device_address(struct weft_nvme *qp, uintptr_t mem, uint32_t access,
			     uint64_t *addr)
{
	struct span *hit = &qp->hits[access == WEFT_WINDOW_WRITE];
	const struct span *span;

	if (mem - hit->mem >= hit->len) {
		span = find_span(qp, mem, access);
		if (!span)
			return 0;
		*hit = *span;
	}
	*addr = hit->addr + (mem - hit->mem);
	return hit->len - (mem - hit->mem);
}

/* Know the device's spans as they are now. */
static int know_spans(struct weft_nvme *qp)
{
	if (atomic_load_explicit(&qp->dev->spans_version, memory_order_acquire) ==
		    qp->spans_version &&
	    qp->spans)
		return 0;
	return renew_spans(qp);
}

const struct span *nvme_span(struct weft_nvme *qp, const void *buf, size_t len, uint32_t access,
			     int *err)
{
	const struct span *span = NULL;

	*err = (uintptr_t)buf % 4 ? -EINVAL : know_spans(qp);
	if (*err)
		return NULL;
	span = find_span(qp, (uintptr_t)buf, access);
	if (span && span->len - ((uintptr_t)buf - span->mem) >= len)
		return span;
	*err = -EFAULT;
	return NULL;
}

/* Fill the data pointers of a command in, page after page of the device's addresses. */
static int point_at(struct weft_nvme *qp, struct nvme_sqe *sqe, uint16_t cid, const void *buf,
		    size_t len, uint32_t access)
{
	uint64_t *list = qp->lists[cid], addr;
	uintptr_t mem = (uintptr_t)buf;
	size_t n = NVME_PAGE - mem % NVME_PAGE, cnt = 0;
	int err = know_spans(qp);

	if (err)
		return err;
	if (mem % 4)
		return -EINVAL;
	if (device_address(qp, mem, access, &addr) < (n < len ? n : len))
		return -EFAULT;
	sqe->prp1 = addr;
	while (n < len) {
		size_t left = len - n < NVME_PAGE ? len - n : NVME_PAGE;

		if (cnt == NVME_PAGE / 8)
			return -EMSGSIZE;
		if (device_address(qp, mem + n, access, &list[cnt]) < left)
			return -EFAULT;
		cnt++;
		n += NVME_PAGE;
	}
	if (cnt == 1)
		sqe->prp2 = list[0];
	else if (cnt)
		sqe->prp2 = qp->lists_addr + (uint64_t)cid * NVME_PAGE;
	return 0;
}

static int find_namespace(struct weft_nvme *qp, uint32_t nsid, const struct namespace **ns)
{
	int err = 0;

	if (!nsid || nsid > DEVICE_NAMESPACES)
		return -EINVAL;
	if (!qp->namespaces[nsid].block_size)
		err = device_namespace(qp->dev, nsid, &qp->namespaces[nsid]);
	*ns = &qp->namespaces[nsid];
	return err == -ENODEV ? -EINVAL : err;
}

/* A range to deallocate is in the page of the command's list. */
static void describe_range(struct weft_nvme *qp, struct nvme_sqe *sqe, uint16_t cid,
			   const struct weft_nvme_command *command)
{
	struct nvme_dsm_range range = { .blocks = command->blocks, .lba = command->lba };

	memcpy(qp->lists[cid], &range, sizeof(range));
	sqe->prp1 = qp->lists_addr + (uint64_t)cid * NVME_PAGE;
}

int nvme_describe(struct weft_nvme *qp, struct nvme_sqe *sqe, uint16_t cid,
		  const struct weft_nvme_command *command, size_t *len, uint32_t *access)
{
	const struct namespace *ns;
	int err;

	*len = 0;
	*access = WEFT_WINDOW_READ;
	*sqe = (struct nvme_sqe){ .opcode = command->opcode, .cid = cid, .nsid = command->nsid };
	if (command->flags & ~WEFT_NVME_FUA)
		return -EINVAL;
	if (command->opcode == WEFT_NVME_FLUSH)
		return 0;
	if (!command->blocks || command->blocks > 65536)
		return -EINVAL;
	if (command->opcode == WEFT_NVME_DEALLOCATE) {
		sqe->cdw11 = NVME_DSM_DEALLOCATE;
		*len = sizeof(struct nvme_dsm_range);
		return 0;
	}
	sqe->cdw10 = (uint32_t)command->lba;
	sqe->cdw11 = (uint32_t)(command->lba >> 32);
	sqe->cdw12 = (command->blocks - 1) | (command->flags & WEFT_NVME_FUA ? NVME_RW_FUA : 0);
	switch (command->opcode) {
	case WEFT_NVME_WRITE_ZEROES:
		return 0;
	case WEFT_NVME_READ:
		*access = WEFT_WINDOW_WRITE;
		break;
	case WEFT_NVME_WRITE:
	case WEFT_NVME_COMPARE:
		break;
	default:
		return -EINVAL;
	}
	err = find_namespace(qp, command->nsid, &ns);
	if (err)
		return err;
	*len = (size_t)command->blocks * ns->block_size;
	return ns->transfer_max && *len > ns->transfer_max ? -EMSGSIZE : 0;
}

static int describe(struct weft_nvme *qp, struct nvme_sqe *sqe, uint16_t cid,
		    const struct weft_nvme_command *command)
{
	uint32_t access;
	size_t len;
	int err = nvme_describe(qp, sqe, cid, command, &len, &access);

	if (err || !len)
		return err;
	if (command->opcode != WEFT_NVME_DEALLOCATE)
		return qp->bridge ? bridge_point(qp, sqe, cid, command->buf, len, access)
				  : point_at(qp, sqe, cid, command->buf, len, access);
	describe_range(qp, sqe, cid, command);
	return 0;
}

static void ring(const struct weft_nvme *qp, uint32_t *bell, uint32_t value)
{
	/* A device of its own reads memory after its doorbell is written. */
	if (!qp->doorbells)
		mmio_publish();
	/* R:doorbell  the entries before the tail; pairs A:doorbell of the controller */
	__atomic_store_n(bell, value, __ATOMIC_RELEASE);
}

static void wake_controller(struct weft_nvme *qp)
{
	uint64_t one = 1;

	if (!qp->doorbells)
		return;
	/* F:asleep  the doorbell before this look; pairs F:asleep of the controller, before it sleeps */
	slot_fence();
	if (__atomic_load_n(&qp->doorbells->asleep, __ATOMIC_RELAXED) &&
	    write(qp->kick, &one, sizeof(one)) < 0)
		return; /* it is full: the controller has been told */
}

ssize_t weft_nvme_submit(struct weft_nvme *qp, const struct weft_nvme_command *commands,
			 size_t cnt)
{
	int err = qp->ended ? qp->ended : device_ended(qp->dev, false);
	size_t n = 0;

	if (qp->remote)
		return err ? err : remote_submit(qp, commands, cnt);
	if (qp->bridge && !err)
		err = bridge_ended(qp, false);
	while (!err && n < cnt) {
		uint16_t cid;

		if (!qp->free_cnt) {
			err = -EAGAIN;
			break;
		}
		cid = qp->free[qp->free_cnt - 1];
		err = describe(qp, &qp->sq[qp->sq_tail], cid, &commands[n]);
		if (err)
			break;
		qp->free_cnt--;
		qp->commands[cid] = (struct command){ commands[n].arg, true };
		qp->sq_tail = qp->sq_tail + 1 == qp->entries ? 0 : qp->sq_tail + 1;
		n++;
	}
	if (!n)
		return err;
	ring(qp, qp->sq_bell, qp->sq_tail);
	wake_controller(qp);
	return (ssize_t)n;
}

static int status_of(uint32_t nvme)
{
	if (!nvme)
		return 0;
	return nvme == NVME_SC_ABORT_SQ_DELETED ? -ECANCELED : -EIO;
}

struct weft_nvme_completion nvme_completion(void *arg, uint32_t nvme)
{
	return (struct weft_nvme_completion){ arg, status_of(nvme), nvme };
}

/* Take what has ended. An entry of an id that is not under way is the device's mistake, and nobody's completion. */
static size_t take(struct weft_nvme *qp, struct weft_nvme_completion *done, size_t cnt)
{
	bool moved = false;
	size_t n = 0;

	if (qp->remote)
		return remote_take(qp, done, cnt);
	while (n < cnt) {
		struct nvme_cqe *cqe = &qp->cq[qp->cq_head];
		/* A:cqe.phase  the phase before the rest of the entry, and before the data; pairs R:cqe.phase of the controller */
		uint16_t status = __atomic_load_n(&cqe->status, __ATOMIC_ACQUIRE);
		uint16_t cid;

		if (NVME_CQE_PHASE(status) != qp->phase)
			break;
		cid = __atomic_load_n(&cqe->cid, __ATOMIC_RELAXED);
		qp->cq_head++;
		moved = true;
		if (qp->cq_head == qp->entries) {
			qp->cq_head = 0;
			qp->phase ^= 1;
		}
		if (cid >= qp->depth || !qp->commands[cid].busy)
			continue;
		qp->commands[cid].busy = false;
		qp->free[qp->free_cnt++] = cid;
		status = NVME_CQE_STATUS(status) & 0x7ff;
		if (qp->bridge)
			bridge_done(qp, cid, !status);
		done[n++] = nvme_completion(qp->commands[cid].arg, status);
	}
	if (moved)
		ring(qp, qp->cq_bell, qp->cq_head);
	return n;
}

/* The lease has ended: what is under way has too. */
static ssize_t cancel(struct weft_nvme *qp, struct weft_nvme_completion *done, size_t cnt,
		      int err)
{
	size_t n = 0;
	uint32_t i;

	/* Memory of what has been cancelled is the program's again. */
	if (qp->remote)
		remote_end(qp);
	for (i = 0; i < qp->depth && n < cnt; i++) {
		if (!qp->commands[i].busy)
			continue;
		qp->commands[i].busy = false;
		qp->free[qp->free_cnt++] = (uint16_t)i;
		done[n++] = (struct weft_nvme_completion){ .arg = qp->commands[i].arg,
							   .status = -ECANCELED };
	}
	return n ? (ssize_t)n : err;
}

/*
 * Whether the pair has ended without its lease having been heard of: the controller says so in its page, or is gone,
 * which shows at the lock of the page's file. A device says nothing: the lender does, or the deadline. Over a bridge both
 * show in its memory.
 */
static int pair_ended(struct weft_nvme *qp, bool look)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	if (qp->bridge)
		return bridge_ended(qp, look);
	if (!qp->doorbells)
		return 0;
	/* A:ended  what the controller did before it said so; pairs R:ended */
	if (__atomic_load_n(&qp->doorbells->ended, __ATOMIC_ACQUIRE))
		return -ESTALE;
	return look && !fcntl(qp->page, F_GETLK, &lock) && lock.l_type == F_UNLCK ? -ESTALE : 0;
}

/*
 * Whether the controller is done with what is under way. Where the lease has ended by the clock, or by the lender's word, it
 * may be at a command still, and say so in the pair's page later. A device says nothing; of one of another host the library
 * closes the way to this memory.
 */
static bool is_over(struct weft_nvme *qp)
{
	uint64_t now;

	if ((!qp->doorbells && !qp->bridge) || qp->free_cnt == qp->depth || pair_ended(qp, true))
		return true;
	now = client_now_ms();
	if (!qp->silent_ms)
		qp->silent_ms = now + SILENT_MS;
	return now > qp->silent_ms;
}

static ssize_t take_or_cancel(struct weft_nvme *qp, struct weft_nvme_completion *done,
			      size_t cnt)
{
	size_t n = take(qp, done, cnt);
	bool over;
	int err;

	if (n) {
		qp->idle = 0;
		return (ssize_t)n;
	}
	err = device_ended(qp->dev, ++qp->idle % LOOKS_PER_CHECK == 0);
	if (!err)
		err = qp->remote ? remote_ended(qp, qp->idle % LOOKS_PER_CHECK == 0)
				 : pair_ended(qp, qp->idle % (qp->bridge ? LOOKS_PER_CHECK
									 : LOOKS_PER_LOCK) ==
							  0);
	if (!err)
		return 0;
	qp->ended = err;
	over = is_over(qp);
	/* What the controller has written before it ended the lease is there now. */
	n = take(qp, done, cnt);
	return n || !over ? (ssize_t)n : cancel(qp, done, cnt, err);
}

void nvme_outlast(struct weft_nvme *qp)
{
	struct weft_nvme_completion lost;

	/* Over a bridge, and of another host, it does not reach this process's memory. */
	while (!qp->bridge && !qp->remote && !is_over(qp))
		if (!take(qp, &lost, 1))
			poll(NULL, 0, 1);
}

/* Say whether interrupts are wanted. Before one sleeps one looks once more. */
static void want_interrupts(struct weft_nvme *qp, bool want)
{
	if (!qp->blocking || !qp->doorbells || qp->asleep == want)
		return;
	qp->asleep = want;
	__atomic_store_n(&qp->doorbells->polling, !want, __ATOMIC_RELAXED);
	/* F:polling  the wish before the last look; pairs F:polling of the controller, after an entry */
	slot_fence();
}

static void clear_vector(struct weft_nvme *qp)
{
	uint64_t cnt;

	if (qp->blocking && !qp->remote && read(qp->vector, &cnt, sizeof(cnt)) < 0)
		return; /* it was clear */
}

ssize_t weft_nvme_poll(struct weft_nvme *qp, struct weft_nvme_completion *done, size_t cnt)
{
	ssize_t n = take_or_cancel(qp, done, cnt);

	if (n || !qp->blocking || !cnt)
		return n;
	clear_vector(qp);
	want_interrupts(qp, true);
	do
		n = take_or_cancel(qp, done, cnt);
	while (!n && qp->remote && !remote_may_sleep(qp));
	/* Nobody interrupts when a controller has been silent for too long. */
	if (!n && qp->ended)
		nvme_wake(qp);
	return n;
}

static void sleep_until_interrupt(struct weft_nvme *qp, int ms)
{
	struct pollfd p = { .fd = weft_nvme_fd(qp), .events = POLLIN };

	/* The end of a lease may come without an interrupt. */
	if (!qp->remote || remote_may_sleep(qp))
		poll(&p, 1, ms < 0 || ms > 100 ? 100 : ms);
	/* The next look that finds nothing checks everything. */
	qp->idle = UINT32_MAX;
	clear_vector(qp);
}

/* How long it pays to spin: twice as long as completions take. */
static uint64_t spin_ns(const struct weft_nvme *qp)
{
	uint64_t ns = 2 * qp->wait_ns + SPIN_NS_MIN;

	return ns < (qp->remote ? SPIN_NS_FAR : SPIN_NS_MAX) ? ns : SPIN_NS_MIN;
}

ssize_t weft_nvme_wait(struct weft_nvme *qp, struct weft_nvme_completion *done, size_t cnt,
		       int ms)
{
	uint64_t begin, now, spin, end;
	uint32_t looks = 0;
	ssize_t n;

	if (!cnt)
		return -EINVAL;
	n = take_or_cancel(qp, done, cnt);
	if (n || !ms)
		return n;
	begin = now_ns();
	spin = begin + spin_ns(qp);
	end = ms < 0 ? UINT64_MAX : begin + (uint64_t)ms * 1000000;
	want_interrupts(qp, false);
	for (;;) {
		n = take_or_cancel(qp, done, cnt);
		if (n)
			break;
		if (++looks % 16)
			continue;
		now = now_ns();
		if (now > end)
			return 0;
		if (now < spin)
			continue;
		if (!qp->blocking) {
			sched_yield();
			continue;
		}
		want_interrupts(qp, true);
		n = take_or_cancel(qp, done, cnt);
		if (n)
			break;
		sleep_until_interrupt(qp, end == UINT64_MAX ? -1
							    : (int)((end - now) / 1000000) + 1);
	}
	now = now_ns();
	qp->wait_ns = (7 * qp->wait_ns + (now - begin)) / 8;
	return n;
}

static int carry_out(struct weft_nvme *qp, const struct weft_nvme_command *command)
{
	struct weft_nvme_completion done;
	ssize_t n = weft_nvme_submit(qp, command, 1);

	if (n == 1)
		n = weft_nvme_wait(qp, &done, 1, -1);
	return n < 0 ? (int)n : done.status;
}

int weft_nvme_read(struct weft_nvme *qp, uint32_t nsid, uint64_t lba, uint32_t blocks, void *buf)
{
	return carry_out(qp, &(struct weft_nvme_command){ .opcode = WEFT_NVME_READ,
							  .nsid = nsid,
							  .lba = lba,
							  .blocks = blocks,
							  .buf = buf });
}

int weft_nvme_write(struct weft_nvme *qp, uint32_t nsid, uint64_t lba, uint32_t blocks,
		    const void *buf)
{
	return carry_out(qp, &(struct weft_nvme_command){ .opcode = WEFT_NVME_WRITE,
							  .nsid = nsid,
							  .lba = lba,
							  .blocks = blocks,
							  .buf = (void *)buf });
}

int weft_nvme_flush(struct weft_nvme *qp, uint32_t nsid)
{
	return carry_out(
		qp, &(struct weft_nvme_command){ .opcode = WEFT_NVME_FLUSH, .nsid = nsid });
}
