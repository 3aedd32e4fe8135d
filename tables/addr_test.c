/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of endpoint addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include "addr.h"
#include <cmocka.h>

static struct weft_addr nonce_addr(uint8_t nonce)
{
	return (struct weft_addr){
		.version = ADDR_VERSION,
		.kind = ADDR_NONCE,
		.fd = 5,
		.nonce = { nonce, 2, 3 },
		.pid = 100,
		.ns_hash = 77,
		.family = ADDR_FAMILY_INET,
		.port = 1234,
		.ip = { 10, 0, 0, 1 },
	};
}

static struct weft_addr service_addr(uint16_t port)
{
	return (struct weft_addr){
		.version = ADDR_VERSION,
		.kind = ADDR_SERVICE,
		.family = ADDR_FAMILY_INET,
		.port = port,
		.ip = { 10, 0, 0, 1 },
	};
}

static void complete_addresses_are_valid(void **state)
{
	struct weft_addr a = nonce_addr(1);

	assert_true(addr_valid(&a));
	a.ns_hash = ADDR_NO_NS; /* found by its socket */
	assert_true(addr_valid(&a));
	a.pid = a.fd = 0; /* network alone */
	assert_true(addr_valid(&a));
	a = nonce_addr(1);
	a.family = a.port = 0; /* shared memory alone */
	a.ip[0] = a.ip[3] = 0;
	assert_true(addr_valid(&a));
	a.pid = a.ns_hash = a.fd = 0; /* no wire that shows */
	assert_true(addr_valid(&a));
	a = service_addr(80);
	assert_true(addr_valid(&a));
	a.family = ADDR_FAMILY_INET6;
	a.ip[15] = 1;
	a.scope = 3;
	assert_true(addr_valid(&a));
}

#define REFUSED(make, change)                 \
	do {                                  \
		struct weft_addr a = (make);  \
		change;                       \
		assert_false(addr_valid(&a)); \
	} while (0)

static void whatever_no_endpoint_has_is_refused(void **state)
{
	REFUSED((struct weft_addr){ 0 }, (void)0);
	REFUSED(nonce_addr(1), a.version = 0);
	REFUSED(nonce_addr(1), a.version = ADDR_VERSION + 1);
	REFUSED(nonce_addr(1), a.kind = 0);
	REFUSED(nonce_addr(1), a.kind = 3);
	REFUSED(nonce_addr(1), a.flags = ADDR_PORT_SHARED << 1);
	REFUSED(nonce_addr(1),
		(a.flags = ADDR_PORT_SHARED, a.family = a.port = 0, memset(a.ip, 0, 16)));
	REFUSED(service_addr(80), a.flags = ADDR_PORT_SHARED);
	REFUSED(nonce_addr(1), memset(a.nonce, 0, sizeof(a.nonce)));
	REFUSED(nonce_addr(1), a.pid = ADDR_PID_MAX + 1);
	REFUSED(nonce_addr(1), a.fd = 0x80000000u);
	REFUSED(nonce_addr(1), a.pid = 0);
	REFUSED(nonce_addr(1), a.pid = a.fd = 0);
	REFUSED(nonce_addr(1), a.family = 0);
	REFUSED(nonce_addr(1), a.family = 1);
	REFUSED(nonce_addr(1), a.port = 0);
	REFUSED(nonce_addr(1), a.scope = 1);
	REFUSED(nonce_addr(1), a.ip[4] = 1);
	REFUSED(nonce_addr(1), memset(a.ip, 0, 16));
	REFUSED(service_addr(80), a.nonce[7] = 1);
	REFUSED(service_addr(80), a.family = 0);
	REFUSED(service_addr(80), (a.family = 0, a.port = 0, memset(a.ip, 0, 16)));
	REFUSED(service_addr(80), a.pid = 1);
	REFUSED(service_addr(80), a.fd = 1);
	REFUSED(service_addr(0), (void)0);
}

static void nonces_decide_when_both_have_one(void **state)
{
	struct weft_addr a = nonce_addr(1), b = nonce_addr(2);

	assert_false(addr_same(&a, &b));
	b = nonce_addr(1);
	b.port = 4321;
	b.pid = 9;
	assert_true(addr_same(&a, &b));
	assert_int_equal(addr_hash(&a), addr_hash(&b));
}

static void network_decides_otherwise(void **state)
{
	struct weft_addr a = service_addr(1234), b = service_addr(1234), n = nonce_addr(1);

	b.ns_hash = 5;
	assert_true(addr_same(&a, &b));
	assert_int_equal(addr_hash(&a), addr_hash(&b));
	assert_true(addr_same(&a, &n));
	assert_true(addr_same(&n, &a));
	b.ip[3] = 2;
	assert_false(addr_same(&a, &b));
	b = service_addr(1235);
	assert_false(addr_same(&a, &b));
	b = service_addr(1234);
	b.family = ADDR_FAMILY_INET6;
	assert_false(addr_same(&a, &b));
	n.family = n.port = 0;
	memset(n.ip, 0, sizeof(n.ip));
	assert_false(addr_same(&n, &b));
}

/* The kernel looks at no other's, and programs leave anything there. */
static void only_link_local_addresses_have_a_scope(void **state)
{
	struct weft_addr a = service_addr(1234), b;

	a.family = ADDR_FAMILY_INET6;
	a.ip[0] = 0xfd;
	b = a;
	b.scope = 1;
	assert_true(addr_same(&a, &b));
	assert_int_equal(addr_hash(&a), addr_hash(&b));
	a.ip[0] = b.ip[0] = 0xfe;
	a.ip[1] = b.ip[1] = 0x80;
	assert_false(addr_same(&a, &b));
	assert_int_not_equal(addr_hash(&a), addr_hash(&b));
	a.scope = 1;
	assert_true(addr_same(&a, &b));
}

/* Several endpoints listen there: host and port do not identify one. */
static void a_shared_port_names_nobody(void **state)
{
	struct weft_addr a = nonce_addr(1), b = nonce_addr(2), s = service_addr(1234);

	assert_true(addr_same(&a, &s));
	a.flags = b.flags = ADDR_PORT_SHARED;
	assert_true(addr_valid(&a));
	assert_false(addr_same(&a, &b));
	assert_true(addr_same(&a, &a));
	assert_false(addr_same(&a, &s));
	assert_false(addr_same(&s, &a));
	addr_to_service(&a);
	addr_to_service(&b);
	assert_false(addr_valid(&a));
	assert_false(addr_same(&a, &b));
	assert_false(addr_same(&a, &s));
}

static void service_address_of_an_endpoint_names_it(void **state)
{
	struct weft_addr n = nonce_addr(1), s = n;

	addr_to_service(&s);
	assert_int_equal(s.kind, ADDR_SERVICE);
	assert_true(addr_valid(&s));
	assert_true(addr_same(&n, &s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_addresses_are_valid),
		cmocka_unit_test(whatever_no_endpoint_has_is_refused),
		cmocka_unit_test(nonces_decide_when_both_have_one),
		cmocka_unit_test(network_decides_otherwise),
		cmocka_unit_test(only_link_local_addresses_have_a_scope),
		cmocka_unit_test(a_shared_port_names_nobody),
		cmocka_unit_test(service_address_of_an_endpoint_names_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
