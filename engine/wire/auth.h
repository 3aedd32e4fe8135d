/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys: two endpoints refuse each other's connections if their keys differ, or if
 * only one of them has a key. Called when an endpoint is opened, and when a hello is sent or
 * received.
 *
 * The key itself is not sent. A hello has a proof instead: 32 bits of a keyed hash of the sender's
 * epoch and nonce. Proofs separate jobs that use each other's addresses by accident, as
 * fi_endpoint(3) describes. They do not protect from an attacker who reads the network and can
 * replay a proof.
 *
 * A key has 1 to ENGINE_AUTH_KEY_MAX bytes. Keys in address vectors (FI_AV_AUTH_KEY) are refused.
 */
#ifndef WEFT_AUTH_H
#define WEFT_AUTH_H

#include <rdma/fabric.h>
#include "packet.h"

/* Longest key, bytes; the providers' auth_key_size */
#define ENGINE_AUTH_KEY_MAX 64u

/* The authorization of an endpoint or a domain. */
struct engine_auth {
	/* Keys of the hash, derived from the authorization key */
	uint64_t secret[2];
	/* False: no key, and @secret is not used */
	bool keyed;
};

/*
 * engine_auth_read - read the authorization key of an endpoint or a domain
 * @key: auth_key of its attributes; borrowed during the call
 * @len: auth_key_size, bytes; 0: there is no key, and @key is not used
 * @out: out: unchanged if there is no key, so that an endpoint keeps the key of its domain
 *
 * Returns 0, or -FI_EINVAL for a length without a key, a key that is too long, or FI_AV_AUTH_KEY.
 * Source: fi_domain(3), fi_endpoint(3)
 */
int engine_auth_read(const uint8_t *key, size_t len, struct engine_auth *out);

/*
 * engine_auth_known - returns true if the attributes of this API version have authorization keys
 * @api_version: version that the program passed to fi_getinfo
 *
 * The attributes of earlier versions may end before these members. Source: fi_domain(3),
 * fi_endpoint(3)
 */
static inline bool engine_auth_known(uint32_t api_version)
{
	return FI_VERSION_GE(api_version, FI_VERSION(1, 5));
}

/*
 * engine_auth_proof - compute the proof in a hello
 * @hello: its epoch and the nonce of its address are set
 * Returns the proof, which is never 0, or 0 if there is no key.
 */
uint32_t engine_auth_proof(const struct engine_auth *auth, const struct hello *hello);

/*
 * engine_siphash - returns SipHash-2-4 of @len bytes under the 128-bit key @secret
 * Source: Aumasson and Bernstein, SipHash, 2012
 */
uint64_t engine_siphash(const uint64_t secret[2], const uint8_t *bytes, size_t len);

#endif
