/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TLS of a process, for its lanes.
 */
#ifndef WEFT_TCP_TLS_CONTEXT_H
#define WEFT_TCP_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include "tls.h"

/* tls_context_ssl - returns a new SSL of the context, owned, or NULL */
SSL *tls_context_ssl(struct tcp_tls_context *context);

#endif
