/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A consumer of kofi_ibverbs: payload of all lengths, connections, devices that are removed. Writing a name to the
 * parameter 'run' runs that test in the writer's thread, as in kofi_test.c; each wait is for a minute at most.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define LONGEST (1u << 20)
#define AT_ONCE 8
/* Memory of an end: what is sent and received at once, from an odd byte on */
#define ROOM (2 * AT_ONCE * (LONGEST / 4) + PAGE_SIZE)
#define TAG  0x77u
/* Of a machine that is emulated, on the kernel that looks for errors */
#define WAIT_S 60

#define TRY(call)                                                                              \
	do {                                                                                   \
		long try_ret = (call);                                                         \
		if (try_ret < 0) {                                                             \
			pr_info("kofi_ibverbs_test: %d: %s: %ld\n", __LINE__, #call, try_ret); \
			return try_ret;                                                        \
		}                                                                              \
	} while (0)

static char *provider = "ibverbs";
module_param(provider, charp, 0444);
MODULE_PARM_DESC(
	provider,
	"Over which (default: ibverbs); another one has those of all lengths and of figures alone");

/* An endpoint in a domain of its own. */
struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t other;
	u8 *bytes;
};

static int info_of(enum fi_ep_type type, struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -ENOMEM;
	hints->ep_attr->type = type;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	hints->domain_attr->mr_mode = FI_MR_LOCAL;
	hints->fabric_attr->prov_name = provider;
	ret = fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, info);
	hints->fabric_attr->prov_name = NULL;
	fi_freeinfo(hints);
	return ret;
}

static int end_domain(struct end *e, enum fi_ep_type type)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };

	e->other = FI_ADDR_UNSPEC;
	TRY(info_of(type, &e->info));
	TRY(fi_fabric(e->info->fabric_attr, &e->fabric, NULL));
	TRY(fi_domain(e->fabric, e->info, &e->domain, NULL));
	TRY(fi_cq_open(e->domain, &cq, &e->cq, NULL));
	return fi_eq_open(e->fabric, &eq, &e->eq, NULL);
}

static int end_open(struct end *e, u8 *bytes)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	e->bytes = bytes;
	TRY(end_domain(e, FI_EP_RDM));
	TRY(fi_av_open(e->domain, &av, &e->av, NULL));
	TRY(fi_endpoint(e->domain, e->info, &e->ep, NULL));
	TRY(fi_ep_bind(e->ep, &e->av->fid, 0));
	TRY(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	TRY(fi_enable(e->ep));
	return fi_mr_reg(e->domain, e->bytes, ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
			 &e->mr, NULL);
}

static int end_knows(struct end *e, struct end *other)
{
	char name[64];
	size_t len = sizeof(name);

	TRY(fi_getname(&other->ep->fid, name, &len));
	return fi_av_insert(e->av, name, 1, &e->other, 0, NULL) == 1 ? 0 : -FI_EOTHER;
}

static void fid_close(struct fid *fid)
{
	if (fid)
		WARN(fi_close(fid), "kofi_ibverbs_test: an object is not closed\n");
}

#define CLOSE(object) fid_close((object) ? &(object)->fid : NULL)

static void end_close(struct end *e)
{
	CLOSE(e->mr);
	CLOSE(e->ep);
	CLOSE(e->pep);
	CLOSE(e->cq);
	CLOSE(e->eq);
	CLOSE(e->av);
	CLOSE(e->domain);
	CLOSE(e->fabric);
	fi_freeinfo(e->info);
	memset(e, 0, sizeof(*e));
}

static void both_progress(struct end *a, struct end *b)
{
	fi_cq_read(a->cq, NULL, 0);
	fi_cq_read(b->cq, NULL, 0);
	cond_resched();
}

/* Calls that are refused for now are made again. */
#define AGAIN(call)                                                                           \
	do {                                                                                  \
		unsigned long again_end = jiffies + WAIT_S * HZ;                              \
		ssize_t again_ret;                                                            \
		while ((again_ret = (call)) == -FI_EAGAIN && time_before(jiffies, again_end)) \
			both_progress(a, b);                                                  \
		TRY(again_ret);                                                               \
	} while (0)

/* @cnt completions at @e, each of @len bytes where it is of a receive, while both make progress. */
static int completions(struct end *e, struct end *other, int cnt, size_t len)
{
	unsigned long end = jiffies + WAIT_S * HZ;
	struct fi_cq_tagged_entry entry;

	while (cnt) {
		struct fi_cq_err_entry error = { .err_data_size = 0 };
		ssize_t n = fi_cq_read(e->cq, &entry, 1);

		if (n == -FI_EAVAIL && fi_cq_readerr(e->cq, &error, 0) == 1)
			return -error.err;
		if (n == -FI_EAGAIN && time_before(jiffies, end)) {
			both_progress(e, other);
			continue;
		}
		TRY(n);
		if (entry.flags & FI_RECV && entry.len != len)
			return -FI_EOTHER;
		cnt--;
	}
	return 0;
}

static u8 byte_of(size_t at, u8 seed)
{
	return seed + at * 7 + (at >> 12);
}

static void fill(u8 *bytes, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = byte_of(i, seed);
}

static int holds(const u8 *bytes, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (bytes[i] != byte_of(i, seed))
			return -FI_EIO;
	return 0;
}

static int message(struct end *a, struct end *b, size_t at, size_t len, bool tagged)
{
	u8 *out = a->bytes + at, *in = b->bytes + 2 * at;

	fill(out, len, len);
	memset(in, 0, len);
	if (tagged) {
		AGAIN(fi_trecv(b->ep, in, len, NULL, FI_ADDR_UNSPEC, TAG, 0, b));
		AGAIN(fi_tsend(a->ep, out, len, NULL, a->other, TAG, a));
	} else {
		AGAIN(fi_recv(b->ep, in, len, NULL, FI_ADDR_UNSPEC, b));
		AGAIN(fi_send(a->ep, out, len, NULL, a->other, a));
	}
	TRY(completions(b, a, 1, len));
	TRY(completions(a, b, 1, len));
	return holds(in, len, len);
}

static int access(struct end *a, struct end *b, size_t at, size_t len)
{
	u8 *out = a->bytes + at, *in = b->bytes + 3 * at;

	fill(out, len, 3);
	memset(in, 0, len);
	AGAIN(fi_write(a->ep, out, len, NULL, a->other, 3 * at, fi_mr_key(b->mr), a));
	TRY(completions(a, b, 1, len));
	memset(out, 0, len);
	AGAIN(fi_read(a->ep, out, len, NULL, a->other, 3 * at, fi_mr_key(b->mr), a));
	TRY(completions(a, b, 1, len));
	TRY(holds(out, len, 3));
	return holds(in, len, 3);
}

/* Payload in pieces, which none of both sides has alike. */
static int pieces(struct end *a, struct end *b, size_t len)
{
	struct iovec out[3], in[2];
	size_t i, part = len / 3, half = len / 2;

	fill(a->bytes, len, 9);
	memset(b->bytes, 0, len);
	for (i = 0; i < 3; i++) {
		out[i].iov_base = (void __force __user *)(a->bytes + i * part);
		out[i].iov_len = i == 2 ? len - 2 * part : part;
	}
	for (i = 0; i < 2; i++) {
		in[i].iov_base = (void __force __user *)(b->bytes + i * half);
		in[i].iov_len = i ? len - half : half;
	}
	AGAIN(fi_recvv(b->ep, in, NULL, 2, FI_ADDR_UNSPEC, b));
	AGAIN(fi_sendv(a->ep, out, NULL, 3, a->other, a));
	TRY(completions(b, a, 1, len));
	TRY(completions(a, b, 1, len));
	return holds(b->bytes, len, 9);
}

/* More parts at once than a link has windows. */
static int many(struct end *a, struct end *b)
{
	size_t len = LONGEST / 2 - 1;
	int i;

	for (i = 0; i < AT_ONCE; i++) {
		fill(a->bytes + i * len, len, i);
		memset(b->bytes + i * len, 0, len);
	}
	for (i = 0; i < AT_ONCE; i++)
		AGAIN(fi_recv(b->ep, b->bytes + i * len, len, NULL, FI_ADDR_UNSPEC, b));
	for (i = 0; i < AT_ONCE; i++)
		AGAIN(fi_send(a->ep, a->bytes + i * len, len, NULL, a->other, a));
	TRY(completions(b, a, AT_ONCE, len));
	TRY(completions(a, b, AT_ONCE, len));
	for (i = 0; i < AT_ONCE; i++)
		TRY(holds(b->bytes + i * len, len, i));
	return 0;
}

/* More messages at once than the peer has receives for. */
static int burst(struct end *a, struct end *b)
{
	int i, cnt = 200;

	fill(a->bytes, 100, 5);
	for (i = 0; i < cnt; i++)
		AGAIN(fi_recv(b->ep, b->bytes + i * 100, 100, NULL, FI_ADDR_UNSPEC, b));
	for (i = 0; i < cnt; i++)
		AGAIN(fi_send(a->ep, a->bytes, 100, NULL, a->other, a));
	TRY(completions(b, a, cnt, 100));
	TRY(completions(a, b, cnt, 100));
	for (i = 0; i < cnt; i++)
		TRY(holds(b->bytes + i * 100, 100, 5));
	return 0;
}

static int lengths(struct end *a, struct end *b)
{
	static const size_t lens[] = { 0,     1,      8,      4096,   8192,   8193,
				       65536, 262144, 262145, 524287, LONGEST };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		TRY(message(a, b, 0, lens[i], false));
		TRY(message(b, a, 3, lens[i], true));
		if (lens[i])
			TRY(access(a, b, 5, lens[i]));
		if (lens[i] > 8)
			TRY(pieces(b, a, lens[i]));
	}
	TRY(many(a, b));
	return burst(b, a);
}

/* A pair of ends, and their memory, which is in pages of its own each. */
static struct end ends[2];
static u8 *memory[2];

static void pair_close(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		end_close(&ends[i]);
		vfree(memory[i]);
		memory[i] = NULL;
	}
}

static int pair_memory(void)
{
	memory[0] = vzalloc(ROOM);
	memory[1] = vzalloc(ROOM);
	return memory[0] && memory[1] ? 0 : -ENOMEM;
}

static int pair_open(void)
{
	TRY(pair_memory());
	TRY(end_open(&ends[0], memory[0]));
	TRY(end_open(&ends[1], memory[1]));
	TRY(end_knows(&ends[0], &ends[1]));
	return end_knows(&ends[1], &ends[0]);
}

static int run_lengths(void)
{
	int ret = pair_open();

	if (!ret)
		ret = lengths(&ends[0], &ends[1]);
	pair_close();
	return ret;
}

/* Figures, of one thread that makes progress for both ends */

#define PINGS	2000
#define STREAM	512
#define AT_TIME 8

/* Half of a round trip of 8 bytes, ns */
static int latency(struct end *a, struct end *b, u64 *ns)
{
	ktime_t begun = ktime_get();
	int i;

	for (i = 0; i < 2 * PINGS; i++) {
		AGAIN(fi_recv(b->ep, b->bytes, 8, NULL, FI_ADDR_UNSPEC, b));
		AGAIN(fi_send(a->ep, a->bytes, 8, NULL, a->other, a));
		TRY(completions(b, a, 1, 8));
		TRY(completions(a, b, 1, 8));
		swap(a, b);
	}
	*ns = div_u64(ktime_to_ns(ktime_sub(ktime_get(), begun)), 2 * PINGS);
	return 0;
}

/* Messages of 64 KiB, of which some are under way: KiB in a second */
static int rate(struct end *a, struct end *b, u64 *kib)
{
	const size_t len = 64 << 10;
	ktime_t begun = ktime_get();
	int i;

	for (i = 0; i < STREAM; i++) {
		size_t at = i % AT_TIME * len;

		if (i >= AT_TIME) {
			TRY(completions(b, a, 1, len));
			TRY(completions(a, b, 1, len));
		}
		AGAIN(fi_recv(b->ep, b->bytes + at, len, NULL, FI_ADDR_UNSPEC, b));
		AGAIN(fi_send(a->ep, a->bytes + at, len, NULL, a->other, a));
	}
	TRY(completions(b, a, AT_TIME, len));
	TRY(completions(a, b, AT_TIME, len));
	*kib = div64_u64((u64)STREAM * 64 * NSEC_PER_SEC,
			 ktime_to_ns(ktime_sub(ktime_get(), begun)));
	return 0;
}

static int run_figures(void)
{
	u64 ns = 0, kib = 0;
	int ret = pair_open();

	if (!ret)
		ret = message(&ends[0], &ends[1], 0, 8, false);
	if (!ret)
		ret = latency(&ends[0], &ends[1], &ns);
	if (!ret)
		ret = rate(&ends[0], &ends[1], &kib);
	if (!ret)
		pr_info("kofi_ibverbs_test: %s: 8 bytes in %llu ns, 64 KiB at %llu KiB/s\n",
			provider, ns, kib);
	pair_close();
	return ret;
}

/* Connections */

/* The next event at @e, which is @kind; both make progress. Its data is of @len bytes. */
static int event(struct end *e, struct end *other, u32 kind, struct fi_info **info,
		 const char *data)
{
	unsigned long end = jiffies + WAIT_S * HZ;
	struct {
		struct fi_eq_cm_entry entry;
		char data[256];
	} got = { .entry.fid = NULL };
	ssize_t n;
	u32 what;

	do {
		n = fi_eq_read(e->eq, &what, &got, sizeof(got), 0);
		if (n == -FI_EAGAIN) {
			fi_eq_read(other->eq, &what, &got, 0, FI_PEEK);
			both_progress(e, other);
		}
	} while (n == -FI_EAGAIN && time_before(jiffies, end));
	TRY(n);
	if (info)
		*info = got.entry.info;
	if (what != kind || n < (ssize_t)(sizeof(got.entry) + strlen(data)) ||
	    memcmp(got.data, data, strlen(data)))
		return -FI_EOTHER;
	return 0;
}

/* The error of a connection that @e has asked for, with data. */
static int refused(struct end *e, struct end *other, int err, const char *data)
{
	unsigned long end = jiffies + WAIT_S * HZ;
	struct fi_eq_err_entry error = { .err = 0 };
	struct fi_eq_cm_entry entry;
	char why[64] = "";
	ssize_t n;
	u32 what;

	do {
		n = fi_eq_read(e->eq, &what, &entry, sizeof(entry), 0);
		if (n == -FI_EAGAIN)
			both_progress(e, other);
	} while (n == -FI_EAGAIN && time_before(jiffies, end));
	error.err_data = why;
	error.err_data_size = sizeof(why);
	if (n != -FI_EAVAIL || fi_eq_readerr(e->eq, &error, 0) < 0)
		return -FI_EOTHER;
	if (error.err != err || memcmp(error.err_data, data, strlen(data))) {
		pr_info("kofi_ibverbs_test: refused with %d\n", error.err);
		return -FI_EOTHER;
	}
	return 0;
}

static int ep_open(struct end *e, struct fi_info *info)
{
	TRY(fi_endpoint(e->domain, info, &e->ep, NULL));
	TRY(fi_ep_bind(e->ep, &e->eq->fid, 0));
	return fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
}

static void ep_close(struct end *e)
{
	CLOSE(e->ep);
	e->ep = NULL;
}

static int listens(struct end *server, void *name, size_t *len)
{
	TRY(fi_passive_ep(server->fabric, server->info, &server->pep, NULL));
	TRY(fi_pep_bind(server->pep, &server->eq->fid, 0));
	TRY(fi_listen(server->pep));
	return fi_getname(&server->pep->fid, name, len);
}

static int accepted(struct end *server, struct end *client, const void *name)
{
	struct fi_info *request;

	TRY(ep_open(client, client->info));
	TRY(fi_connect(client->ep, name, "hello", 5));
	TRY(event(server, client, FI_CONNREQ, &request, "hello"));
	TRY(ep_open(server, request));
	fi_freeinfo(request);
	TRY(fi_accept(server->ep, "welcome", 7));
	TRY(event(client, server, FI_CONNECTED, NULL, "welcome"));
	TRY(event(server, client, FI_CONNECTED, NULL, ""));
	TRY(message(client, server, 0, 8, false));
	TRY(message(server, client, 1, LONGEST, true));
	TRY(message(client, server, 3, LONGEST, false));
	TRY(fi_shutdown(client->ep, 0));
	TRY(event(server, client, FI_SHUTDOWN, NULL, ""));
	ep_close(client);
	ep_close(server);
	return 0;
}

static int rejected(struct end *server, struct end *client, const void *name)
{
	struct fi_info *request;

	TRY(ep_open(client, client->info));
	TRY(fi_connect(client->ep, name, "hello", 5));
	TRY(event(server, client, FI_CONNREQ, &request, "hello"));
	TRY(fi_reject(server->pep, request->handle, "no", 2));
	fi_freeinfo(request);
	TRY(refused(client, server, FI_ECONNREFUSED, "no"));
	ep_close(client);
	return 0;
}

static int unheard(struct end *server, struct end *client, const void *name)
{
	CLOSE(server->pep);
	server->pep = NULL;
	TRY(ep_open(client, client->info));
	TRY(fi_connect(client->ep, name, NULL, 0));
	TRY(refused(client, server, FI_ECONNREFUSED, ""));
	ep_close(client);
	return 0;
}

static int connections(struct end *server, struct end *client)
{
	char name[64];
	size_t len = sizeof(name);
	int i;

	TRY(end_domain(server, FI_EP_MSG));
	TRY(end_domain(client, FI_EP_MSG));
	server->bytes = memory[0];
	client->bytes = memory[1];
	TRY(listens(server, name, &len));
	for (i = 0; i < 3; i++) {
		TRY(accepted(server, client, name));
		TRY(rejected(server, client, name));
	}
	return unheard(server, client, name);
}

static int run_connections(void)
{
	int ret = pair_memory();

	if (!ret)
		ret = connections(&ends[0], &ends[1]);
	pair_close();
	return ret;
}

/* A device that is removed while messages are under way: operations end with an error, and everything can be closed. */
static int until_lost(struct end *a, struct end *b)
{
	unsigned long end = jiffies + 60 * HZ;
	int ret = 0, i;

	for (i = 0; !ret && time_before(jiffies, end); i++)
		ret = message(a, b, 0, i % 2 ? LONGEST : 100, false);
	return ret && ret != -FI_EIO && ret != -FI_EOTHER ? 0 : -FI_EOTHER;
}

static int run_lost(void)
{
	int ret = pair_open();

	if (!ret)
		ret = message(&ends[0], &ends[1], 0, LONGEST, false);
	if (!ret) {
		pr_notice("kofi_ibverbs_test: under way\n");
		ret = until_lost(&ends[0], &ends[1]);
	}
	pair_close();
	return ret;
}

static int run_set(const char *value, const struct kernel_param *param)
{
	if (sysfs_streq(value, "lengths"))
		return run_lengths();
	if (sysfs_streq(value, "figures"))
		return run_figures();
	if (sysfs_streq(value, "connections"))
		return run_connections();
	return sysfs_streq(value, "lost") ? run_lost() : -EINVAL;
}

static const struct kernel_param_ops run_ops = {
	.set = run_set,
};

module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "lengths, figures, connections or lost: runs that test");
MODULE_DESCRIPTION("Weft: a consumer of kofi_ibverbs for the tests of virtual machines");
MODULE_LICENSE("Dual BSD/GPL");
