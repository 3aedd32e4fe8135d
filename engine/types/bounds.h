/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the engine bounds, answers and offers: constants, and the flags of a message inside it.
 */
#ifndef WEFT_ENGINE_BOUNDS_H
#define WEFT_ENGINE_BOUNDS_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "packet.h"
#include "wire.h"

#define ENGINE_IOV_MAX	    WIRE_IOV_MAX
#define ENGINE_INJECT_MAX   4096u
#define ENGINE_FREE_MAX	    256u /* payload of a message that takes no credit, bytes */
#define ENGINE_WIRE_MAX	    4u
#define ENGINE_TX_SIZE	    1024u /* default of tx_attr.size; more are bounded by memory alone */
#define ENGINE_REQUESTS_MAX 1024u /* requests under way at one peer */
#define ENGINE_RX_SIZE	    1024u /* rx_attr.size answered; posting is bounded by memory alone */
#define ENGINE_OBJECT_CNT \
	65536u /* queues, endpoints, counters, regions answered: memory bounds them */
#define ENGINE_TAG_FORMAT   0xaaaaaaaaaaaaaaaaull /* all bits are the program's to use */
#define ENGINE_BUDGET	    (64u << 20)		  /* default of the parameter below, bytes */
#define ENGINE_PARAM_BUDGET "rx_budget"		  /* FI_<PROVIDER>_RX_BUDGET */
#define ENGINE_CTX_CNT \
	1024u /* contexts of a domain, and sharers of one, as answered: memory bounds them */
#define ENGINE_NAME_MAX	      64u /* bytes of an address, of any family, with a string's NUL */
#define ENGINE_MIN_MULTI_RECV 4096u /* default of FI_OPT_MIN_MULTI_RECV */
/* What every provider over the engine offers for its contexts (offer.c). */
#define ENGINE_TX_CAPS                                                                 \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_SEND | FI_READ | \
	 FI_WRITE | FI_NAMED_RX_CTX | FI_FENCE | FI_TRIGGER | FI_RMA_PMEM)
#define ENGINE_RX_CAPS                                                                        \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_RECV | FI_REMOTE_READ | \
	 FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV |                     \
	 FI_TAGGED_MULTI_RECV | FI_RMA_EVENT | FI_TRIGGER | FI_RMA_PMEM)
#define ENGINE_CAPS (ENGINE_TX_CAPS | ENGINE_RX_CAPS)
/* Those of the kernel's module (kernel/absent.c) */
#define ENGINE_KERNEL_CAPS (ENGINE_CAPS & ~(FI_COLLECTIVE | FI_TRIGGER))
#define ENGINE_TX_OP_FLAGS                                                       \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_TRIGGER)
/* When a send is complete. */
#define ENGINE_TX_LEVELS                                                    \
	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
	 FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE)
/* How a send completes means nothing to a receive, and programs set it there too. */
#define ENGINE_RX_OP_FLAGS                                                             \
	(FI_COMPLETION | FI_MULTI_RECV | FI_TRIGGER | FI_INJECT | FI_INJECT_COMPLETE | \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE)
#define ENGINE_DOMAIN_CAPS (FI_SHARED_AV | FI_AV_USER_ID | FI_PEER) /* besides FI_*_COMM */
#define ENGINE_SIDE_CAPS   (FI_LOCAL_COMM | FI_REMOTE_COMM | ENGINE_DOMAIN_CAPS)
#define ENGINE_MSG_ORDER                                                                \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR | FI_ORDER_WAW |     \
	 FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW | FI_ORDER_SAS | FI_ORDER_RMA_RAR | \
	 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
/*
 * Bytes up to which one-sided operations keep their order unasked; beyond, by waiting for one
 * another.
 */
#define ENGINE_ORDER_MAX 4096u

/* Flags of a message, an access or a receive inside the engine; the low bits are enum packet_flag. */
enum engine_flag {
	/* The buffer is the caller's again on return; no completion */
	ENGINE_INJECT = 1 << 8,
	/* Success writes a completion */
	ENGINE_COMPLETE = 1 << 9,
	/* FI_MORE */
	ENGINE_MORE = 1 << 10,
	/* A receive that has asked its sender for the payload */
	ENGINE_CTS_SENT = 1 << 11,
	/* FI_FENCE: sent once everything before it to this peer has ended */
	ENGINE_FENCE = 1 << 12,
	/*
	 * A send whose receiver is done while the wire still has its payload; a receive that is
	 * whole, but whose turn has not come
	 */
	ENGINE_FINISHED = 1 << 13,
	/* A send counter is bound */
	ENGINE_COUNTED = 1 << 14,
	/* A default of tagged receives: the context takes no more (engine_rx_ctx.ended) */
	ENGINE_ENDED = 1 << 15,
	/* A send or receive of a connected endpoint, which completes in its turn (in_order.h) */
	ENGINE_ORDERED = 1 << 16,
	/* A multi-receive buffer: it takes messages until it is spent */
	ENGINE_MULTI = 1 << 24,
	/* A message in a multi-receive buffer */
	ENGINE_PART = 1 << 25,
	/* Deferred work: its own counter counts the end */
	ENGINE_DEFERRED = 1 << 26,
	/* Deferred work: the queue and counters of the endpoint report the end too */
	ENGINE_EP_REPORTS = 1 << 27,
	/* An access that the wire can't do without the target */
	ENGINE_BY_PACKET = 1 << 28,
	/* A one-sided operation that always ends with the target's answer: FI_DELIVERY_COMPLETE */
	ENGINE_DELIVERED = 1 << 29,
	/*
	 * A one-sided operation that ends with the target's answer unless the wire suffices:
	 * FI_TRANSMIT_COMPLETE
	 */
	ENGINE_ARRIVED = 1 << 30,
};

/*
 * Default flags that hold for calls that inject: no completion is written, and counters count the
 * send at the completion level of the endpoint
 */
#define ENGINE_INJECT_KEEPS \
	(PACKET_TAGGED | PACKET_DELIVERY | PACKET_MATCH | PACKET_ACKED | ENGINE_COUNTED)

/* Flags of a send that ends after it was sent, or that may have to wait. */
#define ENGINE_SLOW (PACKET_DELIVERY | PACKET_ACKED | ENGINE_FENCE)

#define ENGINE_ATOMIC_MAX \
	3968u /* bytes of operand of one atomic operation: two fit in a request */

/*
 * A request of up to ENGINE_REORDER_LEN bytes of operands may arrive before its turn. With compare
 * values and the keys of its targets it has at most ENGINE_REORDER_MAX bytes.
 */
#define ENGINE_REORDER_LEN 128u
#define ENGINE_REORDER_MAX 512u

#endif
