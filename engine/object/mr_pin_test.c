/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of regions over wires that pin: a domain without endpoints, on one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "core_double.h"
#include "mr_fid.h"
#include <cmocka.h>

#define RMA  (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define PINS 64u

/* A device that remembers what is registered with it. */
struct mr_device {
	struct {
		const char *addr;
		size_t len;
		uint64_t access;
	} pins[PINS];
	uint32_t used, closed, pinned;
	/* registrations that succeed before one fails; 0: all do */
	uint32_t fail_in;
};

static struct mr_device left, right;
static bool left_is_absent;

static int open_left(struct mr_device **device)
{
	*device = &left;
	return left_is_absent ? -FI_ENODEV : 0;
}

static int open_right(struct mr_device **device)
{
	*device = &right;
	return 0;
}

static void close_device(struct mr_device *device)
{
	assert_int_equal(device->pinned, 0);
	device->closed++;
}

static int reg(struct mr_device *device, const void *addr, size_t len, uint64_t access,
	       struct mr_pin *pin)
{
	assert_true(len > 0 && device->used < PINS);
	if (device->fail_in && !--device->fail_in)
		return -FI_ENOMEM;
	device->pins[device->used].addr = addr;
	device->pins[device->used].len = len;
	device->pins[device->used].access = access;
	pin->words[0] = pin->words[3] = ++device->used;
	device->pinned++;
	return 0;
}

static void dereg(struct mr_device *device, struct mr_pin *pin)
{
	assert_true(pin->words[0] == pin->words[3] && pin->words[0] <= device->used);
	assert_non_null(device->pins[pin->words[0] - 1].addr);
	device->pins[pin->words[0] - 1].addr = NULL;
	device->pinned--;
}

static const struct mr_ops left_mr = {
	.open = open_left, .close = close_device, .reg = reg, .dereg = dereg
};
static const struct mr_ops right_mr = {
	.open = open_right, .close = close_device, .reg = reg, .dereg = dereg
};
static const struct wire_ops left_ops = { .size = sizeof(left_ops),
					  .name = "left",
					  .mr = &left_mr };
static const struct wire_ops plain_ops = { .size = sizeof(plain_ops), .name = "plain" };
static const struct wire_ops right_ops = { .size = sizeof(right_ops),
					   .name = "right",
					   .mr = &right_mr };
static const struct wire_provider wires[] = {
	{ sizeof(struct wire_provider), 1, WIRE_LAYOUT, &left_ops },
	{ sizeof(struct wire_provider), 1, WIRE_LAYOUT, &plain_ops },
	{ sizeof(struct wire_provider), 1, WIRE_LAYOUT, &right_ops },
};

static struct fi_provider provider = { .name = "test" };
static const struct engine_family family = { .provider = &provider,
					     .wires = { "left", "plain", "right" } };
static struct fid_fabric *fabric;
static struct fid_domain *domain;

static void open_domain(void)
{
	struct fi_fabric_attr fabric_attr = { .api_version = FI_VERSION(2, 0) };
	struct fi_domain_attr attr = { .threading = FI_THREAD_SAFE };
	struct fi_info info = { .domain_attr = &attr };

	left = right = (struct mr_device){ 0 };
	for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++)
		assert_int_equal(wire_register(&wires[i]), 0);
	assert_int_equal(engine_fabric_open(&family, &fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, &info, &domain, NULL), 0);
}

static void close_domain(void)
{
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	assert_int_equal(right.closed, 1);
}

static void a_region_is_registered_with_every_device(void **state)
{
	struct fid_mr *keyed, *local;
	char buf[64];

	open_domain();
	assert_int_equal(fi_mr_reg(domain, buf, 64, RMA, 0, 1, 0, &keyed, NULL), 0);
	assert_int_equal(fi_mr_reg(domain, buf, 32, FI_SEND, 0, 1, 0, &local, NULL), 0);
	assert_int_equal(left.pinned, 2);
	assert_int_equal(right.pinned, 2);
	assert_ptr_equal(right.pins[0].addr, buf);
	assert_int_equal(right.pins[0].len, 64);
	assert_int_equal(right.pins[0].access, RMA);
	assert_int_equal(left.pins[1].len, 32);
	assert_int_equal(left.pins[1].access, FI_SEND);
	assert_int_equal(fi_close(&keyed->fid), 0);
	assert_null(left.pins[0].addr);
	assert_non_null(left.pins[1].addr);
	assert_int_equal(fi_close(&local->fid), 0);
	assert_int_equal(left.pinned + right.pinned, 0);
	close_domain();
	assert_int_equal(left.closed, 1);
}

static void a_device_that_is_absent_gets_nothing(void **state)
{
	struct fid_mr *mr;
	char buf[64];

	left_is_absent = true;
	open_domain();
	left_is_absent = false;
	assert_int_equal(fi_mr_reg(domain, buf, 64, RMA, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(left.used, 0);
	assert_int_equal(right.pinned, 1);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_domain();
	assert_int_equal(left.closed, 0);
}

static void each_piece_is_registered_but_for_an_empty_one(void **state)
{
	char buf[64];
	struct iovec iov[3] = { { buf + 32, 8 }, { buf, 0 }, { buf, 16 } };
	struct fid_mr *mr;

	open_domain();
	assert_int_equal(fi_mr_regv(domain, iov, 3, RMA, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(left.pinned, 2);
	assert_ptr_equal(left.pins[0].addr, buf + 32);
	assert_ptr_equal(left.pins[1].addr, buf);
	assert_int_equal(right.pins[1].len, 16);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_domain();
}

/* Wherever it fails, nothing is left, and the next region is registered whole. */
static void what_fails_leaves_nothing_registered(void **state)
{
	char buf[64];
	struct iovec iov[3] = { { buf, 8 }, { buf + 8, 8 }, { buf + 16, 8 } };
	struct fid_mr *mr, *other;

	open_domain();
	for (uint32_t i = 1; i <= 6; i++) {
		struct mr_device *device = i % 2 ? &left : &right;
		int before = core_warnings;

		device->fail_in = (i + 1) / 2;
		mr = NULL;
		assert_int_equal(fi_mr_regv(domain, iov, 3, RMA, 0, 1, 0, &mr, NULL),
				 -FI_ENOMEM);
		assert_null(mr);
		assert_int_equal(left.pinned + right.pinned, 0);
		assert_true(core_warnings > before);
	}
	/* A key that is taken is found out after the devices have it. */
	assert_int_equal(fi_mr_regv(domain, iov, 3, RMA, 0, 1, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_regv(domain, iov, 3, RMA, 0, 1, 0, &other, NULL), -FI_ENOKEY);
	assert_int_equal(left.pinned + right.pinned, 6);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_domain();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_is_registered_with_every_device),
		cmocka_unit_test(a_device_that_is_absent_gets_nothing),
		cmocka_unit_test(each_piece_is_registered_but_for_an_empty_one),
		cmocka_unit_test(what_fails_leaves_nothing_registered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
