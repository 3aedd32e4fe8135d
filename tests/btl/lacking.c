/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The transport's way to libfabric (fabric/fabric.h), with a provider that lacks what LACKING names,
 * whatever Weft's has: atomics, rma (and so atomics), delivery (completions that say that an
 * operation was carried out), or bitwise: the atomic FI_BXOR on 32 bits alone. An operation that
 * the provider lacks ends the process with a sentence.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "fabric.h"

static struct fi_ops_fabric real_fabric, lacking_fabric;
static struct fi_ops_domain real_domain, lacking_domain;

static bool lacks(const char *what)
{
	const char *text = getenv("LACKING");

	return text && !strcmp(text, what);
}

static uint64_t lacking_caps(void)
{
	if (lacks("rma"))
		return FI_RMA | FI_ATOMIC;
	return lacks("atomics") ? FI_ATOMIC : 0;
}

static int query(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
		 struct fi_atomic_attr *attr, uint64_t flags)
{
	if (lacks("bitwise") && op == FI_BXOR && type == FI_UINT32)
		return -FI_EOPNOTSUPP;
	return real_domain.query_atomic(domain, type, op, attr, flags);
}

static int open_domain(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context)
{
	int ret;

	if (info->caps & lacking_caps()) {
		fprintf(stderr, "lacking: a domain is opened with what the provider lacks\n");
		abort();
	}
	ret = real_fabric.domain(fabric, info, domain, context);
	if (ret)
		return ret;
	if (!real_domain.size) {
		real_domain = lacking_domain = *(*domain)->ops;
		lacking_domain.query_atomic = query;
	}
	(*domain)->ops = &lacking_domain;
	return 0;
}

int fabric_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **list)
{
	if (hints->caps & lacking_caps() ||
	    (lacks("delivery") && hints->tx_attr->op_flags & FI_DELIVERY_COMPLETE))
		return -FI_ENODATA;
	return fi_getinfo(version, node, service, flags, hints, list);
}

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric)
{
	int ret = fi_fabric(attr, fabric, NULL);

	if (ret)
		return ret;
	real_fabric = lacking_fabric = *(*fabric)->ops;
	lacking_fabric.domain = open_domain;
	(*fabric)->ops = &lacking_fabric;
	return 0;
}
