/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of addresses as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "addr_text.h"
#include "seeded.h"
#include <cmocka.h>

#define ROUNDS 20000

static uint64_t seed;

static uint32_t rnd(void)
{
	return (uint32_t)(seeded_random(&seed) >> 33);
}

static void rnd_bytes(void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)bytes)[i] = (uint8_t)rnd();
}

/* A number of up to @bits, often one of the extremes. */
static uint32_t rnd_number(uint32_t bits)
{
	uint32_t most = (uint32_t)((UINT64_C(1) << bits) - 1);

	switch (rnd() % 4) {
	case 0:
		return 0;
	case 1:
		return most;
	default:
		return (rnd() ^ rnd() << 1) & most;
	}
}

static void rnd_network(struct weft_addr *a)
{
	static const uint8_t link_local[8] = { 0xfe, 0x80 };

	a->port = (uint16_t)(1 + rnd() % UINT16_MAX);
	a->flags = rnd() % 2 ? ADDR_PORT_SHARED : 0;
	a->family = rnd() % 2 ? ADDR_FAMILY_INET : ADDR_FAMILY_INET6;
	if (rnd() % 4)
		rnd_bytes(a->ip, a->family == ADDR_FAMILY_INET ? 4 : 16);
	else
		memset(a->ip, 0xff, a->family == ADDR_FAMILY_INET ? 4 : 16);
	if (a->family == ADDR_FAMILY_INET6 && rnd() % 2) {
		memcpy(a->ip, link_local, sizeof(link_local));
		a->scope = rnd_number(32);
	}
	a->ip[a->family == ADDR_FAMILY_INET ? 3 : 15] |= 1;
}

static struct weft_addr rnd_addr(void)
{
	struct weft_addr a = { .version = ADDR_VERSION, .kind = ADDR_NONCE };

	rnd_bytes(a.nonce, sizeof(a.nonce));
	a.nonce[0] |= 1;
	a.pid = rnd_number(22);
	if (a.pid) {
		a.fd = rnd_number(31);
		a.ns_hash = rnd_number(32);
	}
	switch (rnd() % 4) {
	case 0:
		break;
	case 1:
		a.family = ADDR_FAMILY_LOCAL;
		memset(a.ip, 'a', 1 + rnd() % 15);
		break;
	default:
		rnd_network(&a);
	}
	assert_true(addr_valid(&a));
	return a;
}

static size_t expected_len(const struct weft_addr *a)
{
	switch (a->family) {
	case ADDR_FAMILY_INET:
		return ADDR_TEXT_INET;
	case ADDR_FAMILY_INET6:
		return ADDR_TEXT_INET6;
	case ADDR_FAMILY_LOCAL:
		return ADDR_TEXT_BARE + 1 + strlen((const char *)a->ip);
	default:
		return ADDR_TEXT_BARE;
	}
}

/* In memory that ends with it. */
static int read_exactly(const char *text, size_t len, struct weft_addr *out)
{
	char *copy = malloc(len ? len : 1);
	int ret;

	memcpy(copy, text, len);
	ret = addr_text_read(copy, len, out);
	free(copy);
	return ret;
}

static void text_is_what_it_was_made_of(void **state)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct weft_addr a = rnd_addr(), b;
		char text[ADDR_TEXT_MAX];
		size_t len = addr_text_write(&a, text);

		assert_int_equal(len, expected_len(&a));
		assert_int_equal(addr_text_version(text, len), ADDR_VERSION);
		assert_int_equal(read_exactly(text, len, &b), 0);
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

/* Of whatever build: written from the layout in addr_text.h alone, by another program. */
static void text_is_the_same_in_every_build(void **state)
{
	static const struct {
		uint16_t family;
		uint16_t flags;
		uint32_t scope;
		uint8_t ip[16];
		const char *text;
	} known[] = {
		{ ADDR_FAMILY_NONE, 0, 0, { 0 }, "QAQIDBAUGBwgAQkgAAAA-9W33e" },
		{ ADDR_FAMILY_LOCAL, 0, 0, "svc", "RAQIDBAUGBwgAQkgAAAA-9W33e/svc" },
		{ ADDR_FAMILY_INET, 0, 0, { 10, 1, 2, 3 }, "SAQIDBAUGBwgAQkgAAAA-9W33eOl4UAgQG" },
		{ ADDR_FAMILY_INET,
		  ADDR_PORT_SHARED,
		  0,
		  { 10, 1, 2, 3 },
		  "VAQIDBAUGBwgAQkgAAAA-9W33eOl4UAgQG" },
		{ ADDR_FAMILY_INET6,
		  0,
		  0,
		  { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
		  "TAQIDBAUGBwgAQkgAAAA-9W33eOl5AAhtwAAAAAAAAAAAAAAAC" },
		{ ADDR_FAMILY_INET6,
		  0,
		  3,
		  { 0xfe, 0x80, [15] = 1 },
		  "UAQIDBAUGBwgAQkgAAAA-9W33eOl4AAAAAAAAAAgAAAAYAAAAA" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		bool network = known[i].family >= ADDR_FAMILY_INET;
		struct weft_addr a = { .version = ADDR_VERSION,
				       .kind = ADDR_NONCE,
				       .nonce = { 1, 2, 3, 4, 5, 6, 7, 8 },
				       .pid = 4242,
				       .fd = 7,
				       .ns_hash = 0xdeadbeef,
				       .family = known[i].family,
				       .flags = known[i].flags,
				       .scope = known[i].scope,
				       .port = network ? 7471 : 0 };
		char text[ADDR_TEXT_MAX];
		size_t len;

		memcpy(a.ip, known[i].ip, sizeof(a.ip));
		len = addr_text_write(&a, text);
		assert_int_equal(len, strlen(known[i].text));
		assert_memory_equal(text, known[i].text, len);
	}
}

/* All that a field may hold, at once. */
static void extreme_values_fit(void **state)
{
	struct weft_addr a = { .version = ADDR_VERSION,
			       .kind = ADDR_NONCE,
			       .flags = ADDR_PORT_SHARED,
			       .fd = INT32_MAX,
			       .pid = ADDR_PID_MAX,
			       .ns_hash = UINT32_MAX,
			       .family = ADDR_FAMILY_INET,
			       .port = UINT16_MAX },
			 b;
	char text[ADDR_TEXT_MAX];

	memset(a.nonce, 0xff, sizeof(a.nonce));
	memset(a.ip, 0xff, 4);
	assert_int_equal(addr_text_write(&a, text), ADDR_TEXT_INET);
	assert_int_equal(addr_text_read(text, ADDR_TEXT_INET, &b), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	a.family = ADDR_FAMILY_INET6;
	memset(a.ip, 0xff, sizeof(a.ip));
	assert_int_equal(addr_text_write(&a, text), ADDR_TEXT_INET6);
	assert_int_equal(addr_text_read(text, ADDR_TEXT_INET6, &b), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	memset(a.ip, 0, 8);
	a.ip[0] = 0xfe;
	a.ip[1] = 0x80;
	a.scope = UINT32_MAX;
	assert_int_equal(addr_text_write(&a, text), ADDR_TEXT_INET6);
	assert_int_equal(addr_text_read(text, ADDR_TEXT_INET6, &b), 0);
	assert_memory_equal(&a, &b, sizeof(a));
}

/* Whatever is taken has one text. */
static void changed_text_is_refused_or_another_address(void **state)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct weft_addr a = rnd_addr(), b;
		char text[ADDR_TEXT_MAX + 8], again[ADDR_TEXT_MAX];
		size_t len = addr_text_write(&a, text);

		for (uint32_t n = rnd() % 3; n; n--)
			text[rnd() % len] = rnd() % 2 ? (char)rnd() : "AQ_-/9z"[rnd() % 7];
		if (!(rnd() % 4))
			len -= 1 + rnd() % len;
		else if (!(rnd() % 4))
			text[len++] = 'A';
		if (read_exactly(text, len, &b))
			continue;
		assert_true(addr_valid(&b));
		assert_int_equal(addr_text_write(&b, again), len);
		assert_memory_equal(again, text, len);
	}
}

static void other_text_is_refused(void **state)
{
	struct weft_addr a = rnd_addr(), b;
	char text[ADDR_TEXT_MAX], later[ADDR_TEXT_MAX];
	size_t len;

	while (a.family == ADDR_FAMILY_LOCAL) /* which ends anywhere */
		a = rnd_addr();
	len = addr_text_write(&a, text);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(read_exactly(text, i, &b), -FI_EINVAL);
	assert_int_equal(addr_text_version("", 0), -1);
	assert_int_equal(addr_text_version("10.0.0.1:7471", 13), -1);
	memcpy(later, text, len);
	later[0] = 'Y';
	assert_int_equal(addr_text_version(later, len), ADDR_VERSION + 1);
	assert_int_equal(addr_text_read(later, len, &b), -FI_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_what_it_was_made_of),
		cmocka_unit_test(text_is_the_same_in_every_build),
		cmocka_unit_test(extreme_values_fit),
		cmocka_unit_test(changed_text_is_refused_or_another_address),
		cmocka_unit_test(other_text_is_refused),
	};
	const char *given = getenv("WEFT_SEED");

	seed = given ? strtoull(given, NULL, 0) : platform_now_ns();
	printf("WEFT_SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
