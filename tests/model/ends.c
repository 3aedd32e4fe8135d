/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoints of one process over the real library. Called by the test's threads. */
#include <time.h>
#include "ends.h"

#define ADDR_MAX 128

double end_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((no_sanitize("thread"))) bool end_holds(const void *at, const void *bytes,
						      size_t len)
{
	const uint8_t *is = at, *expected = bytes;
	size_t i = 0;

	while (i < len && __atomic_load_n(&is[i], __ATOMIC_ACQUIRE) == expected[i])
		i++;
	return i == len;
}

__attribute__((no_sanitize("thread"))) void end_put(void *at, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;
	uint8_t *to = at;

	for (size_t i = 0; i < len; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
}

struct fi_info *end_info(const struct end_attr *attr)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	enum fi_progress progress = attr->progress;

	if (progress == FI_PROGRESS_UNSPEC && !attr->any_progress)
		progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup(attr->provider);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | attr->caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = attr->threading;
	hints->domain_attr->data_progress = progress;
	hints->domain_attr->control_progress = progress;
	if (fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static void open_queues(struct end *e, const struct end_attr *attr)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED,
				      .wait_obj = attr->cq_wait,
				      .wait_cond = attr->cond,
				      .wait_set = attr->wait_set };
	struct fi_cntr_attr cntr_attr = { .wait_obj = attr->cntr_wait,
					  .wait_set = attr->wait_set };

	if (!attr->no_cq) {
		assert_int_equal(fi_cq_open(e->domain, &cq_attr, &e->cq, e), 0);
		assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	}
	if (!attr->no_cntr) {
		assert_int_equal(fi_cntr_open(e->domain, &cntr_attr, &e->tx, &e->tx), 0);
		assert_int_equal(fi_cntr_open(e->domain, &cntr_attr, &e->rx, &e->rx), 0);
		assert_int_equal(fi_ep_bind(e->ep, &e->tx->fid, FI_SEND), 0);
		assert_int_equal(fi_ep_bind(e->ep, &e->rx->fid, FI_RECV), 0);
	}
}

void end_open_in(struct end *e, const struct end_attr *attr, struct fid_fabric *fabric)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	*e = (struct end){ .info = end_info(attr) };
	assert_non_null(e->info);
	if (!fabric) {
		assert_int_equal(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), 0);
		fabric = e->fabric;
	}
	assert_int_equal(fi_domain(fabric, e->info, &e->domain, NULL), 0);
	assert_int_equal(fi_av_open(e->domain, &av_attr, &e->av, NULL), 0);
	assert_int_equal(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	open_queues(e, attr);
	assert_int_equal(fi_enable(e->ep), 0);
	e->rma = NULL;
	if (e->info->caps & (FI_RMA | FI_ATOMIC))
		assert_int_equal(
			fi_ep_alias(e->ep, &e->rma, FI_TRANSMIT | FI_DELIVERY_COMPLETE), 0);
}

void end_open(struct end *e, const struct end_attr *attr)
{
	end_open_in(e, attr, NULL);
}

void end_close(struct end *e)
{
	if (e->rma)
		assert_int_equal(fi_close(&e->rma->fid), 0);
	assert_int_equal(fi_close(&e->ep->fid), 0);
	if (e->cq)
		assert_int_equal(fi_close(&e->cq->fid), 0);
	if (e->tx) {
		assert_int_equal(fi_close(&e->tx->fid), 0);
		assert_int_equal(fi_close(&e->rx->fid), 0);
	}
	assert_int_equal(fi_close(&e->av->fid), 0);
	assert_int_equal(fi_close(&e->domain->fid), 0);
	if (e->fabric)
		assert_int_equal(fi_close(&e->fabric->fid), 0);
	fi_freeinfo(e->info);
}

fi_addr_t end_knows(struct end *e, struct end *other)
{
	char name[ADDR_MAX];
	size_t len = sizeof(name);
	fi_addr_t addr;

	assert_int_equal(fi_getname(&other->ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(e->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}
