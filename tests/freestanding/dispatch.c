/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls of the interface as a consumer in the kernel compiles them. The test `dispatch` looks at the instructions; nothing
 * is run.
 */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

ssize_t calls_send(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, void *context);
ssize_t calls_send(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, void *context)
{
	return fi_send(ep, buf, len, NULL, to, context);
}

ssize_t calls_recv(struct fid_ep *ep, void *buf, size_t len, fi_addr_t from, void *context);
ssize_t calls_recv(struct fid_ep *ep, void *buf, size_t len, fi_addr_t from, void *context)
{
	return fi_recv(ep, buf, len, NULL, from, context);
}

ssize_t calls_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t calls_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return fi_sendmsg(ep, msg, flags);
}

ssize_t calls_tsend(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag);
ssize_t calls_tsend(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	return fi_tsend(ep, buf, len, NULL, to, tag, NULL);
}

ssize_t calls_trecv(struct fid_ep *ep, void *buf, size_t len, fi_addr_t from, uint64_t tag);
ssize_t calls_trecv(struct fid_ep *ep, void *buf, size_t len, fi_addr_t from, uint64_t tag)
{
	return fi_trecv(ep, buf, len, NULL, from, tag, 0, NULL);
}

ssize_t calls_read(struct fid_ep *ep, void *buf, size_t len, uint64_t addr, uint64_t key);
ssize_t calls_read(struct fid_ep *ep, void *buf, size_t len, uint64_t addr, uint64_t key)
{
	return fi_read(ep, buf, len, NULL, 0, addr, key, NULL);
}

ssize_t calls_write(struct fid_ep *ep, const void *buf, size_t len, uint64_t addr, uint64_t key);
ssize_t calls_write(struct fid_ep *ep, const void *buf, size_t len, uint64_t addr, uint64_t key)
{
	return fi_write(ep, buf, len, NULL, 0, addr, key, NULL);
}

ssize_t calls_cq_read(struct fid_cq *cq, void *buf, size_t cnt);
ssize_t calls_cq_read(struct fid_cq *cq, void *buf, size_t cnt)
{
	return fi_cq_read(cq, buf, cnt);
}
