/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening endpoints and registering memory; port.h has the contract. */
#include "port.h"
#include "fabric.h"
#include "mr.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* The interface that is asked for: the first with all modes of registration that are known here. */
#define API_VERSION FI_VERSION(1, 9)

/* What registrations may have to be: port_mr_open() does it. */
#define MR_MODES                                                                               \
	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | \
	 FI_MR_RMA_EVENT | FI_MR_ENDPOINT)

/* How many keys are tried where we choose them and others have taken some. */
#define KEY_TRIES 256u

static struct fi_info *hints_create(const struct port_request *request)
{
	struct fi_info *hints = fabric_info_create();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | (request->rma ? FI_RMA : 0);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = MR_MODES;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->fabric_attr->prov_name = strdup(request->provider ? request->provider
								 : PORT_PROVIDER);
	if (hints->fabric_attr->prov_name)
		return hints;
	fabric_info_destroy(hints);
	return NULL;
}

static uint32_t data_len_of(size_t bytes)
{
	if (bytes < sizeof(uint32_t))
		return 0;
	return bytes < sizeof(uint64_t) ? sizeof(uint32_t) : sizeof(uint64_t);
}

/* The first that moves as much at once as the caller does */
static const struct fi_info *choose(const struct fi_info *list, size_t len_max)
{
	while (list && list->ep_attr->max_msg_size < len_max)
		list = list->next;
	return list;
}

static int find(const struct port_request *request, struct port *port)
{
	struct fi_info *hints = hints_create(request), *list;
	const struct fi_info *chosen;
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	ret = fabric_getinfo(API_VERSION, request->host, request->service,
			     request->own && (request->host || request->service) ? FI_SOURCE : 0,
			     hints, &list);
	fabric_info_destroy(hints);
	if (ret)
		return ret;
	chosen = choose(list, request->len_max);
	ret = chosen ? -FI_ENOMEM : -FI_EMSGSIZE;
	port->info = chosen ? fabric_info_copy(chosen) : NULL;
	fabric_info_destroy(list);
	if (!port->info)
		return ret;
	port->mr_mode = fabric_mr_mode(port->info);
	/* Whoever uses the port makes it move; nothing happens on a thread of the provider's. */
	port->info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	port->data_len = data_len_of(port->info->domain_attr->cq_data_size);
	if (port->info->tx_attr->msg_order & port->info->rx_attr->msg_order &
	    (FI_ORDER_WAW | FI_ORDER_RMA_WAW))
		port->order_max = port->info->ep_attr->max_order_waw_size;
	return 0;
}

/* With a descriptor to wait for, where there is one. */
static int open_cq(struct port *port, size_t len)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA,
				   .wait_obj = FI_WAIT_FD,
				   .size = len };
	int ret = fi_cq_open(port->domain, &attr, &port->cq, NULL);

	if (!ret) {
		ret = fi_control(&port->cq->fid, FI_GETWAIT, &port->wait_fd);
		if (ret)
			port->wait_fd = -1;
		return 0;
	}
	attr.wait_obj = FI_WAIT_NONE;
	return fi_cq_open(port->domain, &attr, &port->cq, NULL);
}

static int open_found(struct port *port, size_t cq_len)
{
	struct fi_av_attr av = { .type = FI_AV_MAP };
	int ret = fabric_open(port->info->fabric_attr, &port->fabric);

	if (!ret)
		ret = fi_domain(port->fabric, port->info, &port->domain, NULL);
	if (!ret && port->info->domain_attr->av_type != FI_AV_UNSPEC)
		av.type = port->info->domain_attr->av_type;
	if (!ret)
		ret = fi_av_open(port->domain, &av, &port->av, NULL);
	if (!ret)
		ret = open_cq(port, cq_len);
	if (ret)
		port_close(port);
	return ret;
}

int port_open(const struct port_request *request, struct port *port)
{
	int ret;

	*port = (struct port){ .wait_fd = -1 };
	ret = find(request, port);
	return ret ? ret : open_found(port, request->cq_len);
}

const char *port_strerror(int err)
{
	if (err == -FI_ENODATA)
		return "there is no such provider, or no such address of this host ('weft info' lists them)";
	return fi_strerror(-err);
}

int port_open_alike(const struct port *port, size_t cq_len, struct port *alike)
{
	*alike = (struct port){
		.info = fabric_info_copy(port->info),
		.mr_mode = port->mr_mode,
		.wait_fd = -1,
		.data_len = port->data_len,
		.order_max = port->order_max,
	};
	return alike->info ? open_found(alike, cq_len) : -FI_ENOMEM;
}

void port_close(struct port *port)
{
	if (port->cq)
		fi_close(&port->cq->fid);
	if (port->av)
		fi_close(&port->av->fid);
	if (port->domain)
		fi_close(&port->domain->fid);
	if (port->fabric)
		fi_close(&port->fabric->fid);
	fabric_info_destroy(port->info);
	*port = (struct port){ .wait_fd = -1 };
}

const char *port_provider(const struct port *port)
{
	return port->info->fabric_attr->prov_name;
}

int port_ep_open(struct port *port, struct fid_ep **out)
{
	uint8_t name[PORT_NAME_MAX];
	size_t len = sizeof(name);
	struct fid_ep *ep;
	int ret = fi_endpoint(port->domain, port->info, &ep, NULL);

	if (ret)
		return ret;
	ret = fi_ep_bind(ep, &port->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(ep, &port->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(ep);
	if (!ret)
		ret = port_ep_name(ep, name, &len);
	if (ret) {
		fi_close(&ep->fid);
		return ret;
	}
	port->name_len = len;
	*out = ep;
	return 0;
}

int port_ep_name(struct fid_ep *ep, void *name, size_t *len)
{
	return fi_getname(&ep->fid, name, len);
}

int port_peer(struct port *port, const void *name, size_t len, fi_addr_t *addr)
{
	if (!len || len > PORT_NAME_MAX)
		return -FI_EINVAL;
	if (port->info->addr_format == FI_ADDR_STR) {
		if (memchr(name, 0, len) != (const uint8_t *)name + len - 1)
			return -FI_EINVAL;
	} else if (len != port->name_len) {
		return -FI_EINVAL;
	}
	return fi_av_insert(port->av, name, 1, addr, 0, NULL) == 1 ? 0 : -FI_EINVAL;
}

void port_peer_forget(struct port *port, fi_addr_t addr)
{
	fi_av_remove(port->av, &addr, 1, 0);
}

/* One that nobody guesses, where keys have room for that. */
static int any_key(const struct port *port, uint64_t *key)
{
	size_t bytes = port->info->domain_attr->mr_key_size;

	if (getrandom(key, sizeof(*key), 0) != sizeof(*key))
		return -FI_EIO;
	if (bytes && bytes < sizeof(*key))
		*key &= (1ULL << 8 * bytes) - 1;
	return 0;
}

/* The call, with keys of our choice until one is free. */
static int reg(struct port *port, const struct iovec *range, uint64_t access, struct fid_mr **mr)
{
	uint64_t flags = port->mr_mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0;
	uint64_t key;
	uint32_t i;
	int ret;

	if (port->mr_mode & FI_MR_PROV_KEY)
		return fi_mr_reg(port->domain, range->iov_base, range->iov_len, access, 0, 0,
				 flags, mr, NULL);
	for (i = 0; i < KEY_TRIES; i++) {
		ret = any_key(port, &key);
		if (!ret)
			ret = fi_mr_reg(port->domain, range->iov_base, range->iov_len, access,
					0, key, flags, mr, NULL);
		if (ret != -FI_ENOKEY && ret != -FI_EBUSY)
			return ret;
	}
	return -FI_ENOKEY;
}

int port_mr_open(struct port *port, struct fid_ep *ep, const struct iovec *range,
		 uint64_t access, struct fid_mr **out)
{
	struct fid_mr *mr;
	int ret;

	if (port->mr_mode & FI_MR_ALLOCATED)
		fabric_mr_populate(range);
	ret = reg(port, range, access, &mr);
	if (ret)
		return ret;
	if (port->mr_mode & FI_MR_ENDPOINT)
		ret = fi_mr_bind(mr, &ep->fid, 0);
	if (!ret && port->mr_mode & (FI_MR_ENDPOINT | FI_MR_RMA_EVENT))
		ret = fi_mr_enable(mr);
	if (!ret && port->mr_mode & FI_MR_MMU_NOTIFY)
		ret = fi_mr_refresh(mr, range, 1, 0);
	if (ret)
		fi_close(&mr->fid);
	else
		*out = mr;
	return ret;
}
