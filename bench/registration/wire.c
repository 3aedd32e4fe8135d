/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The wire of wire.h: what a provider has to do for registration with its device, and no more. */
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include "engine.h"
#include "mr_fid.h"
#include "pin.h"
#include "uring_device.h"
#include "wire.h"

/* Peers' requests are checked by the engine: the device itself accesses what it is told to. */
#define ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

struct mr_device {
	struct uring_device uring;
	struct mem_pins *pins;
};

_Static_assert(sizeof(struct mem_pin_ref) <= sizeof(struct mr_pin), "a pin has room for a ref");

static struct mem_pin_ref *ref_of(struct mr_pin *pin)
{
	return (struct mem_pin_ref *)pin->words;
}

static int device_open(struct mr_device **out)
{
	struct mem_pin_config config = { .ops = &uring_device_ops, .access = ACCESS };
	struct mr_device *device = platform_alloc(sizeof(*device));
	int err = -FI_ENOMEM;

	if (!device)
		return err;
	err = uring_device_open(&device->uring);
	if (err)
		goto err_free;
	config.device = &device->uring;
	err = mem_pins_create(&config, &device->pins);
	if (err)
		goto err_close;
	*out = device;
	return 0;

err_close:
	uring_device_close(&device->uring);
err_free:
	platform_free(device);
	return err;
}

static void device_close(struct mr_device *device)
{
	mem_pins_destroy(device->pins);
	uring_device_close(&device->uring);
	platform_free(device);
}

static int device_reg(struct mr_device *device, const void *addr, size_t len, uint64_t access,
		      struct mr_pin *pin)
{
	return mem_pins_hold(device->pins, addr, len, access, ref_of(pin));
}

static void device_dereg(struct mr_device *device, struct mr_pin *pin)
{
	mem_pins_unhold(device->pins, ref_of(pin));
}

static const struct mr_ops device_mr = {
	.open = device_open,
	.close = device_close,
	.reg = device_reg,
	.dereg = device_dereg,
};

static const struct wire_ops ops = { .size = sizeof(ops), .name = "fixed", .mr = &device_mr };
static const struct wire_provider wire = { sizeof(wire), 1, WIRE_LAYOUT, &ops };
static struct fi_provider provider = { .name = "fixed" };
static const struct engine_family family = { .provider = &provider, .wires = { "fixed" } };

static const struct engine_mrs *mrs_of(struct fid_domain *domain)
{
	return container_of(domain, struct engine_domain, fid)->mr;
}

int wire_domain(enum fi_threading threading, struct fid_fabric **fabric,
		struct fid_domain **domain)
{
	struct fi_fabric_attr fabric_attr = { .api_version = FI_VERSION(2, 0) };
	struct fi_domain_attr attr = { .mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
				       .threading = threading };
	struct fi_info info = { .domain_attr = &attr };
	int err = wire_register(&wire);

	if (!err)
		err = engine_fabric_open(&family, &fabric_attr, fabric, NULL);
	if (err)
		return err;
	err = fi_domain(*fabric, &info, domain, NULL);
	if (!err && !mrs_of(*domain)->device_cnt) {
		fi_close(&(*domain)->fid);
		err = -FI_ENODEV;
	}
	if (err)
		fi_close(&(*fabric)->fid);
	return err;
}

bool wire_reaches(struct fid_mr *fid, const void *addr, size_t len, int file)
{
	struct engine_mr *mr = container_of(fid, struct engine_mr, fid);
	struct mr_device *device = mr->domain->mr->devices[0].device;
	const struct mem_pin_ref *ref = ref_of(&mr->pins[0]);
	const char *from = addr;
	char found[4096];
	size_t n;

	for (size_t done = 0; done < len; done += n) {
		uint64_t handle = mem_pins_handle(device->pins, ref, from + done, &n);

		n = n < len - done ? n : len - done;
		if (uring_device_write(&device->uring, handle, from + done, n, file,
				       (off_t)done))
			return false;
	}
	for (size_t done = 0; done < len; done += n) {
		n = len - done < sizeof(found) ? len - done : sizeof(found);
		if (pread(file, found, n, (off_t)done) != (ssize_t)n ||
		    memcmp(found, from + done, n))
			return false;
	}
	return true;
}
