/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A socket as OpenSSL's BIO, which raises no SIGPIPE.
 */
#ifndef WEFT_TCP_TLS_SOCKET_H
#define WEFT_TCP_TLS_SOCKET_H

#include <openssl/bio.h>

/* What the socket has answered last; the caller's, and outlives the BIO. */
struct tls_socket {
	int fd;
	/* errno of the last read or write; 0: it succeeded */
	int err;
};

/* tls_socket_bio - returns a BIO over the socket, owned, or NULL. Source: BIO_meth_new(3) */
BIO *tls_socket_bio(struct tls_socket *socket);

#endif
