/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of the model of a controller share; fake_device.h is what tests see. The device's lock is held.
 */
#ifndef WEFT_DEVICES_FAKE_FAKE_PARTS_H
#define WEFT_DEVICES_FAKE_FAKE_PARTS_H

#include <stddef.h>

#include "fake_device.h"

#define GRANULE 4096u

/* struct fake_owner - a handle; @ends: of its socket, the second one is the controller's */
struct fake_owner {
	struct function function;
	struct fake_device *dev;
	int ends[2];
};

/* fake_sealed_file - memory of so many bytes that stays as long as that, owned */
int fake_sealed_file(size_t len);

/* fake_reach - where an address of the owner's is; of several files the first one. NULL: not all of it is anywhere */
uint8_t *fake_reach(const struct fake_device *dev, uint64_t addr, size_t len);

/* fake_put, fake_get - bytes at an address of the owner's; nothing and zeros where there is no memory */
void fake_put(struct fake_device *dev, uint64_t addr, const void *data, size_t len);
void fake_get(struct fake_device *dev, uint64_t addr, void *data, size_t len);

/* fake_new_page - of the doorbells of a pair, in place of the one that there is */
void fake_new_page(struct fake_device *dev, uint32_t qid);

/* These let go of one thing, of what a lease has, and of what is mapped in its domain. */
void fake_drop_mapping(struct fake_device *dev, uint32_t idx);
void fake_drop_page(struct fake_device *dev, uint32_t qid);
void fake_drop_vector(struct fake_device *dev, uint32_t vector);
void fake_drop_queues(struct fake_device *dev, uint32_t lease);
void fake_drop_domain(struct fake_device *dev, uint32_t domain);

/* fake_over - all of a lease is gone, and who waits for that is answered */
void fake_over(struct fake_device *dev, uint32_t number);

/* fake_add_event - tell the owner of an event, once it asks */
void fake_add_event(struct fake_device *dev, uint32_t event);

#endif
