/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing queue pairs, and their threads; blk.h has the contract. */
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include <rdma/fi_errno.h>

#include "pair.h"

#define CONNECT_MS 10000 /* until a controller that does not answer is given up */
#define AGAIN_MS   500	 /* until it is asked once more */
#define PING_MS	   1000
#define LOOK_MS	   100 /* after a ping: until what has become of it is looked for */
#define LAG_MS	   1   /* between looks at whether the provider has a message no more */

/* A place as a lender may have it, whose data is told of by remote CQ data */
static bool is_sound(const struct remote_place *place)
{
	const u32 least = sizeof(struct remote_head) + sizeof(struct nvme_sqe) +
			  sizeof(struct nvme_dsm_range);

	return place->version == REMOTE_VERSION && place->name_len &&
	       place->name_len <= REMOTE_NAME_MAX && place->depth &&
	       place->message_max >= least && place->message_max <= 1u << 20 &&
	       (place->data_len == 4 || place->data_len == 8) &&
	       place->inline_max >= sizeof(struct nvme_dsm_range) &&
	       place->inline_max <= place->message_max - sizeof(struct remote_head) -
					    sizeof(struct nvme_sqe) &&
	       memchr(place->provider, 0, sizeof(place->provider));
}

/* What the kernel calls a provider of processes with the same protocol. */
static const char *provider_of(const struct remote_place *place)
{
	if (!strcmp(place->provider, "tcp"))
		return "sockets";
	return strcmp(place->provider, "verbs") ? place->provider : "ibverbs";
}

static int find(struct blk_pair *p, const char *peer)
{
	char name[REMOTE_PROVIDER_MAX];
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -ENOMEM;
	strscpy(name, provider_of(&p->place), sizeof(name));
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->fabric_attr->prov_name = name;
	ret = fi_getinfo(FI_VERSION(1, 18), peer, NULL, 0, hints, &p->info);
	if (ret && peer)
		ret = fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &p->info);
	hints->fabric_attr->prov_name = NULL;
	fi_freeinfo(hints);
	if (ret)
		return ret == -FI_ENODATA ? -EOPNOTSUPP : ret;
	if (p->info->domain_attr->cq_data_size < p->place.data_len ||
	    p->info->ep_attr->max_msg_size < BLK_DATA_MAX ||
	    p->info->domain_attr->mr_mode & FI_MR_LOCAL)
		return -EOPNOTSUPP;
	p->info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	return 0;
}

static int open_objects(struct blk_pair *p)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA,
				 .wait_obj = FI_WAIT_UNSPEC,
				 .size = 2 * p->disk->depth + 2 * PAIR_RECEIVES_MAX };
	struct fi_cq_attr sent = { .format = FI_CQ_FORMAT_DATA,
				   .wait_obj = FI_WAIT_NONE,
				   .size = 2 * p->disk->depth };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int ret = fi_fabric(p->info->fabric_attr, &p->fabric, NULL);

	if (!ret)
		ret = fi_domain(p->fabric, p->info, &p->domain, NULL);
	if (!ret)
		ret = fi_av_open(p->domain, &av, &p->av, NULL);
	if (!ret)
		ret = fi_cq_open(p->domain, &cq, &p->cq, NULL);
	if (!ret)
		ret = fi_cq_open(p->domain, &sent, &p->sent, NULL);
	if (!ret)
		ret = fi_endpoint(p->domain, p->info, &p->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(p->ep, &p->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(p->ep, &p->cq->fid, FI_RECV);
	if (!ret)
		ret = fi_ep_bind(p->ep, &p->sent->fid, FI_TRANSMIT);
	return ret ? ret : fi_enable(p->ep);
}

/* The disk's buffers, by a key that nobody guesses. */
static int open_memory(struct blk_pair *p)
{
	struct blk_disk *d = p->disk;
	u64 key;
	int ret;

	get_random_bytes(&key, sizeof(key));
	if (p->info->domain_attr->mr_key_size < sizeof(key))
		key &= (1ull << 8 * p->info->domain_attr->mr_key_size) - 1;
	ret = fi_mr_reg(p->domain, d->buffers, (size_t)d->depth * BLK_BUFFER_LEN,
			FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &p->mr, NULL);
	if (ret)
		return ret;
	if (p->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		p->base = (uintptr_t)d->buffers;
	return 0;
}

/* A name is the length of ours, if names have one. */
static int know_peer(struct blk_pair *p)
{
	struct remote_connect *m = &p->hello;
	size_t len = sizeof(m->name);
	int ret = fi_getname(&p->ep->fid, m->name, &len);

	if (ret)
		return ret;
	if (p->info->addr_format != FI_ADDR_STR && p->place.name_len != len)
		return -EINVAL;
	if (p->info->addr_format == FI_ADDR_STR &&
	    memchr(p->place.name, 0, p->place.name_len) != p->place.name + p->place.name_len - 1)
		return -EINVAL;
	m->head = (struct remote_head){ .version = REMOTE_VERSION,
					.kind = REMOTE_CONNECT,
					.key = p->place.key };
	m->name_len = len;
	return fi_av_insert(p->av, p->place.name, 1, &p->peer, 0, NULL) == 1 ? 0 : -EINVAL;
}

static int say_hello(struct blk_pair *p)
{
	int ret;

	if (p->greeting)
		return -FI_EAGAIN;
	if (sizeof(p->hello) <= p->info->tx_attr->inject_size)
		return fi_inject(p->ep, &p->hello, sizeof(p->hello), p->peer);
	ret = fi_send(p->ep, &p->hello, sizeof(p->hello), NULL, p->peer, &p->hello_context);
	p->greeting = !ret;
	return ret;
}

/* Say who we are, until the controller has heard it. */
static int connect_pair(struct blk_pair *p)
{
	unsigned long end = jiffies + msecs_to_jiffies(CONNECT_MS), again = jiffies;
	int ret = 0;

	while (!p->connected && !p->lost) {
		if (time_after(jiffies, end) || fatal_signal_pending(current))
			return -ETIMEDOUT;
		if (time_after_eq(jiffies, again)) {
			ret = say_hello(p);
			if (ret && ret != -FI_EAGAIN)
				return ret == -FI_ENOMEM ? ret : -ETIMEDOUT;
			again = jiffies + msecs_to_jiffies(ret ? 10 : AGAIN_MS);
		}
		pair_progress(p, 50);
	}
	return p->lost;
}

static void fid_close(struct fid *fid)
{
	if (fid)
		WARN(fi_close(fid), "kofi_blk: an object is not closed\n");
}

#define CLOSE(object)                                        \
	do {                                                 \
		fid_close((object) ? &(object)->fid : NULL); \
		(object) = NULL;                             \
	} while (0)

/* The endpoint first: nothing accesses the buffers after that. */
static void close_objects(struct blk_pair *p)
{
	CLOSE(p->ep);
	CLOSE(p->mr);
	CLOSE(p->cq);
	CLOSE(p->sent);
	CLOSE(p->av);
	CLOSE(p->domain);
	CLOSE(p->fabric);
	fi_freeinfo(p->info);
	p->info = NULL;
}

static int open_all(struct blk_pair *p, const char *peer)
{
	unsigned int noio = memalloc_noio_save();
	int ret = find(p, peer);
	u32 i;

	if (!ret)
		ret = open_objects(p);
	if (!ret)
		ret = open_memory(p);
	if (!ret)
		ret = know_peer(p);
	for (i = 0; !ret && i < p->receive_cnt; i++)
		ret = pair_listen(p, &p->receives[i]);
	if (!ret)
		ret = connect_pair(p);
	memalloc_noio_restore(noio);
	return ret;
}

static void end_requests(struct blk_pair *p)
{
	u32 i;

	for (i = 0; i < p->ended_cnt; i++)
		blk_request_end(p->disk, p->ended[i]);
	p->ended_cnt = 0;
}

static int pair_main(void *arg)
{
	struct blk_pair *p = arg;
	unsigned int noio = memalloc_noio_save();
	bool pinged = false;

	while (!READ_ONCE(p->lost)) {
		int ms = p->lagging ? LAG_MS : pinged ? LOOK_MS : PING_MS;
		bool came = pair_progress(p, ms);

		end_requests(p);
		pinged = !came && !p->lagging && !pinged;
		if (pinged)
			pair_ping(p);
	}
	blk_disk_stop(p->disk, p->lost);
	close_objects(p);
	blk_disk_give_back(p->disk);
	memalloc_noio_restore(noio);
	return 0;
}

/* It may end before it is waited for. */
static int make_thread(struct blk_pair *p)
{
	struct task_struct *task = kthread_create(pair_main, p, "kofiblk%u", p->disk->number);

	if (IS_ERR(task))
		return PTR_ERR(task);
	p->task = get_task_struct(task);
	return 0;
}

int blk_pair_open(struct blk_disk *d, const struct kofi_blk_pair *where, struct blk_pair **out)
{
	bool peer = where->peer[0];
	struct blk_pair *p;
	int ret;

	if (!is_sound(&where->place) || !memchr(where->peer, 0, sizeof(where->peer)))
		return -EINVAL;
	if (where->place.depth < d->depth)
		return -ENOSPC;
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	p->disk = d;
	p->place = where->place;
	p->receive_cnt = min(d->depth + 2, PAIR_RECEIVES_MAX);
	p->receives = kvcalloc(p->receive_cnt, sizeof(*p->receives), GFP_KERNEL);
	p->ended = kcalloc(d->depth, sizeof(*p->ended), GFP_KERNEL);
	ret = p->receives && p->ended ? open_all(p, peer ? where->peer : NULL) : -ENOMEM;
	if (!ret)
		ret = make_thread(p);
	if (ret) {
		blk_pair_close(p);
		return ret;
	}
	*out = p;
	return 0;
}

void blk_pair_start(struct blk_pair *p)
{
	wake_up_process(p->task);
}

void blk_pair_lose(struct blk_pair *p, int why)
{
	cmpxchg(&p->lost, 0, why);
	fi_cq_signal(p->cq);
}

void blk_pair_close(struct blk_pair *p)
{
	struct blk_disk *d = p->disk;

	if (p->task) {
		mutex_lock(&d->lock);
		if (d->pair == p)
			blk_pair_lose(p, -ESHUTDOWN);
		mutex_unlock(&d->lock);
		kthread_stop(p->task);
		put_task_struct(p->task);
	}
	close_objects(p);
	kvfree(p->receives);
	kfree(p->ended);
	kfree_sensitive(p);
}
