/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of authorization keys. */
#include <setjmp.h>
#include <stdarg.h>
#include "auth.h"
#include <rdma/fi_errno.h>
#include <cmocka.h>

static const struct hello hello = { .epoch = 77, .addr = { .nonce = { 1, 2, 3 } } };

static struct engine_auth keyed(const char *key, size_t len)
{
	struct engine_auth auth = { .keyed = false };

	assert_int_equal(engine_auth_read((const uint8_t *)key, len, &auth), 0);
	return auth;
}

static void hash_is_the_published_one(void **state)
{
	static const uint64_t secret[2] = { 0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull };
	uint8_t bytes[15];

	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	assert_true(engine_siphash(secret, bytes, 15) == 0xa129ca6149be45e5ull);
	assert_true(engine_siphash(secret, bytes, 8) == 0x93f5f5799a932462ull);
	assert_true(engine_siphash(secret, bytes, 0) == 0x726fdb47dd0e0e31ull);
}

static void proofs_agree_when_keys_do(void **state)
{
	struct engine_auth none = { .keyed = false };
	struct engine_auth a = keyed("job 1", 5), b = keyed("job 1", 5), c = keyed("job 2", 5),
			   d = keyed("job 1", 6);
	struct hello other = hello;

	assert_int_equal(engine_auth_proof(&none, &hello), 0);
	assert_int_not_equal(engine_auth_proof(&a, &hello), 0);
	assert_int_equal(engine_auth_proof(&a, &hello), engine_auth_proof(&b, &hello));
	assert_int_not_equal(engine_auth_proof(&a, &hello), engine_auth_proof(&c, &hello));
	assert_int_not_equal(engine_auth_proof(&a, &hello), engine_auth_proof(&d, &hello));
	other.epoch++;
	assert_int_not_equal(engine_auth_proof(&a, &hello), engine_auth_proof(&a, &other));
	other = hello;
	other.addr.nonce[7]++;
	assert_int_not_equal(engine_auth_proof(&a, &hello), engine_auth_proof(&a, &other));
}

static void key_is_read_or_refused(void **state)
{
	uint8_t longest[ENGINE_AUTH_KEY_MAX + 1] = { 0 };
	struct engine_auth auth = keyed("domain's", 8), before = auth;

	assert_int_equal(engine_auth_read(NULL, 0, &auth), 0);
	assert_memory_equal(&auth, &before, sizeof(auth)); /* the domain's key is kept */
	assert_int_equal(engine_auth_read(NULL, 4, &auth), -FI_EINVAL);
	assert_int_equal(engine_auth_read(longest, sizeof(longest), &auth), -FI_EINVAL);
	assert_int_equal(engine_auth_read(longest, FI_AV_AUTH_KEY, &auth), -FI_EINVAL);
	assert_memory_equal(&auth, &before, sizeof(auth));
	assert_int_equal(engine_auth_read(longest, ENGINE_AUTH_KEY_MAX, &auth), 0);
	assert_true(auth.keyed && auth.secret[0] != before.secret[0] &&
		    auth.secret[0] != auth.secret[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_is_the_published_one),
		cmocka_unit_test(proofs_agree_when_keys_do),
		cmocka_unit_test(key_is_read_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
