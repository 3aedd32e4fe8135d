/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a borrower gets: data that was read, and completions. */
#include "session.h"

#include <string.h>

#include "nvmed/nvmed.h"

int session_say(struct session *s, const void *message, size_t len)
{
	struct op *op;
	uint8_t *mem;
	int ret;

	if (len <= s->port.info->tx_attr->inject_size)
		return (int)fi_inject(s->ep, message, len, s->peer);
	op = s->free_tells.first;
	if (!op)
		return -FI_EAGAIN;
	mem = s->memory + s->at.tells + op->index * sizeof(struct remote_complete);
	memcpy(mem, message, len);
	ret = (int)fi_send(s->ep, mem, len, port_desc(s->mr), s->peer, op);
	if (!ret) {
		ops_take(&s->free_tells);
		s->tells_under_way++;
	}
	return ret;
}

static bool has_data(const struct work *w)
{
	return w->state == WORK_OUT && w->sqe.opcode == NVME_IO_READ && !w->cqe.status;
}

/* Those at the head of the list whose data, if they have any, is there: in one message. */
static int tell_some(struct session *s)
{
	struct remote_complete m = { .head = { REMOTE_VERSION, REMOTE_COMPLETE, 0,
					       s->place.key } };
	struct op *op;
	uint32_t n = 0;
	int err;

	for (op = s->out.first; op && n < REMOTE_COMPLETE_MAX && !has_data(work_of(op));
	     op = op->next)
		m.entries[n++] = work_of(op)->cqe;
	m.head.count = n;
	err = session_say(s, &m, sizeof(m.head) + n * sizeof(m.entries[0]));
	while (!err && n--) {
		op = ops_take(&s->out);
		work_free(s, work_of(op));
	}
	return err;
}

/* The data, which says itself that the command has succeeded where remote CQ data can. */
static int write_data(struct session *s, struct work *w)
{
	struct iovec iov = { s->memory + w->buf, w->len };
	struct fi_rma_iov to = { w->sqe.prp1, w->len, w->sqe.prp2 };
	void *desc = port_desc(s->mr);
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &desc,
				  .iov_count = 1,
				  .addr = s->peer,
				  .rma_iov = &to,
				  .rma_iov_count = 1,
				  .context = &w->op };
	int ret;

	if (!s->near.entries && s->port.data_len) {
		msg.data = remote_data(&s->place, w->sqe.cid);
		/* What more is to be told leaves with it. */
		ret = (int)fi_writemsg(s->ep, &msg,
				       FI_REMOTE_CQ_DATA | (w->op.next ? FI_MORE : 0));
		if (ret)
			return ret;
		w->state = WORK_SENDING;
	} else {
		bool in_order = s->near.entries && w->len <= s->port.order_max;

		ret = (int)fi_writemsg(s->ep, &msg, in_order ? 0 : FI_DELIVERY_COMPLETE);
		if (ret)
			return ret;
		w->state = in_order ? WORK_WRITTEN : WORK_WRITING;
	}
	w->pending++;
	if (w->state != WORK_WRITTEN)
		ops_take(&s->out);
	return 0;
}

/* The entry in the borrower's completion queue, whose data is there before it. */
static int write_entry(struct session *s, struct work *w)
{
	struct near *n = &s->near;
	struct nvme_cqe *cqe = (struct nvme_cqe *)(s->memory + s->at.cqes) + w->op.index;
	int ret;

	*cqe = w->cqe;
	cqe->sq_head = (uint16_t)n->head;
	cqe->status |= n->phase;
	ret = (int)fi_writedata(s->ep, cqe, sizeof(*cqe), port_desc(s->mr),
				remote_data(&s->place, 0), s->peer,
				n->cq_addr + n->cq_tail * sizeof(*cqe), n->cq_key, &w->op);
	if (ret)
		return ret;
	if (++n->cq_tail == n->entries) {
		n->cq_tail = 0;
		n->phase ^= 1;
	}
	w->pending++;
	w->state = WORK_SENDING;
	ops_take(&s->out);
	return 0;
}

bool session_tell(struct session *s)
{
	bool moved = false;
	struct op *op;
	int err = 0;

	while (!err && (op = s->out.first)) {
		struct work *w = work_of(op);

		/* Nothing is written to who has no lease any more. */
		if (s->over && has_data(w))
			w->cqe.status = NVME_SC_ABORT_SQ_DELETED << 1;
		if (s->broken || !s->connected || (s->over && s->near.entries)) {
			ops_take(&s->out);
			work_free(s, w);
			continue;
		}
		if (has_data(w))
			err = write_data(s, w);
		else if (s->near.entries)
			err = write_entry(s, w);
		else
			err = tell_some(s);
		moved |= !err;
	}
	if (err && err != -FI_EAGAIN)
		session_break(s, "is not reached any more");
	return moved;
}

/* What has completed: entries of works that are in the queue alone. */
bool session_reap(struct session *s)
{
	const struct nvme_cqe *ring = (const struct nvme_cqe *)(s->memory + s->at.cq);
	bool any = false;

	for (;;) {
		struct nvme_cqe cqe = ring[s->cq_head];

		if (NVME_CQE_PHASE(cqe.status) != s->phase)
			break;
		any = true;
		if (++s->cq_head == s->entries) {
			s->cq_head = 0;
			s->phase ^= 1;
		}
		if (cqe.cid >= s->work_cnt || s->work[cqe.cid].state != WORK_QUEUED)
			continue;
		cqe.status &= (uint16_t)~1u;
		work_end(s, &s->work[cqe.cid], &cqe);
	}
	if (any)
		doorbell_store(&s->c->bells[s->qid].page->cq_head, s->cq_head);
	return any;
}
