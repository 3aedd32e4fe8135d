/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The out-of-band channel between the two sides of a measurement: a TCP
 * connection (server and client on any host) or a socket pair (two local
 * processes). It carries what the sides must agree on before and between
 * measurements: addresses, options, starting lines. One thread per side.
 */
#ifndef WEFT_TOOLS_OOB_H
#define WEFT_TOOLS_OOB_H

#include <stddef.h>
#include <stdint.h>

#define OOB_PORT     47592 /* fi_pingpong's */
#define OOB_BLOB_MAX 8192
#define OOB_HOST_MAX 64

struct oob {
	int fd;
	/* numeric address of this end; "" for a socket pair */
	char local[OOB_HOST_MAX];
};

/*
 * oob_listen - wait for one client on a TCP port
 * @host:  local address to listen on, or NULL for any
 *
 * Blocks until a client connects. Prints the reason of a failure. Returns 0 or -errno.
 */
int oob_listen(struct oob *oob, const char *host, unsigned port);

/*
 * oob_connect - connect to a server, retrying while it refuses
 * @wait_ms:  how long to retry, for a server that is just starting
 *
 * Prints the reason of a failure. Returns 0 or -errno.
 */
int oob_connect(struct oob *oob, const char *host, unsigned port, int wait_ms);

/*
 * oob_adopt - use one end of a socket pair
 * @fd:  takes the descriptor
 */
void oob_adopt(struct oob *oob, int fd);

/*
 * oob_exchange - send a blob and receive the other side's
 * @in_len:  in: room at @in; out: length received
 *
 * Both sides call it. Prints the reason of a failure. Returns 0, -EPIPE when the other side is gone,
 * -EMSGSIZE when its blob does not fit, -ETIMEDOUT where oob->fd has a limit (SO_RCVTIMEO), or -errno.
 */
int oob_exchange(struct oob *oob, const void *out, size_t out_len, void *in, size_t *in_len);

/*
 * oob_barrier - return when both sides have called it
 * @status: 0, or a negative errno that reports to the other side that this side has failed
 * Returns 0, the other side's negative status, or -errno.
 */
int oob_barrier(struct oob *oob, int status);

/*
 * oob_gone - returns nonzero if the other side has closed its end or died; never blocks
 */
int oob_gone(const struct oob *oob);

/*
 * oob_heard - returns nonzero if the other side has sent something, as it does at a barrier, or has gone; never blocks
 */
int oob_heard(const struct oob *oob);

void oob_close(struct oob *oob);

#endif
