/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Segments with an address, by which other processes have them; weft/device.h has the contract.
 */
#define _GNU_SOURCE
#include "lenders.h"
#include "spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The lender at which a directory's segment is exported: of the device whose memory it is, or one of this host. */
static int hold_exporter(struct directory *directory, const struct weft_segment *seg,
			 struct weft_lender **lender)
{
	if (!seg->dev || !seg->dev->lender->listed)
		return directory_hold_here(directory, lender);
	*lender = seg->dev->lender;
	listed_hold((*lender)->listed);
	return 0;
}

int weft_segment_export(struct weft_lender *lender, struct weft_segment *seg, uint32_t flags,
			struct weft_address *addr)
{
	struct request request = {
		.msg = { .kind = LEASE_EXPORT,
			 .flags = flags,
			 .len = seg->part,
			 .fd_cnt = seg->fd_cnt },
		.fds = seg->fds,
	};
	int err;

	if (seg->exported)
		return -EBUSY;
	err = lender->directory ? hold_exporter(lender->directory, seg, &lender) : 0;
	if (err)
		return err;
	err = lender_ask(lender, &request);
	if (err) {
		lender_release(lender);
		return err;
	}
	seg->exported = lender;
	seg->address = (struct weft_address){ .node = request.msg.device,
					      .segment = request.msg.index,
					      .generation = request.msg.generation };
	*addr = seg->address;
	return 0;
}

void segment_unexport(struct weft_segment *seg)
{
	struct request request = { .msg = { .kind = LEASE_UNEXPORT,
					    .index = seg->address.segment,
					    .generation = seg->address.generation } };

	if (!seg->exported)
		return;
	lender_ask(seg->exported, &request);
	lender_release(seg->exported);
	seg->exported = NULL;
}

int weft_segment_import(struct weft_lender *lender, const struct weft_address *addr,
			struct weft_segment **out)
{
	struct request request = { .msg = { .kind = LEASE_IMPORT,
					    .device = addr->node,
					    .index = addr->segment,
					    .generation = addr->generation } };
	struct weft_segment *seg;
	uint32_t cnt;
	int err = lender_ask(lender, &request);

	if (err)
		return err;
	cnt = request.msg.fd_cnt;
	seg = calloc(1, sizeof(*seg));
	if (seg)
		seg->fds = calloc(PACKET_FDS_MAX, sizeof(int));
	if (!seg || !seg->fds)
		err = -ENOMEM;
	else if (!cnt || request.msg.len % NVME_PAGE || !request.msg.len ||
		 request.msg.len > SIZE_MAX / PACKET_FDS_MAX)
		err = -ENOPROTOOPT;
	if (err) {
		packet_close_fds(request.got, cnt);
		if (seg)
			free(seg->fds);
		free(seg);
		return err;
	}
	memcpy(seg->fds, request.got, cnt * sizeof(int));
	seg->why = "where who has exported it has it";
	seg->fd_cnt = cnt;
	seg->part = request.msg.len;
	seg->len = seg->part * cnt;
	err = segment_map(seg);
	if (err)
		weft_segment_free(seg);
	else
		*out = seg;
	return err;
}
