/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sending and receiving messages. */
#include <stdlib.h>
#include "access.h"
#include "mem.h"
#include "message.h"

void btl_receives_post(struct btl_lane *lane)
{
	struct btl_receives *receives = lane->receives;
	struct btl_tag *tag;

	while ((tag = receives->idle)) {
		struct btl_receive *receive = (struct btl_receive *)tag;
		void *desc = receives->mr ? fi_mr_desc(receives->mr) : NULL;

		if (fi_recv(lane->ep, receive->bytes, BTL_MESSAGE_MAX, desc, FI_ADDR_UNSPEC,
			    tag))
			return; /* the next progress tries again */
		receives->idle = tag->next;
	}
}

void btl_receive_again(struct btl_lane *lane, struct btl_tag *tag)
{
	tag->next = lane->receives->idle;
	lane->receives->idle = tag;
	btl_receives_post(lane);
}

int btl_receives_open(struct weft_btl *btl, const struct btl_device *device,
		      struct btl_lane *lane)
{
	struct btl_receives *receives;
	struct iovec range;
	int ret;

	receives = calloc(1, sizeof(*receives));
	if (!receives)
		return -FI_ENOMEM;
	range = (struct iovec){ receives->buffers, sizeof(receives->buffers) };
	ret = device->mr_mode & FI_MR_LOCAL ? btl_mr_open(btl, device, lane->domain, lane->ep,
							  &range, FI_RECV, &receives->mr)
					    : 0;
	if (ret) {
		free(receives);
		return ret;
	}
	lane->receives = receives;
	for (uint32_t i = BTL_RECEIVES; i--;) {
		receives->buffers[i].tag.kind = BTL_TAG_RECEIVE;
		receives->buffers[i].tag.next = receives->idle;
		receives->idle = &receives->buffers[i].tag;
	}
	btl_receives_post(lane);
	return 0;
}

void btl_receives_close(struct btl_lane *lane)
{
	if (!lane->receives)
		return;
	if (lane->receives->mr)
		fi_close(&lane->receives->mr->fid);
	free(lane->receives);
	lane->receives = NULL;
}

void btl_message_arrived(struct weft_btl_ctx *ctx, struct btl_lane *lane, struct btl_tag *tag,
			 size_t len, uint64_t id)
{
	const struct btl_receive *receive = (struct btl_receive *)tag;
	const struct btl_listener *listener;

	if (id < BTL_LISTENERS && len <= BTL_MESSAGE_MAX) {
		listener = &ctx->btl->listeners[id];
		if (listener->fn)
			listener->fn(listener->arg, receive->bytes, len);
	}
	btl_receive_again(lane, tag);
}

static bool has_messages(const struct weft_btl *btl)
{
	for (uint32_t i = 0; i < btl->device_cnt; i++)
		if (!btl->devices[i].has_messages)
			return false;
	return true;
}

size_t weft_btl_message_max(const struct weft_btl *btl)
{
	return btl && has_messages(btl) ? BTL_MESSAGE_MAX : 0;
}

/* Has all devices of the home context receive. */
static int receive_all(struct weft_btl *btl)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < btl->device_cnt; i++)
		if (!btl->home->lanes[i].receives)
			ret = btl_receives_open(btl, &btl->devices[i], &btl->home->lanes[i]);
	return ret;
}

int weft_btl_listen(struct weft_btl *btl, uint8_t id,
		    void (*fn)(void *arg, const void *data, size_t len), void *arg)
{
	int ret;

	if (!btl)
		return -FI_EINVAL;
	if (!has_messages(btl))
		return -FI_EOPNOTSUPP;
	ret = receive_all(btl);
	if (ret)
		return ret;
	btl->listeners[id] = (struct btl_listener){ fn, arg };
	return 0;
}

/* Sends what the device does not copy within the call. @msg: but for @desc and @context */
static int send_begin(struct weft_btl_ctx *ctx, size_t route, uint32_t device,
		      struct fi_msg *msg, const struct weft_btl_mem *mem, struct weft_btl_op *op)
{
	struct btl_state *state = btl_state(op);
	void *desc;
	ssize_t ret;

	btl_op_prepare(op, BTL_SEND);
	state->tag.device = device;
	ret = btl_local_get(ctx, device, msg->msg_iov, mem, &state->tag.local, &desc);
	if (ret)
		return (int)ret;
	msg->desc = &desc;
	msg->context = &state->tag;
	ret = fi_sendmsg(ctx->lanes[device].ep, msg,
			 FI_COMPLETION | FI_REMOTE_CQ_DATA | FI_INJECT_COMPLETE);
	return btl_op_begun(ctx, op, route, ret);
}

int weft_btl_send(struct weft_btl_ctx *ctx, struct weft_btl_peer *peer, uint8_t id,
		  const void *buf, size_t len, struct weft_btl_mem *mem, struct weft_btl_op *op)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	const struct btl_device *device;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .data = id };
	uint32_t at;
	size_t idx;
	int ret;

	ret = ctx && peer && op ? btl_route_get(ctx, peer, &idx) : -FI_EINVAL;
	if (ret)
		return ret;
	if (len > BTL_MESSAGE_MAX)
		return -FI_EMSGSIZE;
	at = btl_route_device(&ctx->routes[idx]);
	device = &ctx->btl->devices[at];
	if (!device->has_messages)
		return -FI_EOPNOTSUPP;
	msg.addr = ctx->routes[idx].addr[at];
	if (len > device->inject_max)
		return send_begin(ctx, idx, at, &msg, mem, op);
	ret = (int)fi_injectdata(ctx->lanes[at].ep, buf, len, id, msg.addr);
	return ret ? ret : 1;
}
