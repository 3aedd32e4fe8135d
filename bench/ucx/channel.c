/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tools/shared/channel.h over UCX: tagged messages of a worker, as a program for UCX sends them. The
 * provider's name is what UCX_TLS would say. One channel per process.
 */
#define _GNU_SOURCE
#include "ucx.h"
#include "figures.h"

#include <dlfcn.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 0x77656674 /* "weft" */

struct ucx ucx;

static char transports[PLAN_PROVIDER_MAX];

int ucx_complain(const char *what, ucs_status_t status)
{
	warnx("%s: %s", what, ucs_status_string(status));
	return -FI_EIO;
}

static int open_context(const struct plan *plan)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG,
	};
	ucp_config_t *config;
	ucs_status_t status;

	if (plan->tests & FIGURES_RMA)
		params.features |= UCP_FEATURE_RMA;
	if (plan->tests & FIGURE_BIT(FIGURE_ATOMIC))
		params.features |= UCP_FEATURE_AMO64;
	status = ucp_config_read(NULL, NULL, &config);
	if (status)
		return ucx_complain("ucp_config_read", status);
	if (plan->provider[0])
		status = ucp_config_modify(config, "TLS", plan->provider);
	if (!status)
		status = ucp_init(&params, config, &ucx.context);
	ucp_config_release(config);
	return status ? ucx_complain("ucp_init", status) : 0;
}

static int open_worker(void)
{
	ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	ucs_status_t status = ucp_worker_create(ucx.context, &params, &ucx.worker);

	return status ? ucx_complain("ucp_worker_create", status) : 0;
}

static int meet(struct channel *ch)
{
	unsigned char theirs[OOB_BLOB_MAX];
	size_t mine_len, theirs_len = sizeof(theirs);
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
		.address = (const ucp_address_t *)theirs,
	};
	ucp_address_t *mine;
	ucs_status_t status;
	int rc;

	status = ucp_worker_get_address(ucx.worker, &mine, &mine_len);
	if (status)
		return ucx_complain("ucp_worker_get_address", status);
	rc = oob_exchange(&ch->side->oob, mine, mine_len, theirs, &theirs_len);
	ucp_worker_release_address(ucx.worker, mine);
	if (rc)
		return rc;
	status = ucp_ep_create(ucx.worker, &params, &ucx.peer);
	return status ? ucx_complain("ucp_ep_create", status) : 0;
}

int channel_open(struct channel *ch, const struct plan *plan, const struct channel_options *opt,
		 struct side *side)
{
	int rc;

	memset(ch, 0, sizeof(*ch));
	if (ucx.ch) {
		warnx("over UCX there is one channel per process");
		return -FI_EBUSY;
	}
	ch->opt = *opt;
	ch->side = side;
	snprintf(transports, sizeof(transports), "%s", plan->provider);
	ch->limits = (struct channel_limits){
		.provider = transports[0] ? transports : "all",
		.max_message = SIZE_MAX,
	};
	ucx.ch = ch;
	rc = open_context(plan);
	if (!rc)
		rc = open_worker();
	if (!rc)
		rc = meet(ch);
	if (rc)
		channel_close(ch);
	return rc;
}

static void close_peer(void)
{
	ucp_request_param_t param = { 0 };
	ucs_status_ptr_t request = ucp_ep_close_nbx(ucx.peer, &param);

	if (!UCS_PTR_IS_PTR(request))
		return;
	while (ucp_request_check_status(request) == UCS_INPROGRESS)
		ucp_worker_progress(ucx.worker);
	ucp_request_free(request);
}

void channel_close(struct channel *ch)
{
	if (ucx.peer)
		close_peer();
	if (ucx.worker)
		ucp_worker_destroy(ucx.worker);
	if (ucx.context)
		ucp_cleanup(ucx.context);
	memset(&ucx, 0, sizeof(ucx));
	memset(ch, 0, sizeof(*ch));
}

void channel_describe(const struct channel *ch, struct results_config *config)
{
	unsigned major, minor, release;
	Dl_info info;

	ucp_get_version(&major, &minor, &release);
	*config = (struct results_config){ 0 };
	snprintf(config->provider, sizeof(config->provider), "UCX %s", ch->limits.provider);
	snprintf(config->prov_version, sizeof(config->prov_version), "%u.%u", major, minor);
	snprintf(config->build, sizeof(config->build), "UCX %s", ucp_get_version_string());
	snprintf(config->library, sizeof(config->library), "%s",
		 dladdr(dlsym(RTLD_DEFAULT, "ucp_worker_progress"), &info) ? info.dli_fname
									   : "?");
}

void ucx_done(void *request, ucs_status_t status, void *context)
{
	struct channel_op *op = context;

	op->busy = false;
	ucx.ch->tx_done++;
	if (status && !ucx.status)
		ucx.status = status;
	ucp_request_free(request);
}

int ucx_posted(const char *what, ucs_status_ptr_t request, struct channel_op *op)
{
	if (UCS_PTR_IS_ERR(request))
		return ucx_complain(what, UCS_PTR_STATUS(request));
	if (request)
		op->busy = true;
	else
		ucx.ch->tx_done++;
	return 0;
}

int channel_send(struct channel *ch, struct channel_buf *buf, size_t len)
{
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = ucx_done,
		.user_data = &buf->op,
	};

	buf->op.is_recv = false;
	return ucx_posted("ucp_tag_send_nbx",
			  ucp_tag_send_nbx(ucx.peer, buf->addr, len, TAG, &param), &buf->op);
}

static void log_message(struct channel_op *op, size_t len)
{
	struct channel *ch = ucx.ch;

	op->busy = false;
	ch->rx_log[ch->rx_done++ % CHANNEL_RX_LOG] =
		(struct channel_message){ .len = len, .slot = op->slot };
}

static void received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
		     void *context)
{
	log_message(context, info->length);
	if (status && !ucx.status)
		ucx.status = status;
	ucp_request_free(request);
}

int channel_recv(struct channel *ch, struct channel_buf *buf, size_t len)
{
	ucp_tag_recv_info_t info;
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_RECV_INFO,
		.cb.recv = received,
		.user_data = &buf->op,
		.recv_info.tag_info = &info,
	};
	ucs_status_ptr_t request;

	buf->op.is_recv = buf->op.busy = true;
	request = ucp_tag_recv_nbx(ucx.worker, buf->addr, len, TAG, UINT64_MAX, &param);
	if (UCS_PTR_IS_ERR(request))
		return ucx_complain("ucp_tag_recv_nbx", UCS_PTR_STATUS(request));
	if (!request)
		log_message(&buf->op, info.length);
	return 0;
}

static inline int channel_progress(struct channel *ch)
{
	if (!ucp_worker_progress(ucx.worker))
		return 0;
	return ucx.status ? ucx_complain("an operation failed", ucx.status) : 1;
}

#include "channel_wait.h"
