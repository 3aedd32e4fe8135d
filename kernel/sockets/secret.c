/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The secret by which peers know each other, from a keyring: tcp_secret.h has the contract. It
 * is a key of the kinds logon or user, whose description the parameter secret has; the caller's
 * keyrings are searched when a domain opens its first endpoint. The hashes are those of Linux'
 * crypto API, and give the bytes of libweft-tls.so. Process context.
 */
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <keys/user-type.h>
#include <linux/err.h>
#include <linux/key.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "tcp.h"
#include "tcp_secret.h"

/* HMAC-SHA-256 of pieces. Returns 0 or -FI_EIO. */
static int hash(const void *key, size_t key_len, const struct kvec *vec, size_t cnt,
		u8 out[TCP_KEY_LEN])
{
	struct crypto_shash *hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
	int err;

	if (IS_ERR(hmac))
		return -FI_EIO;
	err = crypto_shash_setkey(hmac, key, key_len);
	if (!err) {
		SHASH_DESC_ON_STACK(desc, hmac);

		desc->tfm = hmac;
		err = crypto_shash_init(desc);
		for (; !err && cnt; vec++, cnt--)
			err = crypto_shash_update(desc, vec->iov_base, vec->iov_len);
		err = err ? err : crypto_shash_final(desc, out);
		shash_desc_zero(desc);
	}
	crypto_free_shash(hmac);
	return err ? -FI_EIO : 0;
}

/* HKDF-SHA-256 without a salt, for a key as long as a hash. Source: RFC 5869. */
static int derive(const void *secret, size_t len, const char *label, u8 key[TCP_KEY_LEN])
{
	static const u8 no_salt[TCP_KEY_LEN], first = 1;
	struct kvec input = { (void *)secret, len };
	struct kvec block[2] = { { (void *)label, strlen(label) }, { (void *)&first, 1 } };
	u8 extracted[TCP_KEY_LEN];
	int err = hash(no_salt, sizeof(no_salt), &input, 1, extracted);

	err = err ? err : hash(extracted, sizeof(extracted), block, 2, key);
	memzero_explicit(extracted, sizeof(extracted));
	return err;
}

static int mac(const u8 key[TCP_KEY_LEN], const struct iovec *iov, size_t cnt,
	       u8 out[TCP_KEY_LEN])
{
	struct kvec vec[8];
	size_t i;

	if (WARN_ON_ONCE(cnt > ARRAY_SIZE(vec)))
		return -FI_EIO;
	for (i = 0; i < cnt; i++)
		vec[i] = (struct kvec){ (void __force *)iov[i].iov_base, iov[i].iov_len };
	return hash(key, TCP_KEY_LEN, vec, cnt, out);
}

static bool equal(const void *one, const void *other, size_t len)
{
	return !crypto_memneq(one, other, len);
}

static void wipe(void *bytes, size_t len)
{
	memzero_explicit(bytes, len);
}

/* There is no TLS: what is NULL here is not called for a secret without it. */
static const struct tcp_crypto crypto = {
	.version = TCP_CRYPTO_VERSION,
	.derive = derive,
	.mac = mac,
	.equal = equal,
	.wipe = wipe,
};

/*
 * Derives the keys from a key of the keyring, which is not changed meanwhile. Returns 0 or
 * -FI_E*
 */
static int secret_from(struct key *key, struct tcp_secret *secret, char *why, size_t why_len)
{
	const struct user_key_payload *payload;
	int err = -FI_EACCES;

	down_read(&key->sem);
	payload = user_key_payload_locked(key);
	if (!payload)
		snprintf(why, why_len, "the key %s was revoked", tcp_settings.secret_file);
	else if (payload->datalen < TCP_SECRET_MIN || payload->datalen > TCP_SECRET_MAX)
		snprintf(why, why_len, "the key %s has %u bytes, and not %u to %u",
			 tcp_settings.secret_file, payload->datalen, TCP_SECRET_MIN,
			 TCP_SECRET_MAX);
	else
		err = derive(payload->data, payload->datalen, "weft tcp proof 1", secret->key);
	if (err == -FI_EIO)
		snprintf(why, why_len, "no key can be made of %s", tcp_settings.secret_file);
	up_read(&key->sem);
	return err;
}

static struct key *secret_find(void)
{
	struct key *key = request_key(&key_type_logon, tcp_settings.secret_file, NULL);

	return IS_ERR(key) ? request_key(&key_type_user, tcp_settings.secret_file, NULL) : key;
}

int tcp_secret_create(struct tcp_secret **out, char *why, size_t why_len)
{
	struct tcp_secret *secret;
	struct key *key;
	int err;

	*out = NULL;
	if (!tcp_settings.secret_file)
		return 0;
	key = secret_find();
	if (IS_ERR(key)) {
		snprintf(why, why_len, "the keyrings of the caller have no key %s",
			 tcp_settings.secret_file);
		return -FI_EACCES;
	}
	secret = kzalloc(sizeof(*secret), GFP_KERNEL);
	err = secret ? secret_from(key, secret, why, why_len) : -FI_ENOMEM;
	key_put(key);
	if (err) {
		tcp_secret_free(secret);
		return err;
	}
	secret->crypto = &crypto;
	*out = secret;
	return 0;
}

void tcp_secret_free(struct tcp_secret *secret)
{
	kfree_sensitive(secret);
}
