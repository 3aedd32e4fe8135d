/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The way of a command to another host's controller, and back; remote.h has the contract. */
#define _GNU_SOURCE
#include "remote_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PING_MS		1000
#define FORGED_MAX	16 /* of 22 bits */
#define ENTRIES_AT_ONCE 16

int pair_listen(struct remote_pair *r, uint32_t idx)
{
	return (int)fi_recv(r->ep, r->memory + idx * sizeof(struct remote_complete),
			    sizeof(struct remote_complete), port_desc(r->mr), FI_ADDR_UNSPEC,
			    &r->receive_contexts[idx]);
}

static uint8_t *send_at(struct remote_pair *r, uint32_t idx)
{
	return r->memory + r->sends_at + (size_t)idx * r->place.message_max;
}

static void lose(struct remote_pair *r, int err)
{
	if (!r->lost)
		r->lost = err;
}

static void free_send(struct remote_pair *r, uint32_t idx)
{
	r->free_sends[r->free_send_cnt++] = idx;
}

/* Give the provider a message. Returns 0 or -FI_EAGAIN; other errors are the end */
static int send_one(struct remote_pair *r, uint32_t idx)
{
	size_t len = r->send_lens[idx];
	bool small = len <= r->port.info->tx_attr->inject_size;
	int ret;

	ret = small ? (int)fi_inject(r->ep, send_at(r, idx), len, r->peer)
		    : (int)fi_send(r->ep, send_at(r, idx), len, port_desc(r->mr), r->peer,
				   &r->send_contexts[idx]);
	if (ret == -FI_EAGAIN)
		return ret;
	if (ret)
		lose(r, -ENOTCONN);
	if (ret || small)
		free_send(r, idx);
	return 0;
}

static void send_unsent(struct remote_pair *r)
{
	uint32_t n = 0;

	while (n < r->unsent_cnt && !send_one(r, r->unsent[n]))
		n++;
	r->unsent_cnt -= n;
	memmove(r->unsent, r->unsent + n, r->unsent_cnt * sizeof(*r->unsent));
}

int pair_say(struct remote_pair *r, const void *message, size_t len)
{
	uint32_t idx;
	int ret;

	if (!r->free_send_cnt)
		return -FI_EAGAIN;
	idx = r->free_sends[--r->free_send_cnt];
	memcpy(send_at(r, idx), message, len);
	r->send_lens[idx] = (uint32_t)len;
	ret = send_one(r, idx);
	if (ret)
		free_send(r, idx);
	return ret;
}

static void say_doorbell(struct weft_nvme *qp)
{
	struct remote_pair *r = qp->remote;
	struct remote_head m = { REMOTE_VERSION, REMOTE_DOORBELL, qp->sq_tail, r->place.key };

	r->doorbell_due = pair_say(r, &m, sizeof(m));
}

/* A command has ended, if it is under way: the controller may say anything. */
static void end(struct weft_nvme *qp, uint16_t cid, uint16_t nvme)
{
	struct remote_pair *r = qp->remote;

	if (cid >= qp->depth || !qp->commands[cid].busy)
		return;
	qp->commands[cid].busy = false;
	r->ended[(r->ended_at + r->ended_cnt++) % qp->depth] = (struct ended){ cid, nvme };
}

static void take_message(struct weft_nvme *qp, const uint8_t *bytes, size_t len)
{
	struct remote_pair *r = qp->remote;
	struct remote_complete m;
	uint32_t i;

	if (len < sizeof(m.head) || len > sizeof(m))
		return;
	memcpy(&m, bytes, len);
	if (m.head.version != REMOTE_VERSION || !remote_key_same(&m.head.key, &r->place.key))
		return;
	switch (m.head.kind) {
	case REMOTE_CONNECTED:
		r->connected = true;
		break;
	case REMOTE_COMPLETE:
		if (m.head.count > REMOTE_COMPLETE_MAX ||
		    len != sizeof(m.head) + m.head.count * sizeof(m.entries[0]))
			return;
		for (i = 0; i < m.head.count; i++)
			end(qp, m.entries[i].cid, NVME_CQE_STATUS(m.entries[i].status) & 0x7ff);
		break;
	case REMOTE_END:
		lose(r, -ESTALE);
		break;
	default:
		break;
	}
}

/* Entries that have come to a completion queue near the borrower. */
static void take_entries(struct weft_nvme *qp)
{
	for (;;) {
		struct nvme_cqe *at = &qp->cq[qp->cq_head];
		/* A:cqe.phase  the phase before the rest of the entry, which came before the transfer's completion */
		uint16_t status = __atomic_load_n(&at->status, __ATOMIC_ACQUIRE);

		if (NVME_CQE_PHASE(status) != qp->phase)
			break;
		end(qp, at->cid, NVME_CQE_STATUS(status) & 0x7ff);
		qp->cq_head++;
		if (qp->cq_head == qp->entries) {
			qp->cq_head = 0;
			qp->phase ^= 1;
		}
	}
}

/* Remote CQ data, which anyone may have sent: who may guess long enough guesses what is short. */
static void take_data(struct weft_nvme *qp, uint64_t data)
{
	struct remote_pair *r = qp->remote;
	int id = remote_data_id(&r->place, data);

	if (id < 0) {
		if (r->place.data_len < sizeof(data) && ++r->forged >= FORGED_MAX)
			lose(r, -ENOTCONN);
	} else if (r->queues) {
		take_entries(qp);
	} else {
		end(qp, (uint16_t)id, 0);
	}
}

static void take_completion(struct weft_nvme *qp, const struct fi_cq_data_entry *e)
{
	struct remote_pair *r = qp->remote;
	uintptr_t at = (uintptr_t)e->op_context;
	uintptr_t receives = (uintptr_t)r->receive_contexts, sends = (uintptr_t)r->send_contexts;

	if (e->flags & FI_REMOTE_WRITE) {
		take_data(qp, e->data);
	} else if (at - receives < sizeof(r->receive_contexts)) {
		uint32_t idx = (uint32_t)((at - receives) / sizeof(struct fi_context2));

		take_message(qp, r->memory + idx * sizeof(struct remote_complete), e->len);
		if (pair_listen(r, idx))
			lose(r, -ENOTCONN);
	} else if (at - sends < sizeof(r->send_contexts)) {
		free_send(r, (uint32_t)((at - sends) / sizeof(struct fi_context2)));
	}
}

/* What has failed is the end, but for a message that is longer than the controller's are: a stranger's */
static void take_error(struct remote_pair *r, const struct fi_cq_err_entry *e)
{
	uintptr_t at = (uintptr_t)e->op_context - (uintptr_t)r->receive_contexts;

	if (e->err != FI_ETRUNC || at >= sizeof(r->receive_contexts) ||
	    pair_listen(r, (uint32_t)(at / sizeof(struct fi_context2))))
		lose(r, -ENOTCONN);
}

/* Under the lock */
static void progress(struct weft_nvme *qp)
{
	struct remote_pair *r = qp->remote;
	struct fi_cq_data_entry entries[ENTRIES_AT_ONCE];
	struct fi_cq_err_entry e = { 0 };
	ssize_t n = fi_cq_read(r->port.cq, entries, ENTRIES_AT_ONCE), i;

	if (n == -FI_EAVAIL && fi_cq_readerr(r->port.cq, &e, 0) > 0)
		take_error(r, &e);
	for (i = 0; i < n; i++)
		take_completion(qp, &entries[i]);
	if (n > 0)
		r->heard_ms = 0;
	if (r->unsent_cnt)
		send_unsent(r);
	if (r->doorbell_due)
		say_doorbell(qp);
}

void pair_progress(struct weft_nvme *qp)
{
	pthread_mutex_lock(&qp->remote->lock);
	if (qp->remote->ep)
		progress(qp);
	pthread_mutex_unlock(&qp->remote->lock);
}

static struct region *find_region(struct remote_pair *r, uint64_t addr)
{
	uint32_t i;

	for (i = 0; i < r->region_cnt; i++)
		if (r->regions[i].addr == addr)
			return &r->regions[i];
	return NULL;
}

static uint64_t region_access(uint32_t access)
{
	return (access & WEFT_WINDOW_READ ? FI_REMOTE_READ : 0) |
	       (access & WEFT_WINDOW_WRITE ? FI_REMOTE_WRITE : 0);
}

static int add_region(struct remote_pair *r, const struct span *span, uint64_t *key)
{
	struct iovec range = { (void *)span->mem, span->len };
	struct fid_mr *mr;
	int err;

	if (r->region_cnt == r->region_room) {
		uint32_t room = 2 * r->region_room + 8;
		struct region *more = reallocarray(r->regions, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		r->regions = more;
		r->region_room = room;
	}
	err = port_mr_open(&r->port, r->ep, &range, region_access(span->access), &mr);
	if (err)
		return err;
	*key = fi_mr_key(mr);
	r->regions[r->region_cnt++] = (struct region){ span->addr, mr, *key };
	return 0;
}

int pair_region(struct remote_pair *r, const struct span *span, uint64_t *key)
{
	struct region *region;
	int err = r->lost;

	pthread_mutex_lock(&r->lock);
	region = find_region(r, span->addr);
	if (region)
		*key = region->key;
	else if (!err)
		err = add_region(r, span, key);
	pthread_mutex_unlock(&r->lock);
	return err;
}

int pair_forget(struct remote_pair *r, uint64_t addr)
{
	struct region *region = find_region(r, addr);
	int err = region ? fi_close(&region->mr->fid) : 0;

	if (region && !err)
		*region = r->regions[--r->region_cnt];
	return err;
}

void pair_forget_all(struct remote_pair *r)
{
	while (r->region_cnt)
		fi_close(&r->regions[--r->region_cnt].mr->fid);
}

static bool moves_in(uint8_t opcode)
{
	return opcode == WEFT_NVME_WRITE || opcode == WEFT_NVME_COMPARE ||
	       opcode == WEFT_NVME_DEALLOCATE;
}

/* struct parcel - an entry, and the data that goes along with it */
struct parcel {
	struct nvme_sqe sqe;
	const void *data;
	size_t len;
	struct nvme_dsm_range range;
};

/* Where the data of a command is for the controller, or that it goes along */
static int pack(struct weft_nvme *qp, const struct weft_nvme_command *command, uint16_t cid,
		struct parcel *p)
{
	struct remote_pair *r = qp->remote;
	const struct span *span;
	uint32_t access;
	size_t len;
	int err = nvme_describe(qp, &p->sqe, cid, command, &len, &access);

	p->len = 0;
	if (err || !len)
		return err;
	if (command->opcode == WEFT_NVME_DEALLOCATE && r->queues) {
		r->ranges[cid] = (struct nvme_dsm_range){ .blocks = command->blocks,
							  .lba = command->lba };
		p->sqe.prp1 = port_mr_addr(&r->port, qp->sq, &r->ranges[cid]);
		p->sqe.prp2 = fi_mr_key(r->queues);
		return 0;
	}
	if (command->opcode == WEFT_NVME_DEALLOCATE) {
		p->range = (struct nvme_dsm_range){ .blocks = command->blocks,
						    .lba = command->lba };
		p->data = &p->range;
		p->len = len;
		p->sqe.mptr = REMOTE_INLINE;
		return 0;
	}
	span = nvme_span(qp, command->buf, len, access, &err);
	if (!span)
		return err;
	if (!r->queues && moves_in(command->opcode) && len <= r->place.inline_max) {
		p->data = command->buf;
		p->len = len;
		p->sqe.mptr = REMOTE_INLINE;
		return 0;
	}
	p->sqe.prp1 = port_mr_addr(&r->port, (const void *)span->mem, command->buf);
	return pair_region(r, span, &p->sqe.prp2);
}

/* A message that is being filled */
struct filling {
	bool any;
	uint32_t idx;
	uint32_t cnt;
	size_t len;
};

static void flush(struct weft_nvme *qp, struct filling *f)
{
	struct remote_pair *r = qp->remote;
	struct remote_head head = { REMOTE_VERSION, REMOTE_SUBMIT, f->cnt, r->place.key };

	if (!f->any)
		return;
	memcpy(send_at(r, f->idx), &head, sizeof(head));
	r->send_lens[f->idx] = (uint32_t)f->len;
	pthread_mutex_lock(&r->lock);
	/* What the provider has no room for waits until it is called again. */
	if (r->unsent_cnt || send_one(r, f->idx))
		r->unsent[r->unsent_cnt++] = f->idx;
	pthread_mutex_unlock(&r->lock);
	f->any = false;
}

/* Put a command into a message. False: there is none that is free */
static bool fill(struct weft_nvme *qp, struct filling *f, const struct parcel *p)
{
	struct remote_pair *r = qp->remote;
	size_t len = sizeof(p->sqe) + REMOTE_PAD(p->len);
	uint8_t *to;

	if (f->any && len > r->place.message_max - f->len)
		flush(qp, f);
	if (!f->any) {
		if (!r->free_send_cnt)
			pair_progress(qp);
		if (!r->free_send_cnt)
			return false;
		*f = (struct filling){ true, r->free_sends[--r->free_send_cnt], 0,
				       sizeof(struct remote_head) };
	}
	to = send_at(r, f->idx) + f->len;
	memcpy(to, &p->sqe, sizeof(p->sqe));
	if (p->len)
		memcpy(to + sizeof(p->sqe), p->data, p->len);
	f->len += len;
	f->cnt++;
	return true;
}

static bool put(struct weft_nvme *qp, struct filling *f, const struct parcel *p)
{
	if (!qp->remote->queues)
		return fill(qp, f, p);
	qp->sq[qp->sq_tail] = p->sqe;
	qp->sq_tail = qp->sq_tail + 1 == qp->entries ? 0 : qp->sq_tail + 1;
	f->any = true;
	return true;
}

ssize_t remote_submit(struct weft_nvme *qp, const struct weft_nvme_command *commands, size_t cnt)
{
	struct remote_pair *r = qp->remote;
	struct filling f = { 0 };
	size_t n = 0;
	int err = r->lost;

	while (!err && n < cnt) {
		struct parcel p;
		uint16_t cid;

		if (!qp->free_cnt) {
			err = -EAGAIN;
			break;
		}
		cid = qp->free[qp->free_cnt - 1];
		err = pack(qp, &commands[n], cid, &p);
		if (!err && !put(qp, &f, &p))
			err = -EAGAIN;
		if (err)
			break;
		qp->free_cnt--;
		qp->commands[cid].arg = commands[n].arg;
		qp->commands[cid].busy = true;
		n++;
	}
	if (n && !r->queues) {
		flush(qp, &f);
	} else if (n) {
		pthread_mutex_lock(&r->lock);
		say_doorbell(qp);
		pthread_mutex_unlock(&r->lock);
	}
	return n ? (ssize_t)n : err;
}

size_t remote_take(struct weft_nvme *qp, struct weft_nvme_completion *done, size_t cnt)
{
	struct remote_pair *r = qp->remote;
	size_t n;

	if (!r->ended_cnt)
		pair_progress(qp);
	for (n = 0; n < cnt && r->ended_cnt; n++) {
		struct ended e = r->ended[r->ended_at];

		r->ended_at = (r->ended_at + 1) % qp->depth;
		r->ended_cnt--;
		qp->free[qp->free_cnt++] = e.cid;
		done[n] = nvme_completion(qp->commands[e.cid].arg, e.nvme);
	}
	return n;
}

int remote_ended(struct weft_nvme *qp, bool look)
{
	struct remote_pair *r = qp->remote;
	struct remote_head ping = { REMOTE_VERSION, REMOTE_PING, 0, r->place.key };
	uint64_t now;

	if (r->lost || !look || qp->free_cnt == qp->depth)
		return r->lost;
	now = client_now_ms();
	if (!r->heard_ms)
		r->heard_ms = now;
	if (now - r->heard_ms < PING_MS)
		return 0;
	r->heard_ms = now;
	pthread_mutex_lock(&r->lock);
	if (r->ep)
		pair_say(r, &ping, sizeof(ping));
	pthread_mutex_unlock(&r->lock);
	return r->lost;
}
