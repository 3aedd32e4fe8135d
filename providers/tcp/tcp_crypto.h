/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What libweft-tls.so does for the wire: keyed hashes and TLS, of OpenSSL. It is loaded by who has a
 * secret (secret.c): other programs don't map OpenSSL. Any thread; an object by one thread at a time.
 */
#ifndef WEFT_TCP_CRYPTO_H
#define WEFT_TCP_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* TCP_CRYPTO_LIBRARY - its file, which is looked for as the library that loads it says (rpath) */
#define TCP_CRYPTO_LIBRARY "libweft-tls.so.0"
#define TCP_CRYPTO_SYMBOL  "weft_tcp_crypto"
#define TCP_CRYPTO_VERSION 2

#define TCP_KEY_LEN 32 /* of keys, nonces and keyed hashes, bytes */

struct tcp_tls_context;
struct tcp_tls;

struct tcp_crypto {
	/* TCP_CRYPTO_VERSION */
	uint32_t version;
	/*
	 * A key for one purpose, which @label names, of the secret: HKDF-SHA-256. Returns 0, or
	 * -FI_EIO. Source: RFC 5869.
	 */
	int (*derive)(const void *secret, size_t len, const char *label,
		      uint8_t key[TCP_KEY_LEN]);
	/* HMAC-SHA-256 of all pieces. Returns 0, or -FI_EIO. Source: RFC 2104 */
	int (*mac)(const uint8_t key[TCP_KEY_LEN], const struct iovec *iov, size_t cnt,
		   uint8_t mac[TCP_KEY_LEN]);
	/* Returns true if both are the same, after a time that does not depend on the bytes */
	bool (*equal)(const void *one, const void *other, size_t len);
	/* Overwrites a key that is not needed any more */
	void (*wipe)(void *bytes, size_t len);
	/*
	 * TLS 1.3 with this external PSK; no certificates, tickets or early data. Returns it owned, or
	 * NULL for lack of memory.
	 */
	struct tcp_tls_context *(*context_create)(const uint8_t psk[TCP_KEY_LEN]);
	void (*context_free)(struct tcp_tls_context *context);
	/*
	 * A lane's TLS over a connected nonblocking socket, which stays the caller's. @read_ahead: bytes of
	 * one read from the socket. May outlive @context. Returns it owned, or NULL for lack of memory.
	 */
	struct tcp_tls *(*create)(struct tcp_tls_context *context, int fd, bool accepts,
				  size_t read_ahead);
	void (*free)(struct tcp_tls *tls);
	/*
	 * One step of the handshake. Returns 1 when it is complete; 0: when the socket can be read
	 * or, with *@out, written; -FI_EKEYREJECTED: the other side has another secret, or speaks no TLS;
	 * or -FI_E* of the socket
	 */
	int (*handshake)(struct tcp_tls *tls, bool *out);
	/*
	 * Return bytes, 0 at the end of the stream, or -FI_E*. An end that the other side has not
	 * announced by shut() is -FI_ECONNRESET, and bytes that it has not sent are -FI_EIO. A send that took less than there was is
	 * repeated with the same bytes, though they may have moved and more may follow.
	 */
	ssize_t (*recv)(struct tcp_tls *tls, const struct iovec *iov, size_t cnt);
	ssize_t (*send)(struct tcp_tls *tls, const struct iovec *iov, size_t cnt);
	/* Returns true if recv() had no room for all that it has read from the socket */
	bool (*pending)(const struct tcp_tls *tls);
	/*
	 * Announces that nothing follows, before the socket's end is sent. Returns false if there is
	 * no room for it yet: to be called again
	 */
	bool (*shut)(struct tcp_tls *tls);
};

#endif
