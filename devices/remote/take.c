/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a borrower sends: its messages, or entries of its queue, become entries of the submission queue here. All of it may
 * be anything: each is copied once, and checked.
 */
#include "session.h"

#include <stdio.h>
#include <string.h>

#include "nvmed/nvmed.h"

static bool moves_in(const struct nvme_sqe *sqe)
{
	return sqe->opcode == NVME_IO_WRITE || sqe->opcode == NVME_IO_COMPARE ||
	       sqe->opcode == NVME_IO_DSM;
}

/* A part of the pool, in one piece. Returns its first page, or -1: there is none that is free */
static int pool_take(struct session *s, uint32_t cnt)
{
	const uint32_t all = SESSION_POOL / NVME_PAGE;
	uint32_t row = 0, i, k;

	for (i = 0; i < all; i++) {
		row = s->pool_map[i / 64] >> i % 64 & 1 ? 0 : row + 1;
		if (row < cnt)
			continue;
		for (k = i + 1 - cnt; k <= i; k++)
			s->pool_map[k / 64] |= 1ULL << k % 64;
		return (int)(i + 1 - cnt);
	}
	return -1;
}

static bool take_buffer(struct session *s, struct work *w)
{
	int first;

	w->pages = 0;
	w->buf = s->at.buffers + (uint64_t)w->op.index * SESSION_INLINE;
	if (w->len <= SESSION_INLINE)
		return true;
	w->pages = (w->len + NVME_PAGE - 1) / NVME_PAGE;
	first = pool_take(s, w->pages);
	if (first < 0)
		return false;
	w->buf = s->at.pool + (uint64_t)first * NVME_PAGE;
	return true;
}

/* What it has of the pool, if anything */
static void give_buffer(struct session *s, struct work *w)
{
	uint64_t i = (w->buf - s->at.pool) / NVME_PAGE;

	for (; w->pages; w->pages--, i++)
		s->pool_map[i / 64] &= ~(1ULL << i % 64);
}

void work_free(struct session *s, struct work *w)
{
	struct receive *r = w->keeps;

	give_buffer(s, w);
	w->state = WORK_FREE;
	w->keeps = NULL;
	ops_add(&s->free_work, &w->op);
	if (!r)
		return;
	r->kept = false;
	s->kept_cnt--;
	session_receive_again(s, r);
}

void work_end(struct session *s, struct work *w, const struct nvme_cqe *cqe)
{
	w->cqe = *cqe;
	w->cqe.cid = w->sqe.cid;
	w->state = WORK_OUT;
	ops_add(&s->out, &w->op);
}

static void fail(struct session *s, struct work *w, uint16_t status)
{
	work_end(s, w, &(struct nvme_cqe){ .status = (uint16_t)(status << 1) });
}

/* Its buffer, page after page */
static void point(struct session *s, const struct work *w, struct nvme_sqe *sqe)
{
	uint64_t addr = s->addr + w->buf, at, *list;
	uint32_t i, cnt = (w->len + NVME_PAGE - 1) / NVME_PAGE;

	sqe->mptr = 0;
	sqe->prp1 = w->len ? addr : 0;
	sqe->prp2 = cnt == 2 ? addr + NVME_PAGE : 0;
	if (cnt <= 2)
		return;
	at = s->at.lists + (uint64_t)w->op.index * NVME_PAGE;
	list = (uint64_t *)(s->memory + at);
	for (i = 1; i < cnt; i++)
		list[i - 1] = addr + (uint64_t)i * NVME_PAGE;
	sqe->prp2 = s->addr + at;
}

void work_queue(struct session *s, struct work *w, int err)
{
	struct nvme_sqe sqe = w->sqe;

	if (err || s->over) {
		fail(s, w, err ? NVME_SC_DATA_TRANSFER : NVME_SC_ABORT_SQ_DELETED);
		return;
	}
	w->state = WORK_QUEUED;
	sqe.cid = (uint16_t)w->op.index;
	point(s, w, &sqe);
	/* The queue has an entry for each work. */
	memcpy(s->memory + s->at.sq + s->sq_tail * sizeof(sqe), &sqe, sizeof(sqe));
	s->sq_tail = s->sq_tail + 1 == s->entries ? 0 : s->sq_tail + 1;
	doorbell_store(&s->c->bells[s->qid].page->sq_tail, s->sq_tail);
}

/* Whether data of the last command of @r stays there. What a device is told of begins a page, as buffers do. */
static bool may_keep(const struct session *s, const struct receive *r, const uint8_t *data)
{
	return r->left == 1 && !((uintptr_t)data % NVME_PAGE) &&
	       s->kept_cnt < s->receive_cnt / 4 * 3;
}

static void keep(struct session *s, struct work *w, struct receive *r, const uint8_t *data)
{
	w->buf = (uint64_t)(data - s->memory);
	w->keeps = r;
	r->kept = true;
	s->kept_cnt++;
}

/* Read what a command writes from the borrower's memory. */
static int fetch_data(struct session *s, struct work *w)
{
	int ret = (int)fi_read(s->ep, s->memory + w->buf, w->len, port_desc(s->mr), s->peer,
			       w->sqe.prp1, w->sqe.prp2, &w->op);

	if (!ret) {
		w->state = WORK_FETCHING;
		w->pending = 1;
	}
	return ret;
}

/*
 * Take a command.
 * @r, @data: what came along, and in which receive; or NULL
 * Returns false when there is no room for it now.
 */
static bool take(struct session *s, const struct nvme_sqe *sqe, struct receive *r,
		 const uint8_t *data)
{
	uint64_t len = remote_data_len(sqe, s->c->config.block);
	struct op *op = s->free_work.first;
	struct work *w;
	int err;

	if (!op)
		return false;
	w = work_of(op);
	w->sqe = *sqe;
	w->len = len > SESSION_DATA ? 0 : (uint32_t)len;
	w->pending = 0;
	if (!take_buffer(s, w))
		return false;
	if (data && may_keep(s, r, data)) {
		keep(s, w, r, data);
	} else if (data) {
		memcpy(s->memory + w->buf, data, w->len);
	} else if (w->len && moves_in(sqe)) {
		err = fetch_data(s, w);
		if (err) {
			give_buffer(s, w);
			if (err != -FI_EAGAIN)
				session_break(s, "can't be read from");
			return false;
		}
	}
	ops_take(&s->free_work);
	if (len > SESSION_DATA)
		fail(s, w, NVME_SC_INVALID_FIELD);
	else if (w->state != WORK_FETCHING)
		work_queue(s, w, 0);
	return true;
}

/* The next command of a message. False: there is no room for it now, or the session is broken */
static bool take_next(struct session *s, struct receive *r)
{
	const uint8_t *message = message_of(s, r), *data = NULL;
	struct nvme_sqe sqe;
	size_t at = r->at, len = 0;

	if (r->len - at < sizeof(sqe)) {
		session_break(s, "sent a message that is too short");
		return false;
	}
	memcpy(&sqe, message + at, sizeof(sqe));
	at += sizeof(sqe);
	if (sqe.mptr == REMOTE_INLINE) {
		len = remote_data_len(&sqe, s->c->config.block);
		if (!len || !moves_in(&sqe) || len > SESSION_INLINE ||
		    r->len - at < REMOTE_PAD(len)) {
			session_break(s, "sent a message without its data");
			return false;
		}
		data = message + at;
		at += REMOTE_PAD(len);
	} else if (sqe.mptr) {
		session_break(s, "sent no command");
		return false;
	}
	if (!take(s, &sqe, r, data))
		return false;
	r->at = (uint32_t)at;
	r->left--;
	return true;
}

/* Entries of the borrower's queue that were read. False: there is no room for one now */
static bool take_fetched(struct session *s)
{
	struct nvme_sqe sqe;

	while (s->near.taken < s->near.fetched) {
		memcpy(&sqe, s->memory + s->at.fetched + s->near.taken * sizeof(sqe),
		       sizeof(sqe));
		if (sqe.mptr) {
			session_break(s, "has no command in its queue");
			return false;
		}
		if (!take(s, &sqe, NULL, NULL))
			return false;
		s->near.taken++;
	}
	return true;
}

/* Read the next entries of the borrower's queue, up to its end. */
static void fetch(struct session *s)
{
	struct near *n = &s->near;
	uint32_t end = n->tail >= n->head ? n->tail : n->entries;
	uint32_t cnt = end - n->head < SESSION_FETCH ? end - n->head : SESSION_FETCH;
	int err = (int)fi_read(s->ep, s->memory + s->at.fetched, cnt * sizeof(struct nvme_sqe),
			       port_desc(s->mr), s->peer,
			       n->sq_addr + n->head * sizeof(struct nvme_sqe), n->sq_key,
			       &s->fetch);

	if (err == -FI_EAGAIN)
		return;
	if (err) {
		session_break(s, "can't be read from");
		return;
	}
	n->fetching = true;
	n->taken = 0;
	n->fetched = cnt;
	n->head = n->head + cnt == n->entries ? 0 : n->head + cnt;
}

void session_fetched(struct session *s)
{
	s->near.fetching = false;
	session_take(s);
}

void session_take(struct session *s)
{
	struct op *op;

	while (!s->broken && (op = s->waiting.first)) {
		struct receive *r = &s->receives[op->index];

		while (r->left)
			if (!take_next(s, r))
				return;
		ops_take(&s->waiting);
		if (!r->kept)
			session_receive_again(s, r);
	}
	if (!s->broken && s->near.entries && !s->near.fetching && take_fetched(s) &&
	    s->near.head != s->near.tail)
		fetch(s);
}

static bool connect_near(struct session *s, const struct remote_connect *m)
{
	if (!m->sq_addr && !m->sq_key && !m->cq_addr && !m->cq_key && !m->entries)
		return true;
	if (m->entries < 2 || m->entries > s->depth + 1 || !s->port.data_len)
		return false;
	s->near = (struct near){
		.entries = m->entries,
		.sq_addr = m->sq_addr,
		.sq_key = m->sq_key,
		.cq_addr = m->cq_addr,
		.cq_key = m->cq_key,
		.phase = 1,
	};
	return true;
}

static void connect_to(struct session *s, const uint8_t *message, size_t len)
{
	struct remote_head answer = { REMOTE_VERSION, REMOTE_CONNECTED, 0, s->place.key };
	struct remote_connect m;
	int err;

	if (len != sizeof(m)) {
		session_break(s, "sent no CONNECT");
		return;
	}
	memcpy(&m, message, sizeof(m));
	if (!s->connected) {
		if (m.name_len > sizeof(m.name) || !connect_near(s, &m) ||
		    port_peer(&s->port, m.name, m.name_len, &s->peer)) {
			session_break(s, "has no endpoint");
			return;
		}
		s->connected = true;
	}
	err = session_say(s, &answer, sizeof(answer));
	/* Without an answer it asks again. */
	if (err && err != -FI_EAGAIN)
		session_break(s, "is not reached");
}

void session_stranger(struct session *s, struct receive *r)
{
	if (!s->strangers && !s->over)
		fprintf(stderr,
			"weft-nvmed: queue pair %u of lease %u: what does not have its key is dropped\n",
			s->qid, s->lease);
	s->strangers = true;
	session_receive_again(s, r);
}

void session_received(struct session *s, struct receive *r, size_t len)
{
	const uint8_t *message = message_of(s, r);
	struct remote_head head;

	if (len < sizeof(head)) {
		session_stranger(s, r);
		return;
	}
	memcpy(&head, message, sizeof(head));
	if (head.version != REMOTE_VERSION || !remote_key_same(&head.key, &s->place.key)) {
		session_stranger(s, r);
		return;
	}
	if (s->over) {
		session_receive_again(s, r);
		return;
	}
	switch (head.kind) {
	case REMOTE_CONNECT:
		connect_to(s, message, len);
		break;
	case REMOTE_SUBMIT:
		if (!s->connected || s->near.entries || !head.count)
			break;
		r->len = (uint32_t)len;
		r->at = sizeof(head);
		r->left = head.count;
		ops_add(&s->waiting, &r->op);
		session_take(s);
		return;
	case REMOTE_DOORBELL:
		if (s->connected && head.count < s->near.entries)
			s->near.tail = head.count;
		session_take(s);
		break;
	default:
		break;
	}
	session_receive_again(s, r);
}
