/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How two providers work as one: the owner lends its queues to a peer, which
 * writes into them through the owner's table. Each object is a fid of the
 * owner (class FI_CLASS_PEER_*), handed over by passing a fi_peer_*_context as
 * the context of the peer's open call with FI_PEER. Tables are called on
 * whatever thread progresses the caller, under the owner's threading model.
 * Source: fi_peer(3).
 */
#ifndef FI_PEER_H
#define FI_PEER_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * struct fi_peer_domain_context - context of fi_domain2 with FI_PEER: the owner's domain
 * @size:    bytes of this structure, as in all contexts here
 * @domain:  the owner's; the peer borrows it until its own is closed
 *
 * Source: fi_peer(3).
 */
struct fi_peer_domain_context {
	size_t size;
	struct fid_domain *domain;
};

/*
 * struct fi_peer_eq_context - context of fi_eq_open with FI_PEER: the owner's event queue
 * @size:  bytes of this structure
 * @eq:    the owner's
 *
 * Source: fi_peer(3).
 */
struct fi_peer_eq_context {
	size_t size;
	struct fid_eq *eq;
};

/* Address vectors */
struct fid_peer_av;

/*
 * struct fi_ops_av_owner - what the owner of an address vector answers
 *
 * query fills in the attributes, ep_addr says which entry an endpoint of the peer is.
 */
struct fi_ops_av_owner {
	size_t size;
	int (*query)(struct fid_peer_av *av, struct fi_av_attr *attr);
	fi_addr_t (*ep_addr)(struct fid_peer_av *av, struct fid_ep *ep);
};

/*
 * struct fid_peer_av - the owner's address vector, as the peer sees it
 * @fid:        object header
 * @owner_ops:  calls to the owner
 *
 * Source: fi_peer(3).
 */
struct fid_peer_av {
	struct fid fid;
	struct fi_ops_av_owner *owner_ops;
};

/*
 * struct fi_peer_av_context - context of fi_av_open with FI_PEER
 * @size:  bytes of this structure
 * @av:    the owner's
 *
 * Source: fi_peer(3).
 */
struct fi_peer_av_context {
	size_t size;
	struct fid_peer_av *av;
};

/* Sets of addresses */
struct fid_peer_av_set;

/*
 * struct fi_ops_av_set_owner - what the owner of a set answers
 *
 * members fills @addr with as many entries as @cnt has room for, and sets @cnt to all there are.
 */
struct fi_ops_av_set_owner {
	size_t size;
	int (*members)(struct fid_peer_av_set *av, fi_addr_t *addr, size_t *cnt);
};

/*
 * struct fid_peer_av_set - the owner's set, as the peer sees it
 * @fid:        object header
 * @owner_ops:  calls to the owner
 *
 * Source: fi_peer(3).
 */
struct fid_peer_av_set {
	struct fid fid;
	struct fi_ops_av_set_owner *owner_ops;
};

/*
 * struct fi_peer_av_set_context - context of fi_av_set with FI_PEER
 * @size:  bytes of this structure
 *
 * Source: fi_peer(3).
 */
struct fi_peer_av_set_context {
	size_t size;
	struct fi_peer_av_set *av_set; /* a fid_peer_av_set; this is the name it has */
};

/* Completion queues: the peer writes completions in. */
struct fid_peer_cq;

/*
 * struct fi_ops_cq_owner - how a peer writes completions into the owner's queue
 *
 * write takes the fields of a tagged entry and the source, writeerr a whole entry, which it copies.
 * Both return 0 or a negative error.
 */
struct fi_ops_cq_owner {
	size_t size;
	ssize_t (*write)(struct fid_peer_cq *cq, void *context, uint64_t flags, size_t len,
			 void *buf, uint64_t data, uint64_t tag, fi_addr_t src);
	ssize_t (*writeerr)(struct fid_peer_cq *cq, const struct fi_cq_err_entry *err_entry);
};

/*
 * struct fid_peer_cq - the owner's completion queue, as the peer sees it
 * @fid:        object header
 * @owner_ops:  calls to the owner
 *
 * Source: fi_peer(3).
 */
struct fid_peer_cq {
	struct fid fid;
	struct fi_ops_cq_owner *owner_ops;
};

/*
 * struct fi_peer_cq_context - context of fi_cq_open with FI_PEER
 * @size:  bytes of this structure
 * @cq:    the owner's
 *
 * Source: fi_peer(3).
 */
struct fi_peer_cq_context {
	size_t size;
	struct fid_peer_cq *cq;
};

/* Counters: the peer counts up. */
struct fid_peer_cntr;

/* struct fi_ops_cntr_owner - how a peer counts in the owner's counter: inc, incerr, by one */
struct fi_ops_cntr_owner {
	size_t size;
	void (*inc)(struct fid_peer_cntr *cntr);
	void (*incerr)(struct fid_peer_cntr *cntr);
};

/*
 * struct fid_peer_cntr - the owner's counter, as the peer sees it
 * @fid:        object header
 * @owner_ops:  calls to the owner
 *
 * Source: fi_peer(3).
 */
struct fid_peer_cntr {
	struct fid fid;
	struct fi_ops_cntr_owner *owner_ops;
};

/*
 * struct fi_peer_cntr_context - context of fi_cntr_open with FI_PEER
 * @size:  bytes of this structure
 * @cntr:  the owner's
 *
 * Source: fi_peer(3).
 */
struct fi_peer_cntr_context {
	size_t size;
	struct fid_peer_cntr *cntr;
};

/*
 * Shared receive queues. The owner matches. A peer that has a message asks
 * get_*: 0 gives it a posted receive; -FI_ENOENT gives it an entry for an
 * unexpected message, which it fills in and queues, and which the owner
 * later starts or discards through the peer's table.
 */
struct fid_peer_srx;

/*
 * struct fi_peer_rx_entry - a receive, or an unexpected message, between owner and peer
 * @srx:            the queue
 * @addr:           source, as an entry of the shared AV, or FI_ADDR_UNSPEC
 * @msg_size:       bytes of the message
 * @tag:            of a tagged one
 * @cq_data:        remote completion data, with FI_REMOTE_CQ_DATA in flags
 * @flags:          of the receive and of the message
 * @context:        of the receive
 * @desc:           fi_mr_desc of each buffer
 * @peer_context:   the peer's
 * @owner_context:  the owner's
 * @iov:            count buffers of the receive
 *
 * Source: fi_peer(3).
 */
struct fi_peer_rx_entry {
	struct fid_peer_srx *srx;
	fi_addr_t addr;
	size_t msg_size;
	uint64_t tag;
	uint64_t cq_data;
	uint64_t flags;
	void *context;
	size_t count; /* of iov and desc */
	void **desc;
	void *peer_context;
	void *owner_context;
	struct iovec *iov;
};

/*
 * struct fi_peer_match_attr - the message that get_msg and get_tag find a receive for
 * @addr:      source
 * @msg_size:  bytes
 * @tag:       of a tagged one
 *
 * Source: fi_peer(3).
 */
struct fi_peer_match_attr {
	fi_addr_t addr;
	size_t msg_size;
	uint64_t tag;
};

/*
 * struct fi_ops_srx_owner - what the owner does for the peer
 *
 * get_msg and get_tag match: 0 gives a posted receive, -FI_ENOENT an entry for an unexpected
 * message. The peer fills that in and queues it with queue_msg or queue_tag.
 * foreach_unspec_addr asks again for the source of queued messages whose source was unknown.
 * free_entry gives an entry back. Source: fi_peer(3).
 */
struct fi_ops_srx_owner {
	size_t size;
	int (*get_msg)(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		       struct fi_peer_rx_entry **entry);
	int (*get_tag)(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		       struct fi_peer_rx_entry **entry);
	int (*queue_msg)(struct fi_peer_rx_entry *entry);
	int (*queue_tag)(struct fi_peer_rx_entry *entry);
	void (*foreach_unspec_addr)(struct fid_peer_srx *srx,
				    fi_addr_t (*get_addr)(struct fi_peer_rx_entry *));
	void (*free_entry)(struct fi_peer_rx_entry *entry);
};

/*
 * struct fi_ops_srx_peer - what the peer does for the owner
 *
 * start_msg and start_tag receive an unexpected message that was queued, into the buffers that its
 * entry has by then; discard_msg and discard_tag drop it. Source: fi_peer(3).
 */
struct fi_ops_srx_peer {
	size_t size;
	int (*start_msg)(struct fi_peer_rx_entry *entry);
	int (*start_tag)(struct fi_peer_rx_entry *entry);
	int (*discard_msg)(struct fi_peer_rx_entry *entry);
	int (*discard_tag)(struct fi_peer_rx_entry *entry);
};

/*
 * struct fid_peer_srx - the owner's shared receive queue, as the peer sees it
 * @ep_fid:     the queue as an endpoint
 * @owner_ops:  calls to the owner
 * @peer_ops:   calls to the peer, which sets them
 *
 * Source: fi_peer(3).
 */
struct fid_peer_srx {
	struct fid_ep ep_fid;
	struct fi_ops_srx_owner *owner_ops;
	struct fi_ops_srx_peer *peer_ops;
};

/*
 * struct fi_peer_srx_context - context of fi_srx_context with FI_PEER
 * @size:  bytes of this structure
 * @srx:   the owner's
 *
 * Source: fi_peer(3).
 */
struct fi_peer_srx_context {
	size_t size;
	struct fid_peer_srx *srx;
};

/*
 * struct fi_ops_transfer_peer - how transfers on another's endpoint complete
 *
 * complete takes a success and its source, comperr a failure; both return 0 or a negative error.
 */
struct fi_ops_transfer_peer {
	size_t size;
	ssize_t (*complete)(struct fid_ep *ep, struct fi_cq_tagged_entry *buf,
			    fi_addr_t src_addr);
	ssize_t (*comperr)(struct fid_ep *ep, struct fi_cq_err_entry *buf);
};

/*
 * struct fi_peer_transfer_context - context of fi_endpoint2 with FI_PEER_TRANSFER
 * @size:      bytes of this structure
 * @info:      of the endpoint that transfers are started on
 * @ep:        that endpoint
 * @peer_ops:  set by the peer: called when they complete
 *
 * Source: fi_peer(3).
 */
struct fi_peer_transfer_context {
	size_t size;
	struct fi_info *info;
	struct fid_ep *ep;
	struct fi_ops_transfer_peer *peer_ops;
};

#ifdef __cplusplus
}
#endif

#endif /* FI_PEER_H */
