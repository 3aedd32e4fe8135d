/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first calls of Lustre's network driver over the kernel's interface (kfilnd), in this interface: what it asks for, each
 * by itself, and whether that is answered; then the objects that it opens, and its four kinds of transfers. docs/kofi.md has
 * the reasons of what is refused. Loaded, it runs; loading fails with the error.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "kofi.h"

#define MESSAGE	  4096u		 /* the longest that goes into a receive buffer of many */
#define BUFFER	  (16 * MESSAGE) /* such a receive buffer */
#define BULK	  (1u << 20)	 /* a transfer by RMA */
#define PIECES	  256u		 /* pages of that */
#define MESSAGES  40u
#define KEY	  0x1234u
#define STATUS	  0xfffffffbull /* of a transfer, sent as data of its completion */
#define WAIT_MS	  10000
#define TX_CREDIT 256
#define GROUPS	  2 /* of processors, with a context of each kind; one of them is used here */
#define GROUP	  1
#define RX_BITS	  8

#define TRY(call)                                                                      \
	do {                                                                           \
		long try_ret = (call);                                                 \
		if (try_ret < 0) {                                                     \
			pr_info("kofi_lnet: %d: %s: %ld\n", __LINE__, #call, try_ret); \
			return try_ret;                                                \
		}                                                                      \
	} while (0)

#define REFUSED(error, call)                                                               \
	do {                                                                               \
		long refused_ret = (call);                                                 \
		if (refused_ret != -(error)) {                                             \
			pr_info("kofi_lnet: %d: %s: %ld\n", __LINE__, #call, refused_ret); \
			return -FI_EOTHER;                                                 \
		}                                                                          \
	} while (0)

/* What is asked for */

static int auth_key = 255;

static void ask_caps(struct fi_info *hints)
{
	hints->caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE |
		      FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_TAGGED |
		      FI_DIRECTED_RECV | FI_NAMED_RX_CTX;
}

static void ask_other_hosts(struct fi_info *hints)
{
	hints->caps = FI_MSG | FI_REMOTE_COMM;
}

static void ask_multi_receive(struct fi_info *hints)
{
	hints->rx_attr->op_flags = FI_COMPLETION | FI_MULTI_RECV;
	hints->tx_attr->op_flags = FI_COMPLETION;
}

static void ask_receive_pieces(struct fi_info *hints)
{
	hints->rx_attr->iov_limit = PIECES;
}

static void ask_send_pieces(struct fi_info *hints)
{
	hints->tx_attr->iov_limit = PIECES;
}

static void ask_target_pieces(struct fi_info *hints)
{
	hints->tx_attr->rma_iov_limit = PIECES;
}

static void ask_region_pieces(struct fi_info *hints)
{
	hints->domain_attr->mr_iov_limit = PIECES;
}

static void ask_length(struct fi_info *hints)
{
	hints->ep_attr->max_msg_size = BULK;
}

static void ask_no_management(struct fi_info *hints)
{
	hints->domain_attr->resource_mgmt = FI_RM_DISABLED;
}

static void ask_keys(struct fi_info *hints)
{
	hints->domain_attr->mr_key_size = sizeof(int);
}

static void ask_class(struct fi_info *hints)
{
	hints->domain_attr->tclass = FI_TC_BULK_DATA;
	hints->tx_attr->tclass = FI_TC_BULK_DATA;
}

/* The hints have it until they are freed, as those of the driver. */
static void ask_authorization(struct fi_info *hints)
{
	hints->ep_attr->auth_key = (u8 *)&auth_key;
	hints->ep_attr->auth_key_size = sizeof(auth_key);
}

/* What kofi_loop answers. */
static const struct ask {
	const char *what;
	void (*set)(struct fi_info *hints);
	int answer;
} asks[] = {
	{ "its operations", ask_caps, 0 },
	{ "peers of other hosts", ask_other_hosts, -FI_ENODATA },
	{ "receive buffers of many messages by default", ask_multi_receive, 0 },
	{ "receives of 256 pieces", ask_receive_pieces, -FI_ENODATA },
	{ "sends of 256 pieces", ask_send_pieces, -FI_ENODATA },
	{ "accesses to 256 pieces", ask_target_pieces, -FI_ENODATA },
	{ "regions of 256 pieces", ask_region_pieces, -FI_ENODATA },
	{ "messages of 1 MiB", ask_length, 0 },
	{ "no management of resources", ask_no_management, 0 },
	{ "keys of 4 bytes", ask_keys, 0 },
	{ "a class of traffic", ask_class, 0 },
	{ "a key of authorization", ask_authorization, 0 },
};

/* With what is answered 0 in *@hints, as the query of @version answers in *@info; or with @only alone. */
static int query(u32 version, const char *node, const char *service, const struct ask *only,
		 struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	size_t i;
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	for (i = 0; i < ARRAY_SIZE(asks); i++)
		if (only ? only == &asks[i] : !asks[i].answer)
			asks[i].set(hints);
	ret = fi_getinfo(version, node, service, node ? FI_SOURCE : 0, hints, info);
	hints->ep_attr->auth_key = NULL;
	hints->ep_attr->auth_key_size = 0;
	fi_freeinfo(hints);
	return ret;
}

static int each_is_answered(void)
{
	struct fi_info *info = NULL;
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(asks); i++) {
		ret = query(FI_VERSION(1, 18), NULL, NULL, &asks[i], &info);
		if (ret != asks[i].answer) {
			pr_info("kofi_lnet: %s: %d\n", asks[i].what, ret);
			return -FI_EOTHER;
		}
		fi_freeinfo(info);
	}
	/* It names its interface and its network; and it states no version. */
	REFUSED(FI_ENODATA, query(FI_VERSION(1, 18), "loop0", "99", &asks[0], &info));
	TRY(query(0, NULL, NULL, &asks[0], &info));
	fi_freeinfo(info);
	return 0;
}

/* The objects, which are opened in this order */

struct receive_buffer {
	u8 *bytes;
	/* its last message is here, or it was cancelled */
	bool over;
};

struct peer {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *rx_cq, *tx_cq;
	struct fid_ep *sep, *tx, *rx;
	struct fid_mr *mr;
	fi_addr_t other;
	struct kofi_wait rx_wait, tx_wait;
	struct work_struct rx_work, tx_work;
	struct receive_buffer many;
	u8 *bulk, *out;
	/* What works have taken from the queues; the works of one peer may run at once */
	atomic_t sent, received, statuses, errors;
	struct completion moved;
	bool closing;
};

static void rx_wake(struct kofi_wait *wait)
{
	queue_work(system_unbound_wq, &container_of(wait, struct peer, rx_wait)->rx_work);
}

static void tx_wake(struct kofi_wait *wait)
{
	queue_work(system_unbound_wq, &container_of(wait, struct peer, tx_wait)->tx_work);
}

/* One message of many in a buffer, the status of a transfer, or the end of an operation of this side. */
static void take(struct peer *p, const struct fi_cq_data_entry *entry)
{
	const u8 *at = entry->buf;

	if (entry->flags & FI_TAGGED && entry->flags & FI_RECV) {
		if (entry->flags & FI_REMOTE_CQ_DATA && entry->data == STATUS)
			atomic_inc(&p->statuses);
		else
			atomic_inc(&p->errors);
	} else if (entry->flags & FI_RECV) {
		/* Who sees the message counted sees whether it was the buffer's last. */
		if (entry->flags & FI_MULTI_RECV)
			WRITE_ONCE(p->many.over, true);
		/* The end of the buffer may be told by itself. */
		if (entry->len) {
			if (entry->len < 2 || at < p->many.bytes ||
			    at + entry->len > p->many.bytes + BUFFER ||
			    at[0] != at[entry->len - 1])
				atomic_inc(&p->errors);
			smp_mb__before_atomic();
			atomic_inc(&p->received);
		}
	} else {
		atomic_inc(&p->sent);
	}
	complete(&p->moved);
}

static void take_error(struct peer *p, struct fid_cq *cq)
{
	struct fi_cq_err_entry error = { .err_data_size = 0 };

	if (fi_cq_readerr(cq, &error, 0) != 1)
		return;
	if (error.err == FI_ECANCELED && error.op_context == &p->many)
		p->many.over = true;
	else
		atomic_inc(&p->errors);
	complete(&p->moved);
}

/* Read a queue until it is empty and calls again. */
static void drain(struct peer *p, struct fid_cq *cq)
{
	struct fid *fids[] = { &cq->fid };
	struct fi_cq_data_entry entry;
	ssize_t n;

	while (!READ_ONCE(p->closing)) {
		n = fi_cq_read(cq, &entry, 1);
		if (n == 1)
			take(p, &entry);
		else if (n == -FI_EAVAIL)
			take_error(p, cq);
		else if (n != -FI_EAGAIN || fi_trywait(p->fabric, fids, 1) != -FI_EAGAIN)
			return;
	}
}

static void rx_drain(struct work_struct *work)
{
	struct peer *p = container_of(work, struct peer, rx_work);

	drain(p, p->rx_cq);
}

static void tx_drain(struct work_struct *work)
{
	struct peer *p = container_of(work, struct peer, tx_work);

	drain(p, p->tx_cq);
}

static int queue_open(struct peer *p, struct kofi_wait *wait, struct fid_cq **cq)
{
	struct fi_cq_attr attr = { .size = 4 * TX_CREDIT,
				   .flags = FI_AFFINITY,
				   .format = FI_CQ_FORMAT_DATA,
				   .wait_obj = FI_WAIT_SET,
				   .wait_cond = FI_CQ_COND_NONE,
				   .wait_set = &wait->fid,
				   .signaling_vector = 1 };

	return fi_cq_open(p->domain, &attr, cq, p);
}

static int peer_memory(struct peer *p)
{
	p->many.bytes = kzalloc(BUFFER, GFP_KERNEL);
	p->out = kzalloc(MESSAGE, GFP_KERNEL);
	p->bulk = kvzalloc(BULK, GFP_KERNEL);
	kofi_wait_init(&p->rx_wait, rx_wake);
	kofi_wait_init(&p->tx_wait, tx_wake);
	INIT_WORK(&p->rx_work, rx_drain);
	INIT_WORK(&p->tx_work, tx_drain);
	init_completion(&p->moved);
	return p->many.bytes && p->out && p->bulk ? 0 : -FI_ENOMEM;
}

/* The contexts of a group are enabled when they have their queues, after the endpoint. */
static int contexts_open(struct peer *p, struct fi_info *info)
{
	size_t least = MESSAGE;

	info->tx_attr->op_flags = FI_COMPLETION | FI_TRANSMIT_COMPLETE;
	info->tx_attr->size = TX_CREDIT;
	TRY(fi_rx_context(p->sep, GROUP, info->rx_attr, &p->rx, p));
	TRY(fi_tx_context(p->sep, GROUP, info->tx_attr, &p->tx, p));
	TRY(fi_setopt(&p->rx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
		      sizeof(least)));
	TRY(fi_ep_bind(p->rx, &p->rx_cq->fid, FI_RECV));
	TRY(fi_ep_bind(p->tx, &p->tx_cq->fid, FI_TRANSMIT));
	TRY(fi_enable(p->rx));
	return fi_enable(p->tx);
}

static int peer_open(struct peer *p, struct fi_info *info)
{
	struct fi_av_attr av = { .type = FI_AV_UNSPEC, .rx_ctx_bits = RX_BITS };
	void *ops;

	TRY(peer_memory(p));
	TRY(fi_fabric(info->fabric_attr, &p->fabric, p));
	REFUSED(FI_ENOSYS, fi_open_ops(&p->fabric->fid, "fabric_ops_v1", 0, &ops, NULL));
	TRY(fi_domain(p->fabric, info, &p->domain, p));
	TRY(fi_av_open(p->domain, &av, &p->av, p));
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = GROUPS;
	TRY(fi_scalable_ep(p->domain, info, &p->sep, p));
	TRY(fi_scalable_ep_bind(p->sep, &p->av->fid, 0));
	TRY(fi_enable(p->sep));
	TRY(queue_open(p, &p->rx_wait, &p->rx_cq));
	TRY(queue_open(p, &p->tx_wait, &p->tx_cq));
	TRY(contexts_open(p, info));
	/* Both queues call from now on. */
	rx_wake(&p->rx_wait);
	tx_wake(&p->tx_wait);
	return 0;
}

static int peer_knows(struct peer *p, struct peer *other)
{
	char name[64];
	size_t len = sizeof(name);

	TRY(fi_getname(&other->sep->fid, name, &len));
	if (fi_av_insert(p->av, name, 1, &p->other, 0, NULL) != 1)
		return -FI_ENOMEM;
	p->other = fi_rx_addr(p->other, GROUP, RX_BITS);
	return 0;
}

static void fid_close(struct fid *fid)
{
	if (fid)
		WARN(fi_close(fid), "kofi_lnet: an object is not closed\n");
}

#define CLOSE(object) fid_close((object) ? &(object)->fid : NULL)

static void works_end(struct peer *p)
{
	if (!p->tx_cq)
		return;
	flush_work(&p->rx_work);
	flush_work(&p->tx_work);
}

static void peer_close(struct peer *p)
{
	/* Works that are queued from now on leave the queues alone. */
	WRITE_ONCE(p->closing, true);
	CLOSE(p->mr);
	CLOSE(p->tx);
	CLOSE(p->rx);
	CLOSE(p->sep);
	works_end(p);
	CLOSE(p->tx_cq);
	CLOSE(p->rx_cq);
	works_end(p);
	CLOSE(p->av);
	CLOSE(p->domain);
	CLOSE(p->fabric);
	kvfree(p->bulk);
	kfree(p->out);
	kfree(p->many.bytes);
}

/* Its transfers. Nobody reads the queues but the works. */

/* Until @count is @value; every completion is followed by a look. */
static int moved_until(struct peer *p, const atomic_t *count, int value)
{
	while (atomic_read_acquire(count) < value && !atomic_read(&p->errors))
		if (!wait_for_completion_timeout(&p->moved, msecs_to_jiffies(WAIT_MS)))
			return -FI_ETIMEDOUT;
	return atomic_read(&p->errors) ? -FI_EIO : 0;
}

static int buffer_post(struct peer *p)
{
	WRITE_ONCE(p->many.over, false);
	return fi_recv(p->rx, p->many.bytes, BUFFER, NULL, FI_ADDR_UNSPEC, &p->many);
}

static int buffer_over(struct peer *p)
{
	while (!READ_ONCE(p->many.over))
		if (!wait_for_completion_timeout(&p->moved, msecs_to_jiffies(WAIT_MS)))
			return -FI_ETIMEDOUT;
	return 0;
}

/* Calls that are refused for now are made again: the works make progress meanwhile. */
#define AGAIN(call)                                                                           \
	do {                                                                                  \
		unsigned long again_end = jiffies + msecs_to_jiffies(WAIT_MS);                \
		long again_ret;                                                               \
		while ((again_ret = (call)) == -FI_EAGAIN && time_before(jiffies, again_end)) \
			cond_resched();                                                       \
		TRY(again_ret);                                                               \
	} while (0)

/* Messages of all lengths into buffers of many, which are posted again when they are full. */
static int messages(struct peer *a, struct peer *b)
{
	int i, before = atomic_read(&a->sent);

	TRY(buffer_post(b));
	for (i = 0; i < MESSAGES; i++) {
		size_t len = 64 + (MESSAGE - 64) * i / MESSAGES;

		if (READ_ONCE(b->many.over))
			TRY(buffer_post(b));
		memset(a->out, i, len);
		AGAIN(fi_send(a->tx, a->out, len, NULL, a->other, a));
		TRY(moved_until(a, &a->sent, i + 1 + before));
		TRY(moved_until(b, &b->received, i + 1));
	}
	if (READ_ONCE(b->many.over))
		TRY(buffer_post(b));
	TRY(fi_cancel(&b->rx->fid, &b->many));
	return buffer_over(b);
}

/* The end of a transfer is a tagged message without bytes, from that peer, with the status as its data. */
static int status(struct peer *a, struct peer *b)
{
	struct fi_msg_tagged msg = { .addr = b->other, .tag = KEY, .context = b };
	int sent = atomic_read(&a->sent), statuses = atomic_read(&b->statuses);

	AGAIN(fi_trecvmsg(b->rx, &msg, FI_COMPLETION));
	AGAIN(fi_tsenddata(a->tx, NULL, 0, NULL, STATUS, a->other, KEY, a));
	TRY(moved_until(a, &a->sent, sent + 1));
	return moved_until(b, &b->statuses, statuses + 1);
}

static void fill(u8 *bytes, u8 seed)
{
	size_t i;

	for (i = 0; i < BULK; i++)
		bytes[i] = seed + i * 7 + i / PAGE_SIZE;
}

static int transfer(struct peer *a, struct peer *b, bool write)
{
	struct iovec iov = { .iov_base = (void __force __user *)a->bulk, .iov_len = BULK };
	struct fi_rma_iov rma = { .len = BULK, .key = KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = a->other,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = a };
	int sent = atomic_read(&a->sent);

	memset(write ? b->bulk : a->bulk, 0, BULK);
	fill(write ? a->bulk : b->bulk, write);
	/* A tag makes no access complete at its target. */
	REFUSED(FI_EBADFLAGS, write ? fi_writemsg(a->tx, &msg, FI_TAGGED | FI_COMPLETION)
				    : fi_readmsg(a->tx, &msg, FI_TAGGED | FI_COMPLETION));
	if (write)
		AGAIN(fi_writemsg(a->tx, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	else
		AGAIN(fi_readmsg(a->tx, &msg, FI_COMPLETION));
	TRY(moved_until(a, &a->sent, sent + 1));
	if (memcmp(a->bulk, b->bulk, BULK))
		return -FI_EIO;
	return status(a, b);
}

static int transfers(struct peer *a, struct peer *b)
{
	struct iovec *pages = kcalloc(PIECES, sizeof(*pages), GFP_KERNEL);
	struct fid_mr *mr;
	int i, ret;

	if (!pages)
		return -FI_ENOMEM;
	for (i = 0; i < PIECES; i++) {
		pages[i].iov_base = (void __force __user *)(b->bulk + i * (BULK / PIECES));
		pages[i].iov_len = BULK / PIECES;
	}
	ret = fi_mr_regv(b->domain, pages, PIECES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
			 &mr, NULL);
	kfree(pages);
	REFUSED(FI_EINVAL, ret);
	/* Pages that are mapped in one piece are one. */
	TRY(fi_mr_reg(b->domain, b->bulk, BULK, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
		      &b->mr, NULL));
	TRY(transfer(a, b, true));
	return transfer(a, b, false);
}

static int peers_talk(struct peer *a, struct peer *b, struct fi_info *info)
{
	TRY(peer_open(a, info));
	TRY(peer_open(b, info));
	TRY(peer_knows(a, b));
	TRY(peer_knows(b, a));
	TRY(messages(a, b));
	TRY(messages(b, a));
	return transfers(a, b);
}

static int __init lnet_init(void)
{
	struct peer *peers = kcalloc(2, sizeof(*peers), GFP_KERNEL);
	struct fi_info *info = NULL;
	int ret = peers ? each_is_answered() : -FI_ENOMEM;

	if (!ret)
		ret = query(FI_VERSION(1, 18), NULL, NULL, NULL, &info);
	if (!ret) {
		ret = peers_talk(&peers[0], &peers[1], info);
		peer_close(&peers[0]);
		peer_close(&peers[1]);
	}
	fi_freeinfo(info);
	kfree(peers);
	return ret;
}

static void __exit lnet_exit(void)
{
}

module_init(lnet_init);
module_exit(lnet_exit);
MODULE_DESCRIPTION("Weft: what Lustre asks of kofi, for the tests of virtual machines");
MODULE_LICENSE("Dual BSD/GPL");
