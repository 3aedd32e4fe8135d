/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The devices that a process of fio has borrowed: one lease for each, which all of its jobs use. A job that is a process
 * of its own borrows for itself. Called by any thread.
 */
#ifndef WEFT_DEVICES_FIO_BORROW_H
#define WEFT_DEVICES_FIO_BORROW_H

#include <stdint.h>
#include <weft/nvme.h>

/*
 * struct borrow_wish - what to borrow
 * @lender, @device: NULL: what weft_lender_open() and weft_device_borrow() take then
 * @ticket: of a lease to use, and to leave as it is: nothing is borrowed then; NULL: none
 * @ms: of the lease; 0: what weft_device_borrow() takes then
 */
struct borrow_wish {
	const char *lender;
	const char *device;
	const char *ticket;
	uint32_t shared;
	uint32_t ms;
};

struct borrow;

/*
 * borrow_get - have a device
 * @wish: where this process has that device from that lender already, how it was borrowed stays
 *
 * Returns 0, or what weft_lender_open(), weft_device_borrow() or weft_device_attach() return.
 */
int borrow_get(const struct borrow_wish *wish, struct borrow **borrow);

/*
 * borrow_put - let go of a device; the last one returns it. What was opened on it is closed.
 */
void borrow_put(struct borrow *borrow);

struct weft_device *borrow_device(const struct borrow *borrow);

/*
 * borrow_look - what a namespace of a device is, without borrowing the device
 * Returns 0, -ENODEV: there is no such device or namespace; or what weft_lender_open(), weft_device_list() or
 * weft_nvme_identify() return.
 */
int borrow_look(const struct borrow_wish *wish, uint32_t nsid, struct weft_nvme_namespace *ns);

#endif
