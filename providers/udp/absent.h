/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Op tables and slots of what a datagram endpoint does not have: -FI_ENOSYS. Any thread. */
#ifndef WEFT_UDP_ABSENT_H
#define WEFT_UDP_ABSENT_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* The tables are not const, since the pointers in fids are not. */
extern struct fi_ops_rma udp_no_rma_ops;
extern struct fi_ops_atomic udp_no_atomic_ops;
extern struct fi_ops_collective udp_no_collective_ops;
extern struct fi_ops_tagged udp_no_tagged_ops;

/* Slots of struct fi_ops */
int udp_no_bind(struct fid *fid, struct fid *target, uint64_t flags);
int udp_no_control(struct fid *fid, int command, void *arg);
int udp_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		    void *context);
int udp_no_tostr(const struct fid *fid, char *buf, size_t len);
int udp_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

/*
 * udp_strerror - the text of a provider's error, which is an FI_E*; written to @buf too, if it is
 * not NULL
 */
const char *udp_strerror(int prov_errno, char *buf, size_t len);

#endif
