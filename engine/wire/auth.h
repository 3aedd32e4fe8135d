/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys: endpoints with different keys, or one with a key and one without, refuse
 * each other's connections. Called when an endpoint is opened and when a hello is said or heard.
 *
 * What goes over the wire is not the key but a proof: 32 bits of a hash, keyed by it, of what the
 * sender's hello says of its incarnation (epoch and nonce). It keeps jobs apart that come upon each other's
 * addresses, as fi_endpoint(3) wants it. It is no defence against who listens on the network: a
 * proof may be said again by whoever heard it.
 *
 * A key is any 1 to ENGINE_AUTH_KEY_MAX bytes. Keys in address vectors (FI_AV_AUTH_KEY) are refused.
 */
#ifndef WEFT_AUTH_H
#define WEFT_AUTH_H

#include <rdma/fabric.h>
#include "packet.h"

#define ENGINE_AUTH_KEY_MAX 64u /* bytes; what providers offer as auth_key_size */

struct engine_auth {
	/* from the key */
	uint64_t secret[2];
	bool keyed;
};

/*
 * engine_auth_read - the key of an endpoint or a domain
 * @len: as in auth_key_size; 0: none, and @key is not looked at
 * @out: unchanged without a key, so that an endpoint has its domain's
 *
 * Returns 0, or -FI_EINVAL for a length without a key, one that is too long, and FI_AV_AUTH_KEY.
 */
int engine_auth_read(const uint8_t *key, size_t len, struct engine_auth *out);

/*
 * engine_auth_known - does a program of this API version have keys?
 *
 * The attributes of earlier ones may end before them. Source: fi_domain(3), fi_endpoint(3)
 */
static inline bool engine_auth_known(uint32_t api_version)
{
	return FI_VERSION_GE(api_version, FI_VERSION(1, 5));
}

/* engine_auth_proof - what the hello of an endpoint with this key says; 0 without one, and never with one */
uint32_t engine_auth_proof(const struct engine_auth *auth, const struct hello *hello);

/* engine_siphash - SipHash-2-4 of @len bytes. Source: Aumasson and Bernstein, SipHash, 2012 */
uint64_t engine_siphash(const uint64_t secret[2], const uint8_t *bytes, size_t len);

#endif
