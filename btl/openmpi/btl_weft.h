/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Open MPI's transport component "weft": its BTL interface over libweft-btl. One module, over all
 * devices of one transport, with one context.
 *
 * Threads: Open MPI may call from several; the module's lock makes them one, since a context is one
 * thread's. No function of Open MPI's is called with the lock held: it may hold locks of its own
 * while it calls here. A message arrives while the context makes progress, under the lock; where
 * there are threads it is therefore copied, and delivered after the lock has been released. Without
 * threads Open MPI's locks do nothing, and a message is delivered where it arrives.
 */
#ifndef BTL_WEFT_H
#define BTL_WEFT_H

#include "versions.h"
#include "opal/class/opal_list.h"
#include "weft/btl.h"

/*
 * struct mca_btl_base_registration_handle_t - what Open MPI carries to peers and gives back with
 * each operation
 * @bytes: all that peers get: btl_registration_handle_size is its size
 * @item:  in the module's list; this and @mem are in the process that registered alone
 */
struct mca_btl_base_registration_handle_t {
	unsigned char bytes[WEFT_BTL_HANDLE_MAX];
	opal_list_item_t item;
	struct weft_btl_mem *mem;
};

struct btl_weft_module;
struct btl_weft_op;

/* struct btl_weft_ops - operations in their order */
struct btl_weft_ops {
	struct btl_weft_op *first, *last;
};

/*
 * struct mca_btl_base_endpoint_t - a process of the job
 * @item:    in the module's list
 * @name:    Open MPI's
 * @peer:    NULL once it has been removed
 * @pending: what the device did not take yet, in its order
 * @left:    operations that are pending or begun
 * @idle_ns: while it is waited for: since when none has ended; 0: one has
 * @next:    of the module's endpoints with something pending
 */
struct mca_btl_base_endpoint_t {
	opal_list_item_t item;
	opal_process_name_t name;
	struct weft_btl_peer *peer;
	struct btl_weft_ops pending;
	size_t left;
	uint64_t idle_ns;
	struct mca_btl_base_endpoint_t *next;
};

/*
 * enum btl_weft_state - where an operation is
 * BTL_WEFT_NONE:    nothing is under way
 * BTL_WEFT_PENDING: the device has not taken it yet
 * BTL_WEFT_BEGUN:   the library has it
 * BTL_WEFT_LOST:    the library has it, perhaps for ever, and Open MPI was told that it has failed
 */
enum btl_weft_state { BTL_WEFT_NONE, BTL_WEFT_PENDING, BTL_WEFT_BEGUN, BTL_WEFT_LOST };

/*
 * struct btl_weft_op - an operation or a message
 * @next:     in whichever list it is
 * @all:      of all that the module has ever had
 * @endpoint: where to; not NULL while there is something under way
 * @is_given: of one that is lost: it is free as soon as the library has ended it
 * @begin:    begins it, with the module's lock held. Returns 0; 1: it has ended; or -FI_E*
 * @end:      gives it back and tells Open MPI, with the lock not held; @op.status says how it ended
 * @give:     puts it among the free ones, with the lock held; called by btl_weft_give_locked()
 * @destroy:  frees it
 */
struct btl_weft_op {
	struct weft_btl_op op;
	struct btl_weft_op *next, *all;
	struct mca_btl_base_endpoint_t *endpoint;
	enum btl_weft_state state;
	bool is_given;
	int (*begin)(struct btl_weft_module *module, struct btl_weft_op *op);
	void (*end)(struct btl_weft_module *module, struct btl_weft_op *op);
	void (*give)(struct btl_weft_module *module, struct btl_weft_op *op);
	void (*destroy)(struct btl_weft_op *op);
};

/*
 * struct btl_weft_tag - the module's listener for a tag of Open MPI's; the library knows it by the
 * same number
 */
struct btl_weft_tag {
	struct btl_weft_module *module;
	mca_btl_base_tag_t tag;
};

struct btl_weft_rdma;
struct btl_weft_message;

/*
 * struct btl_weft_module
 * @lock:     protects all below but @message_max, @self and @tags, which do not change
 * @polling:  the only thread there is makes progress, and is perhaps in a function of Open MPI's
 * @ops:      all operations and messages, by their @all
 * @rdma, @small, @large: free ones
 * @message_max: bytes of the library's longest message
 * @waiting:  endpoints with something pending, of @pending_cnt operations in all
 * @left:     operations to all endpoints that are pending or begun
 * @endpoints, @handles: what Open MPI has and may leave open
 * @received: messages to be delivered; in the order in which they arrived
 * @delivers: a thread delivers them
 * @self:     the endpoint to this process, for callers that name none
 */
struct btl_weft_module {
	mca_btl_base_module_t super;
	struct weft_btl *btl;
	opal_mutex_t lock;
	struct weft_btl_ctx *ctx;
	bool polling;
	struct btl_weft_op *ops;
	struct btl_weft_rdma *rdma;
	struct btl_weft_message *small, *large;
	size_t message_max;
	struct mca_btl_base_endpoint_t *waiting;
	size_t pending_cnt, left;
	opal_list_t endpoints, handles;
	struct btl_weft_message *received, *received_last;
	bool delivers;
	struct mca_btl_base_endpoint_t self;
	struct btl_weft_tag tags[MCA_BTL_TAG_MAX];
};

/*
 * struct btl_weft_component - and its parameters
 * @provider, @device: NULL for any
 * @devices:  how many at most
 * @timeout:  s; negative: there is none
 * @limits:   Open MPI's own parameters of a transport; modules begin as copies of it
 */
struct btl_weft_component {
	mca_btl_base_component_3_0_0_t super;
	char *provider;
	char *device;
	int devices;
	int timeout;
	mca_btl_base_module_t limits;
	struct btl_weft_module *module;
};

extern struct btl_weft_component mca_btl_weft_component;

static inline struct btl_weft_module *btl_weft_module_of(mca_btl_base_module_t *base)
{
	return (struct btl_weft_module *)base;
}

/* btl_weft_error - what Open MPI calls an error of the transport's */
int btl_weft_error(int ret);

/*
 * Operations under way: progress.c
 */

/* btl_weft_add_locked - a new operation or message, whose functions are set, is the module's */
void btl_weft_add_locked(struct btl_weft_module *module, struct btl_weft_op *op);

/*
 * btl_weft_begin_locked - begin an operation, or keep it until the device takes it
 * @op: taken, unless an error or 1 is returned
 * Returns 0; 1: it has ended; or -FI_E*: -FI_EAGAIN: too many wait already; -FI_EHOSTUNREACH: the
 * endpoint was removed.
 */
int btl_weft_begin_locked(struct btl_weft_module *module, struct btl_weft_op *op);

/*
 * btl_weft_try_locked - the same, but for keeping it
 * -FI_EAGAIN: the device does not take it now, or others wait.
 */
int btl_weft_try_locked(struct btl_weft_module *module, struct btl_weft_op *op);

/*
 * btl_weft_give_locked - an operation is not used any more but perhaps by the library, which it may
 * be lost to
 */
void btl_weft_give_locked(struct btl_weft_module *module, struct btl_weft_op *op);

/*
 * btl_weft_progress - the component's progress function
 * Returns how many operations and messages there were.
 */
int btl_weft_progress(void);

/*
 * btl_weft_flush - wait until what is under way to an endpoint has ended; NULL: to all
 * Returns Open MPI's code.
 */
int btl_weft_flush(mca_btl_base_module_t *base, struct mca_btl_base_endpoint_t *endpoint);

/*
 * btl_weft_remove - end what there is to an endpoint, and forget the process; the lock is not held
 * @tells: Open MPI is still there to be told of what ends
 *
 * What is under way and pending is carried out, as long as some of it ends within the time that a
 * parameter says. What then is left has failed: of each operation Open MPI is told once. A peer's
 * device need not say that it has died: libfabric's shm never ends what is under way to it.
 */
void btl_weft_remove(struct btl_weft_module *module, struct mca_btl_base_endpoint_t *endpoint,
		     bool tells);

/* btl_weft_ops_close - free all operations and messages, once the transport is closed */
void btl_weft_ops_close(struct btl_weft_module *module);

/*
 * Memory, puts, gets and atomics: rdma.c
 */

/* btl_weft_rdma_describe - fill in the functions and limits for them */
void btl_weft_rdma_describe(mca_btl_base_module_t *base);

/* btl_weft_rdma_open - narrow a module's flags to what its transport has */
void btl_weft_rdma_open(struct btl_weft_module *module);

/* btl_weft_deregister - end a registration, with the module's lock held. Returns 0 or -FI_E* */
int btl_weft_deregister(struct btl_weft_module *module,
			struct mca_btl_base_registration_handle_t *handle);

/*
 * Messages: messages.c
 */

/* btl_weft_messages_describe - fill in the functions and limits for them */
void btl_weft_messages_describe(mca_btl_base_module_t *base);

/*
 * btl_weft_messages_open - listen, and narrow a module's flags and limits to what its transport has
 */
void btl_weft_messages_open(struct btl_weft_module *module);

/* btl_weft_messages_drop - deliver nothing any more: whom it was for is no longer loaded */
void btl_weft_messages_drop(struct btl_weft_module *module);

/*
 * btl_weft_messages_deliver - deliver what has arrived, in order
 *
 * One thread delivers at a time; another one's messages are left to it. The module's lock is not
 * held.
 * Returns how many messages there were.
 */
int btl_weft_messages_deliver(struct btl_weft_module *module);

#endif
