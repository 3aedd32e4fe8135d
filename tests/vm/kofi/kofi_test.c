/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A consumer of kofi, and a provider that is refused: what the job 'kofi' loads. Writing a name to the parameter 'run' runs
 * that test in the writer's thread; the write fails with its error. Each waits 10 s at most.
 */
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "failing.h"
#include "kofi.h"

/* The provider of the tests: the first that answers, if none is named */
static char *provider;
module_param(provider, charp, 0600);
MODULE_PARM_DESC(provider, "name of the provider that the tests run over");

#define LONG   (256u << 10)
#define MEDIUM 20000u
#define TAG    0x77u
#define WAIT_S 10

/* An endpoint in a domain of its own. */
struct end {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t other;
	u8 *bytes;
};

#define TRY(call)                                                                      \
	do {                                                                           \
		long try_ret = (call);                                                 \
		if (try_ret < 0) {                                                     \
			pr_info("kofi_test: %d: %s: %ld\n", __LINE__, #call, try_ret); \
			return try_ret;                                                \
		}                                                                      \
	} while (0)

static int end_open(struct end *e, struct fi_info *info)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	e->bytes = kvzalloc(LONG, GFP_KERNEL);
	if (!e->bytes)
		return -ENOMEM;
	TRY(fi_fabric(info->fabric_attr, &e->fabric, NULL));
	TRY(fi_domain(e->fabric, info, &e->domain, NULL));
	TRY(fi_av_open(e->domain, &av, &e->av, NULL));
	TRY(fi_cq_open(e->domain, &cq, &e->cq, NULL));
	TRY(fi_endpoint(e->domain, info, &e->ep, NULL));
	TRY(fi_ep_bind(e->ep, &e->av->fid, 0));
	TRY(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	TRY(fi_enable(e->ep));
	TRY(fi_mr_reg(e->domain, e->bytes, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
		      &e->mr, NULL));
	/* In use: it is not closed. */
	return fi_close(&e->fabric->fid) == -FI_EBUSY ? 0 : -FI_EOTHER;
}

static int end_knows(struct end *e, struct end *other)
{
	char name[64];
	size_t len = sizeof(name);

	TRY(fi_getname(&other->ep->fid, name, &len));
	/* It says how many there is room for. */
	return fi_av_insert(e->av, name, 1, &e->other, 0, NULL) == 1 ? 0 : -FI_ENOMEM;
}

static void fid_close(struct fid *fid)
{
	if (fid)
		WARN(fi_close(fid), "kofi_test: an object is not closed\n");
}

#define CLOSE(object) fid_close((object) ? &(object)->fid : NULL)

static void end_close(struct end *e)
{
	CLOSE(e->mr);
	CLOSE(e->ep);
	CLOSE(e->cq);
	CLOSE(e->av);
	CLOSE(e->domain);
	CLOSE(e->fabric);
	kvfree(e->bytes);
}

/* One completion at @e, while both make progress. */
static int completion(struct end *e, struct end *other, struct fi_cq_tagged_entry *entry)
{
	unsigned long end = jiffies + WAIT_S * HZ;
	ssize_t n;

	do {
		n = fi_cq_read(e->cq, entry, 1);
		if (n == -FI_EAGAIN)
			fi_cq_read(other->cq, NULL, 0);
		cond_resched();
	} while (n == -FI_EAGAIN && time_before(jiffies, end));
	return n == 1 ? 0 : n == -FI_EAGAIN ? -FI_ETIMEDOUT : n < 0 ? n : -FI_EOTHER;
}

/* Calls that are refused for now are made again. */
#define AGAIN(call)                                                                             \
	do {                                                                                    \
		unsigned long again_end = jiffies + WAIT_S * HZ;                                \
		ssize_t again_ret;                                                              \
		while ((again_ret = (call)) == -FI_EAGAIN && time_before(jiffies, again_end)) { \
			fi_cq_read(a->cq, NULL, 0);                                             \
			fi_cq_read(b->cq, NULL, 0);                                             \
			cond_resched();                                                         \
		}                                                                               \
		TRY(again_ret == -FI_EAGAIN ? -FI_ETIMEDOUT : again_ret);                       \
	} while (0)

static int holds(const u8 *bytes, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (bytes[i] != (u8)(seed + i * 7))
			return -FI_EIO;
	return 0;
}

static void fill(u8 *bytes, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = seed + i * 7;
}

static int message(struct end *a, struct end *b, size_t len, bool tagged)
{
	struct fi_cq_tagged_entry entry;

	fill(a->bytes, len, len);
	memset(b->bytes, 0, len);
	if (tagged) {
		AGAIN(fi_trecv(b->ep, b->bytes, len, NULL, FI_ADDR_UNSPEC, TAG, 0, b));
		AGAIN(fi_tsend(a->ep, a->bytes, len, NULL, a->other, TAG, a));
	} else {
		AGAIN(fi_recv(b->ep, b->bytes, len, NULL, FI_ADDR_UNSPEC, b));
		AGAIN(fi_send(a->ep, a->bytes, len, NULL, a->other, a));
	}
	TRY(completion(b, a, &entry));
	if (entry.op_context != b || entry.len != len || (tagged && entry.tag != TAG))
		return -FI_EOTHER;
	TRY(completion(a, b, &entry));
	return holds(b->bytes, len, len);
}

static int access(struct end *a, struct end *b, size_t len)
{
	struct fi_cq_tagged_entry entry;

	fill(a->bytes, len, 3);
	memset(b->bytes, 0, len);
	AGAIN(fi_write(a->ep, a->bytes, len, NULL, a->other, 0, fi_mr_key(b->mr), a));
	TRY(completion(a, b, &entry));
	memset(a->bytes, 0, len);
	AGAIN(fi_read(a->ep, a->bytes, len, NULL, a->other, 0, fi_mr_key(b->mr), a));
	TRY(completion(a, b, &entry));
	TRY(holds(a->bytes, len, 3));
	return holds(b->bytes, len, 3);
}

/* Memory that may not be written, that is none of the kernel's, and that is none. */
static const u8 constant[4096] __aligned(4096) = { 1 };
#define USERS ((void *)0x10000)
#define NOONE ((void *)0xdead000000000000)

/* A peer's access to @at is made, or refused with an error to the peer. */
static int accesses(struct end *a, struct end *b, const void *at, bool write, bool allowed)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = { .err_data_size = 0 };
	struct iovec iov = { .iov_base = (void __force __user *)a->bytes, .iov_len = 8 };
	struct fi_rma_iov rma = { .len = 8 };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .addr = a->other,
				  .rma_iov = &rma,
				  .rma_iov_count = 1,
				  .context = a };
	u64 access = write ? FI_REMOTE_WRITE : FI_REMOTE_READ;
	struct fid_mr *mr;
	int ret;

	TRY(fi_mr_reg(b->domain, at, 8, access, 0, 2, 0, &mr, NULL));
	rma.key = fi_mr_key(mr);
	if (write)
		AGAIN(fi_writemsg(a->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	else
		AGAIN(fi_readmsg(a->ep, &msg, FI_COMPLETION));
	ret = completion(a, b, &entry);
	if (ret == -FI_EAVAIL && fi_cq_readerr(a->cq, &error, 0) == 1)
		ret = -error.err;
	TRY(fi_close(&mr->fid));
	if (ret != (allowed ? 0 : -FI_EACCES))
		pr_info("kofi_test: %px: %d\n", at, ret);
	return ret == (allowed ? 0 : -FI_EACCES) ? 0 : -FI_EOTHER;
}

static int peers_do_no_harm(struct end *a, struct end *b)
{
	static u8 variable[4096] __aligned(4096);

	TRY(accesses(a, b, variable, false, true));
	TRY(accesses(a, b, variable, true, true));
	TRY(accesses(a, b, constant, false, true));
	TRY(accesses(a, b, constant, true, false));
	TRY(accesses(a, b, USERS, false, false));
	TRY(accesses(a, b, USERS, true, false));
	TRY(accesses(a, b, NOONE, false, false));
	return accesses(a, b, NOONE, true, false);
}

/* A sleeper is woken by a send of this thread's that came before, or ends by its time. */
static int sleeps(struct end *a, struct end *b)
{
	struct fi_cq_tagged_entry entry;

	if (fi_cq_sread(b->cq, &entry, 1, NULL, 20) != -FI_EAGAIN)
		return -FI_EOTHER;
	AGAIN(fi_recv(b->ep, b->bytes, 8, NULL, FI_ADDR_UNSPEC, b));
	AGAIN(fi_send(a->ep, a->bytes, 8, NULL, a->other, a));
	TRY(completion(a, b, &entry));
	return fi_cq_sread(b->cq, &entry, 1, NULL, WAIT_S * 1000) == 1 ? 0 : -FI_EOTHER;
}

/* Messages and accesses of all ways to send them; @len: longer than what goes with its header */
static int traffic(struct end *a, struct end *b, struct fi_info *info, size_t len)
{
	TRY(end_open(a, info));
	TRY(end_open(b, info));
	TRY(end_knows(a, b));
	TRY(end_knows(b, a));
	TRY(message(a, b, 8, false));
	TRY(message(b, a, 4096, false));
	TRY(message(a, b, len, false));
	TRY(message(a, b, 8, true));
	TRY(message(b, a, len, true));
	TRY(access(a, b, 8));
	return access(b, a, len);
}

static int exchange(struct end *a, struct end *b, struct fi_info *info)
{
	TRY(traffic(a, b, info, LONG));
	TRY(peers_do_no_harm(a, b));
	return sleeps(a, b);
}

static int with_ends(int (*test)(struct end *a, struct end *b, struct fi_info *info))
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct end *ends = kcalloc(2, sizeof(*ends), GFP_KERNEL);
	int ret = -ENOMEM;

	if (hints && ends) {
		hints->ep_attr->type = FI_EP_RDM;
		hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
		hints->domain_attr->mr_mode = FI_MR_LOCAL;
		hints->fabric_attr->prov_name = provider;
		ret = fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info);
		hints->fabric_attr->prov_name = NULL;
		if (!ret)
			ret = test(&ends[0], &ends[1], info);
		end_close(&ends[0]);
		end_close(&ends[1]);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
	kfree(ends);
	return ret;
}

static int run_round(void)
{
	return with_ends(exchange);
}

/* Refusals */

static int no_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info)
{
	return -FI_ENODATA;
}

static void no_freeinfo(struct fi_info *info)
{
}

static int no_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return -FI_ENODEV;
}

#define REFUSED(error, call)                                                              \
	do {                                                                              \
		int refused_ret = (call);                                                 \
		if (refused_ret != -(error)) {                                            \
			pr_info("kofi_test: %d: %s: %d\n", __LINE__, #call, refused_ret); \
			return -FI_EOTHER;                                                \
		}                                                                         \
	} while (0)

static int run_refusals(void)
{
	static struct kofi_provider none = { .getinfo = no_getinfo,
					     .freeinfo = no_freeinfo,
					     .fabric = no_fabric },
				    loop = { .name = "LOOP",
					     .getinfo = no_getinfo,
					     .freeinfo = no_freeinfo,
					     .fabric = no_fabric },
				    lame = { .name = "lame",
					     .getinfo = no_getinfo,
					     .fabric = no_fabric },
				    good = { .name = "good",
					     .getinfo = no_getinfo,
					     .freeinfo = no_freeinfo,
					     .fabric = no_fabric };
	struct fi_fabric_attr attr = { .prov_name = "good", .name = "good" };
	struct fid_fabric *fabric;

	REFUSED(FI_EINVAL, kofi_provider_register(KOFI_VERSION, NULL));
	REFUSED(FI_EINVAL, kofi_provider_register(KOFI_VERSION, &none));
	REFUSED(FI_EINVAL, kofi_provider_register(KOFI_VERSION, &lame));
	REFUSED(FI_EADDRINUSE, kofi_provider_register(KOFI_VERSION, &loop));
	REFUSED(FI_ENOSYS, kofi_provider_register(FI_VERSION(2, 0), &good));
	REFUSED(FI_ENOENT, kofi_provider_deregister(&good));
	REFUSED(0, kofi_provider_register(KOFI_VERSION, &good));
	REFUSED(FI_EALREADY, kofi_provider_register(KOFI_VERSION, &good));
	REFUSED(FI_ENODEV, fi_fabric(&attr, &fabric, NULL));
	REFUSED(0, kofi_provider_deregister(&good));
	REFUSED(FI_ENODEV, fi_fabric(&attr, &fabric, NULL));
	return 0;
}

#ifdef CONFIG_FAULT_INJECTION

/* A provider comes, is asked, and goes. */
static int run_register(void)
{
	static struct kofi_provider passing = { .name = "passing",
						.getinfo = no_getinfo,
						.freeinfo = no_freeinfo,
						.fabric = no_fabric };
	struct fi_info *info = NULL;
	int ret = kofi_provider_register(KOFI_VERSION, &passing);

	if (ret)
		return ret;
	ret = fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, NULL, &info);
	fi_freeinfo(info);
	WARN(kofi_provider_deregister(&passing), "kofi_test: a provider is not deregistered\n");
	return ret;
}

static int short_traffic(struct end *a, struct end *b, struct fi_info *info)
{
	return traffic(a, b, info, MEDIUM);
}

static int run_traffic(void)
{
	return with_ends(short_traffic);
}

static int run_failing(void)
{
	TRY(failing(run_register));
	return failing(run_traffic);
}

#else

static int run_failing(void)
{
	return -EOPNOTSUPP;
}

#endif

/* A fabric that stays open: its provider can't be unloaded. */
static struct fid_fabric *kept;

static int run_keep(void)
{
	struct fi_info *info = NULL;
	int ret = fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, NULL, &info);

	if (!ret)
		ret = fi_fabric(info->fabric_attr, &kept, NULL);
	fi_freeinfo(info);
	return ret;
}

static int run_release(void)
{
	return fi_close(&kept->fid);
}

static int run_set(const char *value, const struct kernel_param *param)
{
	if (sysfs_streq(value, "round"))
		return run_round();
	if (sysfs_streq(value, "refusals"))
		return run_refusals();
	if (sysfs_streq(value, "failing"))
		return run_failing();
	if (sysfs_streq(value, "keep"))
		return run_keep();
	return sysfs_streq(value, "release") ? run_release() : -EINVAL;
}

static const struct kernel_param_ops run_ops = {
	.set = run_set,
};

module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "round, refusals, failing, keep or release: runs that test");
MODULE_DESCRIPTION("Weft: a consumer of kofi for the tests of virtual machines");
MODULE_LICENSE("Dual BSD/GPL");
