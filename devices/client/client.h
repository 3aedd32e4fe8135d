/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of libweft-device share; weft/device.h and weft/nvme.h are what programs see.
 *
 * Locks: lender_lock() is of a lender's connection, and held for a request and its answer; @devices_lock, which may be
 * taken within it, of the list of its devices; a device's @lock, which may be taken within that, of its windows and queue
 * pairs.
 * Within any of them the locks of lenders.h may be taken, and within all, @path_lock of @path, @provider and
 * @keeper_fd.
 */
#ifndef WEFT_DEVICES_CLIENT_H
#define WEFT_DEVICES_CLIENT_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <weft/nvme.h>

#include "door.h"
#include "message.h"
#include "packet.h"

/* How long an answer is waited for: a lender that runs answers within that on a host with much to do, too. */
#define LENDER_ANSWER_MS 10000

/* Between two requests for an end that waits for commands under way. */
#define LENDER_PAUSE_MS 20

/* Devices that a lender may have. */
#define LENDER_DEVICES_MAX 65536u
/* And leases that one may have */
#define LENDER_LEASES_MAX 65536u

/* Namespaces of which a device's properties are kept, by number. */
#define DEVICE_NAMESPACES 16u

/*
 * struct weft_lender - a connection to a lender, or a directory of many
 * @directory: it is one, and nothing below is of use; NULL: it is a connection
 * @listed: of the directory that has opened it; NULL: the program has
 * @path:   of its socket, or its host; its directory may find another one
 * @remote: it is of another host, and reached by @provider; "": the default one. WEFT_FABRIC comes first
 * @doors:  connections to it, if it is @remote
 * @lock:   of @held; @released is signalled when that becomes false
 * @held:   a thread is within lender_lock() and lender_unlock(), and has @fd
 * @fd:     requests; -1: it is lost, and the keeper tries to connect again
 * @seq:    of the last request, over whichever connection
 * @keeper: renews leases, hears of events
 * @keeper_fd: over which the keeper waits for an answer; -1: it does not. Under @path_lock
 * @wake:   an eventfd that has the keeper look again; @stop: it is to end
 */
struct weft_lender {
	struct directory *directory;
	struct listed *listed;
	pthread_mutex_t lock;
	pthread_cond_t released;
	bool held;
	pthread_mutex_t path_lock;
	char path[256];
	bool remote;
	struct doors doors;
	char provider[WEFT_PROVIDER_MAX];
	int fd;
	_Atomic uint32_t seq;
	uint64_t node;
	struct fid_eq *eq;
	pthread_mutex_t devices_lock;
	struct weft_device *devices;
	pthread_t keeper;
	int keeper_fd;
	int wake;
	atomic_bool stop;
};

/*
 * struct span - memory of a segment that a device reaches in one piece
 * @access: WEFT_WINDOW_*
 * @order:  in which windows were opened
 */
struct span {
	uintptr_t mem;
	size_t len;
	uint64_t addr;
	uint32_t access;
	uint32_t order;
};

/* struct namespace - what is known of a namespace; @block_size 0: nothing yet */
struct namespace
{
	uint64_t blocks;
	uint32_t block_size;
	uint32_t transfer_max;
};

/*
 * struct weft_device - a lease
 * @ended:    not 0: why there is no lease any more, a negative errno; the controller has ended it, or will have
 * @told:     the keeper has told of that
 * @over_ms:  CLOCK_BOOTTIME: the controller has ended the lease by then, unless it was renewed
 * @attached: by its ticket: who has borrowed it renews and ends it
 * @renew_ms: when the keeper renews it, or, where others do, looks how long it still runs
 * @spans:    by address, of one the newest first; @spans_version counts their changes
 * @remote_spans: that have been opened, of a device of another host
 * @windows, @pairs: that are open
 * @refs:     the borrower, the keeper while it renews, and segments of the device's memory
 */
struct weft_device {
	struct weft_device *next;
	struct weft_lender *lender;
	struct weft_device_info info;
	uint32_t lease;
	uint32_t generation;
	struct lease_token token;
	bool kept, attached;
	uint32_t ms;
	uint64_t renew_ms;
	atomic_int ended;
	bool told;
	_Atomic uint64_t over_ms;
	pthread_mutex_t lock;
	struct span *spans;
	uint32_t span_cnt;
	_Atomic uint32_t spans_version;
	_Atomic uint64_t remote_spans;
	struct namespace namespaces[DEVICE_NAMESPACES + 1];
	struct weft_window *windows;
	struct weft_nvme *pairs;
	atomic_uint refs;
};

/*
 * struct weft_segment - memory that devices can reach
 * @fds:     of its files, @part bytes each, one behind the other in @mem
 * @dev:     whose memory it is; NULL: this process's
 * @first:   granule
 * @windows: that lead there
 * @hidden:  the device's memory, which the processor does not reach
 * @why:     weft_segment_why()
 * @exported: the lender at which it has @address; NULL: nowhere
 */
struct weft_segment {
	void *mem;
	size_t len;
	size_t part;
	int *fds;
	uint32_t fd_cnt;
	struct weft_device *dev;
	uint32_t first;
	bool hidden;
	atomic_uint windows;
	const char *why;
	struct weft_lender *exported;
	struct weft_address address;
};

/*
 * struct weft_window - what a device reaches
 * @segs:  @seg_cnt of them: one, or those of a multicast
 * @spans: @span_cnt: for each file of the segment; of a multicast one
 * @last:  nobody else has the segment: it goes with the window
 */
struct weft_window {
	struct weft_window *next;
	struct weft_device *dev;
	struct weft_segment **segs;
	uint32_t seg_cnt;
	struct span *spans;
	uint32_t span_cnt;
	bool last;
};

uint64_t client_now_ms(void);

/*
 * struct request - a request to a lender and its answer
 * @data, @data_room: of what follows the message; the message says how much
 * @until_ms: client_now_ms(): the answer is waited for no longer than until then, either; 0: no such time
 * @fds:     beside the request; those of the answer are in @got, owned by the caller
 */
struct request {
	struct lease_message msg;
	void *data;
	uint32_t data_room;
	uint64_t until_ms;
	const int *fds;
	int got[PACKET_FDS_MAX];
};

/*
 * lender_open - as weft_lender_open(), to a lender alone
 * @provider: by which one of another host is reached; "": the default one
 * @listed: of the directory that opens it, or NULL
 */
int lender_open(const char *name, const char *provider, struct fid_eq *eq,
		struct listed *listed, struct weft_lender **lender);

/* lender_move - it is connected to at another path, or host and provider, from now on; nothing if the path is "" */
void lender_move(struct weft_lender *lender, const char *path, const char *provider);

/* lender_path - its path, or host, just now. @path: out: has the room of that of a lender */
void lender_path(struct weft_lender *lender, char *path);

/* lender_release - what has held a lender of a directory needs it no more; nothing for others */
void lender_release(struct weft_lender *lender);

/* lender_lock, lender_unlock - have the connection to oneself; any thread, and no call of ours is made before the lock is had */
void lender_lock(struct weft_lender *lender);
void lender_unlock(struct weft_lender *lender);

/*
 * lender_ask - send a request and take its answer in its place
 * Returns the answer's status; -ETIMEDOUT: there is none LENDER_ANSWER_MS after it was sent, which may be as much later, or
 * at its @until_ms.
 */
int lender_ask(struct weft_lender *lender, struct request *request);

/*
 * lender_ask_end - ask for an end that may have to wait for commands under way, again and again for LENDER_ANSWER_MS
 * Returns as lender_ask(), and -EINPROGRESS: the time is over.
 */
int lender_ask_end(struct weft_lender *lender, const struct lease_message *msg);

/* lender_take_info - out: the device that an answer has. Returns 0 or -ENOPROTOOPT */
int lender_take_info(const struct request *request, struct weft_device_info *info);

/* lender_connect - out: a new connection to a lender. Returns it, or a negative errno */
int lender_connect(struct weft_lender *lender);

/* lender_ask_over - as lender_ask(), over a connection; other errors mean that it is of no use any more */
int lender_ask_over(struct weft_lender *lender, int fd, struct request *request);

/* keeper_start, keeper_stop - the thread that renews leases and hears of events. Returns 0 or a negative errno. */
int keeper_start(struct weft_lender *lender);
void keeper_stop(struct weft_lender *lender);

/* keeper_wake - have the keeper look at the devices again */
void keeper_wake(struct weft_lender *lender);

/*
 * device_ask - a request about a lease; -ESTALE: it has ended, or must have before an answer came. The message names the
 * lease when it returns.
 */
int device_ask(struct weft_device *dev, struct request *request);

/* device_name - have a message name the lease */
void device_name(const struct weft_device *dev, struct lease_message *msg);

/* device_ask_end - as lender_ask_end(), about a lease, until client_now_ms() is @until_ms; as device_ask() where it has ended */
int device_ask_end(struct weft_device *dev, const struct lease_message *msg, uint64_t until_ms);

/* request_fds_lost - whether @err is that of an answer which has what was asked for, and whose descriptors do not fit here */
static inline bool request_fds_lost(const struct request *request, int err)
{
	return err == -EMFILE && !request->msg.status && request->msg.fd_cnt;
}

/*
 * device_keep - renew a lease, or learn how long one runs that others renew
 * @until_ms: as a request's
 * Returns 0 or a negative errno.
 */
int device_keep(struct weft_device *dev, uint64_t until_ms);

/*
 * device_ticket - out: the lease that a ticket names, as a message does
 * @place: out: where its lender was, in @ticket; NULL: it does not say
 * Returns 0 or -EINVAL.
 */
int device_ticket(const char *ticket, struct lease_message *msg, const char **place);

/* device_end - the lease has ended, because of @err. The keeper tells of that, and wakes who sleeps */
void device_end(struct weft_device *dev, int err);

/* device_ended - 0, or -errno: the lease has ended, or must have by now; the latter is looked up if @look */
int device_ended(struct weft_device *dev, bool look);

/* device_wake - have who sleeps until a queue pair interrupts look at it */
void device_wake(struct weft_device *dev);

/* device_unref - nobody has it any more, and it is gone, if this was the last one who had */
void device_unref(struct weft_device *dev);

/* device_namespace - what is known of a namespace, asked for once. Returns 0 or a negative errno. */
int device_namespace(struct weft_device *dev, uint32_t nsid, struct namespace *ns);

/* client_file_has - whether a file that came is as long as it is said to be: behind its end there is no memory */
bool client_file_has(int fd, uint64_t end);

/* segment_map - map the files of a segment, side by side. Returns 0 or a negative errno */
int segment_map(struct weft_segment *seg);

/* segment_unexport - it has no address any more */
void segment_unexport(struct weft_segment *seg);

/* spans_copy - out: the spans of a device as they are now, owned (free()), and their version. Returns 0 or -ENOMEM */
int spans_copy(struct weft_device *dev, struct span **spans, uint32_t *cnt, uint32_t *version);

#endif
