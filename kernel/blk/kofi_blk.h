/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the keeper of a lease and the module kofi_blk tell each other. An open file of /dev/kofi_blk is a
 * disk, once KOFI_BLK_ADD has made it, and the disk ends with the file. The keeper has the lease, and
 * renews it; it asks the lender for queue pairs, and hands the place of each to the module, which
 * connects there by itself. The file is readable while the disk has no queue pair: the keeper ends
 * the one that is lost at the lender, and after that hands another one over.
 *
 * Opening it takes CAP_SYS_ADMIN. Errors are those of ioctl(2).
 */
#ifndef KOFI_BLK_H
#define KOFI_BLK_H

#include <linux/ioctl.h>

#include "wire.h"

#define KOFI_BLK_FILE	   "/dev/kofi_blk"
#define KOFI_BLK_VERSION   1u
#define KOFI_BLK_DEPTH_MAX 256u
#define KOFI_BLK_FAIL_MAX  86400000u

enum kofi_blk_feature {
	KOFI_BLK_CACHE = 1 << 0, /* written blocks may be volatile until they are flushed */
	KOFI_BLK_WRITE_ZEROES = 1 << 1, /* Write Zeroes */
	KOFI_BLK_DEALLOCATE = 1 << 2,	/* Dataset Management with AD */
	KOFI_BLK_READ_ONLY = 1 << 3,
};

/*
 * struct kofi_blk_add - a disk
 * @version:  KOFI_BLK_VERSION
 * @nsid:     namespace
 * @blocks:   of @block_size bytes, a power of two from 512 to 4096
 * @transfer_max: bytes of the longest command, whole blocks, a page of the kernel at least; 0: no limit of the device's
 * @depth:    requests that may be under way, KOFI_BLK_DEPTH_MAX at most
 * @features: enum kofi_blk_feature
 * @fail_ms:  how long requests wait for another queue pair until they fail, KOFI_BLK_FAIL_MAX at most
 * @number:   out: the disk is kofiblkN
 * @rsvd40:   0
 */
struct kofi_blk_add {
	uint32_t version;
	uint32_t nsid;
	uint64_t blocks;
	uint32_t block_size;
	uint32_t transfer_max;
	uint32_t depth;
	uint32_t features;
	uint32_t fail_ms;
	uint32_t number;
	uint64_t rsvd40;
};

static_assert(sizeof(struct kofi_blk_add) == 48, "an interface");

#define KOFI_BLK_PEER_MAX 64u

/*
 * struct kofi_blk_pair - a queue pair of the disk's namespace
 * @place: as the lender has answered
 * @peer:  the lender's host as a number, with a zero byte: the address of ours by which it is reached is
 *	   the one that is used; "": any
 */
struct kofi_blk_pair {
	struct remote_place place;
	char peer[KOFI_BLK_PEER_MAX];
};

static_assert(sizeof(struct kofi_blk_pair) == 400, "an interface");

/*
 * KOFI_BLK_ADD - make the file's disk. It answers requests once it has a queue pair
 * -EINVAL: it is described wrongly; -EBUSY: the file has one.
 *
 * KOFI_BLK_PAIR - connect, and begin with what has waited
 * -EINVAL: the place is none; -ENODEV: there is no disk; -EBUSY: it has a pair; -ENOSPC: that takes fewer
 * requests than @depth; -EOPNOTSUPP: the provider is not there, or lacks something; -ETIMEDOUT: nobody
 * answers within 10 s; -ESTALE: the pair has ended.
 *
 * KOFI_BLK_REMOVE - the disk goes, and the file can have another one
 * -ENODEV: there is none; -EBUSY: someone has it open, and nothing has happened.
 */
#define KOFI_BLK_ADD	_IOWR('W', 0x60, struct kofi_blk_add)
#define KOFI_BLK_PAIR	_IOW('W', 0x61, struct kofi_blk_pair)
#define KOFI_BLK_REMOVE _IO('W', 0x62)

#endif
