/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libfabric with failures; hooks.h. All objects of a kind have their calls alike, and the first are opened alone. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "fabric.h"
#include "hooks.h"

/* Addresses of objects that were ever open, which are used again and again; a power of two. */
#define OBJECTS 65536u
#define BROKEN	256

/* The device of what is withheld; none has that number. */
#define WITHHELD 31

struct hooks hooks = { .devices = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Which device an object is of, and the queue of an endpoint. */
static struct object {
	const void *object;
	struct fid_cq *cq;
	uint32_t device;
} objects[OBJECTS];

/* What has begun and is to fail: read by its queue. */
static struct broken {
	struct fid_cq *cq;
	void *context;
	uint32_t device;
} broken[BROKEN];

static struct fi_ops_fabric real_fabric, our_fabric;
static struct fi_ops_domain real_domain, our_domain;
static struct fi_ops_mr real_mr, our_mr;
static struct fi_ops_av real_av, our_av;
static struct fi_ops_cq real_cq, our_cq;
static struct fi_ops real_ep, our_ep;
static struct fi_ops_cm real_cm, our_cm;
static struct fi_ops_ep real_calls, our_calls;
static struct fi_ops_rma real_rma, our_rma;
static struct fi_ops_atomic real_atomic, our_atomic;
static struct fi_ops_msg real_msg, our_msg;

/* Counts a call, if it is not one of a thread of the transport's. Returns whether it is to fail. */
static bool fails(const char *name)
{
	if (getpid() != gettid())
		return false;
	if (__atomic_add_fetch(&hooks.calls, 1, __ATOMIC_SEQ_CST) != hooks.fail_at)
		return false;
	hooks.failed = name;
	return true;
}

/* Finds an object, or a free place for it. The lock is held. */
static struct object *object_of(const void *object)
{
	uintptr_t at = (uintptr_t)object >> 4;
	struct object *o;

	for (uint32_t i = 0; i < OBJECTS; i++) {
		o = &objects[(at + i) % OBJECTS];
		if (!o->object || o->object == object)
			return o;
	}
	fprintf(stderr, "hooks: too many objects\n");
	abort();
}

static void object_add(const void *object, uint32_t device)
{
	pthread_mutex_lock(&lock);
	*object_of(object) = (struct object){ object, NULL, device };
	pthread_mutex_unlock(&lock);
}

static struct object object_get(const void *object)
{
	struct object found;

	pthread_mutex_lock(&lock);
	found = *object_of(object);
	pthread_mutex_unlock(&lock);
	return found;
}

/* Returns 1: the transfer begins; 0: it has begun, and fails later; or -FI_E*. */
static int transfer(const struct fid_ep *ep, void *context)
{
	struct object o = object_get(ep);

	if (hooks.refuses & 1u << o.device)
		return -FI_EHOSTUNREACH;
	if (!((hooks.breaks | hooks.holds) & 1u << o.device)) {
		hooks.used[o.device]++;
		return 1;
	}
	for (size_t i = 0; i < BROKEN; i++)
		if (!broken[i].cq) {
			broken[i] = (struct broken){ o.cq, context, o.device };
			return 0;
		}
	return -FI_EAGAIN;
}

static struct broken *broken_of(const struct fid_cq *cq)
{
	uint32_t holds = hooks.holds | 1u << WITHHELD;

	for (size_t i = 0; i < BROKEN; i++)
		if (broken[i].cq == cq && !(holds & 1u << broken[i].device))
			return &broken[i];
	return NULL;
}

static ssize_t hook_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			 uint64_t addr, uint64_t key, void *context)
{
	int ret = fails("fi_read") ? hooks.error : transfer(ep, context);

	return ret == 1 ? real_rma.read(ep, buf, len, desc, src, addr, key, context) : ret;
}

static ssize_t hook_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	int ret = fails("fi_write") ? hooks.error : transfer(ep, context);

	return ret == 1 ? real_rma.write(ep, buf, len, desc, dest, addr, key, context) : ret;
}

static ssize_t hook_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	int ret = fails("fi_writemsg") ? hooks.error : transfer(ep, msg->context);

	return ret == 1 ? real_rma.writemsg(ep, msg, flags) : ret;
}

static ssize_t hook_atomic(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			   fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
			   enum fi_op op, void *context)
{
	return fails("fi_atomic") ? hooks.error
				  : real_atomic.write(ep, buf, cnt, desc, dest, addr, key, type,
						      op, context);
}

static ssize_t hook_fetch(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			  void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
			  uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	return fails("fi_fetch_atomic")
		       ? hooks.error
		       : real_atomic.readwrite(ep, buf, cnt, desc, result, result_desc, dest,
					       addr, key, type, op, context);
}

/* What is sent on a thread of the transport's is an answer: btl/request.h. Returns 0, or what the call returns. */
static int refuses_answer(const void *buf)
{
	const unsigned char *bytes = buf;
	int ret = __atomic_load_n(&hooks.answers, __ATOMIC_SEQ_CST);

	if (getpid() == gettid())
		return 0;
	if (__atomic_load_n(&hooks.stuck, __ATOMIC_SEQ_CST) && bytes[15] & 0x80) {
		__atomic_add_fetch(&hooks.kept, 1, __ATOMIC_SEQ_CST);
		return -FI_EAGAIN;
	}
	if (ret)
		__atomic_add_fetch(&hooks.refused, 1, __ATOMIC_SEQ_CST);
	return ret;
}

static ssize_t hook_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, void *context)
{
	int ret = fails("fi_senddata") ? hooks.error : refuses_answer(buf);

	return ret ? ret : real_msg.senddata(ep, buf, len, desc, data, dest, context);
}

static int withhold(const struct fid_ep *ep, void *context)
{
	struct object o = object_get(ep);

	for (size_t i = 0; i < BROKEN; i++)
		if (!broken[i].cq) {
			broken[i] = (struct broken){ o.cq, context, WITHHELD };
			return 0;
		}
	return -FI_EAGAIN;
}

static ssize_t hook_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (fails("fi_sendmsg"))
		return hooks.error;
	return hooks.withholds ? withhold(ep, msg->context) : real_msg.sendmsg(ep, msg, flags);
}

static ssize_t hook_cancel(fid_t fid, void *context)
{
	for (size_t i = 0; i < BROKEN; i++)
		if (broken[i].cq && broken[i].context == context &&
		    broken[i].device == WITHHELD) {
			broken[i].device = 0;
			return 0;
		}
	return real_calls.cancel(fid, context);
}

static ssize_t hook_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			 void *context)
{
	return fails("fi_recv") ? hooks.error : real_msg.recv(ep, buf, len, desc, src, context);
}

static ssize_t hook_cq_read(struct fid_cq *cq, void *buf, size_t cnt)
{
	return broken_of(cq) ? -FI_EAVAIL : real_cq.read(cq, buf, cnt);
}

static ssize_t hook_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct broken *b = broken_of(cq);

	if (!b)
		return real_cq.readerr(cq, buf, flags);
	*buf = (struct fi_cq_err_entry){ .op_context = b->context, .err = FI_ECONNRESET };
	b->cq = NULL;
	return 1;
}

static int hook_insert(struct fid_av *av, const void *addr, size_t cnt, fi_addr_t *fi_addr,
		       uint64_t flags, void *context)
{
	return fails("fi_av_insert") ? 0
				     : real_av.insert(av, addr, cnt, fi_addr, flags, context);
}

static int hook_reg(struct fid *domain, const void *buf, size_t len, uint64_t access,
		    uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr,
		    void *context)
{
	return fails("fi_mr_reg")
		       ? hooks.error
		       : real_mr.reg(domain, buf, len, access, offset, key, flags, mr, context);
}

static int hook_getname(struct fid *fid, void *addr, size_t *len)
{
	return fails("fi_getname") ? hooks.error : real_cm.getname(fid, addr, len);
}

static int hook_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	int ret = fails("fi_ep_bind") ? hooks.error : real_ep.bind(fid, to, flags);

	if (!ret && to->fclass == FI_CLASS_CQ) {
		pthread_mutex_lock(&lock);
		object_of(fid)->cq = (struct fid_cq *)to;
		pthread_mutex_unlock(&lock);
	}
	return ret;
}

/* Puts our calls before the provider's. */
static void watch(struct fid_ep *ep)
{
	if (!real_msg.size) {
		real_msg = our_msg = *ep->msg;
		our_msg.recv = hook_recv;
		our_msg.senddata = hook_senddata;
		our_msg.sendmsg = hook_sendmsg;
		real_calls = our_calls = *ep->ops;
		our_calls.cancel = hook_cancel;
		real_rma = our_rma = *ep->rma;
		our_rma.read = hook_read;
		our_rma.write = hook_write;
		our_rma.writemsg = hook_writemsg;
		real_atomic = our_atomic = *ep->atomic;
		our_atomic.write = hook_atomic;
		our_atomic.readwrite = hook_fetch;
	}
	ep->ops = &our_calls;
	ep->msg = &our_msg;
	ep->rma = &our_rma;
	ep->atomic = &our_atomic;
}

/* The provider chooses an endpoint's calls when it is enabled. */
static int hook_control(struct fid *fid, int command, void *arg)
{
	int ret = fails("fi_enable") ? hooks.error : real_ep.control(fid, command, arg);

	if (!ret && command == FI_ENABLE)
		watch((struct fid_ep *)fid);
	return ret;
}

static int hook_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
			void *context)
{
	int ret = fails("fi_av_open") ? hooks.error
				      : real_domain.av_open(domain, attr, av, context);

	if (ret)
		return ret;
	if (!real_av.size) {
		real_av = our_av = *(*av)->ops;
		our_av.insert = hook_insert;
	}
	(*av)->ops = &our_av;
	return 0;
}

static int hook_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
			void *context)
{
	int ret = fails("fi_cq_open") ? hooks.error
				      : real_domain.cq_open(domain, attr, cq, context);

	if (ret)
		return ret;
	if (!real_cq.size) {
		real_cq = our_cq = *(*cq)->ops;
		our_cq.read = hook_cq_read;
		our_cq.readerr = hook_cq_readerr;
	}
	(*cq)->ops = &our_cq;
	/* what one was closed with that was at the same address */
	for (size_t i = 0; i < BROKEN; i++)
		if (broken[i].cq == *cq)
			broken[i].cq = NULL;
	return 0;
}

static int hook_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			 void *context)
{
	int ret = fails("fi_endpoint") ? hooks.error
				       : real_domain.endpoint(domain, info, ep, context);

	if (ret)
		return ret;
	if (!real_ep.size) {
		real_ep = our_ep = *(*ep)->fid.ops;
		our_ep.control = hook_control;
		our_ep.bind = hook_bind;
		real_cm = our_cm = *(*ep)->cm;
		our_cm.getname = hook_getname;
	}
	(*ep)->fid.ops = &our_ep;
	(*ep)->cm = &our_cm;
	object_add(*ep, object_get(domain).device);
	return 0;
}

/* Device i has the name of the provider's, and #i. Returns i, and takes that away. */
static uint32_t take_device(struct fi_info *info)
{
	char *mark = strrchr(info->domain_attr->name, '#');
	uint32_t device;

	if (!mark)
		return 0;
	device = (uint32_t)atoi(mark + 1);
	*mark = '\0';
	return device;
}

static int hook_domain(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context)
{
	struct fi_info *own = fi_dupinfo(info);
	uint32_t device = take_device(own);
	int ret = fails("fi_domain") ? hooks.error
				     : real_fabric.domain(fabric, own, domain, context);

	fi_freeinfo(own);
	if (ret)
		return ret;
	if (!real_domain.size) {
		real_domain = our_domain = *(*domain)->ops;
		our_domain.av_open = hook_av_open;
		our_domain.cq_open = hook_cq_open;
		our_domain.endpoint = hook_endpoint;
		real_mr = our_mr = *(*domain)->mr;
		our_mr.reg = hook_reg;
	}
	(*domain)->ops = &our_domain;
	(*domain)->mr = &our_mr;
	object_add(*domain, device);
	return 0;
}

struct fi_info *fabric_info_create(void)
{
	return fails("fi_allocinfo") ? NULL : fi_allocinfo();
}

struct fi_info *fabric_info_copy(const struct fi_info *info)
{
	return fails("fi_dupinfo") ? NULL : fi_dupinfo(info);
}

void fabric_info_destroy(struct fi_info *info)
{
	if (info)
		fi_freeinfo(info);
}

/* Adds the devices after the first. */
static void add_devices(struct fi_info *first)
{
	for (uint32_t i = hooks.devices; i-- > 1;) {
		struct fi_info *more = fi_dupinfo(first);
		char *name = NULL;

		if (asprintf(&name, "%s#%u", first->domain_attr->name, i) < 0)
			abort();
		free(more->domain_attr->name);
		more->domain_attr->name = name;
		more->next = first->next;
		first->next = more;
	}
}

int fabric_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **list)
{
	int ret;

	if (fails("fi_getinfo"))
		return hooks.error;
	if (hooks.no_rma && hints->caps & FI_RMA)
		return -FI_ENODATA;
	ret = fi_getinfo(version, node, service, flags, hints, list);
	if (!ret)
		add_devices(*list);
	return ret;
}

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric)
{
	int ret = fails("fi_fabric") ? hooks.error : fi_fabric(attr, fabric, NULL);

	if (ret)
		return ret;
	if (!real_fabric.size) {
		real_fabric = our_fabric = *(*fabric)->ops;
		our_fabric.domain = hook_domain;
	}
	(*fabric)->ops = &our_fabric;
	return 0;
}
