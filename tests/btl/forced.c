/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The transport's way to libfabric (fabric/fabric.h), with a provider that wants memory registered
 * as FORCED_MR_MODE says (the bits of fi_mr(3), a number) with keys of FORCED_KEY_SIZE bytes,
 * whatever Weft's wants; that injects at most FORCED_INJECT_SIZE bytes and sends FORCED_MSG_SIZE, brings
 * FORCED_CQ_DATA_SIZE bytes of remote CQ data, and with FORCED_NO_ORDER keeps no order. What a mode requires and the
 * transport has not done ends the process with a sentence, and so does what the provider lacks.
 * Weft's provider counts addresses from the region's start; for FI_MR_VIRT_ADDR the region is all
 * addresses.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "fabric.h"
#include "forced.h"

/* What a region of a domain is, until the provider has it. */
struct forced_mr {
	struct fid_mr fid;
	struct fid *domain;
	struct fid_ep *ep;
	struct fid_mr *real;
	struct iovec range;
	uint64_t access;
	bool is_enabled, is_refreshed, is_stale;
	struct forced_mr *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct forced_mr *regions;
static uint64_t last_key;
static struct fi_ops_mr real_mr, forced_mr_ops;
static struct fi_ops_domain real_domain, forced_domain_ops;
static struct fi_ops_fabric real_fabric, forced_fabric_ops;
static struct fi_ops real_ep, forced_ep;
static struct fi_ops_rma real_rma, forced_rma;
static struct fi_ops_atomic real_atomic, forced_atomic;
static struct fi_ops_msg real_msg, forced_msg;

static void __attribute__((noreturn)) wrong(const char *what)
{
	fprintf(stderr, "forced: %s\n", what);
	abort();
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* The mode, with what the words of before 1.5 mean written out. */
static uint64_t mode(void)
{
	uint64_t bits = setting("FORCED_MR_MODE", 0);

	if (bits == FI_MR_BASIC)
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	return bits == FI_MR_SCALABLE ? 0 : bits;
}

static uint64_t keys(void)
{
	uint64_t bytes = setting("FORCED_KEY_SIZE", 8);

	return bytes < 8 ? 1ULL << 8 * bytes : 0;
}

static bool has_pages(const struct iovec *range)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)range->iov_base & ~(page - 1);
	unsigned char there;

	for (; at < (uintptr_t)range->iov_base + range->iov_len; at += page)
		if (mincore((void *)at, page, &there) || !(there & 1))
			return false;
	return true;
}

/* Gives the region to the provider, once all that its mode requires has been done. */
static int activate(struct forced_mr *mr)
{
	bool all = mode() & FI_MR_VIRT_ADDR;
	int ret;

	if (!mr->is_enabled || (mode() & FI_MR_MMU_NOTIFY && !mr->is_refreshed))
		return 0;
	do {
		if (mode() & FI_MR_PROV_KEY)
			mr->fid.key = __atomic_add_fetch(&last_key, 1, __ATOMIC_RELAXED) %
				      (keys() ? keys() : UINT64_MAX);
		ret = real_mr.reg(mr->domain, all ? NULL : mr->range.iov_base,
				  all ? SIZE_MAX : mr->range.iov_len, mr->access, 0,
				  mr->fid.key, 0, &mr->real, NULL);
	} while (ret == -FI_ENOKEY && mode() & FI_MR_PROV_KEY);
	return ret;
}

static int mr_close(struct fid *fid)
{
	struct forced_mr *mr = (struct forced_mr *)fid, **at = &regions;
	int ret = mr->real ? fi_close(&mr->real->fid) : 0;

	if (ret)
		return ret;
	pthread_mutex_lock(&lock);
	while (*at != mr)
		at = &(*at)->next;
	*at = mr->next;
	pthread_mutex_unlock(&lock);
	free(mr);
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct forced_mr *mr = (struct forced_mr *)fid;

	if (mr->is_enabled)
		wrong("a region is bound after it was enabled");
	mr->ep = (struct fid_ep *)target;
	return 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct forced_mr *mr = (struct forced_mr *)fid;
	const struct fi_mr_modify *modify = arg;

	switch (command) {
	case FI_ENABLE:
		if (mode() & FI_MR_ENDPOINT && !mr->ep)
			wrong("a region is enabled and of no endpoint");
		mr->is_enabled = true;
		return activate(mr);
	case FI_REFRESH:
		if (modify->attr.mr_iov[0].iov_base != mr->range.iov_base ||
		    modify->attr.mr_iov[0].iov_len != mr->range.iov_len)
			wrong("not all of a region is refreshed");
		mr->is_refreshed = true;
		return activate(mr);
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(mr_fid_ops), .close = mr_close, .bind = mr_bind, .control = mr_control
};

static int reg(struct fid *domain, const void *buf, size_t len, uint64_t access, uint64_t offset,
	       uint64_t requested_key, uint64_t flags, struct fid_mr **out, void *context)
{
	struct forced_mr *mr = calloc(1, sizeof(*mr));
	int ret;

	mr->range = (struct iovec){ (void *)(uintptr_t)buf, len };
	if (mode() & FI_MR_ALLOCATED && !has_pages(&mr->range))
		wrong("memory without pages is registered");
	if (!(mode() & FI_MR_PROV_KEY) && keys() && requested_key >= keys())
		wrong("a key is longer than keys are");
	if (mode() & FI_MR_PROV_KEY && requested_key)
		wrong("a key is requested of a provider that chooses them");
	mr->domain = domain;
	mr->access = access;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->fid.key = requested_key;
	mr->fid.mem_desc = mr;
	mr->is_enabled = !(flags & FI_RMA_EVENT) && !(mode() & FI_MR_ENDPOINT);
	ret = activate(mr);
	if (ret) {
		free(mr);
		return ret;
	}
	pthread_mutex_lock(&lock);
	mr->next = regions;
	regions = mr;
	pthread_mutex_unlock(&lock);
	*out = &mr->fid;
	return 0;
}

static bool is_at(const struct forced_mr *mr, const void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)mr->range.iov_base, start = (uintptr_t)addr;

	return at < start + len && start < at + mr->range.iov_len;
}

size_t forced_region_cnt(const void *addr, size_t len)
{
	size_t cnt = 0;

	pthread_mutex_lock(&lock);
	for (const struct forced_mr *mr = regions; mr; mr = mr->next)
		cnt += is_at(mr, addr, len);
	pthread_mutex_unlock(&lock);
	return cnt;
}

void forced_unmapped(const void *addr, size_t len)
{
	pthread_mutex_lock(&lock);
	for (struct forced_mr *mr = regions; mr; mr = mr->next)
		mr->is_stale |= is_at(mr, addr, len);
	pthread_mutex_unlock(&lock);
}

/* The local side of an operation: it ends the process if the mode wants more than there is. */
static void check_local(struct fid_ep *ep, const void *buf, size_t len, const void *desc)
{
	uintptr_t at = (uintptr_t)buf;
	struct forced_mr *mr;

	if (!(mode() & FI_MR_LOCAL))
		return;
	pthread_mutex_lock(&lock);
	for (mr = regions; mr && mr != desc;)
		mr = mr->next;
	pthread_mutex_unlock(&lock);
	if (!mr)
		wrong("local memory has no descriptor, or not one of an open region");
	if (mr->is_stale)
		wrong("a descriptor is of pages that were there before");
	if (!mr->real)
		wrong("a descriptor is of a region that is not enabled");
	if (at < (uintptr_t)mr->range.iov_base ||
	    at + len > (uintptr_t)mr->range.iov_base + mr->range.iov_len)
		wrong("a descriptor is of other memory");
	if (mode() & FI_MR_ENDPOINT && mr->ep != ep)
		wrong("a descriptor is of another endpoint");
}

static ssize_t forced_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			   uint64_t addr, uint64_t key, void *context)
{
	check_local(ep, buf, len, desc);
	return real_rma.read(ep, buf, len, NULL, src, addr, key, context);
}

static ssize_t forced_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	check_local(ep, buf, len, desc);
	return real_rma.write(ep, buf, len, NULL, dest, addr, key, context);
}

static void check_data(void)
{
	if (setting("FORCED_CQ_DATA_SIZE", 8) < 4)
		wrong("there is no remote CQ data of 4 bytes");
}

static void check_inject(size_t len)
{
	if (len > setting("FORCED_INJECT_SIZE", SIZE_MAX))
		wrong("more is injected than can be");
}

static ssize_t forced_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
				void *context)
{
	check_data();
	check_local(ep, buf, len, desc);
	return real_rma.writedata(ep, buf, len, NULL, data, dest, addr, key, context);
}

static ssize_t forced_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fi_msg_rma plain = *msg;

	if (flags & FI_REMOTE_CQ_DATA)
		check_data();
	if (flags & FI_INJECT)
		check_inject(msg->iov_count ? msg->msg_iov[0].iov_len : 0);
	for (size_t i = 0; i < msg->iov_count && !(flags & FI_INJECT); i++)
		check_local(ep, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len,
			    msg->desc ? msg->desc[i] : NULL);
	plain.desc = NULL;
	return real_rma.writemsg(ep, &plain, flags);
}

static ssize_t forced_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   fi_addr_t dest, void *context)
{
	check_local(ep, buf, len, desc);
	return real_msg.send(ep, buf, len, NULL, dest, context);
}

static ssize_t forced_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			   void *context)
{
	check_local(ep, buf, len, desc);
	return real_msg.recv(ep, buf, len, NULL, src, context);
}

static ssize_t forced_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest)
{
	check_inject(len);
	return real_msg.inject(ep, buf, len, dest);
}

static ssize_t forced_atomic_write(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				   fi_addr_t dest, uint64_t addr, uint64_t key,
				   enum fi_datatype type, enum fi_op op, void *context)
{
	check_local(ep, buf, cnt, desc);
	return real_atomic.write(ep, buf, cnt, NULL, dest, addr, key, type, op, context);
}

static ssize_t forced_fetch(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			    void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
			    uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	check_local(ep, buf, cnt, desc);
	check_local(ep, result, cnt, result_desc);
	return real_atomic.readwrite(ep, buf, cnt, NULL, result, NULL, dest, addr, key, type,
				     op, context);
}

static ssize_t forced_compare(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			      const void *compare, void *compare_desc, void *result,
			      void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
			      enum fi_datatype type, enum fi_op op, void *context)
{
	check_local(ep, buf, cnt, desc);
	check_local(ep, compare, cnt, compare_desc);
	check_local(ep, result, cnt, result_desc);
	return real_atomic.compwrite(ep, buf, cnt, NULL, compare, NULL, result, NULL, dest,
				     addr, key, type, op, context);
}

/* What the provider is opened with. All objects of a kind have its calls alike, and the first are opened alone. */
static struct fi_info *plain_info(const struct fi_info *info)
{
	struct fi_info *plain = fi_dupinfo(info);

	if (!plain)
		wrong("no memory");
	plain->domain_attr->mr_mode = 0;
	return plain;
}

/* Puts our calls before the provider's. */
static void watch(struct fid_ep *ep)
{
	if (!real_rma.size) {
		real_rma = forced_rma = *ep->rma;
		forced_rma.read = forced_read;
		forced_rma.write = forced_write;
		forced_rma.writedata = forced_writedata;
		forced_rma.writemsg = forced_writemsg;
		real_msg = forced_msg = *ep->msg;
		forced_msg.send = forced_send;
		forced_msg.recv = forced_recv;
		forced_msg.inject = forced_inject;
		real_atomic = forced_atomic = *ep->atomic;
		forced_atomic.write = forced_atomic_write;
		forced_atomic.readwrite = forced_fetch;
		forced_atomic.compwrite = forced_compare;
	}
	ep->msg = &forced_msg;
	ep->rma = &forced_rma;
	ep->atomic = &forced_atomic;
}

/* The provider chooses an endpoint's calls when it is enabled. */
static int ep_control(struct fid *fid, int command, void *arg)
{
	int ret = real_ep.control(fid, command, arg);

	if (!ret && command == FI_ENABLE)
		watch((struct fid_ep *)fid);
	return ret;
}

static int endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		    void *context)
{
	struct fi_info *plain = plain_info(info);
	int ret = real_domain.endpoint(domain, plain, ep, context);

	fi_freeinfo(plain);
	if (ret)
		return ret;
	if (!real_ep.size) {
		real_ep = forced_ep = *(*ep)->fid.ops;
		forced_ep.control = ep_control;
	}
	(*ep)->fid.ops = &forced_ep;
	return 0;
}

static int open_domain(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context)
{
	struct fi_info *plain = plain_info(info);
	int ret = real_fabric.domain(fabric, plain, domain, context);

	fi_freeinfo(plain);
	if (ret)
		return ret;
	if (!real_mr.size) {
		real_mr = forced_mr_ops = *(*domain)->mr;
		forced_mr_ops.reg = reg;
		real_domain = forced_domain_ops = *(*domain)->ops;
		forced_domain_ops.endpoint = endpoint;
	}
	(*domain)->mr = &forced_mr_ops;
	(*domain)->ops = &forced_domain_ops;
	return 0;
}

/* What the provider says of itself beside the mode */
static void force_sizes(struct fi_info *info)
{
	size_t inject = setting("FORCED_INJECT_SIZE", SIZE_MAX);
	size_t data = setting("FORCED_CQ_DATA_SIZE", 8);

	if (info->tx_attr->inject_size > inject)
		info->tx_attr->inject_size = inject;
	info->ep_attr->max_msg_size = setting("FORCED_MSG_SIZE", info->ep_attr->max_msg_size);
	if (info->domain_attr->cq_data_size > data)
		info->domain_attr->cq_data_size = data;
	if (!setting("FORCED_NO_ORDER", 0))
		return;
	info->tx_attr->msg_order = info->rx_attr->msg_order = 0;
	info->ep_attr->max_order_raw_size = 0;
	info->ep_attr->max_order_war_size = 0;
	info->ep_attr->max_order_waw_size = 0;
}

int fabric_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **list)
{
	int ret = fi_getinfo(version, node, service, flags, hints, list);

	for (struct fi_info *info = ret ? NULL : *list; info; info = info->next) {
		if (info->domain_attr->mr_mode)
			wrong("Weft's provider wants a mode");
		info->domain_attr->mr_mode = (int)setting("FORCED_MR_MODE", 0);
		info->domain_attr->mr_key_size = setting("FORCED_KEY_SIZE", 8);
		force_sizes(info);
	}
	return ret;
}

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric)
{
	int ret = fi_fabric(attr, fabric, NULL);

	if (ret)
		return ret;
	real_fabric = forced_fabric_ops = *(*fabric)->ops;
	forced_fabric_ops.domain = open_domain;
	(*fabric)->ops = &forced_fabric_ops;
	return 0;
}
