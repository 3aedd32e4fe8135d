/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What passes between a disk and its controller; blk.h and pair.h have the contract. The lender may say
 * anything: each message's length, key and kind are checked, and an id is that of a request that waits.
 */
#include <linux/ratelimit.h>
#include <linux/string.h>

#include <rdma/fi_errno.h>

#include "pair.h"

#define FORGED_MAX	16 /* of 22 bits */
#define ENTRIES_AT_ONCE 16
#define PIECES_MAX	8 /* of a message */

int pair_listen(struct blk_pair *p, struct pair_receive *r)
{
	return fi_recv(p->ep, &r->message, sizeof(r->message), NULL, FI_ADDR_UNSPEC,
		       &r->context);
}

static u8 *message_of(struct blk_disk *d, const struct request *rq)
{
	return blk_data(d, rq) - sizeof(struct remote_head) - sizeof(struct nvme_sqe);
}

/* The pages of a write, as pieces of its message. Returns how many, or 0: they have to be copied */
static size_t pieces_of(const struct blk_pair *p, struct request *rq, struct iovec *iov)
{
	size_t cnt = 0, most = min_t(size_t, p->info->tx_attr->iov_limit, PIECES_MAX) - 1;
	struct req_iterator iter;
	struct bio_vec bvec;

	if (IS_ENABLED(CONFIG_HIGHMEM))
		return 0;
	rq_for_each_bvec(bvec, rq, iter) {
		if (cnt == most)
			return 0;
		iov[cnt++] = (struct iovec){
			.iov_base = (void __force __user *)bvec_virt(&bvec),
			.iov_len = bvec.bv_len,
		};
	}
	return cnt;
}

int blk_pair_send(struct blk_pair *p, struct request *rq, struct nvme_sqe *sqe, u32 len, bool in)
{
	struct remote_head head = { .version = REMOTE_VERSION,
				    .kind = REMOTE_SUBMIT,
				    .count = 1,
				    .key = p->place.key };
	struct blk_request *r = blk_mq_rq_to_pdu(rq);
	bool along = in && len && len <= p->place.inline_max;
	u8 *message = message_of(p->disk, rq);
	size_t all = sizeof(head) + sizeof(*sqe), cnt = 0;
	struct iovec iov[PIECES_MAX];
	int ret;

	if (along && req_op(rq) == REQ_OP_WRITE)
		cnt = pieces_of(p, rq, iov + 1);
	if (in && !cnt && req_op(rq) == REQ_OP_WRITE)
		blk_request_copy(p->disk, rq);
	if (along) {
		sqe->mptr = REMOTE_INLINE;
	} else if (len) {
		sqe->prp1 = p->base + (blk_data(p->disk, rq) - p->disk->buffers);
		sqe->prp2 = fi_mr_key(p->mr);
	}
	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), sqe, sizeof(*sqe));
	iov[0] = (struct iovec){ .iov_base = (void __force __user *)message, .iov_len = all };
	if (along && !cnt)
		iov[0].iov_len = all += REMOTE_PAD(len);
	r->sending = cnt || all > p->info->tx_attr->inject_size;
	p->disk->waiting[rq->tag] = rq;
	ret = r->sending ? fi_sendv(p->ep, iov, NULL, cnt + 1, p->peer, &r->context)
			 : fi_inject(p->ep, message, all, p->peer);
	if (ret) {
		r->sending = false;
		p->disk->waiting[rq->tag] = NULL;
	}
	return ret;
}

void pair_ping(struct blk_pair *p)
{
	struct remote_head ping = { .version = REMOTE_VERSION,
				    .kind = REMOTE_PING,
				    .key = p->place.key };
	int ret = 0;

	mutex_lock(&p->disk->lock);
	if (memchr_inv(p->disk->waiting, 0, sizeof(p->disk->waiting)))
		ret = fi_inject(p->ep, &ping, sizeof(ping), p->peer);
	mutex_unlock(&p->disk->lock);
	if (ret && ret != -FI_EAGAIN)
		blk_pair_lose(p, -ENOTCONN);
}

static blk_status_t status_of(u16 nvme)
{
	switch (nvme) {
	case NVME_SC_SUCCESS:
		return BLK_STS_OK;
	case NVME_SC_INVALID_OPCODE:
		return BLK_STS_NOTSUPP;
	case NVME_SC_CAPACITY:
		return BLK_STS_NOSPC;
	case NVME_SC_READ_ERROR:
	case NVME_SC_WRITE_FAULT:
		return BLK_STS_MEDIUM;
	default:
		return BLK_STS_IOERR;
	}
}

/*
 * A command has ended, if it is under way.
 * @status: of NVMe, with Do Not Retry
 * @moved: bytes that have come to its buffer: a read has succeeded by these alone
 */
static void end(struct blk_pair *p, u16 id, u16 status, size_t moved)
{
	struct blk_disk *d = p->disk;
	struct request *rq = id < d->depth ? d->waiting[id] : NULL;
	u16 nvme = status & 0x7ff;
	struct blk_request *r;

	if (!rq)
		return;
	/* Its queue is gone, as with the end of a lease: it is carried out by the next pair. */
	if (nvme == NVME_SC_ABORT_SQ_DELETED) {
		blk_pair_lose(p, -ESTALE);
		return;
	}
	d->waiting[id] = NULL;
	r = blk_mq_rq_to_pdu(rq);
	r->status = status_of(nvme);
	r->again = !(status & NVME_SC_DNR) &&
		   (nvme == NVME_SC_NOT_READY || nvme == NVME_SC_INTERNAL);
	if (!nvme && moved != (req_op(rq) == REQ_OP_READ ? blk_rq_bytes(rq) : 0))
		r->status = BLK_STS_IOERR;
	if (r->sending)
		p->lagging++;
	else
		p->ended[p->ended_cnt++] = rq;
}

static void take_message(struct blk_pair *p, const struct remote_complete *m, size_t len)
{
	u32 i;

	if (len < sizeof(m->head) || len > sizeof(*m) || m->head.version != REMOTE_VERSION ||
	    !remote_key_same(&m->head.key, &p->place.key))
		return;
	switch (m->head.kind) {
	case REMOTE_CONNECTED:
		p->connected = true;
		break;
	case REMOTE_COMPLETE:
		if (m->head.count > REMOTE_COMPLETE_MAX ||
		    len != sizeof(m->head) + m->head.count * sizeof(m->entries[0]))
			return;
		for (i = 0; i < m->head.count; i++)
			end(p, m->entries[i].cid, NVME_CQE_STATUS(m->entries[i].status), 0);
		break;
	case REMOTE_END:
		blk_pair_lose(p, -ESTALE);
		break;
	default:
		break;
	}
}

/* Remote CQ data, which anyone may have sent: who may guess long enough guesses what is short. */
static void take_data(struct blk_pair *p, const struct fi_cq_data_entry *e)
{
	int id = remote_data_id(&p->place, e->data);

	if (id >= 0)
		end(p, id, NVME_SC_SUCCESS, e->len);
	else if (p->place.data_len < sizeof(e->data) && ++p->forged >= FORGED_MAX)
		blk_pair_lose(p, -ENOTCONN);
}

static struct pair_receive *receive_of(struct blk_pair *p, const void *context)
{
	size_t at = (uintptr_t)context - (uintptr_t)p->receives;

	return at < p->receive_cnt * sizeof(*p->receives)
		       ? &p->receives[at / sizeof(*p->receives)]
		       : NULL;
}

static void take_completion(struct blk_pair *p, const struct fi_cq_data_entry *e)
{
	struct pair_receive *r = receive_of(p, e->op_context);

	if (e->flags & FI_REMOTE_WRITE) {
		take_data(p, e);
	} else if (r) {
		take_message(p, &r->message, e->len);
		if (pair_listen(p, r))
			blk_pair_lose(p, -ENOTCONN);
	}
}

/* The provider has a message no more. */
static void take_sent(struct blk_pair *p, void *context)
{
	struct blk_request *r;
	struct request *rq;

	if (context == &p->hello_context)
		p->greeting = false;
	if (!context || context == &p->hello_context)
		return;
	r = container_of(context, struct blk_request, context);
	rq = blk_mq_rq_from_pdu(r);
	r->sending = false;
	if (p->disk->waiting[rq->tag] == rq)
		return;
	p->lagging--;
	p->ended[p->ended_cnt++] = rq;
}

/* What has failed is the end, but for a message that is longer than the controller's are: a stranger's. */
static void take_error(struct blk_pair *p, struct fid_cq *cq)
{
	struct fi_cq_err_entry e = { .err_data_size = 0 };
	struct pair_receive *r;

	if (fi_cq_readerr(cq, &e, 0) != 1)
		return;
	r = receive_of(p, e.op_context);
	if (e.err != FI_ETRUNC || !r || pair_listen(p, r))
		blk_pair_lose(p, -ENOTCONN);
}

/* Under the disk's lock. */
static void take(struct blk_pair *p, struct fid_cq *cq, const struct fi_cq_data_entry *entries,
		 ssize_t n)
{
	ssize_t i;

	if (n == -FI_EAVAIL)
		take_error(p, cq);
	else if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR)
		blk_pair_lose(p, -ENOTCONN);
	for (i = 0; i < n; i++)
		if (cq == p->sent)
			take_sent(p, entries[i].op_context);
		else
			take_completion(p, &entries[i]);
}

bool pair_progress(struct blk_pair *p, int ms)
{
	struct fi_cq_data_entry entries[ENTRIES_AT_ONCE];
	ssize_t n = fi_cq_sread(p->cq, entries, ENTRIES_AT_ONCE, NULL, ms), sent = 1;

	mutex_lock(&p->disk->lock);
	take(p, p->cq, entries, n);
	/* Else what it has is of no matter yet, and a look in vain makes the provider look at its sockets. */
	while ((p->lagging || n <= 0) && sent > 0) {
		sent = fi_cq_read(p->sent, entries, ENTRIES_AT_ONCE);
		take(p, p->sent, entries, sent);
	}
	mutex_unlock(&p->disk->lock);
	return n > 0;
}
