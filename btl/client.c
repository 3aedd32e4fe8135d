/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests to servers of peers. */
#include <stdlib.h>
#include <string.h>
#include "client.h"
#include "clock.h"
#include "mem.h"

/*
 * What is late by then has so long again: the program may have made no calls meanwhile, and its answer may
 * be there.
 */
#define LATE_NS 1000000000u

/* Rounds of progress to one reading of the clock. */
#define CHECK_ROUNDS 4096u

static_assert(BTL_REQUEST_HEAD + BTL_ADDR_MAX + BTL_REQUEST_DATA_MAX <= BTL_MESSAGE_MAX,
	      "a request of the largest put is a message");
static_assert((BTL_REQUEST_SLOTS & (BTL_REQUEST_SLOTS - 1)) == 0,
	      "an index is the low bits of a number");

static void slot_give(struct btl_client *client, struct btl_request_slot *slot)
{
	slot->number += BTL_REQUEST_SLOTS;
	slot->tag.next = client->free;
	client->free = &slot->tag;
}

/* Nothing is under way of a request any more. */
static void slot_release(struct weft_btl_ctx *ctx, struct btl_request_slot *slot)
{
	struct btl_route *route = &ctx->routes[slot->route];

	/* else the peer was closed, and another one is there */
	if (route->serial == slot->serial)
		route->requests--;
	slot_give(ctx->client, slot);
}

static int open_device(struct weft_btl_ctx *ctx, uint32_t device)
{
	const struct btl_device *dev = &ctx->btl->devices[device];
	struct btl_client *client = ctx->client;
	struct btl_lane *lane = &ctx->lanes[device];
	struct iovec range = { client->slots, sizeof(client->slots) };
	int ret;

	client->addr_len[device] = BTL_ADDR_MAX;
	ret = fi_getname(&lane->ep->fid, client->addr[device], &client->addr_len[device]);
	if (!ret && dev->mr_mode & FI_MR_LOCAL)
		ret = btl_mr_open(ctx->btl, dev, lane->domain, lane->ep, &range, FI_SEND,
				  &client->mr[device]);
	if (!ret && !lane->receives)
		ret = btl_receives_open(ctx->btl, dev, lane);
	return ret;
}

int btl_client_open(struct weft_btl_ctx *ctx)
{
	struct btl_client *client;
	int ret = 0;

	if (!btl_needs_server(ctx->btl))
		return 0;
	client = calloc(1, sizeof(*client));
	if (!client)
		return -FI_ENOMEM;
	ctx->client = client;
	for (uint32_t i = BTL_REQUEST_SLOTS; i--;) {
		client->slots[i].tag.kind = BTL_TAG_REQUEST;
		client->slots[i].number = i;
		slot_give(client, &client->slots[i]);
	}
	ret = btl_random(&client->id);
	for (uint32_t i = 0; !ret && i < ctx->btl->device_cnt; i++)
		if (btl_device_needs_server(&ctx->btl->devices[i]))
			ret = open_device(ctx, i);
	if (ret)
		btl_client_close(ctx);
	return ret;
}

void btl_client_close(struct weft_btl_ctx *ctx)
{
	struct btl_client *client = ctx->client;

	if (!client)
		return;
	for (uint32_t i = 0; i < ctx->btl->device_cnt; i++)
		if (client->mr[i])
			fi_close(&client->mr[i]->fid);
	free(client);
	ctx->client = NULL;
}

ssize_t btl_client_request(struct weft_btl_ctx *ctx, struct btl_request *request, size_t route,
			   struct btl_tag *tag)
{
	struct btl_route *r = &ctx->routes[route];
	struct btl_client *client = ctx->client;
	struct btl_request_slot *slot = (struct btl_request_slot *)client->free;
	uint32_t device = tag->device;
	struct iovec iov = { .iov_base = NULL };
	void *desc = client->mr[device] ? fi_mr_desc(client->mr[device]) : NULL;
	struct fi_msg msg = { &iov, &desc, 1, r->server[device], NULL, BTL_ID_REQUEST };
	ssize_t ret;

	if (!(r->serves & 1u << device))
		return -FI_EHOSTUNREACH;
	if (!slot || r->requests >= BTL_REQUEST_PEER_SLOTS)
		return -FI_EAGAIN;
	request->client = client->id;
	request->number = slot->number;
	request->from = client->addr[device];
	request->from_len = (uint32_t)client->addr_len[device];
	iov = (struct iovec){ slot->bytes, btl_request_write(request, slot->bytes) };
	msg.context = &slot->tag;
	/* the answer says that it has arrived */
	ret = fi_sendmsg(ctx->lanes[device].ep, &msg,
			 FI_COMPLETION | FI_REMOTE_CQ_DATA | FI_INJECT_COMPLETE);
	if (ret)
		return ret;
	r->requests++;
	slot->route = route;
	slot->serial = r->serial;
	client->free = slot->tag.next;
	client->waiting++;
	slot->requester = tag;
	slot->since_ns = clock_ns();
	slot->is_sent = slot->is_late = false;
	return 0;
}

/* Ends what a request was for. */
static size_t slot_end(struct weft_btl_ctx *ctx, struct btl_request_slot *slot, int status)
{
	struct btl_tag *requester = slot->requester;

	slot->requester = NULL;
	ctx->client->waiting--;
	if (slot->is_sent)
		slot_release(ctx, slot);
	return btl_tag_end(ctx, requester, status);
}

size_t btl_client_sent(struct weft_btl_ctx *ctx, struct btl_tag *tag, int status)
{
	struct btl_request_slot *slot = (struct btl_request_slot *)tag;

	slot->is_sent = true;
	if (!slot->requester) {
		slot_release(ctx, slot);
		return 0;
	}
	return status ? slot_end(ctx, slot, status) : 0;
}

/* Takes what an answer has. Returns 0 or -FI_E*. */
static int take(struct btl_tag *tag, const struct btl_answer *answer)
{
	struct btl_state *state = btl_state(tag->op);

	if (answer->status)
		return answer->status;
	if (state->kind == BTL_ATOMIC)
		state->old = answer->old;
	if (state->kind != BTL_GET)
		return answer->len ? -FI_EIO : 0;
	if (answer->len != tag->len)
		return -FI_EIO;
	memcpy(tag->buf, answer->data, tag->len);
	return 0;
}

size_t btl_client_answered(struct weft_btl_ctx *ctx, const unsigned char *in, size_t len)
{
	struct btl_answer answer;
	struct btl_request_slot *slot;

	if (!ctx->client || !btl_answer_read(in, len, &answer))
		return 0;
	slot = &ctx->client->slots[answer.number % BTL_REQUEST_SLOTS];
	if (!slot->requester || slot->number != answer.number)
		return 0; /* it was given up */
	return slot_end(ctx, slot, take(slot->requester, &answer));
}

/* A request has had no answer for long. Returns how many operations have ended. */
static size_t slot_late(struct weft_btl_ctx *ctx, struct btl_request_slot *slot, uint64_t now)
{
	struct btl_lane *lane = &ctx->lanes[slot->requester->device];

	if (!slot->is_late) {
		slot->is_late = true;
		slot->since_ns = now - BTL_ANSWER_NS + LATE_NS;
		return 0;
	}
	/* else what the device can't send keeps its slot */
	if (!slot->is_sent)
		fi_cancel(&lane->ep->fid, &slot->tag);
	return slot_end(ctx, slot, -FI_ETIMEDOUT);
}

size_t btl_client_check(struct weft_btl_ctx *ctx)
{
	struct btl_client *client = ctx->client;
	size_t ended = 0;
	uint64_t now;

	if (!client->waiting || ++client->rounds < CHECK_ROUNDS)
		return 0;
	client->rounds = 0;
	now = clock_ns();
	for (uint32_t i = 0; i < BTL_REQUEST_SLOTS; i++)
		if (client->slots[i].requester &&
		    now - client->slots[i].since_ns > BTL_ANSWER_NS)
			ended += slot_late(ctx, &client->slots[i], now);
	return ended;
}
