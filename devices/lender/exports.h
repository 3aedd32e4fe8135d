/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Segments that processes of this host have exported: by number and generation others get their files. A segment is
 * here as long as the connection that has exported it. Any thread.
 */
#ifndef WEFT_DEVICES_LENDER_EXPORTS_H
#define WEFT_DEVICES_LENDER_EXPORTS_H

#include <stdint.h>
#include <sys/types.h>

#define EXPORTS_MAX	  8192u
#define EXPORTS_OF_A_USER (EXPORTS_MAX / 4)

struct exports;

/*
 * struct exported - a segment
 * @len:   bytes of each file
 * @flags: WEFT_EXPORT_*
 * @uid:   of who has exported it; @by: its connection
 */
struct exported {
	uint64_t len;
	uint32_t flags;
	uid_t uid;
	const void *by;
	const int *fds;
	uint32_t fd_cnt;
};

/*
 * exports_create - returns NULL without memory
 * @fds_of_a_user: descriptors that a user may keep here
 */
struct exports *exports_create(uint32_t fds_of_a_user);

/*
 * exports_add - have others get a segment; takes the descriptors, also where it fails
 * @idx, @generation: out: how it is named
 * Returns 0; -ENOSPC: there are EXPORTS_MAX, or the user has EXPORTS_OF_A_USER, or as many descriptors here as one may;
 * -ENOMEM.
 */
int exports_add(struct exports *exports, const struct exported *segment, uint32_t *idx,
		uint32_t *generation);

/* exports_remove - returns 0; -ESTALE: there is no such segment; -EACCES: it is another connection's */
int exports_remove(struct exports *exports, uint32_t idx, uint32_t generation, const void *by);

/* exports_remove_all - what a connection has exported */
void exports_remove_all(struct exports *exports, const void *by);

/*
 * exports_get - the files of a segment
 * @uid: of who asks: the exporter's or root, unless all may
 * @fds: out: owned; room for PACKET_FDS_MAX
 * Returns 0; -ESTALE: it is gone, whatever has its number now; -EACCES; -EMFILE.
 */
int exports_get(struct exports *exports, uint32_t idx, uint32_t generation, uid_t uid,
		uint64_t *len, int *fds, uint32_t *fd_cnt);

#endif
