/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TLS of a process: version 1.3 with one external PSK, from which both sides know each other; no
 * certificates, tickets, resumption or early data, so that nothing that was recorded is accepted
 * again. tcp_crypto.h has the contract. Source: RFC 8446, sections 2.2 and 4.2.11; SSL_CTX(3).
 */
#include <openssl/ssl.h>
#include <string.h>
#include "context.h"

static const char suite[] = "TLS_AES_256_GCM_SHA384";
static const unsigned char identity[] = "weft tcp";

#define IDENTITY_LEN (sizeof(identity) - 1)

struct tcp_tls_context {
	SSL_CTX *ctx;
};

static int psk_idx;

/* Frees the key with the context, which lives as long as its last lane. */
static void psk_free(void *parent, void *psk, CRYPTO_EX_DATA *data, int idx, long argl,
		     void *argp)
{
	OPENSSL_clear_free(psk, psk ? TCP_KEY_LEN : 0);
}

__attribute__((constructor)) static void begin(void)
{
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
	psk_idx = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, psk_free);
}

/* Returns the session that stands for the PSK, owned, or NULL. */
static SSL_SESSION *psk_session(SSL *ssl)
{
	const unsigned char *psk = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), psk_idx);
	const unsigned char id[2] = { 0x13, 0x02 }; /* the suite */
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && SSL_SESSION_set1_master_key(session, psk, TCP_KEY_LEN) &&
	    SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, id)) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
		   SSL_SESSION **session)
{
	*session = psk_session(ssl);
	*id = identity;
	*id_len = IDENTITY_LEN;
	return *session != NULL;
}

static int psk_find(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
	*session = NULL;
	if (id_len != IDENTITY_LEN || memcmp(id, identity, IDENTITY_LEN))
		return 1; /* no such PSK: the handshake fails, as there is no certificate either */
	*session = psk_session(ssl);
	return *session != NULL;
}

static bool configure(SSL_CTX *ctx, const uint8_t psk[TCP_KEY_LEN])
{
	unsigned char *copy = OPENSSL_memdup(psk, TCP_KEY_LEN);

	if (!copy)
		return false;
	if (!SSL_CTX_set_ex_data(ctx, psk_idx, copy)) {
		OPENSSL_clear_free(copy, TCP_KEY_LEN);
		return false;
	}
	SSL_CTX_set_psk_use_session_callback(ctx, psk_use);
	SSL_CTX_set_psk_find_session_callback(ctx, psk_find);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
	SSL_CTX_clear_options(ctx, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(ctx, 1);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) &&
	       SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) &&
	       SSL_CTX_set_ciphersuites(ctx, suite) && SSL_CTX_set_num_tickets(ctx, 0) &&
	       SSL_CTX_set_max_early_data(ctx, 0) && SSL_CTX_set1_groups_list(ctx, "X25519");
}

struct tcp_tls_context *tls_context_create(const uint8_t psk[TCP_KEY_LEN])
{
	struct tcp_tls_context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	context->ctx = SSL_CTX_new(TLS_method());
	if (context->ctx && configure(context->ctx, psk))
		return context;
	tls_context_free(context);
	return NULL;
}

void tls_context_free(struct tcp_tls_context *context)
{
	if (!context)
		return;
	SSL_CTX_free(context->ctx);
	free(context);
}

SSL *tls_context_ssl(struct tcp_tls_context *context)
{
	return SSL_new(context->ctx);
}
