/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the fabric object: what closing it does while something is open in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "core_double.h"
#include "engine.h"
#include "mr_ops.h"
#include <cmocka.h>

static struct fi_provider provider = { .name = "test" };

static void open_both(const struct engine_family *family, struct fid_fabric **fabric,
		      struct fid_domain **domain)
{
	struct fi_fabric_attr fabric_attr = { .api_version = FI_VERSION(1, 18) };
	struct fi_domain_attr attr = { .threading = FI_THREAD_SAFE };
	struct fi_info info = { .domain_attr = &attr };

	assert_int_equal(engine_fabric_open(family, &fabric_attr, fabric, NULL), 0);
	assert_int_equal(fi_domain(*fabric, &info, domain, NULL), 0);
}

static void what_is_open_keeps_its_fabric(void **state)
{
	static const struct engine_family family = { .provider = &provider };
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	open_both(&family, &fabric, &domain);
	assert_int_equal(fi_close(&fabric->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
}

static void a_fabric_that_closes_last_is_busy_until_all_is_closed(void **state)
{
	static const struct engine_family family = { .provider = &provider,
						     .closes_last = true };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;

	open_both(&family, &fabric, &domain);
	assert_int_equal(fi_eq_open(fabric, &eq_attr, &eq, NULL), 0);
	assert_int_equal(fi_close(&fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
}

/* A device that is closed as the last part of its domain. */
static struct fid_fabric *devices_fabric;
static int closed_with;

static int open_device(struct mr_device **device)
{
	*device = NULL;
	return 0;
}

static void close_device(struct mr_device *device)
{
	closed_with = fi_close(&devices_fabric->fid);
}

static void a_domain_keeps_its_fabric_to_its_end(void **state)
{
	static const struct mr_ops mr = { .open = open_device, .close = close_device };
	static const struct wire_ops ops = { .size = sizeof(ops), .name = "pins", .mr = &mr };
	static const struct wire_provider wire = { sizeof(wire), 1, WIRE_LAYOUT, &ops };
	static const struct engine_family family = { .provider = &provider,
						     .wires = { "pins" },
						     .closes_last = true };
	struct fid_domain *domain;

	assert_int_equal(wire_register(&wire), 0);
	open_both(&family, &devices_fabric, &domain);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(closed_with, -FI_EBUSY);
	assert_int_equal(fi_close(&devices_fabric->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_open_keeps_its_fabric),
		cmocka_unit_test(a_fabric_that_closes_last_is_busy_until_all_is_closed),
		cmocka_unit_test(a_domain_keeps_its_fabric_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
