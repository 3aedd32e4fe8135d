/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A socket as OpenSSL's BIO, which raises no SIGPIPE.
 */
#ifndef WEFT_TCP_TLS_SOCKET_H
#define WEFT_TCP_TLS_SOCKET_H

#include <openssl/bio.h>

/* The socket, and what it has answered; the caller's, and outlives the BIO. */
struct tls_socket {
	int fd;
	/* errno of the last read; 0: it succeeded */
	int err;
	/*
	 * errno for which nothing can be sent any more; 0: none. What OpenSSL writes then is dropped, and
	 * counts as written: it would not read what the other side has sent after a write that has failed.
	 */
	int out_err;
};

/* tls_socket_bio - returns a BIO over the socket, owned, or NULL. Source: BIO_meth_new(3) */
BIO *tls_socket_bio(struct tls_socket *socket);

#endif
