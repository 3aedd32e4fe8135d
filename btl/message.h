/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages: the buffers that a lane receives them in, and the functions that listen. An id travels
 * as remote CQ data. Called by the thread of the lane's context.
 */
#ifndef BTL_MESSAGE_H
#define BTL_MESSAGE_H

#include "ctx.h"

/* Bytes of the longest message, and how many a lane is ready to receive. */
#define BTL_MESSAGE_MAX ((size_t)16 << 10)
#define BTL_RECEIVES	64u

/*
 * struct btl_receives - the buffers of a lane
 * @mr:   where the device wants one, else NULL
 * @idle: those that are to be given to the device
 * @buffers: @since_ns: of a request's, when it has arrived (service.c)
 */
struct btl_receives {
	struct fid_mr *mr;
	struct btl_tag *idle;
	struct btl_receive {
		struct btl_tag tag;
		uint64_t since_ns;
		unsigned char bytes[BTL_MESSAGE_MAX];
	} buffers[BTL_RECEIVES];
};

/* btl_receives_open - have a lane of a device with messages receive them. Returns 0 or -FI_E* */
int btl_receives_open(struct weft_btl *btl, const struct btl_device *device,
		      struct btl_lane *lane);

/* btl_receives_close - free the buffers, once the lane's endpoint is closed */
void btl_receives_close(struct btl_lane *lane);

/* btl_receives_post - give the device the buffers that it has no room for yet */
void btl_receives_post(struct btl_lane *lane);

/* btl_message_arrived - have @tag's message listened to, and receive another one */
void btl_message_arrived(struct weft_btl_ctx *ctx, struct btl_lane *lane, struct btl_tag *tag,
			 size_t len, uint64_t id);

/* btl_receive_again - what was received is nobody's: receive another message */
void btl_receive_again(struct btl_lane *lane, struct btl_tag *tag);

#endif
