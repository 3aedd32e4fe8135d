/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The buffers of tools/shared/channel.h where memory needs no registration for messages: of weft-ucx,
 * weft-pipe and weft-socket.
 */
#include "channel.h"

#include <string.h>

int channel_buf_init(struct channel *ch, struct channel_buf *buf, void *addr, size_t len,
		     uint32_t slot)
{
	memset(buf, 0, sizeof(*buf));
	buf->addr = addr;
	buf->op.slot = slot;
	return 0;
}

void channel_buf_fini(struct channel_buf *buf)
{
}
