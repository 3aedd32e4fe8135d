/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opening and closing an endpoint; endpoint.h has the contract. Called by
 * channel.c for measurements and by 'weft info --links'.
 */
#include "endpoint.h"
#include "fabric.h"

#include <err.h>
#include <string.h>

#include <rdma/fi_errno.h>

int fabric_complain(const char *what, int rc)
{
	warnx("%s: %s", what, fi_strerror(-rc));
	return rc;
}

void fabric_close(struct fid *fid, const char *what)
{
	int rc = fi_close(fid);

	if (rc)
		fabric_complain(what, rc);
}

int endpoint_open_queue(struct endpoint *end, struct fi_info *info, enum fi_wait_obj wait)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait };
	int rc;

	rc = fabric_open(info->fabric_attr, &end->fabric);
	if (rc)
		return fabric_complain("fi_fabric", rc);
	rc = fi_domain(end->fabric, info, &end->domain, NULL);
	if (rc)
		return fabric_complain("fi_domain", rc);
	cq_attr.size = info->tx_attr->size + info->rx_attr->size;
	rc = fi_cq_open(end->domain, &cq_attr, &end->cq, NULL);
	return rc ? fabric_complain("fi_cq_open", rc) : 0;
}

static int open_ep(struct endpoint *end, struct fi_info *info)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 1 };
	int rc;

	if (info->domain_attr->av_type != FI_AV_UNSPEC)
		av_attr.type = info->domain_attr->av_type;
	rc = fi_av_open(end->domain, &av_attr, &end->av, NULL);
	if (rc)
		return fabric_complain("fi_av_open", rc);
	rc = fi_endpoint(end->domain, info, &end->ep, NULL);
	return rc ? fabric_complain("fi_endpoint", rc) : 0;
}

static int enable(struct endpoint *end)
{
	int rc;

	rc = fi_ep_bind(end->ep, &end->av->fid, 0);
	if (rc)
		return fabric_complain("fi_ep_bind of the address vector", rc);
	rc = fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV);
	if (rc)
		return fabric_complain("fi_ep_bind of the completion queue", rc);
	rc = fi_enable(end->ep);
	return rc ? fabric_complain("fi_enable", rc) : 0;
}

int endpoint_open(struct endpoint *end, struct fi_info *info, enum fi_wait_obj wait)
{
	int rc;

	memset(end, 0, sizeof(*end));
	rc = endpoint_open_queue(end, info, wait);
	if (!rc)
		rc = open_ep(end, info);
	if (!rc)
		rc = enable(end);
	if (rc)
		endpoint_close(end);
	return rc;
}

void endpoint_close(struct endpoint *end)
{
	if (end->ep)
		fabric_close(&end->ep->fid, "fi_close of the endpoint");
	if (end->cq)
		fabric_close(&end->cq->fid, "fi_close of the completion queue");
	if (end->eq)
		fabric_close(&end->eq->fid, "fi_close of the event queue");
	if (end->av)
		fabric_close(&end->av->fid, "fi_close of the address vector");
	if (end->domain)
		fabric_close(&end->domain->fid, "fi_close of the domain");
	if (end->fabric)
		fabric_close(&end->fabric->fid, "fi_close of the fabric");
	memset(end, 0, sizeof(*end));
}
