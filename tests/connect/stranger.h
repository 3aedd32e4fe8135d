/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes with secrets of their own, for tests of who may come in over tcp: what their settings are, and an RDM
 * endpoint in one of them. A library reads its settings once, so that a process that is to have others begins before its
 * parent uses the library.
 */
#ifndef WEFT_CONNECT_STRANGER_H
#define WEFT_CONNECT_STRANGER_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/types.h>

/*
 * stranger_settings - those of this process; @secret: NULL: none; @tls: FI_TCP_TLS
 * Returns the file of the secret, or NULL. The process exits with 9 where it can't be made.
 */
const char *stranger_settings(const char *secret, const char *tls);

/* stranger_forget - remove the file of the secret of this process, if it has made one */
void stranger_forget(void);

/*
 * stranger_start - a child with these settings that does @act, then exits with 0
 * @fd: out: this side of a socket pair, whose other one @act has. Returns the child.
 */
pid_t stranger_start(void (*act)(int fd), const char *secret, const char *tls, int *fd);

struct rdm {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

/* rdm_open - an endpoint at loopback, with manual progress. Returns what fi_enable() returns, or -1 */
int rdm_open(struct rdm *r, const char *provider);

/* rdm_close - close what rdm_open() has opened, whether it was enabled or not */
void rdm_close(struct rdm *r);

/* rdm_send_once - send a few bytes. Returns 0 once they are sent, or the FI_E* of their completion */
int rdm_send_once(struct rdm *r, fi_addr_t peer);

/* stranger_send - for stranger_start(): send to the name of 64 bytes that it reads; exits with rdm_send_once() */
void stranger_send(int fd);

#endif
