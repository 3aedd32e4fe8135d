/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libweft-device: devices of other processes and hosts, borrowed. A lender offers devices; a borrower gets a lease on
 * one, and uses it by itself until the lease ends, without the lender:
 *
 *	struct weft_lender *lender;
 *	struct weft_device *dev;
 *	struct weft_segment *seg;
 *	struct weft_window *window;
 *
 *	weft_lender_open(NULL, NULL, &lender);
 *	weft_device_borrow(lender, NULL, &dev);			the first that is free
 *	weft_segment_alloc(NULL, 1 << 20, 0, &seg);		memory that devices can reach
 *	weft_window_open(dev, seg, WEFT_WINDOW_RW, &window);
 *	... weft/nvme.h: queue pairs, reads and writes ...
 *	weft_device_return(dev);
 *
 * Memory that devices and processes reach is in segments: memory of programs, and of devices (BARs). A place in one that
 * is exported has an address (struct weft_address), which is no other's on any host; processes of its own host import it.
 *
 * Threads: calls on a lender, its devices, segments and windows may be made by any thread. Nothing here ends the process.
 * Functions return 0 or a count, or a negative errno.
 */
#ifndef WEFT_DEVICE_H
#define WEFT_DEVICE_H

#include <rdma/fi_eq.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_DEVICE_NAME_MAX 64 /* with the zero byte */
#define WEFT_PROVIDER_MAX    32 /* likewise */
#define WEFT_LEASE_MS_MAX    86400000u

struct weft_lender;
struct weft_device;
struct weft_segment;
struct weft_window;

/*
 * struct weft_address - a place in the memory that a fabric shares
 * @node:       the host
 * @segment:    of the host
 * @generation: of the segment: an address of one that is gone is stale, and refused, also if the number is used again
 * @offset:     bytes into it
 */
struct weft_address {
	uint64_t node;
	uint32_t segment;
	uint32_t generation;
	uint64_t offset;
};

/* enum weft_device_class - what kind of device */
enum weft_device_class {
	WEFT_CLASS_ANY,
	WEFT_CLASS_NVME,
};

/*
 * enum weft_device_state - who has a device: nobody, several or one that has opened it for others, one; or its controller
 * does not answer
 */
enum weft_device_state {
	WEFT_DEVICE_FREE,
	WEFT_DEVICE_SHARED,
	WEFT_DEVICE_EXCLUSIVE,
	WEFT_DEVICE_FAILED,
};

/*
 * struct weft_device_info - a device that a lender offers
 * @id:        the same on every host, and after restarts of lender and controller
 * @node:      the lender's host
 * @name:      to print and to ask for: class, node and serial
 * @model, @serial: as the device says
 * @provider:  of OFI, over which borrowers of other hosts reach its lender; "": there is no way for them
 * @device_class: enum weft_device_class; @state: enum weft_device_state; @vendor: a number of PCI's
 * @leases:    that run
 * @blocks, @block_size: of an NVMe's first namespace
 * @queue_pairs, @queue_pairs_free: for borrowers
 * @reserved:  0
 */
struct weft_device_info {
	uint64_t id;
	uint64_t node;
	char name[WEFT_DEVICE_NAME_MAX];
	char model[48];
	char serial[24];
	char provider[WEFT_PROVIDER_MAX];
	uint32_t device_class;
	uint32_t state;
	uint32_t vendor;
	uint32_t leases;
	uint64_t blocks;
	uint32_t block_size;
	uint32_t queue_pairs;
	uint32_t queue_pairs_free;
	uint32_t reserved;
};

/* the number of such an event in an event queue */
#define WEFT_DEVICE_EVENT 0x77657674u

/*
 * enum weft_event_kind - what has happened. WEFT_EVENT_LEASE_ENDED: a lease of this process has run out, or was revoked;
 * WEFT_EVENT_LENDER_LOST: leases go on until their time runs out. Of a directory: WEFT_EVENT_DEVICE_CHANGED: who has a
 * device is not as it was; WEFT_EVENT_LENDER_ADDED, _REMOVED: a lender has registered, or it has died or its registration
 * has run out; WEFT_EVENT_DIRECTORY_LOST: nothing new is heard, what is known stays, and leases need no directory
 */
enum weft_event_kind {
	WEFT_EVENT_DEVICE_ADDED,
	WEFT_EVENT_DEVICE_REMOVED,
	WEFT_EVENT_LEASE_ENDED,
	WEFT_EVENT_LENDER_LOST,
	WEFT_EVENT_LENDER_BACK,
	WEFT_EVENT_DEVICE_CHANGED,
	WEFT_EVENT_LENDER_ADDED,
	WEFT_EVENT_LENDER_REMOVED,
	WEFT_EVENT_DIRECTORY_LOST,
	WEFT_EVENT_DIRECTORY_BACK,
};

/*
 * struct weft_event - what an event queue tells (struct weft_lender_attr)
 * @kind:   enum weft_event_kind
 * @lease:  which, of this process, or 0
 * @device: which, or 0: of the lender
 * @node:   of the lender, or 0: of the directory
 */
struct weft_event {
	uint32_t kind;
	uint32_t lease;
	uint64_t device;
	uint64_t node;
};

/*
 * struct weft_lender_attr - how to talk to a lender
 * @size: sizeof(struct weft_lender_attr); the struct only grows at its end
 * @eq:   events are written there with fi_eq_write(); NULL: nowhere
 */
struct weft_lender_attr {
	size_t size;
	struct fid_eq *eq;
};

/*
 * weft_lender_open - connect to a lender, or to a directory of lenders
 * @name: the path of its socket, or HOST or HOST:PORT, reached over the OFI provider that WEFT_FABRIC names, by default
 *	  tcp; or http:// or https:// URLs of a directory's members (etcd), with commas between; NULL: what WEFT_LENDER
 *	  says, else what WEFT_DIRECTORY does, else this user's lender, else the system's
 * @attr: NULL: what all zeros mean
 *
 * A directory is used as a lender that has what all of its lenders have: each call finds the right one by itself. What it
 * has said once is known from then on, and leases are borrowed, kept and returned without its help.
 *
 * Returns 0; -ECONNREFUSED: nobody is there, or of a host, answers in 10 s; -ETIMEDOUT: it does not answer in 10 s; -EACCES;
 * -ENOPROTOOPT: one of another version; of a directory also -EAGAIN: its members have no majority; -ETIMEDOUT: none
 * answers, each in 2 s; -EINVAL: these are no URLs; -EOPNOTSUPP: libweft-directory.so is not installed.
 */
int weft_lender_open(const char *name, const struct weft_lender_attr *attr,
		     struct weft_lender **lender);

/*
 * weft_lender_close - returns 0, or -EBUSY: a device is borrowed, or a segment exported by a directory, and nothing
 * happened
 */
int weft_lender_close(struct weft_lender *lender);

/*
 * weft_device_list - what a lender offers
 * @cnt: in: room at @infos; out: how many there are
 * Returns 0, or -FI_ETOOSMALL of rdma/fi_errno.h with @cnt set.
 */
int weft_device_list(struct weft_lender *lender, struct weft_device_info *infos, size_t *cnt);

#define WEFT_BORROW_SHARED (1u << 0) /* others may borrow it too */

/*
 * struct weft_borrow_attr - what to borrow
 * @size:         sizeof(struct weft_borrow_attr); the struct only grows at its end
 * @name:         of the device, or the beginning of one that is unique; NULL: the first that fits and is free
 * @device_class: WEFT_CLASS_ANY or one; @vendor: 0 or one
 * @flags:        WEFT_BORROW_*; without: exclusively
 * @ms:           how long from now; 0: 10 seconds. The library renews a lease in time as long as the process runs,
 *		  unless @keep is set: then it outlives the process, and weft_device_renew() is the program's
 * @reserved:     0
 */
struct weft_borrow_attr {
	size_t size;
	const char *name;
	uint32_t device_class;
	uint32_t vendor;
	uint32_t flags;
	uint32_t ms;
	uint32_t keep;
	uint32_t reserved;
};

/*
 * weft_device_borrow - get a lease
 * Returns 0; -ENODEV: no such device; -EBUSY: it is borrowed otherwise; -EINVAL; -ETIMEDOUT: the lender does
 * not answer.
 */
int weft_device_borrow(struct weft_lender *lender, const struct weft_borrow_attr *attr,
		       struct weft_device **dev);

/* weft_device_info - what is borrowed; valid until it is returned */
const struct weft_device_info *weft_device_info(const struct weft_device *dev);

/* weft_device_lease - the number of the lease, which events name */
uint32_t weft_device_lease(const struct weft_device *dev);

/*
 * weft_device_renew - have a lease end @ms from now
 * Returns 0; -ESTALE: it has ended; -ETIMEDOUT: the lender doesn't answer, and the lease ends when it would have.
 */
int weft_device_renew(struct weft_device *dev, uint32_t ms);

/* weft_device_share - let others borrow what was borrowed exclusively. Returns 0 or -ESTALE, -ETIMEDOUT. */
int weft_device_share(struct weft_device *dev);

/*
 * weft_device_return - end a lease, and close what it has open: queue pairs and windows are gone
 * No other call uses the device or what was opened on it. Returns 0. Where the lender does not answer the lease ends by
 * itself.
 */
int weft_device_return(struct weft_device *dev);

#define WEFT_TICKET_MAX 336 /* with the zero byte */

/*
 * weft_device_ticket - what another process needs to use a lease: a text without spaces, as secret as what is borrowed
 * @ticket: out: WEFT_TICKET_MAX bytes
 *
 * It says where the lender is, so that no directory is needed to find it; where that can't be said in a text without
 * spaces, it does not.
 */
void weft_device_ticket(const struct weft_device *dev, char *ticket);

/*
 * weft_lender_open_ticket - connect to the lender that has the lease of a ticket
 * @name:   as weft_lender_open() takes it. A lender that it names, or WEFT_LENDER where it is NULL, is the one. Else it is
 *	    the one that is where the ticket says, without a directory; and if that one is not there any more, or is
 *	    another one, what weft_lender_open() makes of @name
 * @ticket: for weft_device_attach() then
 * @attr:   NULL: what all zeros mean
 * Returns as weft_lender_open(), and -EBADMSG: it is no ticket.
 */
int weft_lender_open_ticket(const char *name, const char *ticket,
			    const struct weft_lender_attr *attr, struct weft_lender **lender);

/*
 * weft_device_attach - have a lease by its ticket
 * Returns 0; -EINVAL: no ticket; -ENODEV: of another lender; -EACCES; -ESTALE: it has ended; -ETIMEDOUT.
 */
int weft_device_attach(struct weft_lender *lender, const char *ticket, struct weft_device **dev);

/*
 * weft_device_leave - as weft_device_return(), but a lease that is kept goes on until its time runs out, and one
 * that was attached as long as who has borrowed it wants
 */
void weft_device_leave(struct weft_device *dev);

/*
 * struct weft_lease_info - a lease of anyone's
 * @device, @lease, @generation: how it is named
 * @ms:    until it ends
 * @flags: WEFT_BORROW_SHARED
 * @kept:  it outlives its process
 * @queue_pairs: that it has
 * @pid, @uid: of the process that has borrowed it
 */
struct weft_lease_info {
	uint64_t device;
	uint32_t lease;
	uint32_t generation;
	uint32_t ms;
	uint32_t flags;
	uint32_t kept;
	uint32_t queue_pairs;
	int32_t pid;
	uint32_t uid;
};

/* weft_lease_list - the leases on a device; as weft_device_list() */
int weft_lease_list(struct weft_lender *lender, uint64_t device, struct weft_lease_info *infos,
		    size_t *cnt);

/*
 * weft_lease_revoke - end a lease that another has; for the lender's user, and root
 * Returns 0: the device accesses nothing of it any more; -EINPROGRESS: it is of no use any more, but the device is at commands
 * of it still; -EACCES; -ESTALE: it has ended; -ENODEV; -ETIMEDOUT.
 */
int weft_lease_revoke(struct weft_lender *lender, const struct weft_lease_info *lease);

#define WEFT_SEGMENT_HUGE (1u << 0) /* of huge pages, where the host has some */

/* What is done to the memory most. It is placed by them, near whoever reads it: reads wait for an answer, writes do not. */
#define WEFT_HINT_DEVICE_READS	(1u << 8)
#define WEFT_HINT_DEVICE_WRITES (1u << 9)
#define WEFT_HINT_CPU_READS	(1u << 10)
#define WEFT_HINT_CPU_WRITES	(1u << 11)

/*
 * weft_segment_alloc - make a segment
 * @dev:   NULL: of this process's memory; else of the device's, or where the hints say
 * @flags: WEFT_SEGMENT_HUGE, WEFT_HINT_*
 * Returns 0; -ENOMEM; of a device without hints -EOPNOTSUPP: it has none, -ENOSPC: it is all in use.
 */
int weft_segment_alloc(struct weft_device *dev, size_t len, uint32_t flags,
		       struct weft_segment **seg);

/* weft_segment_why - where a segment is, and why there, as text */
const char *weft_segment_why(const struct weft_segment *seg);

/* weft_segment_free - returns 0, or -EBUSY: a window leads there, and nothing happened */
int weft_segment_free(struct weft_segment *seg);

/*
 * weft_segment_mem - where a segment is in this process, until it is freed
 *
 * Memory of a real controller that is lent without direct access has addresses here by which commands name it, and can't be
 * accessed.
 */
void *weft_segment_mem(const struct weft_segment *seg);

/* weft_segment_len - its bytes: what was asked for, up to a whole page or what the device gives */
size_t weft_segment_len(const struct weft_segment *seg);

#define WEFT_EXPORT_ALL \
	(1u << 0) /* for every user that may borrow; else for this one, and root */

/*
 * weft_segment_export - give a segment an address by which others reach it, while this lender is open
 * Returns 0; -EBUSY: it has one; -ENOSPC: the lender knows too many; -EINVAL; -ETIMEDOUT.
 */
int weft_segment_export(struct weft_lender *lender, struct weft_segment *seg, uint32_t flags,
			struct weft_address *addr);

/*
 * weft_segment_import - have a segment of another process, which may be a device's memory: loads and stores, windows
 * @addr: in the segment; its offset is of no matter
 * Returns 0; -ESTALE: there is no such segment any more; -EACCES; -EHOSTUNREACH: it is of another host; -ETIMEDOUT.
 */
int weft_segment_import(struct weft_lender *lender, const struct weft_address *addr,
			struct weft_segment **seg);

/* Segments of a multicast at most. */
#define WEFT_MULTICAST_MAX 32u

#define WEFT_WINDOW_READ  (1u << 0) /* the device reads there */
#define WEFT_WINDOW_WRITE (1u << 1) /* the device writes there */
#define WEFT_WINDOW_RW	  (WEFT_WINDOW_READ | WEFT_WINDOW_WRITE)

/*
 * weft_window_open - let a borrowed device access a segment
 * Where several windows lead to a segment, a command goes by the one that was opened last of those that allow its access.
 * Returns 0; -ESTALE; -EACCES: it is not this process's, and was not shared with it; -ENOSPC: the device has
 * no room for more windows; -ETIMEDOUT.
 */
int weft_window_open(struct weft_device *dev, struct weft_segment *seg, uint32_t access,
		     struct weft_window **window);

/*
 * weft_multicast_open - let a device write into several segments at once: what it stores for memory of the first one is
 * stored in all, at the same offset
 * @segs: @cnt of one length, each in one piece
 * Returns as weft_window_open(), and -EOPNOTSUPP: a segment of several pieces.
 */
int weft_multicast_open(struct weft_device *dev, struct weft_segment *const *segs, uint32_t cnt,
			struct weft_window **window);

/*
 * weft_window_close - when it returns 0 the device no longer accesses the segment by it
 * -EINPROGRESS: no command reaches it any more, but some that are under way do; -ETIMEDOUT. Then it is there still:
 * close it again.
 */
int weft_window_close(struct weft_window *window);

#ifdef __cplusplus
}
#endif

#endif
