/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys and keyed hashes, and what libweft-tls.so exports; tcp_crypto.h has the contract.
 */
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include "tls.h"

static char sha256[] = "SHA256";

/*
 * The program may use OpenSSL too, and end its use in its own order: this library leaves no handler
 * for the end of the process.
 */
__attribute__((constructor)) static void begin(void)
{
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

static int tls_derive(const void *secret, size_t len, const char *label,
		      uint8_t key[TCP_KEY_LEN])
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, sha256, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret,
						  len),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)label,
						  strlen(label)),
		OSSL_PARAM_construct_end(),
	};
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	int ok = ctx && EVP_KDF_derive(ctx, key, TCP_KEY_LEN, params) == 1;

	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return ok ? 0 : -FI_EIO;
}

static int tls_mac(const uint8_t key[TCP_KEY_LEN], const struct iovec *iov, size_t cnt,
		   uint8_t mac[TCP_KEY_LEN])
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC *kind = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(kind);
	int ok = ctx && EVP_MAC_init(ctx, key, TCP_KEY_LEN, params) == 1;
	size_t len = 0;

	for (size_t i = 0; ok && i < cnt; i++)
		ok = EVP_MAC_update(ctx, iov[i].iov_base, iov[i].iov_len) == 1;
	ok = ok && EVP_MAC_final(ctx, mac, &len, TCP_KEY_LEN) == 1 && len == TCP_KEY_LEN;
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(kind);
	return ok ? 0 : -FI_EIO;
}

static bool tls_equal(const void *one, const void *other, size_t len)
{
	return !CRYPTO_memcmp(one, other, len);
}

static void tls_wipe(void *bytes, size_t len)
{
	OPENSSL_cleanse(bytes, len);
}

extern const struct tcp_crypto weft_tcp_crypto;

const struct tcp_crypto weft_tcp_crypto = {
	.version = TCP_CRYPTO_VERSION,
	.derive = tls_derive,
	.mac = tls_mac,
	.equal = tls_equal,
	.wipe = tls_wipe,
	.context_create = tls_context_create,
	.context_free = tls_context_free,
	.create = tls_create,
	.free = tls_free,
	.handshake = tls_handshake,
	.recv = tls_recv,
	.send = tls_send,
	.pending = tls_pending,
	.shut = tls_shut,
};
