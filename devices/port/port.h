/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints for what hosts tell each other about devices: reliable datagrams of any OFI provider, with messages and,
 * where they are asked for, one-sided transfers. It runs on any libfabric: what a caller passes to libfabric's calls is
 * here as the provider wants it. A port and all that is opened of it belong to one thread at a time (FI_THREAD_DOMAIN).
 *
 * Every operation's context begins with a struct fi_context2, which providers may use until it has ended.
 */
#ifndef WEFT_DEVICES_PORT_H
#define WEFT_DEVICES_PORT_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define PORT_NAME_MAX 256u  /* bytes of an endpoint's name */
#define PORT_PROVIDER "tcp" /* if nobody says which */

/*
 * struct port_request - which endpoints
 * @provider: NULL: PORT_PROVIDER
 * @host, @service: of the endpoint, if @own; else of a peer, which is in @info->dest_addr then. NULL: any
 * @rma:      one-sided transfers too
 * @len_max:  bytes that a message or transfer has at most
 * @cq_len:   completions that are not read at once, at most
 */
struct port_request {
	const char *provider;
	const char *host;
	const char *service;
	bool own;
	bool rma;
	size_t len_max;
	size_t cq_len;
};

/*
 * struct port - what endpoints are opened of
 * @name_len:  bytes of the names of its endpoints, once there is one
 * @mr_mode:   what registrations have to be, FI_MR_*
 * @wait_fd:   readable when there may be completions, after fi_trywait() has said so; -1: the provider has none
 * @data_len:  bytes of remote CQ data that transfers bring: 8, 4, or 0
 * @order_max: the target sees writes of so many bytes at most in the order in which they were begun; 0: none
 */
struct port {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	size_t name_len;
	int mr_mode;
	int wait_fd;
	uint32_t data_len;
	size_t order_max;
};

/*
 * port_open - returns 0 or -FI_E*: -FI_ENODATA: there is no such provider, host or service; -FI_EMSGSIZE: its messages are
 * shorter than @len_max
 */
int port_open(const struct port_request *request, struct port *port);

/* port_strerror - what to tell a user of @err, which port_open() has returned for an endpoint of its own */
const char *port_strerror(int err);

/* port_open_alike - another one, of what @port has found. Returns 0 or -FI_E* */
int port_open_alike(const struct port *port, size_t cq_len, struct port *alike);

/* port_close - nothing of it is open any more */
void port_close(struct port *port);

/* port_provider - its provider's name, for port_request.provider of a peer */
const char *port_provider(const struct port *port);

/* port_ep_open - an endpoint. Returns 0 or -FI_E* */
int port_ep_open(struct port *port, struct fid_ep **ep);

/*
 * port_ep_name - out: an endpoint's name
 * @len: in: room at @name; out: its bytes
 */
int port_ep_name(struct fid_ep *ep, void *name, size_t *len);

/*
 * port_peer - know a peer
 * @name: from outside: its length is checked
 * Returns 0 or -FI_EINVAL: no name of an endpoint.
 */
int port_peer(struct port *port, const void *name, size_t len, fi_addr_t *addr);

/* port_peer_forget - nothing to it is under way */
void port_peer_forget(struct port *port, fi_addr_t addr);

/* port_mr_open - register memory, for @ep if the provider wants that. Returns 0 or -FI_E* */
int port_mr_open(struct port *port, struct fid_ep *ep, const struct iovec *range,
		 uint64_t access, struct fid_mr **mr);

/* port_mr_addr - the address by which peers name @mem, in memory that is registered from @base on */
static inline uint64_t port_mr_addr(const struct port *port, const void *base, const void *mem)
{
	return port->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)mem
					       : (uintptr_t)mem - (uintptr_t)base;
}

/* port_desc - for local memory in @mr; NULL is allowed */
static inline void *port_desc(struct fid_mr *mr)
{
	return mr ? fi_mr_desc(mr) : NULL;
}

/* port_may_sleep - whether there is nothing to read, and @wait_fd says so when there is; or there is no such */
static inline bool port_may_sleep(struct port *port)
{
	struct fid *fid = &port->cq->fid;

	return port->wait_fd < 0 || !fi_trywait(port->fabric, &fid, 1);
}

#endif
