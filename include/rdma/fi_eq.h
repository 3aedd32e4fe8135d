/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where results appear: event queues (control), completion queues and
 * counters (data), and ways to wait for them. The calls run on the caller's
 * thread; which threads may call at once is fi_domain_attr.threading's to say.
 * Source: fi_eq(3), fi_cq(3), fi_cntr(3), fi_poll(3).
 */
#ifndef FI_EQ_H
#define FI_EQ_H

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#if __STDC_HOSTED__ && !defined(__KERNEL__)
#include <poll.h>
#include <pthread.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct pollfd;

/*
 * enum fi_wait_obj - what a thread can sleep on; fi_control(FI_GETWAIT) hands it out
 *
 * Source: fi_eq(3), fi_cq(3), fi_poll(3).
 */
enum fi_wait_obj {
	FI_WAIT_NONE,
	FI_WAIT_UNSPEC, /* the provider's choice, for its own sread and wait */
	FI_WAIT_SET,
	FI_WAIT_FD,
	FI_WAIT_MUTEX_COND, /* deprecated */
	FI_WAIT_YIELD,
	FI_WAIT_POLLFD,
};

#if __STDC_HOSTED__ && !defined(__KERNEL__)
/*
 * struct fi_mutex_cond - what FI_GETWAIT gives for FI_WAIT_MUTEX_COND
 * @mutex:  to hold around the wait
 * @cond:   signalled when there may be something to read
 *
 * Deprecated. Source: fi_poll(3).
 */
struct fi_mutex_cond {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
};
#endif

/*
 * struct fi_wait_pollfd - what FI_GETWAIT gives for FI_WAIT_POLLFD
 * @nfds:  in: room at fd; out: descriptors that there are
 * @fd:    receives them, ready for poll(2)
 *
 * Source: fi_poll(3).
 */
struct fi_wait_pollfd {
	uint64_t change_index; /* moves when the set of descriptors does */
	size_t nfds;
	struct pollfd *fd;
};

/* Event queues */

/*
 * struct fi_eq_attr - how an event queue is to be
 * @size:              events it should hold; 0: the provider's choice
 * @flags:             FI_WRITE: the application writes events; FI_AFFINITY
 * @wait_obj:          what can be slept on
 * @signaling_vector:  core on which to be woken, with FI_AFFINITY
 *
 * Source: fi_eq(3).
 */
struct fi_eq_attr {
	size_t size;
	uint64_t flags;
	enum fi_wait_obj wait_obj;
	int signaling_vector;
	struct fid_wait *wait_set; /* deprecated */
};

/* Events; each is followed by one of the entries below. */
enum {
	FI_NOTIFY,
	FI_CONNREQ,	  /* fi_eq_cm_entry */
	FI_CONNECTED,	  /* fi_eq_cm_entry */
	FI_SHUTDOWN,	  /* fi_eq_cm_entry */
	FI_MR_COMPLETE,	  /* fi_eq_entry */
	FI_AV_COMPLETE,	  /* fi_eq_entry */
	FI_JOIN_COMPLETE, /* fi_eq_entry */
};

/*
 * struct fi_eq_entry - event of an asynchronous call
 * @fid:      its object
 * @context:  the object's, or the call's
 * @data:     FI_AV_COMPLETE: addresses inserted; else as the event says
 *
 * Source: fi_eq(3).
 */
struct fi_eq_entry {
	fid_t fid;
	void *context;
	uint64_t data;
};

/*
 * struct fi_eq_err_entry - event of an asynchronous call that failed
 * @fid:            its object
 * @context:        the object's, or the call's
 * @data:           FI_AV_COMPLETE: index of the address
 * @prov_errno:     the provider's own, for fi_eq_strerror
 * @err_data_size:  bytes of err_data
 *
 * Source: fi_eq(3).
 */
struct fi_eq_err_entry {
	fid_t fid;
	void *context;
	uint64_t data;
	int err; /* positive FI_E* */
	int prov_errno;
	void *err_data; /* valid until the next read of the queue */
	size_t err_data_size;
};

/*
 * struct fi_eq_cm_entry - event of a connection
 * @fid:  the endpoint, or the passive one of an FI_CONNREQ
 *
 * Source: fi_eq(3), fi_cm(3).
 */
struct fi_eq_cm_entry {
	fid_t fid;
	struct fi_info *info; /* FI_CONNREQ: the reader's, fi_freeinfo it */
	uint8_t data[];	      /* what the peer sent along, as far as it fits */
};

/* struct fi_ops_eq - calls of an event queue: fi_eq_read and so on */
struct fi_ops_eq {
	size_t size;
	ssize_t (*read)(struct fid_eq *eq, uint32_t *event, void *buf, size_t len,
			uint64_t flags);
	ssize_t (*readerr)(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags);
	ssize_t (*write)(struct fid_eq *eq, uint32_t event, const void *buf, size_t len,
			 uint64_t flags);
	ssize_t (*sread)(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
			 uint64_t flags);
	const char *(*strerror)(struct fid_eq *eq, int prov_errno, const void *err_data,
				char *buf, size_t len);
};

/*
 * struct fid_eq - event queue: results of control operations
 * @fid:  object header
 * @ops:  its calls
 *
 * Source: fi_eq(3).
 */
struct fid_eq {
	struct fid fid;
	struct fi_ops_eq *ops;
};

/* Completion queues: each format begins with the fields of the one before. */

/*
 * enum fi_cq_format - which of the entries below a queue gives
 *
 * Each format begins with the fields of the one before. Source: fi_cq(3).
 */
enum fi_cq_format {
	FI_CQ_FORMAT_UNSPEC,
	FI_CQ_FORMAT_CONTEXT,
	FI_CQ_FORMAT_MSG,
	FI_CQ_FORMAT_DATA,
	FI_CQ_FORMAT_TAGGED,
};

/*
 * struct fi_cq_entry - completion, FI_CQ_FORMAT_CONTEXT
 * @op_context:  that the operation was given
 *
 * Source: fi_cq(3).
 */
struct fi_cq_entry {
	void *op_context;
};

/*
 * struct fi_cq_msg_entry - completion, FI_CQ_FORMAT_MSG
 * @op_context:  that the operation was given
 * @flags:       FI_SEND, FI_RECV, FI_MSG, FI_TAGGED and so on: what completed
 * @len:         bytes received; of a transmit not defined
 *
 * Source: fi_cq(3).
 */
struct fi_cq_msg_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
};

/*
 * struct fi_cq_data_entry - completion, FI_CQ_FORMAT_DATA
 * @op_context:  that the operation was given
 * @flags:       what completed
 * @len:         bytes received
 * @buf:         where the message begins in a buffer of FI_MULTI_RECV
 *
 * Source: fi_cq(3).
 */
struct fi_cq_data_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data; /* valid with FI_REMOTE_CQ_DATA in flags */
};

/*
 * struct fi_cq_tagged_entry - completion, FI_CQ_FORMAT_TAGGED
 * @op_context:  that the operation was given
 * @flags:       what completed
 * @len:         bytes received
 * @buf:         where the message begins in a buffer of FI_MULTI_RECV
 * @data:        valid with FI_REMOTE_CQ_DATA in flags
 * @tag:         of a tagged message that was received
 *
 * Source: fi_cq(3).
 */
struct fi_cq_tagged_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
};

/*
 * struct fi_cq_err_entry - operation that failed
 * @op_context:  that the operation was given
 * @flags:       what completed
 * @len:         bytes received
 * @buf:         as in struct fi_cq_tagged_entry, with the next two
 * @data:        remote completion data
 * @tag:         of the message
 * @prov_errno:  the provider's own, for fi_cq_strerror
 * @src_addr:    the source, where the error has one
 *
 * Source: fi_cq(3).
 */
struct fi_cq_err_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	size_t olen; /* bytes that did not fit */
	int err;     /* positive FI_E* */
	int prov_errno;
	void *err_data;	      /* in: buffer or NULL; see err_data_size */
	size_t err_data_size; /* in: its size, 0 to borrow until the next read */
	fi_addr_t src_addr;   /* since 1.20; older callers end before it */
};

/* enum fi_cq_wait_cond - what the cond of fi_cq_sread means. Source: fi_cq(3) */
enum fi_cq_wait_cond {
	FI_CQ_COND_NONE,
	FI_CQ_COND_THRESHOLD, /* cond points to a size_t */
};

/*
 * struct fi_cq_attr - how a completion queue is to be
 * @size:              entries it should hold; 0: the provider's choice
 * @flags:             FI_AFFINITY, FI_PEER
 * @format:            of its entries
 * @wait_obj:          what can be slept on
 * @signaling_vector:  core on which to be woken, with FI_AFFINITY
 * @wait_cond:         what cond of fi_cq_sread means
 *
 * Source: fi_cq(3).
 */
struct fi_cq_attr {
	size_t size;
	uint64_t flags;
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj;
	int signaling_vector;
	enum fi_cq_wait_cond wait_cond;
	struct fid_wait *wait_set;   /* deprecated */
	struct fid_xpu_ctx *xpu_ctx; /* after 2.6: read it only if the caller has it */
};

/* struct fi_ops_cq - calls of a completion queue: fi_cq_read and so on */
struct fi_ops_cq {
	size_t size;
	ssize_t (*read)(struct fid_cq *cq, void *buf, size_t cnt);
	ssize_t (*readfrom)(struct fid_cq *cq, void *buf, size_t cnt, fi_addr_t *src_addr);
	ssize_t (*readerr)(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags);
	ssize_t (*sread)(struct fid_cq *cq, void *buf, size_t cnt, const void *cond,
			 int timeout);
	ssize_t (*sreadfrom)(struct fid_cq *cq, void *buf, size_t cnt, fi_addr_t *src_addr,
			     const void *cond, int timeout);
	int (*signal)(struct fid_cq *cq);
	const char *(*strerror)(struct fid_cq *cq, int prov_errno, const void *err_data,
				char *buf, size_t len);
	int (*export_xpu)(struct fid_cq *cq, uint64_t flags, struct fid_xpu_cq *xpu_cq);
};

/*
 * struct fid_cq - completion queue: results of transfers
 * @fid:  object header
 * @ops:  its calls
 *
 * Source: fi_cq(3).
 */
struct fid_cq {
	struct fid fid;
	struct fi_ops_cq *ops;
};

/* Counters */

/* enum fi_cntr_events - what a counter counts: completions, or their bytes. Source: fi_cntr(3) */
enum fi_cntr_events {
	FI_CNTR_EVENTS_COMP,
	FI_CNTR_EVENTS_BYTES,
};

/*
 * struct fi_cntr_attr - how a counter is to be
 * @events:    what it counts
 * @wait_obj:  what can be slept on
 * @flags:     FI_PEER, or 0
 *
 * Source: fi_cntr(3).
 */
struct fi_cntr_attr {
	enum fi_cntr_events events;
	enum fi_wait_obj wait_obj;
	struct fid_wait *wait_set; /* deprecated */
	uint64_t flags;
	struct fid_xpu_ctx *xpu_ctx; /* after 2.6: read it only if the caller has it */
};

/* struct fi_ops_cntr - calls of a counter: fi_cntr_read and so on */
struct fi_ops_cntr {
	size_t size;
	uint64_t (*read)(struct fid_cntr *cntr);
	uint64_t (*readerr)(struct fid_cntr *cntr);
	int (*add)(struct fid_cntr *cntr, uint64_t value);
	int (*set)(struct fid_cntr *cntr, uint64_t value);
	int (*wait)(struct fid_cntr *cntr, uint64_t threshold, int timeout);
	int (*adderr)(struct fid_cntr *cntr, uint64_t value);
	int (*seterr)(struct fid_cntr *cntr, uint64_t value);
	int (*export_xpu)(struct fid_cntr *cntr, uint64_t flags, struct fid_xpu_cntr *xpu_cntr);
};

/*
 * struct fid_cntr - counter: how many transfers succeeded, and how many failed
 * @fid:  object header
 * @ops:  its calls
 *
 * Source: fi_cntr(3).
 */
struct fid_cntr {
	struct fid fid;
	struct fi_ops_cntr *ops;
};

/* Wait sets and poll sets: deprecated, kept for programs that use them. */

/*
 * struct fi_wait_attr - how a wait set is to be
 * @wait_obj:  what can be slept on
 * @flags:     must be 0
 *
 * Wait sets and poll sets are deprecated, and kept for programs that use them.
 * Source: fi_poll(3).
 */
struct fi_wait_attr {
	enum fi_wait_obj wait_obj;
	uint64_t flags;
};

/* struct fi_ops_wait - calls of a wait set: fi_wait */
struct fi_ops_wait {
	size_t size;
	int (*wait)(struct fid_wait *waitset, int timeout);
};

/*
 * struct fid_wait - wait set: one thing to sleep on for several queues
 * @fid:  object header
 * @ops:  its calls
 *
 * Source: fi_poll(3).
 */
struct fid_wait {
	struct fid fid;
	struct fi_ops_wait *ops;
};

/*
 * struct fi_poll_attr - how a poll set is to be
 * @flags:  must be 0
 *
 * Source: fi_poll(3).
 */
struct fi_poll_attr {
	uint64_t flags;
};

/* struct fi_ops_poll - calls of a poll set: fi_poll, fi_poll_add, fi_poll_del */
struct fi_ops_poll {
	size_t size;
	int (*poll)(struct fid_poll *pollset, void **context, int cnt);
	int (*poll_add)(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags);
	int (*poll_del)(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags);
};

/*
 * struct fid_poll - poll set: which of several queues have something to read?
 * @fid:  object header
 * @ops:  its calls
 *
 * Source: fi_poll(3).
 */
struct fid_poll {
	struct fid fid;
	struct fi_ops_poll *ops;
};

/*
 * fi_trywait - may the caller sleep on these objects' descriptors?
 * @fids: EQs, CQs, counters opened with FI_WAIT_FD or FI_WAIT_POLLFD
 *
 * Returns 0 when sleeping is safe, -FI_EAGAIN when one of them has, or may
 * have, something to read: read all of them first. Source: fi_poll(3).
 */
static inline int fi_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt)
{
	return fabric->ops->trywait(fabric, fids, cnt);
}

/*
 * fi_eq_open - create an event queue
 * @eq: set to it
 *
 * Returns 0, or -FI_ENOSYS for a wait object that is not offered, -FI_ENOMEM.
 * Source: fi_eq(3).
 */
static inline int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
			     struct fid_eq **eq, void *context)
{
	return fabric->ops->eq_open(fabric, attr, eq, context);
}

/*
 * fi_eq_read - take one event, never blocks
 * @event: set to its kind
 * @buf:   receives the entry, len bytes at most
 * @flags: FI_PEEK leaves the event in the queue
 *
 * Returns bytes written, or -FI_EAGAIN (none), -FI_EAVAIL (use fi_eq_readerr),
 * -FI_ETOOSMALL. Source: fi_eq(3).
 */
static inline ssize_t fi_eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len,
				 uint64_t flags)
{
	return eq->ops->read(eq, event, buf, len, flags);
}

/*
 * fi_eq_sread - the same, but sleep until there is an event
 * @timeout: milliseconds; negative waits without limit
 *
 * Returns as fi_eq_read does; -FI_EAGAIN when the time is over.
 */
static inline ssize_t fi_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len,
				  int timeout, uint64_t flags)
{
	return eq->ops->sread(eq, event, buf, len, timeout, flags);
}

/* fi_eq_readerr - take the error entry; its size, or -FI_EAGAIN. Source: fi_eq(3) */
static inline ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf,
				    uint64_t flags)
{
	return eq->ops->readerr(eq, buf, flags);
}

/*
 * fi_eq_write - put an event of the application's own into the queue
 *
 * Returns len, or -FI_EAGAIN when the queue is full. Source: fi_eq(3).
 */
static inline ssize_t fi_eq_write(struct fid_eq *eq, uint32_t event, const void *buf,
				  size_t len, uint64_t flags)
{
	return eq->ops->write(eq, event, buf, len, flags);
}

/*
 * fi_eq_strerror - describe a provider's own error
 * @buf: receives a copy, len bytes at most; may be NULL
 *
 * Returns text that lives as long as the queue. Source: fi_eq(3).
 */
static inline const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno,
					 const void *err_data, char *buf, size_t len)
{
	return eq->ops->strerror(eq, prov_errno, err_data, buf, len);
}

/*
 * fi_cq_read - take completions, never blocks
 * @buf: array of the queue's format
 * @cnt: entries that it holds; 0 only makes progress
 *
 * Returns how many were written (at least one), or -FI_EAGAIN (none),
 * -FI_EAVAIL (an error comes next: fi_cq_readerr). Source: fi_cq(3).
 */
static inline ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t cnt)
{
	return cq->ops->read(cq, buf, cnt);
}

/*
 * fi_cq_readfrom - the same, with the source of each receive
 * @src_addr: cnt entries; FI_ADDR_NOTAVAIL where the sender is not in the AV
 */
static inline ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf, size_t cnt,
				     fi_addr_t *src_addr)
{
	return cq->ops->readfrom(cq, buf, cnt, src_addr);
}

/*
 * fi_cq_sread - the same as fi_cq_read, but sleep until there is something
 * @cond:    threshold of FI_CQ_COND_THRESHOLD, or NULL
 * @timeout: milliseconds; negative waits without limit
 *
 * Returns as fi_cq_read does; -FI_EAGAIN when the time is over or fi_cq_signal
 * was called. The queue needs a wait object. Source: fi_cq(3).
 */
static inline ssize_t fi_cq_sread(struct fid_cq *cq, void *buf, size_t cnt, const void *cond,
				  int timeout)
{
	return cq->ops->sread(cq, buf, cnt, cond, timeout);
}

/* fi_cq_sreadfrom - fi_cq_sread with sources, as in fi_cq_readfrom */
static inline ssize_t fi_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t cnt,
				      fi_addr_t *src_addr, const void *cond, int timeout)
{
	return cq->ops->sreadfrom(cq, buf, cnt, src_addr, cond, timeout);
}

/*
 * fi_cq_readerr - take the error completion that fi_cq_read stopped at
 * @buf: receives it. Its src_addr is preset here: providers older than 1.20
 *       do not know the field.
 *
 * Returns 1, or -FI_EAGAIN when no error waits. Source: fi_cq(3).
 */
static inline ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf,
				    uint64_t flags)
{
	if (buf)
		buf->src_addr = FI_ADDR_NOTAVAIL;
	return cq->ops->readerr(cq, buf, flags);
}

/* fi_cq_signal - wake the threads in fi_cq_sread; 0 or an error. Source: fi_cq(3) */
static inline int fi_cq_signal(struct fid_cq *cq)
{
	return cq->ops->signal(cq);
}

/* fi_cq_strerror - describe a provider's own error, as fi_eq_strerror does */
static inline const char *fi_cq_strerror(struct fid_cq *cq, int prov_errno,
					 const void *err_data, char *buf, size_t len)
{
	return cq->ops->strerror(cq, prov_errno, err_data, buf, len);
}

/* fi_cntr_read - operations that succeeded so far; makes progress. Source: fi_cntr(3) */
static inline uint64_t fi_cntr_read(struct fid_cntr *cntr)
{
	return cntr->ops->read(cntr);
}

/* fi_cntr_readerr - operations that failed so far. Source: fi_cntr(3) */
static inline uint64_t fi_cntr_readerr(struct fid_cntr *cntr)
{
	return cntr->ops->readerr(cntr);
}

/* fi_cntr_add - add to the success count; 0 or an error. Source: fi_cntr(3) */
static inline int fi_cntr_add(struct fid_cntr *cntr, uint64_t value)
{
	return cntr->ops->add(cntr, value);
}

/* fi_cntr_set - set the success count; 0 or an error. Source: fi_cntr(3) */
static inline int fi_cntr_set(struct fid_cntr *cntr, uint64_t value)
{
	return cntr->ops->set(cntr, value);
}

/* fi_cntr_adderr - add to the error count; -FI_ENOSYS from old providers */
static inline int fi_cntr_adderr(struct fid_cntr *cntr, uint64_t value)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, adderr))
		return -FI_ENOSYS;
	return cntr->ops->adderr(cntr, value);
}

/* fi_cntr_seterr - set the error count; -FI_ENOSYS from old providers */
static inline int fi_cntr_seterr(struct fid_cntr *cntr, uint64_t value)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, seterr))
		return -FI_ENOSYS;
	return cntr->ops->seterr(cntr, value);
}

/*
 * fi_cntr_wait - sleep until the success count reaches a value
 * @timeout: milliseconds; negative waits without limit
 *
 * Returns 0, or -FI_ETIMEDOUT, or -FI_EAVAIL when the error count changed.
 * Source: fi_cntr(3).
 */
static inline int fi_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
{
	return cntr->ops->wait(cntr, threshold, timeout);
}

/*
 * fi_cq_export_xpu - fill in a handle by which a device reads the queue
 *
 * Returns 0, or -FI_ENOSYS from providers without it. Source: fi_xpu(3).
 */
static inline int fi_cq_export_xpu(struct fid_cq *cq, uint64_t flags, struct fid_xpu_cq *xpu_cq)
{
	if (!FI_CHECK_OP(cq->ops, struct fi_ops_cq, export_xpu))
		return -FI_ENOSYS;
	return cq->ops->export_xpu(cq, flags, xpu_cq);
}

/* fi_cntr_export_xpu - the same for a counter. Source: fi_xpu(3) */
static inline int fi_cntr_export_xpu(struct fid_cntr *cntr, uint64_t flags,
				     struct fid_xpu_cntr *xpu_cntr)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, export_xpu))
		return -FI_ENOSYS;
	return cntr->ops->export_xpu(cntr, flags, xpu_cntr);
}

/* fi_wait - sleep until an object of the set has something. Source: fi_poll(3) */
static inline FI_DEPRECATED_FUNC int fi_wait(struct fid_wait *waitset, int timeout)
{
	return waitset->ops->wait(waitset, timeout);
}

/* fi_poll - contexts of the objects that may have something; their number */
static inline FI_DEPRECATED_FUNC int fi_poll(struct fid_poll *pollset, void **context, int cnt)
{
	return pollset->ops->poll(pollset, context, cnt);
}

/* fi_poll_add - put a queue or counter into the set; 0 or an error */
static inline FI_DEPRECATED_FUNC int fi_poll_add(struct fid_poll *pollset,
						 struct fid *event_fid, uint64_t flags)
{
	return pollset->ops->poll_add(pollset, event_fid, flags);
}

/* fi_poll_del - take it out again; 0 or an error */
static inline FI_DEPRECATED_FUNC int fi_poll_del(struct fid_poll *pollset,
						 struct fid *event_fid, uint64_t flags)
{
	return pollset->ops->poll_del(pollset, event_fid, flags);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_EQ_H */
