/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An endpoint of a domain of its own; end.h has the contract. */
#define _GNU_SOURCE
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "end.h"

void end_open(struct end *e, const char *provider, uint32_t addr_format)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo(), *info;

	CHECK(hints);
	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->addr_format = addr_format;
	CHECK(!fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	CHECK(!fi_fabric(info->fabric_attr, &e->fabric, NULL));
	CHECK(!fi_domain(e->fabric, info, &e->domain, NULL));
	CHECK(!fi_av_open(e->domain, &av_attr, &e->av, NULL));
	CHECK(!fi_cq_open(e->domain, &cq_attr, &e->cq, NULL));
	CHECK(!fi_endpoint(e->domain, info, &e->ep, NULL));
	CHECK(!fi_ep_bind(e->ep, &e->av->fid, 0));
	CHECK(!fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(!fi_enable(e->ep));
	fi_freeinfo(info);
}

void end_close(struct end *e)
{
	CHECK(!fi_close(&e->ep->fid));
	CHECK(!fi_close(&e->cq->fid));
	CHECK(!fi_close(&e->av->fid));
	CHECK(!fi_close(&e->domain->fid));
	CHECK(!fi_close(&e->fabric->fid));
}

fi_addr_t end_insert(struct end *e, struct end *other)
{
	char name[128];
	size_t len = sizeof(name);
	fi_addr_t addr;

	CHECK(!fi_getname(&other->ep->fid, name, &len));
	CHECK(fi_av_insert(e->av, name, 1, &addr, 0, NULL) == 1);
	return addr;
}
