/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The admin queue of an NVMe controller, as its lender drives it: one command at a time, which waits. One thread at a
 * time. The queue's memory stays with the controller when the lender ends, and the next lender goes on with it.
 */
#ifndef WEFT_DEVICES_LENDER_ADMIN_H
#define WEFT_DEVICES_LENDER_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "function.h"
#include "spec.h"

struct admin;

/*
 * admin_open - bring a controller up, or go on with one that runs
 * @adopted: out: it ran, with the queues that it had
 * Returns 0 or -errno: -ETIMEDOUT, -EIO: it does not become ready; what the function returns.
 */
int admin_open(struct function *function, struct admin **admin, bool *adopted);

/* admin_close - leave the controller as it is */
void admin_close(struct admin *admin);

/*
 * admin_command - carry a command out
 * @sqe:  its id and prp1 are set here, the latter where there is @data
 * @data: NVME_PAGE bytes that go to the controller before, and come from it after; NULL: the command has none
 * @cqe:  out
 * Returns 0: there is a completion, and its status is in @cqe; or why the controller is not used any more: -ENODEV: it is
 * gone; -ETIMEDOUT: it does not answer, or not within 5 seconds; -ENOTRECOVERABLE: it has failed, or was reset; -EPROTO.
 */
int admin_command(struct admin *admin, struct nvme_sqe *sqe, void *data, struct nvme_cqe *cqe);

/* admin_do - the same for who wants success: -EIO if the status says otherwise, with a log line that names @what */
int admin_do(struct admin *admin, const char *what, struct nvme_sqe *sqe, void *data,
	     struct nvme_cqe *cqe);

/* admin_fd - readable when the controller has told of an event; admin_events() then */
int admin_fd(const struct admin *admin);

/*
 * admin_events - take the events that came, and ask for further ones
 * @types: out: their types, as bits
 * Returns 0 or -errno.
 */
int admin_events(struct admin *admin, uint32_t *types);

/* admin_alive - look at the controller. Returns 0, or why it is not used any more, as admin_command() does */
int admin_alive(struct admin *admin);

#endif
