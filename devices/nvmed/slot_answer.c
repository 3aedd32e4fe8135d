/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of the owner, and what they do */
#include "slot_answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nvmed.h"

struct ask {
	const struct slot_message *m;
	int *fds;
	uint32_t cnt;
	struct slot_answer *a;
};

static void answer_fd(struct slot_answer *a, int fd)
{
	a->fds[a->message.fd_cnt++] = fd;
}

/* A new page for the admin pair: an owner before this one has the old page, which rings nothing any more. */
static int admin_page_renew(struct nvmed *c)
{
	struct doorbells *db = &c->bells[0], new;
	int ret = doorbells_open(&new, c->epoll, NVMED_TAG_KICK);

	if (ret)
		return ret;
	if (db->page) {
		if (c->sqs[0])
			sq_look(c, c->sqs[0]);
		if (c->cqs[0])
			cq_look(c, c->cqs[0]);
		doorbell_store(&new.page->sq_tail, c->sqs[0] ? c->sqs[0]->tail : 0);
		doorbell_store(&new.page->cq_head, c->cqs[0] ? c->cqs[0]->head : 0);
	}
	doorbells_close(db);
	*db = new;
	return 0;
}

static int do_attach(struct nvmed *c, const struct ask *q)
{
	int ret = admin_page_renew(c);

	if (ret)
		return ret;
	q->a->message.addr = c->cmb.len;
	q->a->message.len = c->cmb.len ? c->cmb.granule : 0;
	q->a->message.offset = c->config.queue_cnt;
	q->a->message.value = q->a->run;
	q->a->message.index = c->backend->pairs ? SLOT_DIRECT : 0;
	answer_fd(q->a, c->regs.fd);
	return 0;
}

static int do_read(struct nvmed *c, const struct ask *q)
{
	return registers_read(c, q->m->addr, q->m->len, &q->a->message.value);
}

static int do_write(struct nvmed *c, const struct ask *q)
{
	return registers_write(c, q->m->addr, q->m->len, q->m->value);
}

static struct domain *domain_of(struct nvmed *c, uint32_t index)
{
	return index <= NVME_LEASES ? &c->leases.each[index].domain : NULL;
}

static int do_map(struct nvmed *c, const struct ask *q)
{
	struct domain_request req = { .addr = q->m->addr,
				      .len = q->m->len,
				      .offset = q->m->offset,
				      .access = q->m->access,
				      .fds = q->fds,
				      .fd_cnt = q->cnt };
	struct lease *lease;
	uint64_t at;
	int ret;

	if (!domain_of(c, q->m->domain))
		return -EINVAL;
	lease = lease_get(c, q->m->domain);
	if (!lease)
		return -ENXIO;
	if (q->cnt && cmb_find(&c->cmb, q->fds[0], &at))
		ret = cmb_map(&c->cmb, &lease->domain, &req, at);
	else
		ret = domain_map(&lease->domain, &req);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < q->cnt; i++)
		q->fds[i] = -1; /* the domain's */
	return 0;
}

static int do_unmap(struct nvmed *c, const struct ask *q)
{
	struct domain *d = domain_of(c, q->m->domain);
	int ret;

	if (!d)
		return -EINVAL;
	ret = domain_unmap(d, q->m->addr, q->m->len);
	if (!ret)
		queues_remap(c, &c->leases.each[q->m->domain]);
	/* Asked again it is unmapped already. */
	return domain_leaves(d, q->m->addr, q->m->len) ? -EINPROGRESS : ret;
}

/* Writing to anything else could have effects, or block. */
static bool is_eventfd(int fd)
{
	static const char eventfd[] = "anon_inode:[eventfd]";
	char path[32], target[sizeof(eventfd)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target)) == sizeof(eventfd) - 1 &&
	       !memcmp(target, eventfd, sizeof(eventfd) - 1);
}

static int do_vector(struct nvmed *c, const struct ask *q)
{
	if (q->m->index >= c->vectors.cnt || q->cnt > 1)
		return -EINVAL;
	if (q->cnt && !is_eventfd(q->fds[0]))
		return -EBADF;
	vector_set(c, q->m->index, q->cnt ? q->fds[0] : -1);
	if (q->cnt)
		q->fds[0] = -1;
	return 0;
}

/* The doorbells are the device's, and its descriptor is what has them. */
static int region_direct(struct nvmed *c, const struct ask *q, uint16_t qid)
{
	struct backend_page page;
	int ret;

	if (q->cnt != 1)
		return -EINVAL;
	ret = c->backend->pairs->find_page(c->backend, qid, q->fds[0], &page);
	if (ret)
		return ret;
	q->a->message.offset = page.offset;
	q->a->message.len = page.len;
	q->a->message.value = page.sq | (uint64_t)page.cq << 32;
	answer_fd(q->a, page.fd);
	return 0;
}

static int region_page(struct nvmed *c, const struct ask *q)
{
	uint64_t qid = (q->m->addr - NVME_REG_DOORBELLS) / sizeof(struct slot_doorbells);
	struct doorbells *db;

	if (q->m->addr < NVME_REG_DOORBELLS || q->m->addr % sizeof(struct slot_doorbells) ||
	    q->m->len != sizeof(struct slot_doorbells) || q->m->value)
		return -EINVAL;
	if (qid > c->config.queue_cnt)
		return -ENOENT;
	if (qid && c->backend->pairs)
		return region_direct(c, q, (uint16_t)qid);
	if (q->cnt)
		return -EINVAL;
	db = &c->bells[qid];
	if (qid && !c->sqs[qid] && !c->cqs[qid])
		doorbells_close(db);
	if (!db->page) {
		int ret = doorbells_open(db, c->epoll, NVMED_TAG_KICK);

		if (ret)
			return ret;
	}
	answer_fd(q->a, db->fd);
	answer_fd(q->a, db->kick);
	return 0;
}

/*
 * A granule of a device's memory is the same memory for whoever has it next: windows that are left on it, of whichever
 * lease, end first. -EBUSY: something is under way by one of them.
 */
static int granule_renew(struct nvmed *c, uint32_t index)
{
	struct cmb *cmb = &c->cmb;

	for (uint32_t i = 0; cmb_in_use(cmb, index) && i <= NVME_LEASES; i++) {
		struct lease *lease = &c->leases.each[i];

		if (domain_unmap_named(&lease->domain, cmb->base + index * cmb->granule))
			queues_remap(c, lease);
	}
	return cmb_in_use(cmb, index) ? -EBUSY : cmb_renew(cmb, index);
}

static int region_memory(struct nvmed *c, const struct ask *q)
{
	struct cmb *cmb = &c->cmb;
	uint64_t first, cnt, end;

	if (!cmb->len)
		return -ENOENT;
	if (q->cnt)
		return -EINVAL;
	if (!q->m->len || (q->m->addr | q->m->len) % cmb->granule || q->m->value > 1 ||
	    __builtin_add_overflow(q->m->addr, q->m->len, &end))
		return -EINVAL;
	first = q->m->addr / cmb->granule;
	cnt = q->m->len / cmb->granule;
	if (end > cmb->len)
		return -ENOENT;
	if (cnt > SLOT_FDS_MAX)
		return -EINVAL;
	for (uint64_t i = first; i < first + cnt; i++) {
		int ret = q->m->value ? granule_renew(c, (uint32_t)i) : 0;

		if (ret)
			return ret;
		answer_fd(q->a, cmb->fds[i]);
	}
	return 0;
}

static int do_region(struct nvmed *c, const struct ask *q)
{
	switch (q->m->index) {
	case 0:
		return region_page(c, q);
	case 2:
		return region_memory(c, q);
	}
	return -ENOENT;
}

static int do_domain(struct nvmed *c, const struct ask *q)
{
	const struct domain *d = domain_of(c, q->m->domain);
	uint32_t left = q->m->index;

	if (!d)
		return -EINVAL;
	for (uint32_t i = 0; i < d->cnt; i++) {
		const struct window *w = d->windows[i];

		if (w->files[0].fd < 0 || left--)
			continue;
		q->a->message.addr = w->addr;
		q->a->message.len = w->len;
		q->a->message.offset = w->offset;
		q->a->message.access = w->access;
		for (uint32_t f = 0; f < w->file_cnt; f++)
			answer_fd(q->a, w->files[f].fd);
		return 0;
	}
	return -ENOENT;
}

static int do_queue(struct nvmed *c, const struct ask *q)
{
	struct sq *sq;
	struct cq *cq;

	if (q->m->index > c->config.queue_cnt)
		return -ENOENT;
	sq = c->sqs[q->m->index];
	cq = c->cqs[q->m->index];
	if (!sq && !cq)
		return -ENOENT;
	q->a->message.domain = lease_index(c, sq ? sq->lease : cq->lease);
	if (sq)
		sq_look(c, sq);
	if (cq)
		cq_look(c, cq);
	if (sq)
		q->a->message.addr = sq->tail | (uint64_t)sq->head << 32;
	if (cq)
		q->a->message.len = cq->tail | (uint64_t)cq->head << 32 |
				    (uint64_t)cq->phase << 63;
	return 0;
}

static int do_remote(struct nvmed *c, const struct ask *q)
{
	uint32_t len = sizeof(q->a->data);
	int ret;

	if (!c->remote)
		return -EOPNOTSUPP;
	if (q->m->index > UINT16_MAX || q->m->len > UINT32_MAX)
		return -EINVAL;
	ret = c->remote->ops->open(c->remote, q->m->domain, (uint16_t)q->m->index,
				   (uint32_t)q->m->len, q->a->data, &len);
	if (!ret)
		q->a->message.len = len;
	return ret;
}

/* What each kind has in a request beside its number; the rest is zero. */
enum {
	HAS_DOMAIN = 1,
	HAS_ACCESS = 2,
	HAS_INDEX = 4,
	HAS_ADDR = 8,
	HAS_LEN = 16,
	HAS_OFFSET = 32,
	HAS_VALUE = 64,
	HAS_FDS = 128,
};

static const struct kind {
	int (*run)(struct nvmed *c, const struct ask *q);
	unsigned has;
} kinds[SLOT_KINDS] = {
	[SLOT_ATTACH] = { do_attach, 0 },
	[SLOT_READ] = { do_read, HAS_ADDR | HAS_LEN },
	[SLOT_WRITE] = { do_write, HAS_ADDR | HAS_LEN | HAS_VALUE },
	[SLOT_MAP] = { do_map,
		       HAS_DOMAIN | HAS_ACCESS | HAS_ADDR | HAS_LEN | HAS_OFFSET | HAS_FDS },
	[SLOT_UNMAP] = { do_unmap, HAS_DOMAIN | HAS_ADDR | HAS_LEN },
	[SLOT_VECTOR] = { do_vector, HAS_INDEX | HAS_FDS },
	[SLOT_REGION] = { do_region, HAS_INDEX | HAS_ADDR | HAS_LEN | HAS_VALUE | HAS_FDS },
	[SLOT_DOMAIN] = { do_domain, HAS_DOMAIN | HAS_INDEX },
	[SLOT_QUEUE] = { do_queue, HAS_INDEX },
	[SLOT_REMOTE] = { do_remote, HAS_DOMAIN | HAS_INDEX | HAS_LEN },
};

static unsigned has(const struct slot_message *m)
{
	return (m->domain ? HAS_DOMAIN : 0) | (m->access ? HAS_ACCESS : 0) |
	       (m->index ? HAS_INDEX : 0) | (m->addr ? HAS_ADDR : 0) | (m->len ? HAS_LEN : 0) |
	       (m->offset ? HAS_OFFSET : 0) | (m->value ? HAS_VALUE : 0) |
	       (m->fd_cnt ? HAS_FDS : 0);
}

static int run(struct nvmed *c, const struct ask *q)
{
	const struct slot_message *m = q->m;

	if (m->version != SLOT_VERSION || m->kind >= SLOT_KINDS || !kinds[m->kind].run)
		return -EPROTO;
	if (m->status || m->rsvd28 || m->fd_cnt != q->cnt || has(m) & ~kinds[m->kind].has)
		return -EINVAL;
	return kinds[m->kind].run(c, q);
}

void slot_answer(struct nvmed *c, const struct slot_message *m, int *fds, uint32_t cnt,
		 struct slot_answer *a)
{
	struct ask q = { m, fds, cnt, a };
	int ret;

	a->message = (struct slot_message){ .version = SLOT_VERSION,
					    .kind = m->kind,
					    .seq = m->seq };
	ret = run(c, &q);
	for (uint32_t i = 0; i < cnt; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (ret)
		a->message = (struct slot_message){
			.version = SLOT_VERSION, .kind = m->kind, .seq = m->seq, .status = ret
		};
}
