/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints over the fake wires; see fake_ends.h. Called by the tests of the engine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include "fake_ends.h"
#include "progress.h"
#include "routed.h"
#include "virtual.h"
#include <cmocka.h>

static struct fi_provider provider = {
	.version = FI_VERSION(1, 0),
	.fi_version = FI_VERSION(1, 9),
	.name = "fake",
};

static int addr_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		     size_t why_len)
{
	if (!addr_valid(addr)) {
		snprintf(why, why_len, "is no address of a fake endpoint");
		return -FI_EINVAL;
	}
	memcpy(out, addr, sizeof(*out));
	return 0;
}

static size_t addr_write(const struct weft_addr *addr, void *out)
{
	memcpy(out, addr, sizeof(*addr));
	return sizeof(*addr);
}

static size_t addr_str(const void *addr, size_t addr_len, char *buf, size_t len)
{
	struct weft_addr a;

	memcpy(&a, addr, sizeof(a));
	return (size_t)snprintf(buf, len, "fake://%u", a.port) + 1;
}

#define FAMILY(...)                                                                            \
	{                                                                                      \
		.provider = &provider, .wires = { __VA_ARGS__ },                               \
		.addr_len = sizeof(struct weft_addr), .addr_read = addr_read,                  \
		.addr_write = addr_write, .addr_str = addr_str, .msg = &engine_routed_msg_ops, \
		.tagged = &engine_routed_tagged_ops,                                           \
	}

static const struct engine_family families[FAKE_FAMILIES] = {
	[FAKE_FAMILY_A] = FAMILY("fake-a"),
	[FAKE_FAMILY_B] = FAMILY("fake-b"),
	[FAKE_FAMILY_AB] = FAMILY("fake-a", "fake-b"),
};

static struct fake_end *opened[FAKE_ENDS_MAX]; /* in that order */
static uint32_t opened_cnt;

void fake_ends_begin(uint64_t seed)
{
	static bool defined;
	struct fake_knobs knobs;

	if (!defined)
		engine_define_params(&provider);
	defined = true;
	virtual_begin(seed);
	fake_seed(seed);
	fake_host(1);
	fake_wires_register();
	fake_watch = (struct fake_watch){ 0 };
	opened_cnt = 0;
	fake_knobs_default(&knobs);
	fake_knobs_set(FAKE_A, &knobs);
	fake_knobs_set(FAKE_B, &knobs);
}

static void cqs_open(struct fake_end *end, const struct fake_end_attr *attr)
{
	struct fi_cq_attr cq_attr = { .format = attr->format,
				      .wait_obj = attr->wait ? attr->wait : FI_WAIT_UNSPEC };
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };

	if (attr->wait == FI_WAIT_SET) /* fi_wait_open() is deprecated */
		assert_int_equal(
			end->fabric->ops->wait_open(end->fabric, &wait_attr, &end->set), 0);
	cq_attr.wait_set = end->set;
	assert_int_equal(fi_cq_open(end->domain, &cq_attr, &end->tx_cq, NULL), 0);
	end->rx_cq = end->tx_cq;
	if (!attr->one_cq)
		assert_int_equal(fi_cq_open(end->domain, &cq_attr, &end->rx_cq, NULL), 0);
}

static void domain_open(struct fake_end *end, const struct fake_end_attr *attr,
			struct fi_info *info)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	assert_int_equal(engine_fabric_open(&families[attr->family], info->fabric_attr,
					    &end->fabric, NULL),
			 0);
	assert_int_equal(fi_domain(end->fabric, info, &end->domain, NULL), 0);
	assert_int_equal(fi_av_open(end->domain, &av_attr, &end->av, NULL), 0);
	cqs_open(end, attr);
}

static void bind_cqs(struct fake_end *end, const struct fake_end_attr *attr)
{
	if (attr->one_cq) {
		assert_int_equal(fi_ep_bind(end->ep, &end->tx_cq->fid,
					    FI_TRANSMIT | FI_RECV | attr->bind_flags),
				 0);
		return;
	}
	assert_int_equal(fi_ep_bind(end->ep, &end->tx_cq->fid, FI_TRANSMIT | attr->bind_flags),
			 0);
	assert_int_equal(fi_ep_bind(end->ep, &end->rx_cq->fid, FI_RECV | attr->bind_flags), 0);
}

static void bind_cntrs(struct fake_end *end)
{
	static const uint64_t events[FAKE_CNTRS] = {
		[FAKE_CNTR_READ] = FI_READ,
		[FAKE_CNTR_WRITE] = FI_WRITE,
		[FAKE_CNTR_REMOTE_READ] = FI_REMOTE_READ,
		[FAKE_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
	};
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE };

	for (int i = 0; i < FAKE_CNTRS; i++) {
		assert_int_equal(fi_cntr_open(end->domain, &attr, &end->cntrs[i], NULL), 0);
		assert_int_equal(fi_ep_bind(end->ep, &end->cntrs[i]->fid, events[i]), 0);
	}
}

static void opened_forget(const struct fake_end *end)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < opened_cnt; i++)
		if (opened[i] != end)
			opened[kept++] = opened[i];
	opened_cnt = kept;
}

void fake_end_open(struct fake_end *end, const struct fake_end_attr *attr, struct fake_end *with)
{
	size_t len = sizeof(end->name);
	struct fi_info *info = fi_allocinfo();
	char budget[32];

	assert_non_null(info);
	info->caps = attr->caps;
	info->fabric_attr->api_version = FI_VERSION(2, 0);
	info->domain_attr->threading = attr->threading;
	info->domain_attr->data_progress = attr->progress;
	info->ep_attr->type = FI_EP_RDM;
	info->tx_attr->size = attr->tx_size;
	info->tx_attr->op_flags = attr->tx_op_flags;
	info->rx_attr->op_flags = attr->rx_op_flags;
	*end = (struct fake_end){ .shares = with != NULL };
	opened_forget(end); /* its memory was another one's before */
	assert_true(opened_cnt < FAKE_ENDS_MAX);
	opened[opened_cnt++] = end;
	if (with) {
		end->domain = with->domain;
		end->av = with->av;
		end->tx_cq = with->tx_cq;
		end->rx_cq = with->rx_cq;
	} else {
		domain_open(end, attr, info);
	}
	snprintf(budget, sizeof(budget), "%zu", attr->budget);
	setenv("FI_FAKE_RX_BUDGET", budget, 1);
	assert_int_equal(fi_endpoint(end->domain, info, &end->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(end->ep, &end->av->fid, 0), 0);
	bind_cqs(end, attr);
	if (attr->count)
		bind_cntrs(end);
	assert_int_equal(fi_enable(end->ep), 0);
	assert_int_equal(fi_ep_alias(end->ep, &end->rma,
				     FI_TRANSMIT | FI_DELIVERY_COMPLETE | attr->tx_op_flags),
			 0);
	assert_int_equal(fi_getname(&end->ep->fid, &end->name, &len), 0);
	fi_freeinfo(info);
}

void fake_end_stop(struct fake_end *end)
{
	if (end->rma)
		assert_int_equal(fi_close(&end->rma->fid), 0);
	assert_int_equal(fi_close(&end->ep->fid), 0);
	for (int i = 0; i < FAKE_CNTRS && end->cntrs[i]; i++)
		assert_int_equal(fi_close(&end->cntrs[i]->fid), 0);
	end->ep = NULL;
}

void fake_end_close(struct fake_end *end)
{
	opened_forget(end);
	if (end->ep)
		fake_end_stop(end);
	if (!end->shares && end->fabric) {
		assert_int_equal(fi_close(&end->tx_cq->fid), 0);
		if (end->rx_cq != end->tx_cq)
			assert_int_equal(fi_close(&end->rx_cq->fid), 0);
		if (end->set)
			assert_int_equal(fi_close(&end->set->fid), 0);
		assert_int_equal(fi_close(&end->av->fid), 0);
		assert_int_equal(fi_close(&end->domain->fid), 0);
		assert_int_equal(fi_close(&end->fabric->fid), 0);
	}
	*end = (struct fake_end){ 0 };
}

fi_addr_t fake_end_insert(struct fake_end *end, const struct weft_addr *name)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	assert_int_equal(fi_av_insert(end->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

struct engine_peer *fake_end_peer(const struct fake_end *end, const struct weft_addr *name)
{
	struct engine_ep *ep = fake_end_engine(end);
	struct weft_addr service = *name;
	struct engine_peer *peer;

	addr_to_service(&service);
	list_for_each_entry(peer, &ep->all, all) {
		if (addr_same(&peer->address, name) ||
		    (peer->address.kind == ADDR_SERVICE && addr_same(&peer->address, &service)))
			return peer;
	}
	return NULL;
}

void fake_end_progress(struct fake_end *end)
{
	engine_domain_round(fake_end_engine(end)->domain);
}

void fake_ends_go(uint32_t rounds)
{
	while (rounds--)
		for (uint32_t i = 0; i < opened_cnt; i++)
			if (opened[i]->ep)
				fake_end_progress(opened[i]);
}

ssize_t fake_ends_next(struct fid_cq *cq, uint32_t rounds, struct fi_cq_tagged_entry *entry,
		       fi_addr_t *source, struct fi_cq_err_entry *error)
{
	ssize_t ret;

	do {
		ret = source ? fi_cq_readfrom(cq, entry, 1, source) : fi_cq_read(cq, entry, 1);
		if (ret == -FI_EAGAIN)
			fake_ends_go(1);
	} while (ret == -FI_EAGAIN && rounds--);
	if (ret == -FI_EAVAIL) {
		*error = (struct fi_cq_err_entry){ 0 };
		assert_int_equal(fi_cq_readerr(cq, error, 0), 1);
	}
	return ret;
}

void fake_end_rests(const struct fake_end *end)
{
	const struct engine_ep *ep = fake_end_engine(end);

	assert_int_equal(ep->access_cnt, 0);
	assert_int_equal(ep->queued_cnt, 0);
	assert_int_equal(ep->tx_pool.used, 0);
}

void fake_ends_close(void)
{
	while (opened_cnt)
		fake_end_close(opened[opened_cnt - 1]);
	assert_int_equal(fake_conn_cnt(), 0);
}
