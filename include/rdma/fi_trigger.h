/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that start when a counter reaches a value: triggered operations
 * (FI_TRIGGER, the context says when) and deferred work (FI_QUEUE_WORK). Types
 * only; the transfers' own calls and fi_control carry them.
 * Source: fi_trigger(3).
 */
#ifndef FI_TRIGGER_H
#define FI_TRIGGER_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_atomic.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * enum fi_trigger_event - what starts a triggered operation: a counter, or a device's memory
 *
 * Source: fi_trigger(3).
 */
enum fi_trigger_event {
	FI_TRIGGER_THRESHOLD,
	FI_TRIGGER_XPU,
};

/*
 * struct fi_trigger_threshold - when a counter starts an operation
 * @cntr:       the counter
 * @threshold:  value that it has to reach
 *
 * Source: fi_trigger(3).
 */
struct fi_trigger_threshold {
	struct fid_cntr *cntr;
	size_t threshold;
};

/*
 * struct fi_trigger_var - what a device writes where, to start an operation
 * @datatype:  of an element
 * @count:     elements
 * @addr:      receives where to write
 * @value:     receives what to write
 * @val8:      one element of that size, as the three that follow
 * @val16:     one element
 * @val32:     one element
 * @val64:     one element
 * @data:      several elements
 *
 * Source: fi_trigger(3) of 1.x and 2.x.
 */
struct fi_trigger_var {
	enum fi_datatype datatype;
	int count;
	void *addr;
	union {
		uint8_t val8;
		uint16_t val16;
		uint32_t val32;
		uint64_t val64;
		uint8_t *data;
	} value;
};

/*
 * struct fi_trigger_xpu - which device starts an operation, and how
 * @count:     in: room at var; out: writes that start it
 * @iface:     kind of device
 * @device:    which one of that kind
 * @reserved:  of FI_HMEM_SYSTEM
 * @cuda:      number of the device
 * @ze:        of fi_hmem_ze_device
 * @var:       receives the writes
 *
 * Source: fi_trigger(3).
 */
struct fi_trigger_xpu {
	int count;
	enum fi_hmem_iface iface;
	union {
		uint64_t reserved;
		int cuda;
		int ze;
	} device;
	struct fi_trigger_var *var;
};

/*
 * struct fi_triggered_context - context of an operation with FI_TRIGGER
 * @event_type:  what starts it
 * @trigger:     its details
 * @threshold:   with FI_TRIGGER_THRESHOLD
 * @xpu:         with FI_TRIGGER_XPU
 * @internal:    the provider's, from the call until the operation completes
 *
 * As large as struct fi_context, which it stands in for. Source: fi_trigger(3).
 */
struct fi_triggered_context {
	enum fi_trigger_event event_type;
	union {
		struct fi_trigger_threshold threshold;
		struct fi_trigger_xpu xpu;
		void *internal[3];
	} trigger;
};

/*
 * struct fi_triggered_context2 - the same, as large as struct fi_context2
 * @event_type:  what starts it
 * @trigger:     its details
 * @threshold:   with FI_TRIGGER_THRESHOLD
 * @xpu:         with FI_TRIGGER_XPU
 * @internal:    the provider's, from the call until the operation completes
 *
 * Source: fi_trigger(3).
 */
struct fi_triggered_context2 {
	enum fi_trigger_event event_type;
	union {
		struct fi_trigger_threshold threshold;
		struct fi_trigger_xpu xpu;
		void *internal[7];
	} trigger;
};

/* enum fi_op_type - which operation deferred work is. Source: fi_trigger(3) */
enum fi_op_type {
	FI_OP_RECV,
	FI_OP_SEND,
	FI_OP_TRECV,
	FI_OP_TSEND,
	FI_OP_READ,
	FI_OP_WRITE,
	FI_OP_ATOMIC,
	FI_OP_FETCH_ATOMIC,
	FI_OP_COMPARE_ATOMIC,
	FI_OP_CNTR_SET,
	FI_OP_CNTR_ADD,
};

/*
 * struct fi_op_msg - deferred fi_sendmsg or fi_recvmsg: its arguments
 * @ep:     the endpoint
 * @msg:    what to transfer
 * @flags:  of the call
 *
 * Source: fi_trigger(3).
 */
struct fi_op_msg {
	struct fid_ep *ep;
	struct fi_msg msg;
	uint64_t flags;
};

/*
 * struct fi_op_tagged - deferred fi_tsendmsg or fi_trecvmsg: its arguments
 * @ep:     the endpoint
 * @msg:    what to transfer
 * @flags:  of the call
 *
 * Source: fi_trigger(3).
 */
struct fi_op_tagged {
	struct fid_ep *ep;
	struct fi_msg_tagged msg;
	uint64_t flags;
};

/*
 * struct fi_op_rma - deferred fi_readmsg or fi_writemsg: its arguments
 * @ep:     the endpoint
 * @msg:    what to transfer
 * @flags:  of the call
 *
 * Source: fi_trigger(3).
 */
struct fi_op_rma {
	struct fid_ep *ep;
	struct fi_msg_rma msg;
	uint64_t flags;
};

/*
 * struct fi_op_atomic - deferred fi_atomicmsg: its arguments
 * @ep:     the endpoint
 * @msg:    what to do
 * @flags:  of the call
 *
 * Source: fi_trigger(3).
 */
struct fi_op_atomic {
	struct fid_ep *ep;
	struct fi_msg_atomic msg;
	uint64_t flags;
};

/*
 * struct fi_op_fetch_atomic - deferred fi_fetch_atomicmsg: its arguments
 * @ep:     the endpoint
 * @msg:    what to do
 * @fetch:  where old values go
 * @flags:  of the call
 *
 * Source: fi_trigger(3).
 */
struct fi_op_fetch_atomic {
	struct fid_ep *ep;
	struct fi_msg_atomic msg;
	struct fi_msg_fetch fetch;
	uint64_t flags;
};

/*
 * struct fi_op_compare_atomic - deferred fi_compare_atomicmsg: its arguments
 * @ep:       the endpoint
 * @msg:      what to do
 * @fetch:    where old values go
 * @compare:  what to compare with
 * @flags:    of the call
 *
 * Source: fi_trigger(3).
 */
struct fi_op_compare_atomic {
	struct fid_ep *ep;
	struct fi_msg_atomic msg;
	struct fi_msg_fetch fetch;
	struct fi_msg_compare compare;
	uint64_t flags;
};

/*
 * struct fi_op_cntr - deferred fi_cntr_set or fi_cntr_add: its arguments
 * @cntr:   the counter
 * @value:  to set or to add
 *
 * Source: fi_trigger(3).
 */
struct fi_op_cntr {
	struct fid_cntr *cntr;
	uint64_t value;
};

/*
 * struct fi_deferred_work - an operation that starts when a counter reaches a value
 * @threshold:        that value
 * @triggering_cntr:  the counter
 * @completion_cntr:  counts its completion, or NULL
 * @op_type:          which operation
 * @op:               its arguments; the application's until it is done
 * @msg:              of FI_OP_RECV and FI_OP_SEND
 * @tagged:           of FI_OP_TRECV and FI_OP_TSEND
 * @rma:              of FI_OP_READ and FI_OP_WRITE
 * @atomic:           of FI_OP_ATOMIC
 * @fetch_atomic:     of FI_OP_FETCH_ATOMIC
 * @compare_atomic:   of FI_OP_COMPARE_ATOMIC
 * @cntr:             of FI_OP_CNTR_SET and FI_OP_CNTR_ADD
 *
 * Argument of FI_QUEUE_WORK and FI_CANCEL_WORK. Source: fi_trigger(3).
 */
struct fi_deferred_work {
	struct fi_context2 context; /* the provider's until it is done */

	uint64_t threshold;
	struct fid_cntr *triggering_cntr;
	struct fid_cntr *completion_cntr;

	enum fi_op_type op_type;
	union {
		struct fi_op_msg *msg;
		struct fi_op_tagged *tagged;
		struct fi_op_rma *rma;
		struct fi_op_atomic *atomic;
		struct fi_op_fetch_atomic *fetch_atomic;
		struct fi_op_compare_atomic *compare_atomic;
		struct fi_op_cntr *cntr;
	} op;
};

#ifdef __cplusplus
}
#endif

#endif /* FI_TRIGGER_H */
