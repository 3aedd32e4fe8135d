/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Open MPI's transport component "weft": its BTL interface over libweft-btl. One module, over all devices of one
 * transport. Open MPI may call from several threads; the module's lock makes them one, since a context is one thread's.
 */
#ifndef BTL_WEFT_H
#define BTL_WEFT_H

#include "opal_config.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/btl.h"
#include "opal/threads/mutex.h"
#include "weft/btl.h"

/*
 * struct mca_btl_base_registration_handle_t - what Open MPI carries to peers and gives back with each operation
 * @bytes: all that peers get: btl_registration_handle_size is its size
 * @item:  in the module's list; this and @mem are in the process that registered alone
 */
struct mca_btl_base_registration_handle_t {
	unsigned char bytes[WEFT_BTL_HANDLE_MAX];
	opal_list_item_t item;
	struct weft_btl_mem *mem;
};

/* struct mca_btl_base_endpoint_t - a process of the job; @item: in the module's list */
struct mca_btl_base_endpoint_t {
	opal_list_item_t item;
	struct weft_btl_peer *peer;
};

/*
 * struct btl_weft_op - an operation under way
 * @next: in the module's list of free ones
 * @own:  a registration of the target that ends with the operation, or NULL
 */
struct btl_weft_op {
	struct weft_btl_op op;
	struct btl_weft_op *next;
	struct mca_btl_base_endpoint_t *endpoint;
	void *local_address;
	struct mca_btl_base_registration_handle_t *local_handle;
	struct mca_btl_base_registration_handle_t *own;
	mca_btl_base_rdma_completion_fn_t cbfunc;
	void *cbcontext;
	void *cbdata;
};

/*
 * struct btl_weft_module
 * @lock:  protects the context, @free and the lists
 * @endpoints, @handles: what Open MPI has and may leave open
 * @self:  the endpoint to this process, for callers that name none
 */
struct btl_weft_module {
	mca_btl_base_module_t super;
	opal_mutex_t lock;
	struct weft_btl *btl;
	struct weft_btl_ctx *ctx;
	struct btl_weft_op *free;
	opal_list_t endpoints, handles;
	struct mca_btl_base_endpoint_t self;
};

/* struct btl_weft_component - and its parameters: @provider and @device, NULL for any; @devices, how many at most */
struct btl_weft_component {
	mca_btl_base_component_3_0_0_t super;
	char *provider;
	char *device;
	int devices;
	struct btl_weft_module *module;
};

extern struct btl_weft_component mca_btl_weft_component;

/* btl_weft_error - what Open MPI calls an error of the transport's */
int btl_weft_error(int ret);

/* btl_weft_rdma - fill in the operations of a module; rdma.c */
void btl_weft_rdma(mca_btl_base_module_t *module);

/* btl_weft_deregister - end a registration, with the module's lock held. Returns 0 or -FI_E* */
int btl_weft_deregister(struct btl_weft_module *module,
			struct mca_btl_base_registration_handle_t *handle);

/* btl_weft_progress - the component's progress function; rdma.c */
int btl_weft_progress(void);

#endif
