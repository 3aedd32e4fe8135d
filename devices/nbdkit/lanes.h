/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lanes to a borrowed NVMe: a queue pair with a piece of memory that the device reaches. A request of nbdkit, which comes
 * on any thread, has one to itself as long as it takes; there are as many as requests are under way at once, up to a
 * limit. nbdkit's buffers are its own, so data is copied once between them and the lane's memory.
 */
#ifndef WEFT_DEVICES_NBDKIT_LANES_H
#define WEFT_DEVICES_NBDKIT_LANES_H

#include <stdint.h>
#include <weft/nvme.h>

#define LANE_BYTES (1u << 20) /* of a lane's memory */
#define LANE_DEPTH 64u	      /* commands of a lane under way at most */

struct lanes;
struct lane;

/*
 * lanes_create - have lanes to a device
 * @nsid:  namespace of all of them
 * @most:  how many, at least 1
 * @flags: of struct weft_nvme_attr
 *
 * The first one is opened. Returns 0, owned, or what opening it returned.
 */
int lanes_create(struct weft_device *dev, uint32_t nsid, unsigned most, uint32_t flags,
		 struct lanes **lanes);

/* lanes_destroy - close them; none is in use */
void lanes_destroy(struct lanes *lanes);

const struct weft_nvme_namespace *lanes_namespace(const struct lanes *lanes);

/*
 * lane_take - have a lane to oneself until lane_give(); waits for one if all are in use
 */
struct lane *lane_take(struct lanes *lanes);
void lane_give(struct lane *lane);

/*
 * lane_read, lane_write - move @len bytes at @offset of the namespace, both multiples of its block size
 * @flags: WEFT_NVME_FUA or 0
 *
 * lane_write_zeroes, lane_deallocate: the same without data. All wait.
 * Return 0, or an errno: then any part may have been done.
 */
int lane_read(struct lane *lane, void *buf, uint32_t len, uint64_t offset);
int lane_write(struct lane *lane, const void *buf, uint32_t len, uint64_t offset, uint8_t flags);
int lane_write_zeroes(struct lane *lane, uint32_t len, uint64_t offset, uint8_t flags);
int lane_deallocate(struct lane *lane, uint32_t len, uint64_t offset);
int lane_flush(struct lane *lane);

#endif
