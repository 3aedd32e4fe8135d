/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside what kofi_ibverbs does with ib_core and rdma_cm (link.h).
 *
 * Locks, in their order:
 *   kib_devices_lock  a mutex: the list of ports, and one removal of a device at a time
 *   link.lock         a mutex: the device's objects of one link; of a port: its id. Whoever removes a device takes
 *                     these objects away with it held
 *   kib_steps_lock    a spinlock, in any context: which steps a link has made, to which port it belongs, the list of
 *                     all links
 * No handler of rdma_cm takes a mutex of these: an id may be destroyed with them held.
 */
#ifndef KOFI_IBVERBS_VERBS_H
#define KOFI_IBVERBS_VERBS_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include <rdma/fi_errno.h>

#include "link.h"

/* Requests of a port that its owner has not seen */
#define KIB_REQUESTS_MAX 64u
/* Gathered by one work request of a write, where the device can */
#define KIB_SGE_MAX 16u
/* Entries of a map: each page of the longest window, and for each piece those that it begins and ends within */
#define KIB_MAP_MAX (KIB_WINDOW_MAX / PAGE_SIZE + 2 * KIB_PIECES)
/* Writes that are under way on a link, at most; a peer has no more windows */
#define KIB_WRITES KIB_WINDOWS
/* Send queue: messages, writes cut as a device with few entries needs it, windows' registrations and ends, a probe */
#define KIB_SQ_WRITES 96u
#define KIB_SQ_LEN    (KIB_DEPTH + KIB_SQ_WRITES + 2 * KIB_WINDOWS + 1)

/* Messages in one block of memory, which the device sees as one */
#define KIB_BLOCK_MESSAGES 8u
#define KIB_BLOCKS	   (KIB_DEPTH / KIB_BLOCK_MESSAGES)

struct kib_block {
	u8 *bytes;
	u64 dma;
};

/* What a completion is of: first member of it. */
enum kib_kind {
	KIB_OF_RECEIVE,
	KIB_OF_MESSAGE,
	KIB_OF_WRITE,
	KIB_OF_REGISTRATION,
	KIB_OF_INVALIDATION,
	KIB_OF_PROBE,
};

struct kib_work {
	enum kib_kind kind;
};

struct kib_receive {
	struct kib_work work;
	struct ib_recv_wr wr;
	struct ib_sge sge;
	u8 *bytes;
};

struct kib_outgoing {
	struct kib_work work;
	struct kib_message message;
	struct ib_send_wr wr;
	struct ib_sge sge;
	struct kib_outgoing *next_spare;
};

/* Memory of a caller as a device sees it. */
struct kib_map {
	struct scatterlist *sg;
	int cnt, mapped;
	enum dma_data_direction direction;
};

struct kib_window {
	/* Of the registration, and of the invalidation */
	struct kib_work registers, ends;
	struct kib_link *link;
	struct ib_mr *mr;
	struct kib_map map;
	void *cookie;
	bool open;
};

struct kib_write {
	struct kib_work work;
	struct kib_map map;
	/* Work requests that have not ended; 0: it is free */
	u32 left;
	void *cookie;
};

/* Steps of a link that its owner has not been told, in their order */
#define STEP_REQUEST  BIT(0)
#define STEP_RESOLVED BIT(1)
#define STEP_ROUTED   BIT(2)
#define STEP_READY    BIT(3)
#define STEP_ENDED    BIT(4)

struct kib_port {
	struct mutex lock;
	/* in kib_ports */
	struct list_head link;
	struct rdma_cm_id *id;
	/* rdma_cm has left the device of the id, which is to be destroyed */
	bool removed;
	struct sockaddr_storage at;
	void (*wake)(void *arg);
	void *arg;
	/* struct kib_link.mine; the owner's thread alone */
	struct list_head links;
	/* kib_steps_lock */
	struct list_head pending;
	u32 requests;
	bool armed, closed;
};

struct kib_link {
	struct mutex lock;
	/* in kib_links. Its owner's reference, and that of a removal */
	struct list_head link;
	refcount_t refs;
	/* One of kib_accepted */
	bool accepted;
	/* The last removal that has looked at it; kib_steps_lock */
	u32 removal;
	/* As in struct kib_port */
	bool removed;
	/* in kib_port.links, or of its own */
	struct list_head mine;
	void *owner;

	/* The device's objects: link.lock. A link that is stopped has none. */
	struct rdma_cm_id *id;
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct kib_window windows[KIB_WINDOWS];
	struct kib_write writes[KIB_WRITES];
	struct kib_work probe;
	u32 sq_room, sge_max;
	bool mapped, broken, probing;

	/* The owner's */
	struct kib_block in[KIB_BLOCKS], out[KIB_BLOCKS];
	struct kib_receive *receives;
	struct kib_outgoing *outgoing;
	struct kib_outgoing *spare;
	u32 spare_cnt;
	u8 mine_greeting[KIB_GREETING_MAX];
	u32 mine_greeting_len;

	/* kib_steps_lock */
	struct kib_port *port;
	struct list_head pending;
	u32 steps;
	int err;
	u8 greeting[KIB_GREETING_MAX];
	u32 greeting_len;
};

extern struct mutex kib_devices_lock;
extern struct list_head kib_ports, kib_links;
extern spinlock_t kib_steps_lock;
/* Links that others have made */
extern atomic_t kib_accepted;

/* devices.c */

/* kib_removed_late - rdma_cm leaves the device of a link or port, whose @removed it is. Any context */
void kib_removed_late(bool *removed);

/* port.c */

/* kib_port_strip - take its id away. With port.lock */
void kib_port_strip(struct kib_port *port);

/* events.c */

/* kib_link_event, kib_port_event - handlers of rdma_cm, one at a time for each id; its context is the link or port */
int kib_link_event(struct rdma_cm_id *id, struct rdma_cm_event *event);
int kib_port_event(struct rdma_cm_id *id, struct rdma_cm_event *event);
/* kib_link_step - a step of a link, for its port; @err: of STEP_ENDED. Any context */
void kib_link_step(struct kib_link *link, u32 step, int err);
/* kib_link_wake - who sleeps on the link's port is woken. Any context */
void kib_link_wake(struct kib_link *link);
/* kib_error - an error of the kernel's, as the interface has it */
int kib_error(int err);
/* kib_unresolved - the same, of an address that can't be reached */
int kib_unresolved(int status);

/* address.c */

/* kib_address_put, kib_address_get - an address as Linux has it */
void kib_address_put(struct sockaddr_storage *out, const struct kib_address *address);
void kib_address_get(struct kib_address *out, const struct sockaddr_storage *address);

/* link.c */

/* kib_link_new - a link of a port, without the device's objects; NULL without memory */
struct kib_link *kib_link_new(struct kib_port *port);
/* kib_link_equip - the device's objects of a link whose id has one. With link.lock. Returns 0 or -FI_E* */
int kib_link_equip(struct kib_link *link);
/* kib_link_strip - take them away. With link.lock */
void kib_link_strip(struct kib_link *link);
/* kib_link_put - give a reference back */
void kib_link_put(struct kib_link *link);

/* memory.c */

/* kib_maps_free - of windows and writes, once no device uses them. With link.lock, before the device's objects end */
void kib_maps_free(struct kib_link *link);
/* kib_window_ended, kib_write_ended - a completion of it. Return what the caller hears, or false: nothing */
bool kib_write_ended(struct kib_link *link, struct kib_write *write, struct kib_done *done);
void kib_window_ended(struct kib_link *link, struct kib_window *window, struct kib_done *done);

#endif
