/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The component: its parameters, its module, and the processes of the job. Called by Open MPI. */
#include "btl_weft.h"
#include <stdlib.h>
#include <string.h>
#include "opal/mca/btl/base/base.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/util/proc.h"
#include "opal/util/output.h"
#include "rdma/fi_errno.h"

#define LATENCY	     1	   /* us; for Open MPI's choice between transports */
#define BANDWIDTH    10000 /* MB/s */
#define VERBOSE_CALL 10

int btl_weft_error(int ret)
{
	switch (ret) {
	case 0:
		return OPAL_SUCCESS;
	case -FI_EAGAIN:
	case -FI_ENOMEM:
		return OPAL_ERR_OUT_OF_RESOURCE;
	case -FI_EOPNOTSUPP:
	case -FI_ENOSYS:
		return OPAL_ERR_NOT_AVAILABLE;
	case -FI_EHOSTUNREACH:
	case -FI_EADDRNOTAVAIL:
		return OPAL_ERR_UNREACH;
	default:
		return OPAL_ERROR;
	}
}

static int add_proc(struct btl_weft_module *module, struct opal_proc_t *proc,
		    struct mca_btl_base_endpoint_t **out)
{
	struct mca_btl_base_endpoint_t *endpoint;
	void *name = NULL;
	size_t len = 0;
	int ret;

	OPAL_MODEX_RECV(ret, &mca_btl_weft_component.super.btl_version, &proc->proc_name, &name,
			&len);
	if (ret != OPAL_SUCCESS)
		return ret;
	endpoint = calloc(1, sizeof(*endpoint));
	ret = endpoint ? weft_btl_peer_open(module->btl, name, len, &endpoint->peer)
		       : -FI_ENOMEM;
	free(name);
	if (ret) {
		free(endpoint);
		return btl_weft_error(ret);
	}
	OBJ_CONSTRUCT(&endpoint->item, opal_list_item_t);
	OPAL_THREAD_LOCK(&module->lock);
	opal_list_append(&module->endpoints, &endpoint->item);
	OPAL_THREAD_UNLOCK(&module->lock);
	*out = endpoint;
	return OPAL_SUCCESS;
}

static void remove_locked(struct btl_weft_module *module,
			  struct mca_btl_base_endpoint_t *endpoint)
{
	weft_btl_flush(module->ctx, endpoint->peer);
	opal_list_remove_item(&module->endpoints, &endpoint->item);
	OBJ_DESTRUCT(&endpoint->item);
	weft_btl_peer_close(endpoint->peer);
	free(endpoint);
}

static int add_procs(mca_btl_base_module_t *base, size_t cnt, struct opal_proc_t **procs,
		     struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
	struct btl_weft_module *module = (struct btl_weft_module *)base;

	for (size_t i = 0; i < cnt; i++) {
		endpoints[i] = NULL;
		if (add_proc(module, procs[i], &endpoints[i]) != OPAL_SUCCESS)
			continue;
		if (reachable)
			opal_bitmap_set_bit(reachable, (int)i);
	}
	return OPAL_SUCCESS;
}

static int del_procs(mca_btl_base_module_t *base, size_t cnt, struct opal_proc_t **procs,
		     struct mca_btl_base_endpoint_t **endpoints)
{
	struct btl_weft_module *module = (struct btl_weft_module *)base;

	OPAL_THREAD_LOCK(&module->lock);
	for (size_t i = 0; i < cnt; i++) {
		if (endpoints[i])
			remove_locked(module, endpoints[i]);
		endpoints[i] = NULL;
	}
	OPAL_THREAD_UNLOCK(&module->lock);
	return OPAL_SUCCESS;
}

static void free_ops(struct btl_weft_module *module)
{
	while (module->free) {
		struct btl_weft_op *op = module->free;

		module->free = op->next;
		free(op);
	}
}

static mca_btl_base_registration_handle_t *handle_of(opal_list_item_t *item)
{
	return (void *)((char *)item - offsetof(mca_btl_base_registration_handle_t, item));
}

/* Open MPI ends without removing all processes and registrations. */
static int finalize(mca_btl_base_module_t *base)
{
	struct btl_weft_module *module = (struct btl_weft_module *)base;
	mca_btl_base_registration_handle_t *handle;
	opal_list_item_t *item;
	int ret = 0;

	mca_btl_weft_component.module = NULL;
	weft_btl_flush(module->ctx, NULL);
	while (!ret && (item = opal_list_remove_first(&module->handles))) {
		handle = handle_of(item);
		ret = weft_btl_mem_close(handle->mem);
		free(handle);
	}
	while (!opal_list_is_empty(&module->endpoints)) {
		item = opal_list_get_first(&module->endpoints);
		remove_locked(module, (struct mca_btl_base_endpoint_t *)item);
	}
	weft_btl_peer_close(module->self.peer);
	weft_btl_ctx_close(module->ctx);
	if (!ret)
		ret = weft_btl_close(module->btl);
	free_ops(module);
	OBJ_DESTRUCT(&module->endpoints);
	OBJ_DESTRUCT(&module->handles);
	OBJ_DESTRUCT(&module->lock);
	free(module);
	return btl_weft_error(ret);
}

/* Tells the other processes of the job how to reach this one, and this one how to reach itself. */
static int publish(struct btl_weft_module *module)
{
	unsigned char name[WEFT_BTL_NAME_MAX];
	size_t len = sizeof(name);
	int ret = weft_btl_name(module->btl, name, &len);

	if (!ret)
		ret = weft_btl_peer_open(module->btl, name, len, &module->self.peer);
	if (ret)
		return ret;
	OPAL_MODEX_SEND(ret, OPAL_PMIX_GLOBAL, &mca_btl_weft_component.super.btl_version, name,
			len);
	if (ret == OPAL_SUCCESS)
		return 0;
	weft_btl_peer_close(module->self.peer);
	return -FI_EIO;
}

static int open_transport(struct btl_weft_module *module)
{
	struct weft_btl_attr attr = {
		.size = sizeof(attr),
		.provider = mca_btl_weft_component.provider,
		.device = mca_btl_weft_component.device,
		.device_cnt = (size_t)mca_btl_weft_component.devices,
	};
	int ret = weft_btl_open(&attr, &module->btl);

	if (ret)
		return ret;
	ret = weft_btl_ctx_open(module->btl, &module->ctx);
	if (!ret)
		ret = publish(module);
	if (ret) {
		if (module->ctx)
			weft_btl_ctx_close(module->ctx);
		weft_btl_close(module->btl);
	}
	return ret;
}

static void describe(struct btl_weft_module *module)
{
	mca_btl_base_module_t *m = &module->super;

	m->btl_component = &mca_btl_weft_component.super;
	m->btl_exclusivity = MCA_BTL_EXCLUSIVITY_DEFAULT;
	m->btl_latency = LATENCY;
	m->btl_bandwidth = BANDWIDTH;
	m->btl_registration_handle_size = WEFT_BTL_HANDLE_MAX;
	m->btl_get_limit = m->btl_put_limit = SIZE_MAX;
	m->btl_get_local_registration_threshold = SIZE_MAX;
	m->btl_put_local_registration_threshold = SIZE_MAX;
	m->btl_add_procs = add_procs;
	m->btl_del_procs = del_procs;
	m->btl_finalize = finalize;
	btl_weft_rdma(m);
}

static mca_btl_base_module_t **init(int *cnt, bool progress_threads, bool mpi_threads)
{
	struct btl_weft_module *module = calloc(1, sizeof(*module));
	mca_btl_base_module_t **modules = calloc(1, sizeof(*modules));
	int ret = module && modules ? open_transport(module) : -FI_ENOMEM;

	*cnt = 0;
	if (ret) {
		opal_output_verbose(VERBOSE_CALL, opal_btl_base_framework.framework_output,
				    "btl:weft: no transport: %s", fi_strerror(-ret));
		free(module);
		free(modules);
		return NULL;
	}
	OBJ_CONSTRUCT(&module->lock, opal_mutex_t);
	OBJ_CONSTRUCT(&module->endpoints, opal_list_t);
	OBJ_CONSTRUCT(&module->handles, opal_list_t);
	describe(module);
	mca_btl_weft_component.module = module;
	modules[0] = &module->super;
	*cnt = 1;
	return modules;
}

static void text_param(const char *name, const char *help, char **value)
{
	*value = NULL;
	mca_base_component_var_register(&mca_btl_weft_component.super.btl_version, name, help,
					MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3,
					MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int register_params(void)
{
	struct btl_weft_component *c = &mca_btl_weft_component;

	text_param("provider",
		   "Name of libfabric's provider (default: the first that has what is needed)",
		   &c->provider);
	text_param("device", "Name of the provider's domain (default: any)", &c->device);
	c->devices = 1;
	mca_base_component_var_register(&c->super.btl_version, "devices",
					"How many devices to use at most",
					MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_3,
					MCA_BASE_VAR_SCOPE_READONLY, &c->devices);
	return OPAL_SUCCESS;
}

static int succeed(void)
{
	return OPAL_SUCCESS;
}

struct btl_weft_component mca_btl_weft_component = {
	.super = {
		.btl_version = {
			MCA_BTL_DEFAULT_VERSION("weft"),
			.mca_open_component = succeed,
			.mca_close_component = succeed,
			.mca_register_component_params = register_params,
		},
		.btl_data = { .param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT },
		.btl_init = init,
		.btl_progress = btl_weft_progress,
	},
};
