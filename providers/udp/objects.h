/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of the udp provider. A domain's lock protects all that belongs to it: data calls hold
 * it too, at every threading level, which is little beside the system call that each of them makes.
 *
 * Descriptors are shared with the child of a fork. There the objects are closed and nothing else:
 * data calls return -FI_EOPBADSTATE, and closing takes no lock, which a thread of the parent may
 * have held.
 */
#ifndef WEFT_UDP_OBJECTS_H
#define WEFT_UDP_OBJECTS_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "address.h"
#include "av.h"
#include "cq.h"
#include "eq.h"
#include "list.h"
#include "platform.h"
#include "pool.h"
#include "udp.h"

struct udp_batch;
struct udp_staged;

struct udp_fabric {
	struct fid_fabric fid;
	/* platform_forks() of the process that opened it */
	uint32_t forks;
	/* what is open in it */
	_Atomic int refs;
};

struct udp_domain {
	struct fid_domain fid;
	struct udp_fabric *fabric;
	struct platform_lock lock;
	/* platform_forks() of the process that opened it */
	uint32_t forks;
	/* what is open in it */
	_Atomic int refs;
	/* AF_INET or AF_INET6: of all addresses in it */
	sa_family_t family;
	/* index of the interface that it is named after; 0: there is none */
	unsigned int iface;
	/* Work memory of a receive, owned (socket.h) */
	struct udp_batch *batch;
	/* struct udp_ep with sends that are held back, or refused for want of room */
	struct list holding;
};

struct udp_wait_set;

/* A queue or counter of a wait set. */
struct udp_member {
	struct list link;
	/* NULL: in none */
	struct udp_wait_set *set;
	struct fid *object;
};

struct udp_eq {
	struct fid_eq fid;
	struct udp_member member;
	struct udp_fabric *fabric;
	_Atomic int refs;
	/* Protects queue; rank after a domain's */
	struct platform_lock lock;
	struct eq queue;
	/* readable while the queue is not empty; -1: no wait object */
	int bell;
	bool rung;
};

struct udp_av {
	struct fid_av fid;
	struct udp_domain *domain;
	struct udp_eq *eq;
	_Atomic int refs;
	struct av_table table;
	uint64_t flags;
};

/*
 * What a queue or counter looks at, and sleeps on: the sockets of its endpoints, and a bell.
 */
struct udp_wait {
	struct udp_domain *domain;
	struct udp_member member;
	/* its places in poll sets (poll.c) */
	struct list polled;
	enum fi_wait_obj type;
	/* struct udp_link */
	struct list links;
	uint32_t link_cnt;
	/* holds the sockets, and the bell; -1: FI_WAIT_NONE, with few endpoints */
	int epoll;
	/* an eventfd; -1: FI_WAIT_NONE */
	int bell;
	/* Somebody sleeps, or may: what is reported next rings the bell */
	bool armed;
	bool rung;
	/*
	 * Blocking calls that sleep; times that the bell was rung; of those that slept when it was
	 * rung last, how many have not looked since: it rings on for them
	 */
	uint32_t sleepers, rings, woken;
	/* calls of fi_cq_signal */
	uint32_t signals;
	/* blocking reads under way, and whether a signal found none: it ends the next one */
	uint32_t readers;
	bool signalled;
};

/* An endpoint that reports to a wait's queue or counter. */
struct udp_link {
	struct list link;
	struct udp_ep *ep;
	/* NULL: not linked */
	struct udp_wait *wait;
};

struct udp_cq {
	struct fid_cq fid;
	struct udp_wait wait;
	struct cq queue;
	enum fi_cq_format format;
	enum fi_cq_wait_cond cond;
	_Atomic int refs;
};

struct udp_cntr {
	struct fid_cntr fid;
	struct udp_wait wait;
	uint64_t value, errors;
	/* as the program has read them */
	uint64_t seen_value, seen_errors;
	/* as fi_poll has reported them */
	uint64_t polled_value, polled_errors;
	_Atomic int refs;
};

/* A receive that is posted. */
struct udp_rx {
	struct pool_object object;
	struct list link;
	struct iovec iov[UDP_IOV_MAX];
	size_t iov_cnt;
	void *context;
	/* FI_COMPLETION: it is reported; FI_MULTI_RECV */
	uint64_t flags;
	/* messages without a byte that a multi-receive buffer has taken */
	size_t empty_cnt;
};

/* A multicast group that an endpoint has joined. */
struct udp_group {
	struct fid_mc fid;
	struct udp_ep *ep;
	struct list link;
	union ip_sockaddr addr;
	/* bound to the group; -1: it only sends there */
	int fd;
	/* datagrams asked for by the next receive from it */
	uint32_t ask;
	bool sends;
};

/* fi_addr_t of a group: this bit, and a number of its endpoint's. No index of a vector has it. */
#define UDP_GROUP_BIT (1ull << 62)

enum { UDP_LINK_TX_CQ, UDP_LINK_RX_CQ, UDP_LINK_TX_CNTR, UDP_LINK_RX_CNTR, UDP_LINK_CNT };

struct udp_ep {
	struct fid_ep fid;
	struct udp_domain *domain;
	struct udp_av *av;
	struct udp_eq *eq;
	struct udp_cq *tx_cq, *rx_cq;
	struct udp_cntr *tx_cntr, *rx_cntr;
	struct udp_link links[UDP_LINK_CNT];
	/* op_flags of each direction */
	uint64_t tx_flags, rx_flags;
	bool sends, receives, multicasts, source;
	/* FI_SELECTIVE_COMPLETION */
	bool tx_selective, rx_selective;
	bool enabled;
	size_t msg_max, inject_max, rx_size, multi_min;
	/* the address to bind to, and, once fd is open, the one that it has */
	union ip_sockaddr at;
	/* -1: not open yet */
	int fd;
	/*
	 * EPOLLIN, EPOLLOUT: what the waits' epolls look for at its sockets; of those of sends, and
	 * of the others
	 */
	uint32_t tx_interest, interest;
	bool watched;
	struct pool rx_pool;
	/* struct udp_rx, as posted */
	struct list rx;
	/* datagrams asked for by the next receive from fd */
	uint32_t ask;
	/* The last progress looked at the groups before fd */
	bool groups_first;
	/* The kernel, or the interface, sends no segments */
	bool no_segments;
	/* Sends that are held back; NULL: there never was one */
	struct udp_staged *staged;
	/* The last send was refused, since the kernel had no room */
	bool refused;
	/* in the domain's list while there is any of both */
	struct list holding;
	/* struct udp_group */
	struct list groups;
	uint64_t next_group;
};

/* udp_here - returns true in the process that opened the domain, false in the child of a fork */
static inline bool udp_here(const struct udp_domain *domain)
{
	return likely(platform_forks() == domain->forks);
}

/* udp_enter - lock the domain for a data call. Returns false, without it, in the child of a fork */
static inline bool udp_enter(struct udp_domain *domain)
{
	if (!udp_here(domain))
		return false;
	platform_lock(&domain->lock);
	return true;
}

static inline void udp_leave(struct udp_domain *domain)
{
	platform_unlock(&domain->lock);
}

/* udp_ref, udp_unref - count what is open in an object, or bound to it */
static inline void udp_ref(_Atomic int *refs)
{
	atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

static inline void udp_unref(_Atomic int *refs)
{
	atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);
}

static inline bool udp_in_use(_Atomic int *refs)
{
	return atomic_load_explicit(refs, memory_order_acquire) > 0;
}

/*
 * The calls that open objects: the slots of the op tables of their parents. Source: the man page of
 * each.
 */
int udp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int udp_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		    void *context);
int udp_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);
int udp_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		void *context);
int udp_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context);
int udp_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);
int udp_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **poll);
/* udp_poll_forget - remove a queue or counter that is being closed from the poll sets it is in */
void udp_poll_forget(struct udp_wait *wait);
int udp_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		void *context);
/* udp_ep_bind_object - fi_ep_bind of an endpoint (binding.c) */
int udp_ep_bind_object(struct fid *ep, struct fid *target, uint64_t flags);
int udp_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
	     void *context);

/* udp_mr_ops - registration, which a datagram needs none of (region.c) */
extern struct fi_ops_mr udp_mr_ops;
/* udp_ep_ops - the options of an endpoint (options.c) */
extern struct fi_ops_ep udp_ep_ops;
/* udp_msg_ops - the messages of an endpoint (message.c) */
extern struct fi_ops_msg udp_msg_ops;
/* udp_cm_ops - its name and its groups (name.c) */
extern struct fi_ops_cm udp_cm_ops;

#endif
