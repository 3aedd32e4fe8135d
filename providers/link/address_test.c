/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the link's addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include "link.h"
#include <cmocka.h>

static struct weft_addr an_address(uint16_t family)
{
	struct weft_addr addr = { .version = ADDR_VERSION,
				  .kind = ADDR_NONCE,
				  .flags = ADDR_PORT_SHARED,
				  .fd = INT32_MAX,
				  .pid = ADDR_PID_MAX,
				  .ns_hash = UINT32_MAX,
				  .family = family,
				  .port = UINT16_MAX };

	memset(addr.nonce, 0xff, sizeof(addr.nonce));
	memset(addr.ip, 0xff, family == ADDR_FAMILY_INET ? 4 : 16);
	return addr;
}

typedef int reads(const void *addr, size_t len, struct weft_addr *out, char *why,
		  size_t why_len);

/* Reads a string that ends where its memory does. */
static int read_text(reads *read, const char *text, struct weft_addr *out, char *why)
{
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	int ret;

	memcpy(copy, text, len ? len : 1);
	why[0] = '\0';
	ret = read(copy, len, out, why, 128);
	assert_int_equal(!ret, !why[0]);
	free(copy);
	return ret;
}

/* Programs keep it in 48 bytes, or 56 where they know IPv6: at any value. */
static void addresses_fit_where_programs_keep_them(void **state)
{
	static const struct {
		uint16_t family;
		size_t most;
	} kinds[] = { { ADDR_FAMILY_INET, 48 }, { ADDR_FAMILY_INET6, 56 } };
	char text[LINK_ADDR_LEN], why[128];
	struct weft_addr back;

	for (int i = 0; i < 2; i++) {
		struct weft_addr addr = an_address(kinds[i].family);
		size_t len = link_addr_write(&addr, text);

		assert_int_equal(len, strlen(text) + 1);
		assert_true(len <= kinds[i].most);
		for (size_t j = 0; text[j]; j++)
			assert_true(isalnum((unsigned char)text[j]) || strchr("-_:/", text[j]));
		assert_int_equal(read_text(link_addr_read, text, &back, why), 0);
		assert_memory_equal(&back, &addr, sizeof(addr));
		assert_int_equal(read_text(link_addr_read, strchr(text, ':') + 1, &back, why),
				 0);
		assert_memory_equal(&back, &addr, sizeof(addr));
		addr_to_service(&addr);
		addr.flags = 0;
		assert_true(link_addr_write(&addr, text) <= kinds[i].most);
		assert_int_equal(read_text(link_addr_read, text, &back, why), 0);
		assert_memory_equal(&back, &addr, sizeof(addr));
	}
}

static void services_are_host_and_port(void **state)
{
	static const char *const texts[] = {
		"link:10.0.0.1:7471",
		"link:[::1]:1",
		"link:[fd00::1:2]:65535",
		"link:[fe80::1%4294967295]:65535",
		"link:[fe80::ffff:ffff:ffff:ffff%4294967295]:65535",
	};
	char text[LINK_ADDR_LEN], why[128];
	struct weft_addr addr, back;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(read_text(link_addr_read, texts[i], &addr, why), 0);
		assert_int_equal(addr.kind, ADDR_SERVICE);
		assert_int_equal(link_addr_write(&addr, text), strlen(texts[i]) + 1);
		assert_string_equal(text, texts[i]);
		assert_true(strlen(text) < 56);
		assert_int_equal(
			read_text(link_addr_read, strchr(texts[i], ':') + 1, &back, why), 0);
		assert_memory_equal(&back, &addr, sizeof(addr));
	}
}

/* To be anywhere is a wish, and no place. */
static void wishes_are_for_binding(void **state)
{
	static const char *const wishes[] = { "link:", "link:0.0.0.0:7471", "link:10.0.0.1:0",
					      "link:[::]:0" };
	char text[LINK_ADDR_LEN], why[128];
	struct weft_addr addr;

	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		assert_int_equal(read_text(link_addr_read, wishes[i], &addr, why), -FI_EINVAL);
		assert_int_equal(read_text(link_bind_read, wishes[i], &addr, why), 0);
		link_addr_write(&addr, text);
		assert_string_equal(text, wishes[i]);
	}
}

static void what_is_no_address_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"x",
		"link",
		"link:x",
		"link::",
		"link:7471",
		"link::7471",
		"link:10.0.0.1",
		"link:10.0.0.1:",
		"link:10.0.0.1:65536",
		"link:10.0.0.1:7471x",
		"link:10.0.0.1:-1",
		"link:10.0.0.1:99999999999999999999999",
		"link:10.0.0.256:1",
		"link:fe80::1:7471",
		"link:[fe80::1]",
		"link:[fe80::1]7471",
		"link:[fe80::1:7471",
		"link:[fe80::1%]:7471",
		"link:[fe80::1%4294967296]:7471",
		"link:[10.0.0.1]:7471",
		"fi_shm://QAAAAAAAAAAAAAAAAAAAAAAAAA",
		"link:QAAAAAAAAAAAAAAAAAAAAAAAAA",
		"link:localhost:7471",
		"link:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	struct weft_addr addr;
	char why[128];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(read_text(link_addr_read, texts[i], &addr, why), -FI_EINVAL);
		assert_int_equal(read_text(link_bind_read, texts[i], &addr, why), -FI_EINVAL);
	}
	assert_int_equal(
		read_text(link_addr_read, "link:YAAAAAAAAAAAAAAAAAAAAAAAAA", &addr, why),
		-FI_EINVAL);
	assert_non_null(strstr(why, "another version"));
}

/* A host without Weft sends what another provider has. */
static void socket_addresses_are_explained(void **state)
{
	struct sockaddr_in *in = calloc(1, sizeof(*in));
	struct sockaddr_in6 *in6 = calloc(1, sizeof(*in6));
	char why[128], text[64];
	struct weft_addr addr;

	in->sin_family = AF_INET;
	in->sin_port = htons(7471);
	inet_pton(AF_INET, "192.0.2.7", &in->sin_addr);
	assert_int_equal(link_addr_read(in, 0, &addr, why, sizeof(why)), -FI_EINVAL);
	assert_non_null(strstr(why, "no Weft runs on host 192.0.2.7: "));
	in6->sin6_family = AF_INET6;
	inet_pton(AF_INET6, "2001:db8::7", &in6->sin6_addr);
	assert_int_equal(link_addr_read(in6, 0, &addr, why, sizeof(why)), -FI_EINVAL);
	assert_non_null(strstr(why, "no Weft runs on host 2001:db8::7: "));
	assert_int_equal(link_addr_str(in, 0, text, sizeof(text)), sizeof("link:invalid"));
	assert_string_equal(text, "link:invalid");
	free(in6);
	free(in);
}

static void words_are_the_address_with_its_prefix(void **state)
{
	struct weft_addr addr = an_address(ADDR_FAMILY_INET);
	char text[LINK_ADDR_LEN], words[LINK_ADDR_LEN];
	size_t len = link_addr_write(&addr, text);

	assert_int_equal(link_addr_str(text, len - 1, words, sizeof(words)), len);
	assert_string_equal(words, text);
	assert_int_equal(link_addr_str(text + 5, len - 6, words, sizeof(words)), len);
	assert_string_equal(words, text);
	assert_int_equal(link_addr_str(text, len - 1, words, 5), len);
	assert_string_equal(words, "link");
	assert_int_equal(link_addr_str(text, len - 1, NULL, 0), len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_fit_where_programs_keep_them),
		cmocka_unit_test(services_are_host_and_port),
		cmocka_unit_test(wishes_are_for_binding),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(socket_addresses_are_explained),
		cmocka_unit_test(words_are_the_address_with_its_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
