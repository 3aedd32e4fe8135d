/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys and their proofs. Pure functions; any thread.
 */
#include <rdma/fi_errno.h>
#include "auth.h"

/* Hash keys by which the words of a secret are derived independently: the first digits of pi. */
static const uint64_t derive[2][2] = {
	{ 0x243f6a8885a308d3ull, 0x13198a2e03707344ull },
	{ 0xa4093822299f31d0ull, 0x082efa98ec4e6c89ull },
};

static uint64_t rotated(uint64_t v, unsigned int by)
{
	return v << by | v >> (64 - by);
}

static void sip_rounds(uint64_t v[4], int cnt)
{
	while (cnt--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotated(v[1], 13) ^ v[0];
		v[3] = rotated(v[3], 16) ^ v[2];
		v[0] = rotated(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotated(v[1], 17) ^ v[2];
		v[3] = rotated(v[3], 21) ^ v[0];
		v[2] = rotated(v[2], 32);
	}
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, 2);
	v[0] ^= word;
}

uint64_t engine_siphash(const uint64_t secret[2], const uint8_t *bytes, size_t len)
{
	uint64_t v[4] = {
		secret[0] ^ 0x736f6d6570736575ull,
		secret[1] ^ 0x646f72616e646f6dull,
		secret[0] ^ 0x6c7967656e657261ull,
		secret[1] ^ 0x7465646279746573ull,
	};
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++) {
		word |= (uint64_t)bytes[i] << i % 8 * 8;
		if (i % 8 == 7) {
			sip_word(v, word);
			word = 0;
		}
	}
	sip_word(v, word | (uint64_t)len << 56);
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int engine_auth_read(const uint8_t *key, size_t len, struct engine_auth *out)
{
	if (!len)
		return 0;
	if (!key || len > ENGINE_AUTH_KEY_MAX) /* FI_AV_AUTH_KEY is SIZE_MAX */
		return -FI_EINVAL;
	for (int i = 0; i < 2; i++)
		out->secret[i] = engine_siphash(derive[i], key, len);
	out->keyed = true;
	return 0;
}

uint32_t engine_auth_proof(const struct engine_auth *auth, const struct hello *hello)
{
	uint8_t incarnation[sizeof(hello->epoch) + sizeof(hello->addr.nonce)];
	uint32_t proof;

	if (!auth->keyed)
		return 0;
	memcpy(incarnation, &hello->epoch, sizeof(hello->epoch));
	memcpy(incarnation + sizeof(hello->epoch), hello->addr.nonce, sizeof(hello->addr.nonce));
	proof = (uint32_t)engine_siphash(auth->secret, incarnation, sizeof(incarnation));
	return proof ? proof : 1;
}
