/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The component: its parameters, its module, and the processes of the job. Called by Open MPI. */
#include "btl_weft.h"
#include <stdlib.h>
#include <string.h>
#include "opal/mca/btl/base/base.h"
#include "opal/util/proc.h"
#include "opal/util/output.h"
#include "rdma/fi_errno.h"

/*
 * us, for Open MPI's choice between transports. It has to differ from that of vader, 1: of two that
 * are alike osc/rdma of 4.1 takes the first that it meets, which is not the same one at each rank.
 */
#define LATENCY	     0
#define BANDWIDTH    10000 /* MB/s */
#define VERBOSE_CALL 10

/* s. A provider that watches over its peers, as Weft's do, has found a dead one by then. */
#define TIMEOUT 10

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
	case -FI_ECANCELED:
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
	endpoint->name = proc->proc_name;
	OPAL_THREAD_LOCK(&module->lock);
	opal_list_append(&module->endpoints, &endpoint->item);
	OPAL_THREAD_UNLOCK(&module->lock);
	*out = endpoint;
	return OPAL_SUCCESS;
}

static int add_procs(mca_btl_base_module_t *base, size_t cnt, struct opal_proc_t **procs,
		     struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
	struct btl_weft_module *module = btl_weft_module_of(base);

	for (size_t i = 0; i < cnt; i++) {
		endpoints[i] = NULL;
		if (add_proc(module, procs[i], &endpoints[i]) != OPAL_SUCCESS)
			continue;
		if (reachable)
			opal_bitmap_set_bit(reachable, (int)i);
	}
	return OPAL_SUCCESS;
}

/* Open MPI removes one that it has for messages and for memory twice: the endpoint itself stays until the end. */
static int del_procs(mca_btl_base_module_t *base, size_t cnt, struct opal_proc_t **procs,
		     struct mca_btl_base_endpoint_t **endpoints)
{
	struct btl_weft_module *module = btl_weft_module_of(base);

	for (size_t i = 0; i < cnt; i++) {
		if (endpoints[i])
			btl_weft_remove(module, endpoints[i], true);
		endpoints[i] = NULL;
	}
	return OPAL_SUCCESS;
}

static mca_btl_base_registration_handle_t *handle_of(opal_list_item_t *item)
{
	return (void *)((char *)item - offsetof(mca_btl_base_registration_handle_t, item));
}

/*
 * Open MPI ends without removing all processes and registrations. Nothing is told of operations: whose they were has
 * been unloaded, and has removed the processes before if it wanted to know.
 */
static int finalize(mca_btl_base_module_t *base)
{
	struct btl_weft_module *module = btl_weft_module_of(base);
	opal_list_item_t *item;
	int ret = 0;

	mca_btl_weft_component.module = NULL;
	btl_weft_messages_drop(module);
	while ((item = opal_list_remove_first(&module->endpoints))) {
		btl_weft_remove(module, (struct mca_btl_base_endpoint_t *)item, false);
		OBJ_DESTRUCT(item);
		free(item);
	}
	btl_weft_remove(module, &module->self, false);
	while (!ret && !opal_list_is_empty(&module->handles))
		ret = btl_weft_deregister(module,
					  handle_of(opal_list_get_first(&module->handles)));
	weft_btl_ctx_close(module->ctx);
	if (!ret)
		ret = weft_btl_close(module->btl);
	/* else the library may still use some */
	if (!ret)
		btl_weft_ops_close(module);
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
	module->self.name = OPAL_PROC_MY_NAME;
	OPAL_MODEX_SEND(ret, BTL_WEFT_MODEX_SCOPE, &mca_btl_weft_component.super.btl_version,
			name, len);
	if (ret == OPAL_SUCCESS)
		return 0;
	weft_btl_peer_close(module->self.peer);
	return -FI_EIO;
}

/* @threads: Open MPI may call from several at once */
static int open_transport(struct btl_weft_module *module, bool threads)
{
	struct weft_btl_attr attr = {
		.size = sizeof(attr),
		.provider = mca_btl_weft_component.provider,
		.device = mca_btl_weft_component.device,
		.device_cnt = (size_t)mca_btl_weft_component.devices,
		.flags = threads ? 0 : WEFT_BTL_ONE_THREAD,
	};
	int ret = weft_btl_open(&attr, &module->btl);

	if (ret)
		return ret;
	ret = weft_btl_ctx_open(module->btl, &module->ctx);
	if (!ret) {
		btl_weft_rdma_open(module);
		btl_weft_messages_open(module);
		ret = publish(module);
	}
	if (ret) {
		if (module->ctx)
			weft_btl_ctx_close(module->ctx);
		weft_btl_close(module->btl);
	}
	return ret;
}

/* Says why there is no transport; to everybody where somebody has asked for this one. */
static void refuse(int ret)
{
	const struct btl_weft_component *c = &mca_btl_weft_component;
	bool is_asked = c->provider || c->device || c->devices != 1;
	int verbosity = opal_output_get_verbosity(opal_btl_base_framework.framework_output);

	if (!is_asked && verbosity < VERBOSE_CALL)
		return;
	opal_output(
		0,
		"btl:weft: no transport over provider %s, device %s, at most %d of them (%d are "
		"supported): %s. The libfabric is version %u.%u",
		c->provider ? c->provider : "(any)", c->device ? c->device : "(any)",
		c->devices, WEFT_BTL_DEVICES_MAX, fi_strerror(-ret), FI_MAJOR(fi_version()),
		FI_MINOR(fi_version()));
}

static mca_btl_base_module_t **init(int *cnt, bool progress_threads, bool mpi_threads)
{
	struct btl_weft_module *module = calloc(1, sizeof(*module));
	mca_btl_base_module_t **modules = calloc(1, sizeof(*modules));
	int ret = -FI_ENOMEM;

	*cnt = 0;
	if (module && modules) {
		module->super = mca_btl_weft_component.limits;
		ret = open_transport(module, progress_threads || mpi_threads);
	}
	if (ret) {
		refuse(ret);
		free(module);
		free(modules);
		return NULL;
	}
	OBJ_CONSTRUCT(&module->lock, opal_mutex_t);
	OBJ_CONSTRUCT(&module->endpoints, opal_list_t);
	OBJ_CONSTRUCT(&module->handles, opal_list_t);
	mca_btl_weft_component.module = module;
	modules[0] = &module->super;
	*cnt = 1;
	return modules;
}

static void describe(mca_btl_base_module_t *m)
{
	m->btl_component = &mca_btl_weft_component.super;
	m->btl_exclusivity = MCA_BTL_EXCLUSIVITY_DEFAULT;
	m->btl_latency = LATENCY;
	m->btl_bandwidth = BANDWIDTH;
	m->btl_add_procs = add_procs;
	m->btl_del_procs = del_procs;
	m->btl_finalize = finalize;
	btl_weft_rdma_describe(m);
	btl_weft_messages_describe(m);
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
	c->timeout = TIMEOUT;
	mca_base_component_var_register(&c->super.btl_version, "timeout",
					"Seconds after which operations on a process that is "
					"removed, none of which ends, have failed (negative: "
					"never)",
					MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_3,
					MCA_BASE_VAR_SCOPE_READONLY, &c->timeout);
	describe(&c->limits);
	return mca_btl_base_param_register(&c->super.btl_version, &c->limits);
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
