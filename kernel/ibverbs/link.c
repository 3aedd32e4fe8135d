/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Links of kofi_ibverbs (link.h): a queue pair each, with a completion queue and a protection domain of its own, so that
 * a key is of use to one peer alone, and a link can go from one port to another. What is sent and received is in
 * blocks of memory that the device has mapped from the link's beginning to its end.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "verbs.h"

static void completed(struct ib_cq *cq, void *context)
{
	kib_link_wake(context);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct kib_link *link = context;

	if (event->event == IB_EVENT_COMM_EST)
		rdma_notify(link->id, event->event);
}

/* Memory of messages */

static size_t block_len(void)
{
	return (size_t)KIB_BLOCK_MESSAGES * KIB_MESSAGE_MAX;
}

static int blocks_alloc(struct kib_block *blocks)
{
	u32 i;

	for (i = 0; i < KIB_BLOCKS; i++) {
		blocks[i].bytes = alloc_pages_exact(block_len(),
						    GFP_KERNEL | __GFP_NOWARN | __GFP_ZERO);
		if (!blocks[i].bytes)
			return -FI_ENOMEM;
	}
	return 0;
}

static void blocks_free(struct kib_block *blocks)
{
	u32 i;

	for (i = 0; i < KIB_BLOCKS; i++)
		if (blocks[i].bytes)
			free_pages_exact(blocks[i].bytes, block_len());
}

static u8 *block_bytes(const struct kib_block *blocks, u32 i)
{
	return blocks[i / KIB_BLOCK_MESSAGES].bytes +
	       (size_t)(i % KIB_BLOCK_MESSAGES) * KIB_MESSAGE_MAX;
}

static u64 block_dma(const struct kib_block *blocks, u32 i)
{
	return blocks[i / KIB_BLOCK_MESSAGES].dma +
	       (u64)(i % KIB_BLOCK_MESSAGES) * KIB_MESSAGE_MAX;
}

static int blocks_map(struct kib_link *link, struct kib_block *blocks,
		      enum dma_data_direction to)
{
	u32 i;

	for (i = 0; i < KIB_BLOCKS; i++) {
		u64 dma = ib_dma_map_single(link->device, blocks[i].bytes, block_len(), to);

		if (ib_dma_mapping_error(link->device, dma))
			goto err_unmap;
		blocks[i].dma = dma;
	}
	return 0;

err_unmap:
	while (i--)
		ib_dma_unmap_single(link->device, blocks[i].dma, block_len(), to);
	return -FI_ENOMEM;
}

static void blocks_unmap(struct kib_link *link, struct kib_block *blocks,
			 enum dma_data_direction to)
{
	u32 i;

	for (i = 0; i < KIB_BLOCKS; i++)
		ib_dma_unmap_single(link->device, blocks[i].dma, block_len(), to);
}

static void outgoing_spare(struct kib_link *link, struct kib_outgoing *out)
{
	out->next_spare = link->spare;
	link->spare = out;
	link->spare_cnt++;
}

static int link_memory(struct kib_link *link)
{
	u32 i;

	link->receives = kcalloc(KIB_DEPTH, sizeof(*link->receives), GFP_KERNEL);
	link->outgoing = kcalloc(KIB_DEPTH, sizeof(*link->outgoing), GFP_KERNEL);
	if (!link->receives || !link->outgoing || blocks_alloc(link->in) ||
	    blocks_alloc(link->out))
		return -FI_ENOMEM;
	for (i = 0; i < KIB_DEPTH; i++) {
		link->receives[i].bytes = block_bytes(link->in, i);
		link->outgoing[i].message.bytes = block_bytes(link->out, i);
		outgoing_spare(link, &link->outgoing[i]);
	}
	return 0;
}

/* What of the work requests does not change from one use to the next. */
static void link_requests(struct kib_link *link)
{
	u32 i;

	for (i = 0; i < KIB_DEPTH; i++) {
		struct kib_receive *in = &link->receives[i];
		struct kib_outgoing *out = &link->outgoing[i];

		in->work.kind = KIB_OF_RECEIVE;
		in->sge.addr = block_dma(link->in, i);
		in->sge.length = KIB_MESSAGE_MAX;
		in->sge.lkey = link->pd->local_dma_lkey;
		in->wr.wr_id = (uintptr_t)&in->work;
		in->wr.sg_list = &in->sge;
		in->wr.num_sge = 1;
		out->work.kind = KIB_OF_MESSAGE;
		out->sge.addr = block_dma(link->out, i);
		out->sge.lkey = link->pd->local_dma_lkey;
		out->wr.wr_id = (uintptr_t)&out->work;
		out->wr.sg_list = &out->sge;
		out->wr.num_sge = 1;
		out->wr.send_flags = IB_SEND_SIGNALED;
	}
}

static int receives_post(struct kib_link *link)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < KIB_DEPTH && !ret; i++)
		ret = ib_post_recv(link->qp, &link->receives[i].wr, NULL);
	return ret;
}

/* The device's objects */

static int link_queues(struct kib_link *link)
{
	struct ib_cq_init_attr cq_attr = { .cqe = KIB_SQ_LEN + KIB_DEPTH };
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event,
		.qp_context = link,
		.cap = { .max_send_wr = KIB_SQ_LEN,
			 .max_recv_wr = KIB_DEPTH,
			 .max_send_sge = link->sge_max,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq = ib_create_cq(link->device, completed, NULL, link, &cq_attr);
	int ret;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	link->cq = attr.send_cq = attr.recv_cq = cq;
	ret = rdma_create_qp(link->id, link->pd, &attr);
	if (ret)
		return ret;
	link->qp = link->id->qp;
	/* Who sleeps before there was a queue is woken by what comes to it. */
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	return 0;
}

int kib_link_equip(struct kib_link *link)
{
	struct ib_device *device = link->id->device;
	struct ib_pd *pd;
	int ret;

	if (!(device->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return -FI_ENOSYS;
	link->device = device;
	link->sge_max = min_t(u32, device->attrs.max_send_sge, KIB_SGE_MAX);
	link->sq_room = KIB_SQ_WRITES;
	pd = ib_alloc_pd(device, 0);
	if (IS_ERR(pd))
		return kib_error(PTR_ERR(pd));
	link->pd = pd;
	ret = blocks_map(link, link->in, DMA_FROM_DEVICE);
	if (ret)
		return ret;
	ret = blocks_map(link, link->out, DMA_TO_DEVICE);
	if (ret) {
		blocks_unmap(link, link->in, DMA_FROM_DEVICE);
		return ret;
	}
	link->mapped = true;
	link_requests(link);
	ret = link_queues(link);
	if (!ret)
		ret = receives_post(link);
	return kib_error(ret);
}

void kib_link_strip(struct kib_link *link)
{
	struct rdma_cm_id *id = link->id;

	if (link->qp) {
		rdma_disconnect(id);
		rdma_destroy_qp(id);
		link->qp = NULL;
	}
	kib_maps_free(link);
	if (link->cq)
		ib_destroy_cq(link->cq);
	link->cq = NULL;
	if (link->mapped) {
		blocks_unmap(link, link->in, DMA_FROM_DEVICE);
		blocks_unmap(link, link->out, DMA_TO_DEVICE);
	}
	link->mapped = false;
	if (link->pd)
		ib_dealloc_pd(link->pd);
	link->pd = NULL;
	if (id)
		rdma_destroy_id(id);
	link->id = NULL;
}

/* From a link's beginning to its end */

static void link_memory_free(struct kib_link *link)
{
	blocks_free(link->in);
	blocks_free(link->out);
	kfree(link->receives);
	kfree(link->outgoing);
	kfree(link);
}

struct kib_link *kib_link_new(struct kib_port *port)
{
	struct kib_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	unsigned long flags;

	if (!link)
		return NULL;
	if (link_memory(link)) {
		link_memory_free(link);
		return NULL;
	}
	mutex_init(&link->lock);
	INIT_LIST_HEAD(&link->pending);
	INIT_LIST_HEAD(&link->mine);
	link->port = port;
	refcount_set(&link->refs, 1);
	spin_lock_irqsave(&kib_steps_lock, flags);
	list_add_tail(&link->link, &kib_links);
	spin_unlock_irqrestore(&kib_steps_lock, flags);
	return link;
}

void kib_link_stop(struct kib_link *link)
{
	mutex_lock(&link->lock);
	kib_link_strip(link);
	mutex_unlock(&link->lock);
}

void kib_link_put(struct kib_link *link)
{
	if (!refcount_dec_and_test(&link->refs))
		return;
	mutex_destroy(&link->lock);
	atomic_sub(link->accepted, &kib_accepted);
	link_memory_free(link);
}

void kib_link_free(struct kib_link *link)
{
	unsigned long flags;

	kib_link_stop(link);
	kib_link_part(link);
	spin_lock_irqsave(&kib_steps_lock, flags);
	list_del(&link->link);
	spin_unlock_irqrestore(&kib_steps_lock, flags);
	kib_link_put(link);
}

void *kib_link_owner(const struct kib_link *link)
{
	return link->owner;
}

void kib_link_own(struct kib_link *link, void *owner)
{
	link->owner = owner;
}

/* Messages */

struct kib_message *kib_link_claim(struct kib_link *link)
{
	struct kib_outgoing *out = link->spare;

	if (unlikely(!out))
		return NULL;
	link->spare = out->next_spare;
	link->spare_cnt--;
	return &out->message;
}

void kib_link_unclaim(struct kib_link *link, struct kib_message *message)
{
	outgoing_spare(link, container_of(message, struct kib_outgoing, message));
}

uint32_t kib_link_spare(const struct kib_link *link)
{
	return link->spare_cnt;
}

static int outgoing_post(struct kib_link *link, struct kib_outgoing *out, u32 len)
{
	int ret = -FI_ENOTCONN;

	out->sge.length = len;
	mutex_lock(&link->lock);
	if (likely(link->qp && !link->broken)) {
		ib_dma_sync_single_for_device(link->device, out->sge.addr, len, DMA_TO_DEVICE);
		ret = ib_post_send(link->qp, &out->wr, NULL);
	}
	mutex_unlock(&link->lock);
	return ret;
}

int kib_link_send(struct kib_link *link, struct kib_message *message, uint32_t len)
{
	struct kib_outgoing *out = container_of(message, struct kib_outgoing, message);

	out->wr.opcode = IB_WR_SEND;
	return outgoing_post(link, out, len);
}

int kib_link_send_ending(struct kib_link *link, struct kib_message *message, uint32_t len,
			 uint32_t key)
{
	struct kib_outgoing *out = container_of(message, struct kib_outgoing, message);

	out->wr.opcode = IB_WR_SEND_WITH_INV;
	out->wr.ex.invalidate_rkey = key;
	return outgoing_post(link, out, len);
}

/* A write of no bytes needs no key. */
int kib_link_probe(struct kib_link *link)
{
	struct ib_rdma_wr write = { .wr = { .wr_id = (uintptr_t)&link->probe,
					    .opcode = IB_WR_RDMA_WRITE,
					    .send_flags = IB_SEND_SIGNALED } };
	int ret = 0;

	mutex_lock(&link->lock);
	if (!link->qp || link->broken) {
		ret = -FI_ENOTCONN;
	} else if (!link->probing) {
		link->probe.kind = KIB_OF_PROBE;
		ret = ib_post_send(link->qp, &write.wr, NULL);
		link->probing = !ret;
	}
	mutex_unlock(&link->lock);
	return ret;
}

int kib_link_repost(struct kib_link *link, uint32_t buffer)
{
	struct kib_receive *in = &link->receives[buffer];
	int ret = -FI_ENOTCONN;

	mutex_lock(&link->lock);
	if (likely(link->qp && !link->broken)) {
		ib_dma_sync_single_for_device(link->device, in->sge.addr, KIB_MESSAGE_MAX,
					      DMA_FROM_DEVICE);
		ret = ib_post_recv(link->qp, &in->wr, NULL);
	}
	mutex_unlock(&link->lock);
	return ret;
}

/* Completions. With link.lock. */

static void receive_ended(struct kib_link *link, struct kib_receive *in, const struct ib_wc *wc,
			  struct kib_done *done)
{
	ib_dma_sync_single_for_cpu(link->device, in->sge.addr, wc->byte_len, DMA_FROM_DEVICE);
	done->what = KIB_RECEIVED;
	done->bytes = in->bytes;
	done->len = wc->byte_len;
	done->buffer = in - link->receives;
	done->key = wc->wc_flags & IB_WC_WITH_INVALIDATE ? wc->ex.invalidate_rkey : 0;
}

/* Returns false if the caller need not hear of it. */
static bool work_ended(struct kib_link *link, const struct ib_wc *wc, struct kib_done *done)
{
	struct kib_work *work = (struct kib_work *)(uintptr_t)wc->wr_id;
	struct kib_outgoing *out;

	switch (work->kind) {
	case KIB_OF_RECEIVE:
		receive_ended(link, container_of(work, struct kib_receive, work), wc, done);
		return true;
	case KIB_OF_MESSAGE:
		out = container_of(work, struct kib_outgoing, work);
		done->what = KIB_SENT;
		done->cookie = out->message.cookie;
		out->message.cookie = NULL;
		outgoing_spare(link, out);
		return done->cookie;
	case KIB_OF_WRITE:
		return kib_write_ended(link, container_of(work, struct kib_write, work), done);
	case KIB_OF_REGISTRATION:
		return false;
	case KIB_OF_INVALIDATION:
		kib_window_ended(link, container_of(work, struct kib_window, ends), done);
		return true;
	case KIB_OF_PROBE:
		link->probing = false;
		return false;
	}
	return false;
}

static int poll_locked(struct kib_link *link, struct kib_done *done, int max)
{
	struct ib_wc wc[8];
	int cnt = 0, i, n;

	while (cnt < max && !link->broken) {
		n = ib_poll_cq(link->cq, min_t(int, ARRAY_SIZE(wc), max - cnt), wc);
		for (i = 0; i < n && !link->broken; i++) {
			/* No peer writes with immediate data: that takes a receive, and leaves nothing in it. */
			link->broken = wc[i].status != IB_WC_SUCCESS ||
				       wc[i].opcode == IB_WC_RECV_RDMA_WITH_IMM;
			if (unlikely(link->broken))
				done[cnt++].what = KIB_BROKEN;
			else if (work_ended(link, &wc[i], &done[cnt]))
				cnt++;
		}
		if (n < (int)ARRAY_SIZE(wc))
			break;
	}
	return cnt;
}

int kib_link_poll(struct kib_link *link, struct kib_done *done, int max)
{
	int cnt = 0;

	mutex_lock(&link->lock);
	if (likely(link->qp))
		cnt = poll_locked(link, done, max);
	mutex_unlock(&link->lock);
	return cnt;
}
