/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs of a controller of another machine, in memory that both have (bridge/bridge.h): the queues and lists of the
 * pair are there, and data passes through pages there, since the device reaches no other memory of this machine. The
 * commands' way is that of a pair of this host otherwise. The pair's thread calls everything.
 */
#ifndef WEFT_DEVICES_CLIENT_BRIDGED_H
#define WEFT_DEVICES_CLIENT_BRIDGED_H

#include "client.h"
#include "spec.h"

struct bridge_pair;
struct bridge_place;
struct weft_nvme;

/*
 * bridge_is_place - whether a lender's answer of @len bytes leads to a bridge
 */
bool bridge_is_place(const void *answer, uint32_t len);

/*
 * bridge_open - find the memory, and have the pair's queues there
 * Returns 0 or a negative errno; -ENODEV: this machine does not have that memory; -EOPNOTSUPP: nobody can be woken over it.
 */
int bridge_open(struct weft_nvme *qp, const struct bridge_place *place);

/* bridge_close - let go of it. The lender has been asked to end the pair */
void bridge_close(struct weft_nvme *qp);

/*
 * bridge_point - have a command's data in pages of the bridge, and its pointers lead there
 * Returns 0, -EAGAIN: commands under way have the pages; or another error as weft_nvme_submit().
 */
int bridge_point(struct weft_nvme *qp, struct nvme_sqe *sqe, uint16_t cid, void *buf,
		 size_t len, uint32_t access);

/* bridge_done - a command has ended: what it has read goes to the program's memory; its pages are free */
void bridge_done(struct weft_nvme *qp, uint16_t cid, bool good);

/* bridge_ended - 0, or -ESTALE: the pair is no more. @look: find out whether the controller is there, too */
int bridge_ended(struct weft_nvme *qp, bool look);

#endif
