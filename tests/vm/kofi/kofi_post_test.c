/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What fi_send() adds to ib_post_send(): the processor's counter around either, in turns, with messages of one length over
 * one device. Where a machine counts instructions by it (job.py, Machine.counts), these are instructions.
 * Writing the most that is allowed, in percent of ib_post_send() alone, to the parameter 'run' runs the test; 0: as much as it
 * takes. With the parameter 'clock' it is nanoseconds instead, of a machine whose clock is not its counter.
 */
#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timex.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define LEN 8u
/* What kofi_ibverbs sends for it: heads of the wire and of the engine */
#define RAW_LEN (LEN + 40u)
#define TIMES	400
#define WAIT	(10 * HZ)

static bool by_clock;
module_param_named(clock, by_clock, bool, 0600);
MODULE_PARM_DESC(clock, "measure nanoseconds");

#define TRY(call)                                                                           \
	do {                                                                                \
		long try_ret = (call);                                                      \
		if (try_ret < 0) {                                                          \
			pr_info("kofi_post_test: %d: %s: %ld\n", __LINE__, #call, try_ret); \
			return try_ret;                                                     \
		}                                                                           \
	} while (0)

/* A connection of rdma_cm alone: ids[0] has dialled. */
struct raw {
	struct rdma_cm_id *listener, *ids[2];
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct completion up;
	u8 *bytes;
	u64 dma;
	int err;
};

struct end {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t other;
	u8 bytes[LEN];
};

static u64 now(void)
{
	return by_clock ? ktime_get_ns() : get_cycles();
}

static void no_completion(struct ib_cq *cq, void *context)
{
}

static int raw_queues(struct raw *raw, struct rdma_cm_id *id)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 64 };
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};

	if (!raw->pd) {
		struct ib_pd *pd = ib_alloc_pd(id->device, 0);
		struct ib_cq *cq;

		if (IS_ERR(pd))
			return PTR_ERR(pd);
		raw->pd = pd;
		cq = ib_create_cq(id->device, no_completion, NULL, NULL, &cq_attr);
		if (IS_ERR(cq))
			return PTR_ERR(cq);
		raw->cq = cq;
		raw->dma = ib_dma_map_single(id->device, raw->bytes, 2 * RAW_LEN,
					     DMA_BIDIRECTIONAL);
	}
	attr.send_cq = attr.recv_cq = raw->cq;
	return rdma_create_qp(id, raw->pd, &attr);
}

static int raw_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct raw *raw = id->context;
	int ret = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(id, 2000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = raw_queues(raw, id);
		if (!ret)
			ret = rdma_connect_locked(id, &param);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		raw->ids[1] = id;
		ret = raw_queues(raw, id);
		if (!ret)
			ret = rdma_accept(id, &param);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		complete(&raw->up);
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		ret = -EIO;
	}
	if (ret) {
		raw->err = ret;
		complete_all(&raw->up);
	}
	return 0;
}

static int raw_id(struct raw *raw, struct rdma_cm_id **out)
{
	struct rdma_cm_id *id = rdma_create_id(&init_net, raw_event, raw, RDMA_PS_TCP,
					       IB_QPT_RC);

	if (IS_ERR(id))
		return PTR_ERR(id);
	*out = id;
	return 0;
}

static int raw_open(struct raw *raw, const struct fi_info *info)
{
	struct sockaddr_storage at = { 0 };

	init_completion(&raw->up);
	raw->bytes = kzalloc(2 * RAW_LEN, GFP_KERNEL);
	if (!raw->bytes)
		return -ENOMEM;
	memcpy(&at, info->src_addr, info->src_addrlen);
	TRY(raw_id(raw, &raw->listener));
	TRY(raw_id(raw, &raw->ids[0]));
	TRY(rdma_bind_addr(raw->listener, (struct sockaddr *)&at));
	TRY(rdma_listen(raw->listener, 1));
	at = raw->listener->route.addr.src_addr;
	TRY(rdma_resolve_addr(raw->ids[0], NULL, (struct sockaddr *)&at, 2000));
	if (!wait_for_completion_timeout(&raw->up, WAIT) || raw->err ||
	    !wait_for_completion_timeout(&raw->up, WAIT))
		return raw->err ? raw->err : -ETIMEDOUT;
	return raw->err;
}

static void raw_close(struct raw *raw)
{
	struct ib_device *device = raw->pd ? raw->pd->device : NULL;
	int i;

	for (i = 0; i < 2; i++) {
		if (raw->ids[i] && raw->ids[i]->qp)
			rdma_destroy_qp(raw->ids[i]);
		if (raw->ids[i])
			rdma_destroy_id(raw->ids[i]);
	}
	if (raw->listener)
		rdma_destroy_id(raw->listener);
	if (raw->dma)
		ib_dma_unmap_single(device, raw->dma, 2 * RAW_LEN, DMA_BIDIRECTIONAL);
	if (raw->cq)
		ib_destroy_cq(raw->cq);
	if (raw->pd)
		ib_dealloc_pd(raw->pd);
	kfree(raw->bytes);
}

/* One message; how much the counter has gone on in the call. */
static int raw_post(struct raw *raw, u64 *spent)
{
	struct ib_sge in = { raw->dma + RAW_LEN, RAW_LEN, raw->pd->local_dma_lkey };
	struct ib_sge out = { raw->dma, RAW_LEN, raw->pd->local_dma_lkey };
	struct ib_recv_wr receive = { .sg_list = &in, .num_sge = 1 };
	struct ib_send_wr send = { .sg_list = &out,
				   .num_sge = 1,
				   .opcode = IB_WR_SEND,
				   .send_flags = IB_SEND_SIGNALED };
	unsigned long end = jiffies + WAIT;
	struct ib_wc wc;
	int cnt = 0, ret;
	u64 since;

	TRY(ib_post_recv(raw->ids[1]->qp, &receive, NULL));
	cond_resched();
	since = now();
	ret = ib_post_send(raw->ids[0]->qp, &send, NULL);
	*spent = now() - since;
	TRY(ret);
	while (cnt < 2 && time_before(jiffies, end)) {
		if (ib_poll_cq(raw->cq, 1, &wc) == 1)
			cnt += wc.status == IB_WC_SUCCESS;
		cond_resched();
	}
	return cnt == 2 ? 0 : -ETIMEDOUT;
}

static int end_open(struct end *e, struct fi_info *info)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	TRY(fi_fabric(info->fabric_attr, &e->fabric, NULL));
	TRY(fi_domain(e->fabric, info, &e->domain, NULL));
	TRY(fi_av_open(e->domain, &av, &e->av, NULL));
	TRY(fi_cq_open(e->domain, &cq, &e->cq, NULL));
	TRY(fi_endpoint(e->domain, info, &e->ep, NULL));
	TRY(fi_ep_bind(e->ep, &e->av->fid, 0));
	TRY(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	return fi_enable(e->ep);
}

static void fid_close(struct fid *fid)
{
	if (fid)
		WARN(fi_close(fid), "kofi_post_test: an object is not closed\n");
}

#define CLOSE(object) fid_close((object) ? &(object)->fid : NULL)

static void end_close(struct end *e)
{
	CLOSE(e->ep);
	CLOSE(e->cq);
	CLOSE(e->av);
	CLOSE(e->domain);
	CLOSE(e->fabric);
}

static int completion_of(struct end *e, struct end *other)
{
	unsigned long end = jiffies + WAIT;
	struct fi_cq_entry entry;
	ssize_t n;

	while ((n = fi_cq_read(e->cq, &entry, 1)) == -FI_EAGAIN && time_before(jiffies, end)) {
		fi_cq_read(other->cq, NULL, 0);
		cond_resched();
	}
	return n == 1 ? 0 : n;
}

static int ofi_post(struct end *a, struct end *b, u64 *spent)
{
	u64 since;
	int ret;

	TRY(fi_recv(b->ep, b->bytes, LEN, NULL, FI_ADDR_UNSPEC, b));
	cond_resched();
	since = now();
	ret = fi_send(a->ep, a->bytes, LEN, NULL, a->other, a);
	*spent = now() - since;
	TRY(ret);
	TRY(completion_of(b, a));
	return completion_of(a, b);
}

static int by_number(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* In turns. The median of either is that of a call which nothing has interrupted. */
static int compare(struct raw *raw, struct end *a, struct end *b, int most)
{
	static u64 posts[TIMES], sends[TIMES];
	u64 post, send;
	int i;

	for (i = 0; i < TIMES; i++) {
		TRY(raw_post(raw, &posts[i]));
		TRY(ofi_post(a, b, &sends[i]));
	}
	sort(posts, TIMES, sizeof(*posts), by_number, NULL);
	sort(sends, TIMES, sizeof(*sends), by_number, NULL);
	post = posts[TIMES / 2];
	send = sends[TIMES / 2];
	pr_notice("kofi_post_test: ib_post_send %llu (%llu to %llu)%s\n", post,
		  posts[TIMES / 10], posts[TIMES - TIMES / 10], by_clock ? " ns" : "");
	pr_notice("kofi_post_test: fi_send over it %llu (%llu to %llu)%s: %llu%%\n", send,
		  sends[TIMES / 10], sends[TIMES - TIMES / 10], by_clock ? " ns" : "",
		  send * 100 / post);
	return !most || send * 100 <= post * most ? 0 : -FI_EOTHER;
}

static int post(struct raw *raw, struct end *ends, struct fi_info *info, int most)
{
	char name[64];
	size_t len = sizeof(name);

	TRY(raw_open(raw, info));
	TRY(end_open(&ends[0], info));
	TRY(end_open(&ends[1], info));
	TRY(fi_getname(&ends[1].ep->fid, name, &len));
	TRY(fi_av_insert(ends[0].av, name, 1, &ends[0].other, 0, NULL));
	return compare(raw, &ends[0], &ends[1], most);
}

static int run_set(const char *value, const struct kernel_param *param)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct end *ends = kcalloc(2, sizeof(*ends), GFP_KERNEL);
	struct raw *raw = kzalloc(sizeof(*raw), GFP_KERNEL);
	int ret = -ENOMEM, most;

	if (hints && ends && raw && !kstrtoint(value, 10, &most)) {
		hints->ep_attr->type = FI_EP_RDM;
		hints->caps = FI_MSG;
		hints->domain_attr->threading = FI_THREAD_DOMAIN;
		hints->fabric_attr->prov_name = "ibverbs";
		ret = fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info);
		hints->fabric_attr->prov_name = NULL;
		if (!ret)
			ret = post(raw, ends, info, most);
		end_close(&ends[0]);
		end_close(&ends[1]);
		raw_close(raw);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
	kfree(ends);
	kfree(raw);
	return ret;
}

static const struct kernel_param_ops run_ops = {
	.set = run_set,
};

module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run,
		 "the most that fi_send may take, in percent of ib_post_send: runs the test");
MODULE_DESCRIPTION("Weft: the post path of kofi_ibverbs, for the tests of virtual machines");
MODULE_LICENSE("Dual BSD/GPL");
