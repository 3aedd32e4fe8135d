/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TLS of a lane. The functions stand in struct tcp_crypto, which has their contract.
 */
#ifndef WEFT_TCP_TLS_H
#define WEFT_TCP_TLS_H

#include "tcp_crypto.h"

/*
 * TLS_REKEY_RECORDS - records after which a sender takes a new key
 *
 * AES-GCM is safe for 2^24.5 records of one key: there is time to wait for room in the socket. Source:
 * RFC 8446, section 5.5
 */
#define TLS_REKEY_RECORDS (1u << 22)

/* tls_rekey_after - have @tls take a new key after so many records in place of TLS_REKEY_RECORDS */
void tls_rekey_after(struct tcp_tls *tls, uint32_t records);

struct tcp_tls_context *tls_context_create(const uint8_t psk[TCP_KEY_LEN]);
void tls_context_free(struct tcp_tls_context *context);
struct tcp_tls *tls_create(struct tcp_tls_context *context, int fd, bool accepts,
			   size_t read_ahead);
void tls_free(struct tcp_tls *tls);
int tls_handshake(struct tcp_tls *tls, bool *out);
ssize_t tls_recv(struct tcp_tls *tls, const struct iovec *iov, size_t cnt);
ssize_t tls_send(struct tcp_tls *tls, const struct iovec *iov, size_t cnt);
bool tls_pending(const struct tcp_tls *tls);
bool tls_shut(struct tcp_tls *tls);

#endif
