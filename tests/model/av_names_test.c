/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which names fi_av_insertsym and fi_av_insertsvc ask for: the engine over a provider that
 * resolves nothing but writes down what it was asked. One thread.
 */
#include "engine.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char asked[4096]; /* "node:service " each */
static int failing;	 /* the first so many are not found */

static struct fi_provider clerk = { .name = "clerk" };

static int clerk_resolve(const char *node, const char *service, uint64_t flags,
			 struct weft_addr *out)
{
	size_t len = strlen(asked);

	snprintf(asked + len, sizeof(asked) - len, "%s:%s ", node, service);
	if (failing && failing--)
		return -FI_ENODATA;
	*out = (struct weft_addr){ .version = ADDR_VERSION,
				   .kind = ADDR_SERVICE,
				   .family = ADDR_FAMILY_INET6 };
	memset(out->ip, 0xff, sizeof(out->ip));
	out->ip[1] = (uint8_t)len;
	out->ip[15] = 0xfe;
	out->port = (uint16_t)atoi(service);
	return 0;
}

static int clerk_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		      size_t why_len)
{
	return -FI_EINVAL;
}

static size_t clerk_write(const struct weft_addr *addr, void *out)
{
	memcpy(out, addr, sizeof(*addr));
	return sizeof(*addr);
}

static const struct engine_family family = {
	.provider = &clerk,
	.addr_len = sizeof(struct weft_addr),
	.addr_read = clerk_read,
	.addr_write = clerk_write,
	.resolve = clerk_resolve,
};

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;

static int setup(void **state)
{
	struct fi_domain_attr domain_attr = { .threading = FI_THREAD_DOMAIN };
	struct fi_fabric_attr fabric_attr = { 0 };
	struct fi_info info = { .domain_attr = &domain_attr, .fabric_attr = &fabric_attr };
	struct fi_av_attr attr = { 0 };

	asked[0] = '\0';
	failing = 0;
	assert_int_equal(engine_fabric_open(&family, &fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, &info, &domain, NULL), 0);
	assert_int_equal(fi_av_open(domain, &attr, &av, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	return 0;
}

static void range(const char *node, size_t cnt, const char *expected)
{
	asked[0] = '\0';
	assert_int_equal(fi_av_insertsym(av, node, cnt, "5", 1, NULL, 0, NULL), cnt);
	assert_string_equal(asked, expected);
}

static void hosts_are_counted_by_their_suffix(void **state)
{
	range("host10", 3, "host10:5 host11:5 host12:5 ");
	range("host9", 3, "host9:5 host10:5 host11:5 ");
	range("host008", 3, "host008:5 host009:5 host010:5 ");
	range("n2-99", 2, "n2-99:5 n2-100:5 ");
	range("rack1node0", 2, "rack1node0:5 rack1node1:5 ");
	range("head", 1, "head:5 "); /* one needs no number */
}

static void numbers_are_asked_for_once(void **state)
{
	struct weft_addr got;
	size_t len = sizeof(got);

	asked[0] = '\0';
	assert_int_equal(fi_av_insertsym(av, "fe80::1%eth0", 2, "5", 1, NULL, 0, NULL), 2);
	assert_string_equal(asked, "fe80::1%eth0:5 ");
	assert_int_equal(fi_av_lookup(av, 1, &got, &len), 0);
	assert_int_equal(got.ip[15], 0xff);
	assert_int_equal(got.ip[14], 0xff);
	/* There is a carry, and an end. */
	asked[0] = '\0';
	assert_int_equal(fi_av_insertsym(av, "1.2.3.4", 3, "5", 1, NULL, 0, NULL), 3);
	assert_string_equal(asked, "1.2.3.4:5 ");
	assert_int_equal(fi_av_lookup(av, 2, &got, &len), 0);
	assert_int_equal(got.ip[15], 0);
	assert_int_equal(got.ip[1], 1);
}

static void services_are_counted_within_a_node(void **state)
{
	struct weft_addr got;
	size_t len = sizeof(got);

	assert_int_equal(fi_av_insertsym(av, "host1", 2, "7", 3, NULL, 0, NULL), 6);
	assert_string_equal(asked, "host1:7 host2:7 ");
	for (fi_addr_t i = 0; i < 6; i++) {
		assert_int_equal(fi_av_lookup(av, i, &got, &len), 0);
		assert_int_equal(got.port, 7 + i % 3);
		assert_int_equal(got.ip[1], i / 3 * 8);
	}
}

static void host_that_is_not_found_leaves_the_others(void **state)
{
	fi_addr_t out[4] = { 0 };
	int errors[4] = { 0 };

	failing = 1;
	assert_int_equal(fi_av_insertsym(av, "host1", 2, "7", 2, out, FI_SYNC_ERR, errors), 2);
	assert_true(out[0] == FI_ADDR_NOTAVAIL && out[1] == FI_ADDR_NOTAVAIL);
	assert_int_equal(errors[1], FI_ENODATA);
	assert_int_equal(out[2], 0);
	assert_int_equal(out[3], 1);
	assert_int_equal(errors[3], 0);
	failing = 1;
	assert_int_equal(fi_av_insertsvc(av, "host1", "7", out, 0, NULL), -FI_ENODATA);
	assert_true(out[0] == FI_ADDR_NOTAVAIL);
}

static void names_that_can_not_be_counted_are_refused(void **state)
{
	char longest[300];

	memset(longest, '9', sizeof(longest));
	longest[299] = '\0';
	assert_int_equal(fi_av_insertsym(av, "host1.example.org", 2, "7", 1, NULL, 0, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_av_insertsym(av, "", 2, "7", 1, NULL, 0, NULL),
			 2); /* the provider's to judge */
	longest[0] = 'h';
	assert_int_equal(fi_av_insertsym(av, longest, 2, "7", 1, NULL, 0, NULL), -FI_EINVAL);
	longest[255] = '\0'; /* there is no room for one digit more */
	assert_int_equal(fi_av_insertsym(av, longest, 2, "7", 1, NULL, 0, NULL), -FI_EINVAL);
}

static void strings_of_addresses_are_split(void **state)
{
	assert_int_equal(fi_av_insertsvc(av, "fi_sockaddr://host:123", NULL, NULL, 0, NULL), 1);
	assert_int_equal(
		fi_av_insertsvc(av, "fi_sockaddr_in6://[fe80::1]:7471", NULL, NULL, 0, NULL), 1);
	assert_string_equal(asked, "host:123 fe80::1:7471 ");
	assert_int_equal(fi_av_insertsvc(av, "other://host:123", NULL, NULL, 0, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_av_insertsvc(av, "fi_sockaddr://:123", NULL, NULL, 0, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_av_insertsvc(av, "fi_sockaddr", NULL, NULL, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insertsvc(av, NULL, NULL, NULL, 0, NULL), -FI_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(hosts_are_counted_by_their_suffix, setup,
						teardown),
		cmocka_unit_test_setup_teardown(numbers_are_asked_for_once, setup, teardown),
		cmocka_unit_test_setup_teardown(services_are_counted_within_a_node, setup,
						teardown),
		cmocka_unit_test_setup_teardown(host_that_is_not_found_leaves_the_others, setup,
						teardown),
		cmocka_unit_test_setup_teardown(names_that_can_not_be_counted_are_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(strings_of_addresses_are_split, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
